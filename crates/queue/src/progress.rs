//! How far the search for a workload's flavors has come: it goes on from one cycle to the next.

/// Where the search for flavors goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The cycle in which the search was made.
    pub(super) cycle: u64,
    /// The queue's generation then.
    pub(super) generation: u64,
    /// By pod set and resource group; zero is from the start.
    pub(super) next: Vec<Vec<usize>>,
}

impl Progress {
    /// Returns whether there are flavors that were not tried yet.
    pub(super) fn is_pending(&self) -> bool {
        self.next.iter().flatten().any(|next| *next > 0)
    }

    /// Returns from where on a pod set's search in a group goes on.
    pub(super) fn next(&self, set: usize, group: usize) -> usize {
        self.next
            .get(set)
            .and_then(|groups| groups.get(group))
            .copied()
            .unwrap_or(0)
    }
}

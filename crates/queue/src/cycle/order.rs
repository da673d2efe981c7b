//! The order in which a cycle decides about the heads of a tree's queues.

use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeMap,
};

use super::{
    super::{cycle_state::CycleState, quotas::NodeId, share::Share},
    NominatedWorkload,
};

/// Orders by how far up the cohorts a workload borrows, then by priority, then by queueing time.
pub(super) fn classical(nominated: &mut [NominatedWorkload]) {
    nominated.sort_by_key(|workload| {
        (
            workload.assignment.borrowing,
            Reverse(workload.priority),
            workload.queued_at,
            workload.id,
        )
    });
}

/// Returns which of the remaining workloads is next under fair sharing: a tournament in each cohort, from the leaves up.
pub(super) fn fairest(state: &mut CycleState<'_>, remaining: &[NominatedWorkload]) -> usize {
    let root = state.quotas.root(state.queues[remaining[0].queue].node);
    let Some(tournament) = Tournament::new(state, remaining, root) else {
        return 0;
    };
    tournament.winner(state, root).expect("some remain")
}

struct Tournament<'a> {
    remaining: &'a [NominatedWorkload],
    by_node: BTreeMap<NodeId, usize>,
    /// The share of the child of a cohort that a workload's queue is below, if the workload were admitted.
    shares: BTreeMap<(NodeId, usize), Share>,
}

impl<'a> Tournament<'a> {
    /// Computes the shares; `None` where there is no cohort, so that there is nothing to compare.
    fn new(state: &mut CycleState<'_>, remaining: &'a [NominatedWorkload], root: NodeId) -> Option<Self> {
        let mut tournament = Self {
            remaining,
            by_node: BTreeMap::new(),
            shares: BTreeMap::new(),
        };
        for (number, workload) in remaining.iter().enumerate() {
            let node = state.queues[workload.queue].node;
            if node == root {
                return None;
            }
            tournament.by_node.insert(node, number);
            state.quotas.add(node, &workload.assignment.usage);
            let mut below = node;
            for cohort in state.quotas.ancestors(node) {
                tournament
                    .shares
                    .insert((cohort, number), Share::of(state.quotas, below));
                below = cohort;
            }
            state.quotas.remove(node, &workload.assignment.usage);
        }
        Some(tournament)
    }

    fn winner(&self, state: &CycleState<'_>, cohort: NodeId) -> Option<usize> {
        let node = state.quotas.node(cohort);
        let of_cohorts = node.cohorts.iter().filter_map(|child| self.winner(state, *child));
        let of_queues = node
            .queues
            .iter()
            .filter_map(|queue| self.by_node.get(queue).copied());
        of_cohorts
            .chain(of_queues)
            .min_by(|a, b| self.compare(cohort, *a, *b))
    }

    /// Compares two workloads below a cohort: first the one that needs no borrowing, then the lower share, the higher
    /// priority, the earlier queueing time.
    fn compare(&self, cohort: NodeId, a: usize, b: usize) -> Ordering {
        let (share_a, share_b) = (&self.shares[&(cohort, a)], &self.shares[&(cohort, b)]);
        let (a, b) = (&self.remaining[a], &self.remaining[b]);
        let borrows_a = share_a.is_borrowing_on(&a.assignment.usage);
        let borrows_b = share_b.is_borrowing_on(&b.assignment.usage);
        borrows_a
            .cmp(&borrows_b)
            .then_with(|| share_a.compare(share_b))
            .then_with(|| b.priority.cmp(&a.priority))
            .then_with(|| a.queued_at.cmp(&b.queued_at))
            .then_with(|| a.id.cmp(&b.id))
    }
}

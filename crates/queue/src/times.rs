//! What changes with time, though nobody comes or goes: protection and back-offs end, and usage decays.

use jiff::{SignedDuration, Timestamp};

use super::{Queues, WorkloadId};

impl Queues {
    /// Keeps whoever has had their quota for less than this from being evicted by those who were evicted before.
    ///
    /// By Kueue's rules alone, which `None` is, two can take turns for ever, and neither gets anything done.
    pub fn protect_for(&mut self, span: Option<SignedDuration>) {
        self.protected_for = span;
    }

    /// Returns when protection of somebody ends next, after which others may try again.
    pub fn protected_until(&self) -> Option<Timestamp> {
        let span = self.protected_for?;
        let holders = self
            .trees
            .iter()
            .flat_map(|tree| &tree.queues)
            .flat_map(|queue| queue.holders.values());
        let ends = holders.filter_map(|holder| holder.reserved_at.checked_add(span).ok());
        ends.filter(|end| *end > self.now).min()
    }

    /// Returns when, while nobody comes or goes, another of those who wait goes first in a queue: usage decays, and is used.
    pub fn reordered_at(&self) -> Option<Timestamp> {
        let queues = self.by_usage.iter().map(|at| self.queue(*at));
        let times = queues.filter_map(|queue| {
            let (_, first) = queue.head()?;
            queue
                .users
                .overtaken_at(first.user, queue.pending.users(), self.now)
        });
        times.min()
    }

    /// Keeps a workload that waits from being tried before a time. Till then it has no place in its queue: nobody waits
    /// behind it.
    pub fn back_off(&mut self, id: WorkloadId, until: Timestamp) {
        let Some(at) = self.workloads.get(&id).copied() else {
            return;
        };
        if self.queue_mut(at).pending.back_off(id).is_some() {
            self.back_offs.set(id, until);
            self.trees[at.tree].wake();
            self.restless.insert(at.tree);
        }
    }

    /// Lets those be tried again whose time has come, and returns them.
    pub fn end_back_offs(&mut self, now: Timestamp) -> Vec<WorkloadId> {
        let over: Vec<_> = std::iter::from_fn(|| self.back_offs.pop_due(now)).collect();
        for id in &over {
            let at = self.workloads[id];
            self.queue_mut(at).pending.end_back_off(*id);
            self.trees[at.tree].searched.clear();
            self.restless.insert(at.tree);
        }
        over
    }

    /// Returns before when a workload is not tried, or `None` when it may be.
    pub fn backs_off_until(&self, id: WorkloadId) -> Option<Timestamp> {
        self.back_offs.get(id)
    }

    /// Returns when somebody may be tried next who may not be now.
    pub fn next_back_off_ends(&self) -> Option<Timestamp> {
        self.back_offs.earliest()
    }

    pub(super) fn safe_since(&self, now: Timestamp) -> Option<Timestamp> {
        now.checked_sub(self.protected_for?).ok()
    }
}

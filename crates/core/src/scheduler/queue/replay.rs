//! From facts to where the queue stood: it decides nothing here.
//!
//! A queue that decided something has applied it already. One that only hears of it, as in a replay, is brought to the same
//! state. In which order those who wait are tried, and which of them were in vain, is no part of that: it is tried anew.

use std::sync::Arc;

use blueproof_queue::{Workload, WorkloadId};
use jiff::{SignedDuration, Timestamp};

use super::{Entry, Evicted, EvictionReason, Place, Queue};
use crate::{
    domain::{AttemptId, RunId},
    fact::Assignment,
};

impl Queue {
    /// Gives an attempt the quota that was reserved for it, and returns how long it had waited; `None` where it did not wait.
    pub(in super::super) fn reserve(
        &mut self,
        now: Timestamp,
        attempt: AttemptId,
        assignment: &Assignment,
    ) -> Option<SignedDuration> {
        let entry = self.entry_of(attempt)?;
        let workload: &mut Workload = Arc::make_mut(&mut entry.workload);
        workload.cluster_queue.clone_from(&assignment.cluster_queue);
        workload.local_queue.clone_from(&assignment.local_queue);
        let workload = Arc::clone(&entry.workload);
        self.queues.admit(&workload, &assignment.pod_sets, now);
        let id = workload.id;
        Some(self.hold(now, id, assignment.pod_sets.clone()))
    }

    /// Admits an attempt into the quota that it has.
    pub(in super::super) fn admit(&mut self, attempt: AttemptId) {
        if let Some(entry) = self.entry_of(attempt) {
            entry.place = Place::Given;
            self.held.remove(&attempt.run);
        }
    }

    /// Takes an attempt's quota back; `None` where it has none.
    pub(in super::super) fn evict(
        &mut self,
        now: Timestamp,
        attempt: AttemptId,
        reason: EvictionReason,
        by: Option<RunId>,
    ) -> Option<Evicted> {
        let id = self.entry_of(attempt)?.workload.id;
        match by {
            Some(by) => self.queues.evict_for(id, WorkloadId(by.0)),
            None => self.queues.evict(id),
        }
        Some(self.take_back(now, attempt.run, reason, by))
    }

    fn entry_of(&mut self, attempt: AttemptId) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(&attempt.run)?;
        (entry.attempt == attempt).then_some(entry)
    }

    /// Takes it that it is so late, and returns the runs whose back-off is over.
    pub(in super::super) fn advance(&mut self, now: Timestamp) -> Vec<RunId> {
        self.queues.advance(now);
        self.end_back_offs(now)
    }

    /// Moves every time that lies ahead by a span, which may be negative.
    pub(in super::super) fn move_times(&mut self, by: SignedDuration) {
        self.queues.move_back_offs(by);
        for entry in self.entries.values_mut() {
            entry.not_before = entry
                .not_before
                .map(|at| at.saturating_add(by).expect("a time span"));
        }
    }
}

//! From what was decided once to where the queue stood: nothing here decides.
//!
//! A queue that decided something has applied it already. One that only hears of it, as in a replay, is brought to the same
//! state. In which order pending workloads are tried, and which of them were tried in vain, is no part of that: they are
//! tried anew.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{AdmissionQueue, AdmissionStatus, Assignment};
use crate::WorkloadId;

impl AdmissionQueue {
    /// Gives a workload the quota that was reserved for it, and returns how long it had waited; `None` where it is unknown.
    pub fn reserve(
        &mut self,
        now: Timestamp,
        id: WorkloadId,
        assignment: &Assignment,
    ) -> Option<SignedDuration> {
        let entry = self.entries.get_mut(&id)?;
        let workload = Arc::make_mut(&mut entry.workload);
        workload.cluster_queue.clone_from(&assignment.cluster_queue);
        workload.local_queue.clone_from(&assignment.local_queue);
        self.queues.admit(&entry.workload, &assignment.pod_sets, now);
        Some(self.hold(now, id, assignment.pod_sets.clone()))
    }

    /// Admits a workload into the quota that it has; an unknown one is no mistake.
    pub fn admit(&mut self, id: WorkloadId) {
        if self.entries.contains_key(&id) {
            self.set_status(id, AdmissionStatus::Admitted);
        }
    }

    /// Takes a workload's quota back, and returns how far it was: one that was admitted keeps its quota until it is released,
    /// and any other is pending again already. `None` where it is unknown.
    pub fn evict(
        &mut self,
        now: Timestamp,
        id: WorkloadId,
        by: Option<WorkloadId>,
    ) -> Option<AdmissionStatus> {
        let status = self.status(id)?;
        match by {
            Some(by) => self.queues.evict_for(id, by),
            None => self.queues.evict(id),
        }
        self.take_back(now, id, by);
        Some(status)
    }

    /// Lets a pending workload go first in its queue, which waits for the quota of others that were evicted; an unknown
    /// one is no mistake.
    pub fn await_preemption(&mut self, id: WorkloadId) {
        self.queues.await_preemption(id);
    }

    /// Sets the time to which usage is worked out, and returns the workloads whose back-off is over.
    pub fn advance(&mut self, now: Timestamp) -> Vec<WorkloadId> {
        self.queues.advance(now);
        self.end_back_offs(now)
    }

    /// Moves the end of each back-off by a span, which may be negative: the clock was set.
    pub fn move_times(&mut self, by: SignedDuration) {
        self.queues.move_back_offs(by);
        self.external_back_offs.move_by(by);
        for entry in self.entries.values_mut() {
            let moved = |at: Timestamp| at.saturating_add(by).expect("a time span");
            entry.backs_off_until = entry.backs_off_until.map(moved);
        }
    }
}

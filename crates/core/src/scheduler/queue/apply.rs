//! From facts to where the queue stood: nothing here decides.

use blueproof_queue::{AdmissionStatus, Assignment};
use jiff::{SignedDuration, Timestamp};

use super::{Queue, run_id, workload_id};
use crate::domain::{AttemptId, RunId};

impl Queue {
    /// Gives an attempt the quota that was reserved for it, and returns how long it had waited; `None` where it did not wait.
    pub(in super::super) fn reserve(
        &mut self,
        now: Timestamp,
        attempt: AttemptId,
        assignment: &Assignment,
    ) -> Option<SignedDuration> {
        self.entry_of(attempt)?;
        self.admission.reserve(now, workload_id(attempt.run), assignment)
    }

    /// Admits an attempt into the quota that it has.
    pub(in super::super) fn admit(&mut self, attempt: AttemptId) {
        if self.entry_of(attempt).is_some() {
            self.admission.admit(workload_id(attempt.run));
        }
    }

    /// Takes an attempt's quota back, and returns whether it was admitted; `None` where it has none.
    pub(in super::super) fn evict(
        &mut self,
        now: Timestamp,
        attempt: AttemptId,
        by: Option<RunId>,
    ) -> Option<bool> {
        self.entry_of(attempt)?;
        let id = workload_id(attempt.run);
        let status = self.admission.evict(now, id, by.map(workload_id))?;
        // It may be in a queue now whose admission has become external.
        self.forget_requested(attempt.run);
        Some(status == AdmissionStatus::Admitted)
    }

    /// Lets a run go first in its queue, which waits for the quota of others that were evicted.
    pub(in super::super) fn await_preemption(&mut self, run: RunId) {
        self.admission.await_preemption(workload_id(run));
    }

    /// Sets what time it is, and returns the runs whose back-off is over.
    pub(in super::super) fn advance(&mut self, now: Timestamp) -> Vec<RunId> {
        let over = self.admission.advance(now);
        over.into_iter().map(run_id).collect()
    }

    /// Moves every time that lies ahead by a span, which may be negative.
    pub(in super::super) fn move_times(&mut self, by: SignedDuration) {
        self.admission.move_times(by);
    }
}

//! Those who go away, or are left at the end, without ever having had quota, and why.

use blueproof_core::pending::InactiveQueue;
use blueproof_queue::{AdmissionStatus, WaitReason};

use super::{Place, Simulator};
use crate::{Unadmitted, history::EventKind};

impl Simulator<'_> {
    pub(super) fn on_give_up(&mut self, job: usize) {
        let id = self.states[job].workload.id;
        if let Some(AdmissionStatus::Inactive | AdmissionStatus::Pending | AdmissionStatus::External) =
            self.queue.status(id)
        {
            self.history.unadmitted.extend(self.unadmitted(job));
            self.states[job].place = Place::Away;
            self.queue.remove(id);
            self.history.job_records[job].gave_up = Some(self.now);
            self.note(EventKind::GaveUp { job });
        }
    }

    /// Notes why those were never admitted who wait at the end.
    pub(super) fn note_unadmitted(&mut self) {
        let waits = |job: &usize| self.queue.waiting(self.states[*job].workload.id).is_some();
        let waiting = (0..self.states.len()).filter(waits);
        let unadmitted: Vec<_> = waiting.filter_map(|job| self.unadmitted(job)).collect();
        self.history.unadmitted.extend(unadmitted);
    }

    /// Returns why a job that waits was not admitted until now; `None` is that it was before.
    fn unadmitted(&self, job: usize) -> Option<Unadmitted> {
        if !self.history.job_records[job].periods.is_empty() {
            return None;
        }
        let inactive = InactiveQueue::of(self.queue.queues(), &self.scenario.jobs[job].queue);
        let id = self.states[job].workload.id;
        let wait = self.queue.queues().wait(id);
        let status = self.queue.status(id);
        let stopped = inactive.as_ref().is_some_and(InactiveQueue::is_stopped);
        let reason = match &wait {
            Some(wait) => wait.reason,
            None if status == Some(AdmissionStatus::QuotaReserved) => {
                WaitReason::WaitingForPreemptedWorkloads
            }
            None if stopped => WaitReason::Suspended,
            None => WaitReason::Misconfigured,
        };
        Some(Unadmitted {
            job,
            reason,
            inactive,
            obstacles: wait.map(|wait| wait.obstacles).unwrap_or_default(),
        })
    }
}

//! Those who go away, or are left at the end, without ever having had quota, and why.

use blueproof_core::scheduler::InactiveQueue;
use blueproof_queue::WaitReason;

use super::{Course, Place};
use crate::{Unadmitted, history::What};

impl Course<'_> {
    pub(super) fn on_give_up(&mut self, job: usize) {
        let state = &self.states[job];
        if matches!(state.place, Place::Outside | Place::Waiting) {
            self.history.unadmitted.extend(self.unadmitted(job));
            let state = &mut self.states[job];
            state.place = Place::Away;
            self.queues.remove(state.workload.id);
            self.returning.remove(&job);
            self.history.fates[job].gave_up = Some(self.now);
            self.note(What::GaveUp { job });
        }
    }

    /// Notes why those were never admitted who wait at the end.
    pub(super) fn note_unadmitted(&mut self) {
        let waiting = (0..self.states.len()).filter(|job| {
            matches!(
                self.states[*job].place,
                Place::Outside | Place::Waiting | Place::Held
            )
        });
        let unadmitted: Vec<_> = waiting.filter_map(|job| self.unadmitted(job)).collect();
        self.history.unadmitted.extend(unadmitted);
    }

    /// Returns why a job that waits was not admitted until now; `None` is that it was before.
    fn unadmitted(&self, job: usize) -> Option<Unadmitted> {
        if !self.history.fates[job].stays.is_empty() {
            return None;
        }
        let inactive = InactiveQueue::of(&self.queues, &self.scenario.jobs[job].queue);
        let wait = self.queues.wait(self.states[job].workload.id);
        let stopped = inactive.as_ref().is_some_and(InactiveQueue::is_stopped);
        let reason = match &wait {
            Some(wait) => wait.reason,
            None if self.states[job].place == Place::Held => WaitReason::WaitingForPreemptedWorkloads,
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

//! How what clusters tell of attempts changes the state.

use blueproof_diagnostic::Code;
use jiff::Timestamp;

use crate::{
    domain::{AttemptId, Outcome, Placement, Verdict},
    event::Call,
    pending::PlacePending,
    scheduler::{
        Scheduler,
        admission::lost,
        run::{Attempt, AttemptPhase, Phase},
        timers::Timer,
    },
};

impl Scheduler {
    pub(in super::super) fn note_pending(&mut self, id: AttemptId, reason: &str, message: &str) -> bool {
        if self.note_request_pending(id, reason, message) {
            return true;
        }
        if self.is_withdrawn(id) {
            return false;
        }
        let Some(attempt) = self.attempt_in(id, AttemptPhase::Reserving) else {
            return self.note_unasked(id);
        };
        attempt.pending = Some(PlacePending {
            cluster_reason: reason.to_owned(),
            message: message.to_owned(),
        });
        true
    }

    pub(in super::super) fn place(&mut self, id: AttemptId, place: &Placement) -> bool {
        if self.note_granted(id, place) {
            return true;
        }
        if self.is_withdrawn(id) {
            return false;
        }
        let now = self.now;
        let Some(attempt) = self.attempt_in(id, AttemptPhase::Reserving) else {
            return self.note_unasked(id);
        };
        attempt.place = Some(place.clone());
        attempt.pending = None;
        attempt.placed_at = Some(now);
        attempt.phase = AttemptPhase::Starting;
        let reserved_at = attempt.reserved_at;
        self.count_place(reserved_at);
        self.forget_failures(Call::Reserve(id));
        let limit = self.runs[&id.run].request.job.timeouts.attempt();
        self.expect_end_within(id, limit);
        self.due.push(Call::Start(id));
        true
    }

    pub(in super::super) fn note_start(&mut self, id: AttemptId) -> bool {
        let now = self.now;
        let Some(attempt) = self.attempt_in(id, AttemptPhase::Starting) else {
            return false;
        };
        attempt.phase = AttemptPhase::Running;
        attempt.started_at = Some(now);
        let (placed_at, admitted_at) = (attempt.placed_at, attempt.reserved_at);
        self.count_start(id.run, placed_at, admitted_at);
        self.forget_failures(Call::Start(id));
        let limit = self.runs[&id.run].request.job.timeouts.run;
        self.expect_end_within(id, limit);
        self.due.push(Call::Observe(id));
        true
    }

    /// Notes how an attempt ended that says so. Of one that has no place yet nothing can say so.
    pub(in super::super) fn take_outcome(
        &mut self,
        id: AttemptId,
        outcome: &Outcome,
        ended_at: Option<Timestamp>,
    ) -> bool {
        let ran = |attempt: &Attempt| attempt.phase != AttemptPhase::Reserving;
        self.live_attempt(id).is_some_and(ran) && self.note_end(id, outcome, ended_at)
    }

    /// Notes how an attempt ended, and has what is left of it removed: its quota is held until that is done. It ended when it
    /// says itself, but not before it started, and not after this was seen.
    pub(in super::super) fn note_end(
        &mut self,
        id: AttemptId,
        outcome: &Outcome,
        ended_at: Option<Timestamp>,
    ) -> bool {
        let now = self.now;
        let Some(attempt) = self.live_attempt(id) else {
            return false;
        };
        let began_at = attempt.started_at.unwrap_or(attempt.reserved_at);
        let ended_at = ended_at.unwrap_or(now).max(began_at).min(now);
        self.count_outcome(id, outcome, ended_at);
        for timer in [Timer::Overdue(id), Timer::Grace(id), Timer::ExecutionTime(id)] {
            self.timers.cancel(timer);
        }
        for call in [
            Call::Reserve(id),
            Call::Start(id),
            Call::Observe(id),
            Call::Stop(id),
        ] {
            self.forget_failures(call);
        }
        let run = self.change(id.run).expect("just found");
        if let Verdict::Failed(failure) = &outcome.verdict
            && failure.diagnostic.code == Code::AgentLost
        {
            run.retries_used.killed_agents += 1;
        }
        let attempt = run.attempt_mut(id.number).expect("just found");
        attempt.phase = AttemptPhase::Releasing;
        attempt.ended_at = Some(ended_at);
        attempt.seen_over_at = Some(now);
        attempt.outcome = Some(Box::new(outcome.clone()));
        self.due.push(Call::Release(id));
        true
    }

    pub(in super::super) fn note_gone(&mut self, id: AttemptId) -> bool {
        let had_request = self.note_request_gone(id);
        let now = self.now;
        let Some(attempt) = self.attempt_in(id, AttemptPhase::Releasing) else {
            return had_request;
        };
        attempt.phase = AttemptPhase::Gone;
        let (reserved_at, evicted) = (attempt.reserved_at, attempt.eviction.clone());
        if let Some(seen_over_at) = attempt.seen_over_at {
            self.durations.note_clearing(now.duration_since(seen_over_at));
        }
        self.forget_failures(Call::Release(id));
        let waits_again = matches!(self.runs[&id.run].phase, Phase::ComingBack { back_off: None, .. });
        if let Some(eviction) = evicted.filter(|_| waits_again) {
            let took = now.duration_since(eviction.at);
            self.count_return(id.run, eviction.reason.condition_reason(), took);
        }
        self.queue.release(id);
        let run = self.change(id.run).expect("the attempt's run is known");
        run.execution.spend(now.duration_since(reserved_at));
        true
    }

    /// Notes that a cluster has lost an attempt, or what was asked of it for one: asking for that has failed.
    pub(in super::super) fn note_loss(&mut self, id: AttemptId, message: &str) -> bool {
        match self.is_requested(id) {
            true => self.note_failure(Call::Reserve(id), &lost(message)),
            false => self.live_attempt(id).is_some(),
        }
    }
}

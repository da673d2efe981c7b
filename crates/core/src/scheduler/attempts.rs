//! From the queue to the end: an attempt is placed, started, watched, judged and cleared away.

use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::objects::RequeuingTimestamp;
use jiff::{SignedDuration, Timestamp};

use super::{
    Scheduler,
    queue::Evicted,
    requests::never_ran,
    run::{Attempt, AttemptPhase, Phase, Stop, StopReason},
    timers::Timer,
    why::BackOff,
};
use crate::{
    domain::{AttemptId, Ending, Failure, FailureClass, Limit, Outcome, RunId, Verdict},
    event::{Call, StopMode},
    view::Eviction,
};

impl Scheduler {
    /// Promises quota to whoever is next, as long as there is any, and takes it from whoever has to give it back.
    pub(super) fn start_what_fits(&mut self) {
        loop {
            let decided = self.queue.decide(self.now);
            self.touched.extend(&decided.tried_again);
            self.count_decisions(&decided);
            for evicted in &decided.evicted {
                self.evict(evicted);
            }
            if decided.admitted.is_empty() {
                return;
            }
            for attempt in decided.admitted {
                self.begin(attempt);
            }
        }
    }

    fn begin(&mut self, attempt: AttemptId) {
        let id = attempt.run;
        let request = self.runs[&id].request.clone();
        self.timers.cancel(Timer::QueueTimeout(id));
        let Some(head) = self.gate.check(&request, self.now) else {
            // The approval has expired, or the policy that it was given under has changed.
            self.queue.release(attempt);
            return self.pass_gate(id);
        };
        let reserved_at = self.now;
        let entered_at = self.queue.times(id).map(|(entered_at, _)| entered_at);
        let run = self.change(id).expect("queued runs are known");
        let Phase::Queued { since: queued_at, .. } = run.phase else {
            unreachable!("only queued runs are admitted");
        };
        run.phase = Phase::Active;
        run.attempts.push(Attempt {
            id: attempt,
            head,
            phase: AttemptPhase::Reserving,
            queued_at,
            entered_at,
            reserved_at,
            placed_at: None,
            started_at: None,
            ended_at: None,
            seen_over_at: None,
            place: None,
            stop: None,
            eviction: None,
            outcome: None,
        });
        if let Some(end) = run.execution.ends_at(reserved_at) {
            self.timers.set(Timer::ExecutionTime(attempt), end);
        }
        self.count_admission(id);
        self.due.push(Call::Reserve(attempt));
    }

    /// Asks an attempt to give its quota back: first by an interrupt, then, after its grace, by ending it.
    fn evict(&mut self, evicted: &Evicted) {
        let Evicted {
            attempt: id,
            reason,
            by,
            reversal: _,
        } = *evicted;
        let at = self.now;
        let Some(attempt) = self.live_attempt(id) else {
            return;
        };
        attempt.eviction = Some(Eviction { reason, by, at });
        self.count_eviction(evicted);
        self.stop_attempt(id.run, Stop::gently(StopReason::Evicted));
    }

    /// The run's attempts have had quota for as long as they may; it does not come back.
    pub(super) fn on_execution_time_over(&mut self, id: AttemptId) {
        if self.live_attempt(id).is_some() {
            self.stop_attempt(id.run, Stop::gently(StopReason::ExecutionTimeOver));
        }
    }

    /// Sees to it that an attempt that was asked to end does so: one that was interrupted is told to end when its grace is
    /// over, and one that was told to end is then given up, and ended by force.
    pub(super) fn expect_end_of(&mut self, id: AttemptId, how: StopMode) {
        let end = self.now.saturating_add(self.retry.eviction_grace);
        let end = end.expect("a time span");
        let timer = match how {
            StopMode::Interrupt => Timer::Grace(id),
            StopMode::End => Timer::Overdue(id),
        };
        if self.timers.get(timer).is_none_or(|earlier| end < earlier) {
            self.timers.set(timer, end);
        }
    }

    pub(super) fn on_grace_over(&mut self, id: AttemptId) {
        let Some(why) = self
            .live_attempt(id)
            .and_then(|attempt| attempt.stop)
            .map(|stop| stop.why)
        else {
            return;
        };
        let how = StopMode::End;
        self.stop_attempt(id.run, Stop { how, why });
    }

    pub(super) fn on_reserved(&mut self, id: AttemptId, place: String) {
        let now = self.now;
        let Some(attempt) = self.attempt_in(id, AttemptPhase::Reserving) else {
            return;
        };
        attempt.place = Some(place);
        attempt.placed_at = Some(now);
        let (stopped, reserved_at) = (attempt.stop.is_some(), attempt.reserved_at);
        self.count_place(reserved_at);
        self.forget_failures(Call::Reserve(id));
        if stopped {
            return self.on_finished_now(id, never_ran(Verdict::Stopped));
        }
        let request = self.runs[&id.run].request.clone();
        if self.gate.check(&request, self.now).is_none() {
            self.clear_away(id, never_ran(Verdict::Stopped), self.now);
            return self.wait_again(id);
        }
        self.attempt_in(id, AttemptPhase::Reserving)
            .expect("just found")
            .phase = AttemptPhase::Starting;
        self.expect_end_within(id, request.job.timeouts.attempt());
        self.due.push(Call::Start(id));
    }

    pub(super) fn on_started(&mut self, id: AttemptId) {
        let now = self.now;
        let Some(attempt) = self.attempt_in(id, AttemptPhase::Starting) else {
            return;
        };
        attempt.phase = AttemptPhase::Running;
        attempt.started_at = Some(now);
        let (placed_at, admitted_at) = (attempt.placed_at, attempt.reserved_at);
        self.count_start(id.run, placed_at, admitted_at);
        self.forget_failures(Call::Start(id));
        let limit = self.runs[&id.run].request.job.timeouts.run;
        self.expect_end_within(id, limit);
        self.due.push(Call::Observe(id));
    }

    pub(super) fn on_finished(&mut self, id: AttemptId, outcome: Box<Outcome>, ended_at: Option<Timestamp>) {
        let live = self.live_attempt(id);
        if live.is_some_and(|attempt| attempt.phase != AttemptPhase::Reserving) {
            self.on_finished_at(id, outcome, ended_at.unwrap_or(self.now));
        }
    }

    pub(super) fn on_released(&mut self, id: AttemptId) {
        let Some(attempt) = self.attempt_in(id, AttemptPhase::Releasing) else {
            return;
        };
        attempt.phase = AttemptPhase::Gone;
        let reserved_at = attempt.reserved_at;
        let (evicted, seen_over_at) = (attempt.eviction, attempt.seen_over_at);
        if let Some(seen_over_at) = seen_over_at {
            self.durations
                .note_clearing(self.now.duration_since(seen_over_at));
        }
        self.forget_failures(Call::Release(id));
        if let Some(eviction) =
            evicted.filter(|_| matches!(self.runs[&id.run].phase, Phase::ComingBack { back_off: None, .. }))
        {
            self.count_return(
                id.run,
                eviction.reason.kind(),
                self.now.duration_since(eviction.at),
            );
        }
        self.queue.release(id);
        self.call_whoever_waits_for_others();
        let span = self.now.duration_since(reserved_at);
        let run = self.change(id.run).expect("the attempt's run is known");
        run.execution.spend(span);
        self.requeue(id.run);
    }

    /// An attempt that does not end by its own limits is told to end; one that does not heed that is over, and whatever it
    /// is in is removed by force.
    pub(super) fn on_overdue(&mut self, id: AttemptId) {
        let Some(attempt) = self.live_attempt(id) else {
            return;
        };
        if attempt.stop.is_none_or(|stop| stop.how != StopMode::End) {
            let stop = Stop {
                how: StopMode::End,
                why: StopReason::Overdue,
            };
            return self.stop_attempt(id.run, stop);
        }
        self.on_finished_now(id, never_ran(Verdict::Stopped));
    }

    pub(super) fn on_finished_now(&mut self, id: AttemptId, outcome: Box<Outcome>) {
        self.on_finished_at(id, outcome, self.now);
    }

    /// An attempt ended then, as it says itself: not before it started, and not after this was seen.
    fn on_finished_at(&mut self, id: AttemptId, outcome: Box<Outcome>, ended_at: Timestamp) {
        let verdict = outcome.verdict.clone();
        let now = self.now;
        let attempt = self.live_attempt(id).expect("only live attempts end");
        let began_at = attempt.started_at.unwrap_or(attempt.reserved_at);
        let ended_at = ended_at.max(began_at).min(now);
        self.count_outcome(id, &outcome, ended_at);
        self.clear_away(id, outcome, ended_at);
        match self.judge(id, &verdict) {
            Next::End(ending) => {
                self.note_duration(id, &verdict);
                self.count_finished(id.run);
                self.end_at(id.run, ending, ended_at);
            }
            Next::TryAgain { requeues, at_most } => {
                self.count_finished(id.run);
                self.try_again(id, requeues, at_most);
            }
            Next::WaitAgain => self.wait_again(id),
        }
    }

    /// Notes how long the attempt took with which a run is over: one that is tried again tells nothing of how long runs take.
    fn note_duration(&mut self, id: AttemptId, verdict: &Verdict) {
        let run = &self.runs[&id.run];
        let took = run.attempt(id.number).and_then(Attempt::took);
        if let Some(took) = took.filter(|_| *verdict != Verdict::Stopped) {
            self.durations.note(id.run, &run.request, took);
        }
    }

    /// Notes how an attempt ended and has what is left of it removed. Its quota is held until that is done.
    fn clear_away(&mut self, id: AttemptId, outcome: Box<Outcome>, ended_at: Timestamp) {
        let now = self.now;
        self.timers.cancel(Timer::Overdue(id));
        self.timers.cancel(Timer::Grace(id));
        self.timers.cancel(Timer::ExecutionTime(id));
        for call in [
            Call::Reserve(id),
            Call::Start(id),
            Call::Observe(id),
            Call::Stop(id),
        ] {
            self.forget_failures(call);
        }
        let attempt = self
            .live_attempt(id)
            .expect("only live attempts are cleared away");
        attempt.phase = AttemptPhase::Releasing;
        attempt.ended_at = Some(ended_at);
        attempt.seen_over_at = Some(now);
        attempt.outcome = Some(outcome);
        self.due.push(Call::Release(id));
    }

    /// Decides what a verdict means for the run.
    fn judge(&mut self, id: AttemptId, verdict: &Verdict) -> Next {
        let run = self.runs.get_mut(&id.run).expect("the attempt's run is known");
        let stop = run.attempt(id.number).and_then(|attempt| attempt.stop);
        let failure = match (verdict, stop.map(|stop| stop.why)) {
            (Verdict::Passed, _) => return Next::End(Ending::Passed),
            (Verdict::Failed(failure), None | Some(StopReason::Evicted)) => (**failure).clone(),
            (Verdict::Failed(_), Some(StopReason::HeadMoved))
            | (Verdict::Stopped, Some(StopReason::HeadMoved)) => {
                return Next::End(Ending::Superseded);
            }
            (
                Verdict::Failed(failure),
                Some(StopReason::Cancelled | StopReason::Overdue | StopReason::ExecutionTimeOver),
            ) => {
                return Next::End(Ending::of(failure));
            }
            (Verdict::Stopped, Some(StopReason::Cancelled)) => return Next::End(Ending::Cancelled),
            (Verdict::Stopped, Some(StopReason::Evicted)) => return Next::WaitAgain,
            (Verdict::Stopped, Some(StopReason::Overdue)) => {
                run.refusal = Some(overdue());
                return Next::End(Ending::TimedOut);
            }
            (Verdict::Stopped, Some(StopReason::ExecutionTimeOver)) => {
                run.refusal = Some(execution_time_over(run.request.job.timeouts.execution));
                return Next::End(Ending::TimedOut);
            }
            // Nobody here asked for it: a machine that shuts down, or an admin with `kill`.
            (Verdict::Stopped, None) => {
                run.refusal = Some(stopped_by_others());
                stopped_by_others()
            }
        };
        self.judge_failure(id.run, failure)
    }

    /// Decides whether a run is tried again after a failure.
    fn judge_failure(&mut self, id: RunId, failure: Failure) -> Next {
        let requeuing = self.queue.objects().requeuing;
        let limit = requeuing.and_then(|requeuing| requeuing.backoff_limit_count);
        let run = self.runs.get_mut(&id).expect("the attempt's run is known");
        if failure.diagnostic.code == Code::AgentLost {
            run.retries_used.killed_agents += 1;
        }
        let killed_agents = run.retries_used.killed_agents;
        let (used, wanted, limit) = match failure.class {
            FailureClass::Infrastructure => (
                &mut run.retries_used.infrastructure,
                run.request.retries.infrastructure,
                limit,
            ),
            FailureClass::Notebook | FailureClass::Workload | FailureClass::Expectation => (
                &mut run.retries_used.blueprint,
                run.request.retries.blueprint,
                None,
            ),
            FailureClass::Timeout(_) | FailureClass::Config => return Next::End(Ending::of(&failure)),
        };
        let at_most = limit.map_or(wanted, |limit| limit.min(wanted));
        if *used >= at_most {
            let ending = Ending::of(&failure);
            let is_killed_each_time = killed_agents > 1 && killed_agents == *used + 1;
            if at_most < wanted {
                run.refusal = Some(requeuing_limit_exceeded(failure, at_most));
            } else if is_killed_each_time && self.retry.killed_agents.is_some() {
                let why = format!("the agent was killed in each of {killed_agents} attempts");
                run.refusal = Some(killed_by_itself(failure, &why));
            }
            return Next::End(ending);
        }
        if failure.diagnostic.code == Code::AgentLost
            && let Some(at_most) = self.retry.killed_agents.filter(|most| killed_agents > *most)
        {
            let ending = Ending::of(&failure);
            run.refusal = Some(too_many_killed_agents(failure, at_most));
            return Next::End(ending);
        }
        *used += 1;
        let requeues = *used;
        run.refusal = None;
        Next::TryAgain { requeues, at_most }
    }

    /// Sends a run back to the gate and into its queue, where it is not tried before its back-off is over.
    fn try_again(&mut self, id: AttemptId, requeues: u32, at_most: u32) {
        let now = self.now;
        let requeuing = self.queue.objects().requeuing;
        let pause = requeuing.map_or_else(
            || self.retry.wait_after(requeues),
            |requeuing| requeuing.pause_before(requeues),
        );
        let until = now.saturating_add(pause).expect("a time span");
        let run = self.change(id.run).expect("the run is known");
        let since = match requeuing.unwrap_or_default().timestamp {
            RequeuingTimestamp::Eviction => now,
            RequeuingTimestamp::Creation => run.attempt(id.number).expect("it was just judged").queued_at,
        };
        let back_off = Some(BackOff {
            until,
            requeues,
            at_most,
        });
        run.phase = Phase::ComingBack { since, back_off };
    }

    /// Sends a run back to the gate and into its queue, once nothing is left of the attempt that had to give way; there
    /// it is as old as it was.
    fn wait_again(&mut self, id: AttemptId) {
        let run = self.change(id.run).expect("the run is known");
        let since = run.attempt(id.number).expect("it was just judged").queued_at;
        run.phase = Phase::ComingBack {
            since,
            back_off: None,
        };
    }

    fn expect_end_within(&mut self, id: AttemptId, limit: Option<SignedDuration>) {
        let told = |attempt: &mut Attempt| attempt.stop.is_some_and(|stop| stop.how == StopMode::End);
        if self.live_attempt(id).is_some_and(told) {
            return;
        }
        match limit {
            Some(limit) => {
                let span = limit.saturating_add(self.retry.overdue_after);
                self.timers.set(
                    Timer::Overdue(id),
                    self.now.saturating_add(span).expect("a time span"),
                );
            }
            None => self.timers.cancel(Timer::Overdue(id)),
        }
    }

    fn live_attempt(&mut self, id: AttemptId) -> Option<&mut Attempt> {
        let attempt = self
            .runs
            .get_mut(&id.run)?
            .attempt_mut(id.number)
            .filter(|attempt| attempt.is_live())?;
        self.touched.insert(id.run);
        Some(attempt)
    }

    fn attempt_in(&mut self, id: AttemptId, phase: AttemptPhase) -> Option<&mut Attempt> {
        let attempt = self
            .runs
            .get_mut(&id.run)?
            .attempt_mut(id.number)
            .filter(|attempt| attempt.phase == phase)?;
        self.touched.insert(id.run);
        Some(attempt)
    }
}

/// What follows on an attempt's end.
enum Next {
    End(Ending),
    /// It is tried again, for the so many-th time of so many at most.
    TryAgain {
        requeues: u32,
        at_most: u32,
    },
    WaitAgain,
}

fn overdue() -> Failure {
    let diagnostic = Diagnostic::error(
        Code::Overdue,
        "did not end by its own limits and was ended by the scheduler",
    );
    Failure {
        class: FailureClass::Timeout(Limit::Run),
        diagnostic,
        cell: None,
    }
}

fn execution_time_over(limit: Option<SignedDuration>) -> Failure {
    let limit = limit.unwrap_or_default();
    let message =
        format!("had quota for {limit:#}, as long as it may over all attempts (timeouts.execution)");
    let diagnostic = Diagnostic::error(Code::ExecutionTimeout, message)
        .because("MaximumExecutionTimeExceeded")
        .hint("allow more under spec.timeouts.execution, or do less under a profile");
    Failure {
        class: FailureClass::Timeout(Limit::Execution),
        diagnostic,
        cell: None,
    }
}

/// Says of the last failure why it is not tried again: Kueue deactivates the workload for this.
fn requeuing_limit_exceeded(failure: Failure, at_most: u32) -> Failure {
    let diagnostic = failure
        .diagnostic
        .because(format!(
            "RequeuingLimitExceeded: a run is requeued {at_most} times at most (requeuingStrategy.backoffLimitCount)"
        ))
        .hint("try it again when the machine is well: `blueproof retry`")
        .hint("or let the admin allow more, under waitForPodsReady.requeuingStrategy of the Configuration");
    Failure {
        diagnostic,
        ..failure
    }
}

/// Says of the last failure why it is not tried again, though the blueprint asks for more retries.
fn too_many_killed_agents(failure: Failure, at_most: u32) -> Failure {
    let why = format!("a run whose agent is killed is tried again {at_most} times at most");
    killed_by_itself(failure, &why)
}

/// Says of an agent that was killed again and again what most likely kills it. Once it says nothing about the notebook.
fn killed_by_itself(failure: Failure, why: &str) -> Failure {
    let mut diagnostic = failure.diagnostic;
    diagnostic.hints.clear();
    let diagnostic = diagnostic
        .because(format!("{why}: most likely its own notebook kills it"))
        .hint("look for what the notebook kills, or try it again: `blueproof retry`");
    Failure {
        diagnostic,
        ..failure
    }
}

fn stopped_by_others() -> Failure {
    let diagnostic = Diagnostic::error(
        Code::StoppedByOthers,
        "the attempt was told to stop, but not by blueproof",
    )
    .hint("look for a shutdown of the machine, or for someone who ended the process");
    Failure {
        class: FailureClass::Infrastructure,
        diagnostic,
        cell: None,
    }
}

//! How facts change the state: the only way in which it does, live and in a replay.
//!
//! Nothing here depends on a rule that another version may have otherwise: whether something was right to happen is not
//! asked. A time limit follows from the fact that sets it, and each decision that comes of one takes it away.

mod at_gate;
mod news;

use std::{collections::BTreeSet, sync::Arc};

use blueproof_queue::{Assignment, ExecutionTime};
use jiff::{SignedDuration, Timestamp};

use super::{
    Scheduler, gate, queue,
    run::{Attempt, AttemptPhase, Phase, Report, Run, Stop, Used},
    timers::Timer,
};
use crate::{
    approval::Lapse,
    domain::{
        Actor, ApprovedHead, AttemptId, BackOff, CallError, ClusterName, Ending, Failure, RequestKey, RunId,
        RunRequest, Verdict,
    },
    event::{Call, Event, StopMode},
    fact::{Decision, RetryAfter, RetryUsed, StopReason},
    policy::Policy,
    view::{Eviction, FailingCall},
};

impl Scheduler {
    /// Applies an input, and returns whether it was news.
    pub(super) fn apply_input(&mut self, input: &Event) -> bool {
        match input {
            Event::Configured { policy } => self.set_policy(policy),
            Event::QuotaApplied { objects, by: _ } => {
                self.queue.apply((**objects).clone());
                self.withdraw_misdirected();
            }
            Event::Requested { request } => return self.add_run(request),
            Event::EntitlementChanged {
                repository,
                approvers,
                policy,
                ..
            } => self.gate.entitle(repository, approvers, policy),
            Event::Synchronized {
                pull_request, head, ..
            } => self.synchronize(pull_request, head),
            Event::BaseChanged {
                pull_request, base, ..
            } => self.gate.change_base(pull_request, base),
            Event::PullRequestClosed { pull_request, .. } => self.gate.close(pull_request),
            Event::PullRequestReopened { pull_request, .. } => self.gate.reopen(pull_request),
            Event::CancelRequested { run, .. } => return self.runs.contains_key(run),
            Event::RetryRequested { key, run, by: _ } => {
                return self.reopen(key, *run) || !self.runs.contains_key(run);
            }
            Event::InventoryChanged { cluster, inventory } => {
                return self.note_inventory(cluster, inventory);
            }
            Event::Pending {
                attempt,
                reason,
                message,
            } => return self.note_pending(*attempt, reason, message),
            Event::Reserved { attempt, place } => return self.place(*attempt, place),
            Event::Started { attempt } => return self.note_start(*attempt),
            Event::Finished {
                attempt,
                outcome,
                ended_at,
            } => return self.take_outcome(*attempt, outcome, *ended_at),
            Event::Evicted {
                attempt,
                reason,
                message,
            } => {
                return self.note_request_pending(*attempt, reason.as_str(), message)
                    || self.live_attempt(*attempt).is_some();
            }
            Event::Lost { attempt, message } => return self.note_loss(*attempt, message),
            Event::Released { attempt } => return self.note_gone(*attempt),
            Event::Reported { run, attempts } => self.note_report(*run, *attempts),
            Event::CallFailed { call, error } => return self.note_failure(*call, error),
            Event::Approved { .. }
            | Event::RevokeRequested { .. }
            | Event::HoldRequested { .. }
            | Event::ResumeRequested { .. }
            | Event::Tick => {}
        }
        true
    }

    /// Applies a decision.
    pub(super) fn apply_decision(&mut self, decision: &Decision) {
        match decision {
            Decision::ApprovalAccepted { approval } => self.gate.approve(approval.clone()),
            Decision::ApprovalRefused { .. }
            | Decision::ResumeRefused { .. }
            | Decision::RetryRefused { .. } => {}
            Decision::ApprovalRevoked { approval, reason, by } => {
                let lapse = gate::revoked(*reason, by.as_ref(), self.now);
                self.gate.lapse(approval, lapse);
            }
            Decision::ApprovalExpired { approval } => {
                self.gate.lapse(approval, Lapse::Expired { at: self.now });
            }
            Decision::Held { target, by } => self.hold(target, by),
            Decision::Resumed { target, by: _ } => self.resume(target),
            Decision::ApprovalAwaited { run } => self.send_to_gate(*run),
            Decision::Enqueued { run, since, back_off } => self.enqueue(*run, *since, *back_off),
            Decision::CyclesRun {
                admitted,
                inadmissible,
            } => self.count_cycles(*admitted, *inadmissible),
            Decision::QuotaRequested { attempt, cluster } => self.note_quota_requested(*attempt, cluster),
            Decision::QuotaReserved { attempt, assignment } => self.reserve(*attempt, assignment),
            Decision::Admitted {
                attempt,
                approved_by,
                cluster,
            } => self.admit(*attempt, approved_by, cluster),
            Decision::Evicted {
                attempt,
                reason,
                by,
                reversal,
                message,
            } => {
                if let Some(was_admitted) = self.queue.evict(self.now, *attempt, *by) {
                    self.note_eviction(&queue::Eviction {
                        attempt: *attempt,
                        reason: reason.clone(),
                        by: *by,
                        reversal: *reversal,
                        was_admitted,
                        message: message.clone(),
                    });
                }
            }
            Decision::PreemptionAwaited { run } => self.queue.await_preemption(*run),
            Decision::StopRequested { attempt, how, why } => self.request_stop(*attempt, *how, *why),
            Decision::AttemptEnded { attempt, outcome } => {
                self.note_end(*attempt, outcome, None);
            }
            Decision::Requeued { run, since, retry } => self.bring_back(*run, *since, *retry),
            Decision::Ended { run, ending, failure } => self.end_run(*run, *ending, failure.as_deref()),
            Decision::CallPostponed { call, until } => self.postpone(*call, *until),
            Decision::CallRepeated { call } => self.repeat(*call),
            Decision::ReportGivenUp { run } => self.give_up_report(*run),
            Decision::Forgotten { runs } => self.forget(runs),
            Decision::ClockSetBack { to, from } => self.set_clock_back(from.unwrap_or(self.now), *to),
        }
    }

    fn reserve(&mut self, attempt: AttemptId, assignment: &Assignment) {
        if let Some(waited) = self.queue.reserve(self.now, attempt, assignment) {
            self.count_reserved(attempt.run, waited);
        }
    }

    fn set_policy(&mut self, policy: &Policy) {
        self.gate.set_policy(policy.gate.clone());
        self.queue.protect_for(policy.retry.protected_run_time);
        self.retry = policy.retry;
        self.settled.remember(policy.remembered_runs);
        self.configured = Some(policy.clone());
        self.set_quota();
    }

    fn add_run(&mut self, request: &RunRequest) -> bool {
        if self.by_key.contains_key(&request.key) {
            return false;
        }
        let id = RunId(self.last_run.0 + 1);
        self.last_run = id;
        self.by_key.insert(request.key.clone(), id);
        let origin = gate::origin(&request.subject);
        self.by_origin.entry(origin.clone()).or_default().insert(id);
        self.unsettled.insert(id);
        self.touched.insert(id);
        let run = Run {
            id,
            request: Arc::new(request.clone()),
            gang: request.job.gang(),
            requested_at: self.now,
            retried_at: None,
            ended_at: None,
            phase: Phase::AwaitingApproval { since: self.now },
            attempts_when_held: None,
            age_when_held: None,
            refusal: None,
            attempts: Vec::new(),
            admission: None,
            evicted_for: BTreeSet::new(),
            retries_used: Used::default(),
            execution: ExecutionTime::new(request.job.timeouts.execution),
            retry_keys: BTreeSet::new(),
            report: Report::NotDue,
            last_pass: None,
        };
        self.awaiting.entry(origin).or_default().insert(id);
        self.runs.insert(id, run);
        self.note_hold(id);
        true
    }

    /// Opens a run again that has ended.
    fn reopen(&mut self, key: &RequestKey, id: RunId) -> bool {
        let since = self.now;
        let Some(run) = self.runs.get_mut(&id) else {
            return false;
        };
        let fresh = run.retry_keys.insert(key.clone());
        if !fresh || !matches!(run.phase, Phase::Ended(_)) {
            return false;
        }
        self.settled.remove(run);
        run.retried_at = Some(since);
        run.ended_at = None;
        run.refusal = None;
        run.retries_used = Used::default();
        run.execution = ExecutionTime::new(run.request.job.timeouts.execution);
        run.report = Report::NotDue;
        let back_off = None;
        run.phase = Phase::ComingBack { since, back_off };
        self.touched.insert(id);
        self.unsettled.insert(id);
        self.forget_failures(Call::Report(id));
        true
    }

    fn enqueue(&mut self, id: RunId, since: Timestamp, back_off: Option<BackOff>) {
        let now = self.now;
        let Some(run) = self.runs.get(&id) else { return };
        if let Phase::AwaitingApproval { since } = run.phase {
            self.count_gate(since);
        }
        self.leave_gate(id);
        let run = self.change(id).expect("just found");
        run.phase = Phase::Queued { since, back_off };
        let (attempt, request, evictions) = (run.next_attempt(), Arc::clone(&run.request), run.evictions());
        self.queue.submit(now, attempt, &request, since, evictions);
        if let Some(back_off) = back_off {
            self.queue.back_off(id, back_off.until);
        }
        if let Some(limit) = request.job.timeouts.queue {
            let tried_at = back_off.map_or(now, |back_off| back_off.until.max(now));
            self.timers.set(Timer::QueueTimeout(id), later(tried_at, limit));
        }
    }

    fn admit(&mut self, attempt: AttemptId, approved_by: &Actor, cluster: &ClusterName) {
        let (id, reserved_at) = (attempt.run, self.now);
        self.timers.cancel(Timer::QueueTimeout(id));
        self.queue.admit(attempt);
        let entered_at = self.queue.times(id).map(|(entered_at, _)| entered_at);
        let Some(run) = self.change(id) else { return };
        let queued_at = match run.phase {
            Phase::Queued { since, .. } => since,
            Phase::AwaitingApproval { .. } | Phase::ComingBack { .. } | Phase::Active | Phase::Ended(_) => {
                reserved_at
            }
        };
        run.phase = Phase::Active;
        run.attempts.push(Attempt {
            id: attempt,
            head: ApprovedHead::new(run.request.subject.head.clone(), approved_by.clone()),
            cluster: cluster.clone(),
            phase: AttemptPhase::Reserving,
            queued_at,
            entered_at,
            reserved_at,
            placed_at: None,
            started_at: None,
            ended_at: None,
            seen_over_at: None,
            place: None,
            pending: None,
            stop: None,
            eviction: None,
            outcome: None,
        });
        if let Some(end) = run.execution.ends_at(reserved_at) {
            self.timers.set(Timer::ExecutionTime(attempt), end);
        }
        self.count_admission(id);
        match self.take_granted(attempt) {
            Some(place) => {
                self.place(attempt, &place);
            }
            None => self.due.push(Call::Reserve(attempt)),
        }
    }

    pub(super) fn note_eviction(&mut self, evicted: &queue::Eviction) {
        let queue::Eviction {
            attempt: id,
            ref reason,
            by,
            ..
        } = *evicted;
        if !evicted.was_admitted {
            self.count_eviction(evicted);
            return self.count_return(id.run, reason.condition_reason(), SignedDuration::ZERO);
        }
        let at = self.now;
        let Some(attempt) = self.change(id.run).and_then(|run| run.live_mut(id)) else {
            return;
        };
        attempt.eviction = Some(Eviction {
            reason: reason.clone(),
            by,
            at,
            message: evicted.message.clone(),
        });
        self.count_eviction(evicted);
    }

    fn request_stop(&mut self, id: AttemptId, how: StopMode, why: StopReason) {
        let Some(attempt) = self.change(id.run).and_then(|run| run.live_mut(id)) else {
            return;
        };
        attempt.stop = Some(Stop { how, why });
        let phase = attempt.phase;
        if how == StopMode::Terminate {
            self.timers.cancel(Timer::Grace(id));
        }
        if why == StopReason::ExecutionTimeOver {
            self.timers.cancel(Timer::ExecutionTime(id));
        }
        if matches!(phase, AttemptPhase::Starting | AttemptPhase::Running) {
            self.due.push(Call::Stop(id));
            self.expect_end_of(id, how);
        }
    }

    fn bring_back(&mut self, id: RunId, since: Timestamp, retry: Option<RetryUsed>) {
        let Some(run) = self.change(id) else { return };
        let back_off = retry.map(|retry| retry.back_off);
        run.phase = Phase::ComingBack { since, back_off };
        let Some(RetryUsed { after, back_off }) = retry else {
            return;
        };
        match after {
            RetryAfter::Infrastructure => run.retries_used.infrastructure = back_off.requeues,
            RetryAfter::Blueprint => run.retries_used.blueprint = back_off.requeues,
        }
        self.count_finished(id);
    }

    fn end_run(&mut self, id: RunId, ending: Ending, failure: Option<&Failure>) {
        let Some(run) = self.runs.get(&id) else { return };
        let (next, by_attempt) = (run.next_attempt(), run.phase == Phase::Active);
        let ended_at = run.attempts.last().and_then(|attempt| attempt.ended_at);
        let ended_at = ended_at.filter(|_| by_attempt).unwrap_or(self.now);
        self.leave_gate(id);
        if by_attempt {
            self.note_duration(id);
            self.count_finished(id);
        }
        self.queue.drop_attempt(next);
        self.withdraw_request(id);
        self.timers.cancel(Timer::QueueTimeout(id));
        self.touched.insert(id);
        let run = self.runs.get_mut(&id).expect("just found");
        run.refusal = failure.cloned();
        run.phase = Phase::Ended(ending);
        run.ended_at = Some(ended_at);
        run.report = Report::Due;
        run.last_pass = self.passes.before(&run.request);
        if ending == Ending::Passed
            && let Some(attempt) = run.attempts.last()
        {
            self.passes.note(&run.request, attempt.id);
        }
        self.tally.ended(ending);
        self.due.push(Call::Report(id));
    }

    /// Notes how long the attempt took with which a run is over: one that is tried again tells nothing of how long runs take.
    fn note_duration(&mut self, id: RunId) {
        let run = &self.runs[&id];
        let Some(last) = run.attempts.last() else { return };
        let was_stopped = last
            .outcome
            .as_ref()
            .is_none_or(|outcome| outcome.verdict == Verdict::Stopped);
        if let Some(took) = last.took().filter(|_| !was_stopped) {
            self.durations.note(id, &run.request, took);
        }
    }

    fn note_report(&mut self, id: RunId, attempts: u32) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        // A report of an earlier ending says nothing about the one that is due now.
        if run.report == Report::Due && run.attempts.len() == attempts as usize {
            run.report = Report::Written;
            self.touched.insert(id);
            self.forget_failures(Call::Report(id));
        }
    }

    fn note_failure(&mut self, call: Call, error: &CallError) -> bool {
        if self.action(call).is_none() {
            return false;
        }
        let failing_calls = self.failing_calls.entry(call.run()).or_default();
        let times = failing_calls.get(&call).map_or(0, |trouble| trouble.times) + 1;
        let trouble = FailingCall {
            call,
            times,
            last: error.diagnostic.clone(),
            retry: error.retry,
            again_at: self.now,
        };
        failing_calls.insert(call, trouble);
        true
    }

    fn postpone(&mut self, call: Call, until: Timestamp) {
        let failing_calls = self.failing_calls.get_mut(&call.run());
        if let Some(trouble) = failing_calls.and_then(|failing_calls| failing_calls.get_mut(&call)) {
            trouble.again_at = until;
        }
        self.timers.set(Timer::Call(call), until);
        self.touched.insert(call.run());
    }

    fn repeat(&mut self, call: Call) {
        self.timers.cancel(Timer::Call(call));
        self.touched.insert(call.run());
        self.due.push(call);
    }

    fn give_up_report(&mut self, id: RunId) {
        let call = Call::Report(id);
        let trouble = self
            .failing_calls
            .get(&id)
            .and_then(|failing_calls| failing_calls.get(&call));
        let Some(last) = trouble.map(|trouble| trouble.last.clone()) else {
            return;
        };
        self.forget_failures(call);
        if let Some(run) = self.change(id) {
            run.report = Report::GivenUp(last);
        }
    }

    fn set_clock_back(&mut self, from: Timestamp, to: Timestamp) {
        let by = to.duration_since(from);
        self.now = to;
        self.timers.move_by(by);
        self.queue.move_times(by);
        for id in &self.unsettled {
            let run = self.runs.get_mut(id).expect("unsettled runs are known");
            if let Phase::Queued { back_off, .. } | Phase::ComingBack { back_off, .. } = &mut run.phase
                && let Some(back_off) = back_off
            {
                back_off.until = later(back_off.until, by);
                self.touched.insert(*id);
            }
        }
        for trouble in self
            .failing_calls
            .values_mut()
            .flat_map(|of_run| of_run.values_mut())
        {
            trouble.again_at = later(trouble.again_at, by);
        }
    }

    /// Sees to it that an attempt that was asked to end does so: one that was interrupted is told to end when its grace is
    /// over, and one that was told to end is then given up, and ended by force.
    fn expect_end_of(&mut self, id: AttemptId, how: StopMode) {
        let end = later(self.now, self.retry.eviction_grace);
        let timer = match how {
            StopMode::Interrupt => Timer::Grace(id),
            StopMode::Terminate => Timer::Overdue(id),
        };
        let earlier = self.timers.get(timer).filter(|earlier| *earlier > self.now);
        if earlier.is_none_or(|earlier| end < earlier) {
            self.timers.set(timer, end);
        }
    }

    fn expect_end_within(&mut self, id: AttemptId, limit: Option<SignedDuration>) {
        let told = |attempt: &Attempt| attempt.stop.is_some_and(|stop| stop.how == StopMode::Terminate);
        if self.live_attempt(id).is_some_and(told) {
            return;
        }
        match limit {
            Some(limit) => {
                let span = limit.saturating_add(self.retry.overdue_after);
                self.timers.set(Timer::Overdue(id), later(self.now, span));
            }
            None => self.timers.cancel(Timer::Overdue(id)),
        }
    }

    pub(super) fn live_attempt(&self, id: AttemptId) -> Option<&Attempt> {
        let attempt = self.runs.get(&id.run)?.attempt(id.number)?;
        attempt.is_live().then_some(attempt)
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

fn later(at: Timestamp, span: SignedDuration) -> Timestamp {
    at.saturating_add(span).expect("a time span")
}

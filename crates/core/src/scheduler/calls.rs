//! Which calls are wanted, and what follows when one of them fails.

use std::{collections::BTreeMap, sync::Arc};

use blueproof_diagnostic::Code;

use super::{
    Scheduler,
    requests::never_ran,
    run::{Attempt, AttemptPhase, Report, Run},
    timers::Timer,
};
use crate::{
    action::{Action, StartAction},
    domain::{AttemptId, CallError, Failure, FailureClass, Retry, Verdict},
    event::Call,
    fact::Decision,
    view::FailingCall,
};

impl Scheduler {
    pub(super) fn on_call_failed(&mut self, call: Call, error: &CallError) {
        if let Call::Reserve(attempt) | Call::Start(attempt) = call
            && self.is_told_to_stop(attempt)
        {
            return self.end_attempt(attempt, never_ran(Verdict::Stopped));
        }
        let times = self.failing_calls[&call.run()][&call].times;
        let bearable = match error.retry {
            Retry::Later => times <= self.retry.call_failures,
            Retry::WhenFree | Retry::WhenAvailable => true,
            Retry::Never => false,
        };
        match call {
            Call::Reserve(attempt) if !bearable && self.is_requested(attempt) => {
                self.give_up_request(attempt.run, error);
            }
            Call::Reserve(attempt) | Call::Start(attempt) if !bearable => {
                let failure = Failure {
                    class: class_of(error),
                    diagnostic: (*error.diagnostic).clone(),
                    cell: None,
                };
                self.end_attempt(attempt, never_ran(Verdict::Failed(Box::new(failure))));
            }
            Call::Report(run) if !bearable => self.decide(Decision::ReportGivenUp { run }),
            Call::Reserve(_)
            | Call::Start(_)
            | Call::Observe(_)
            | Call::Stop(_)
            | Call::Release(_)
            | Call::Report(_) => {
                let until = self.now.saturating_add(self.retry.wait_after(times));
                let until = until.expect("a time span");
                self.decide(Decision::CallPostponed { call, until });
            }
        }
    }

    /// Makes the calls at once that others kept from succeeding: one of them has given back what it had.
    pub(super) fn call_whoever_waits_for_others(&mut self) {
        let waits = |trouble: &&FailingCall| trouble.retry == Retry::WhenFree;
        let failing_calls = self
            .failing_calls
            .values()
            .flat_map(BTreeMap::values)
            .filter(waits);
        for call in failing_calls.map(|trouble| trouble.call).collect::<Vec<_>>() {
            if self.waits_to_be_made(call) {
                self.decide(Decision::CallRepeated { call });
            }
        }
    }

    /// Returns whether an attempt could not be placed or started, and nobody is trying it at this moment.
    pub(super) fn waits_to_try_again(&self, id: AttemptId) -> bool {
        self.waits_to_be_made(Call::Reserve(id)) || self.waits_to_be_made(Call::Start(id))
    }

    /// Returns whether a call failed, and its time to be made again has not come.
    pub(super) fn waits_to_be_made(&self, call: Call) -> bool {
        self.timers.get(Timer::Call(call)).is_some()
    }

    fn is_told_to_stop(&self, id: AttemptId) -> bool {
        let attempt = self.runs.get(&id.run).and_then(|run| run.attempt(id.number));
        attempt.is_some_and(|attempt| attempt.stop.is_some())
    }

    pub(super) fn forget_failures(&mut self, call: Call) {
        self.timers.cancel(Timer::Call(call));
        let Some(of_run) = self.failing_calls.get_mut(&call.run()) else {
            return;
        };
        of_run.remove(&call);
        if of_run.is_empty() {
            self.failing_calls.remove(&call.run());
        }
    }

    /// Returns the actions for the calls that came up, each once, and none that nobody wants any more.
    pub(super) fn take_due(&mut self) -> Vec<Action> {
        let mut calls = std::mem::take(&mut self.due);
        let mut seen = std::collections::BTreeSet::new();
        calls.retain(|call| seen.insert(*call));
        calls.into_iter().filter_map(|call| self.action(call)).collect()
    }

    /// Returns every call that a run wants made.
    pub(super) fn wanted_by(&self, run: &Run) -> Vec<Call> {
        let of_attempt = |attempt: &Attempt| {
            let id = attempt.id;
            [
                Call::Reserve(id),
                Call::Start(id),
                Call::Observe(id),
                Call::Stop(id),
                Call::Release(id),
            ]
        };
        let requested = run.admission.iter().map(|request| request.attempt);
        let requested = requested.flat_map(|id| [Call::Release(id), Call::Reserve(id)]);
        let calls = run.attempts.iter().flat_map(of_attempt).chain(requested);
        let calls = calls.chain([Call::Report(run.id)]);
        calls.filter(|call| self.action(*call).is_some()).collect()
    }

    /// Returns what carries a call out, or `None` when it is not wanted as things stand.
    pub(super) fn action(&self, call: Call) -> Option<Action> {
        match call {
            Call::Reserve(id) => self.reservation(id).map(|of| Action::Reserve(Box::new(of))),
            Call::Start(id) => self
                .attempt_at(call, AttemptPhase::Starting)
                .map(|(run, attempt)| {
                    let (head, request) = (attempt.head.clone(), Arc::clone(&run.request));
                    Action::Start(Box::new(StartAction {
                        attempt: id,
                        cluster: attempt.cluster.clone(),
                        head,
                        request,
                    }))
                }),
            Call::Observe(id) => {
                self.attempt_at(call, AttemptPhase::Running)
                    .map(|(_, attempt)| Action::Observe {
                        attempt: id,
                        cluster: attempt.cluster.clone(),
                    })
            }
            Call::Stop(id) => {
                let running = || self.attempt_at(call, AttemptPhase::Running);
                let (_, attempt) = self.attempt_at(call, AttemptPhase::Starting).or_else(running)?;
                attempt.stop.map(|stop| Action::Stop {
                    attempt: id,
                    cluster: attempt.cluster.clone(),
                    how: stop.how,
                })
            }
            Call::Release(id) => {
                let is_over = self.attempt_at(call, AttemptPhase::Releasing).is_some();
                let is_wanted = is_over || self.is_withdrawn(id);
                is_wanted.then_some(())?;
                Some(Action::Release {
                    attempt: id,
                    cluster: self.cluster_of(id)?,
                })
            }
            Call::Report(id) => {
                let run = self.runs.get(&id).filter(|run| run.report == Report::Due)?;
                Some(Action::Report {
                    view: Box::new(self.view_of(run)),
                    request: Arc::clone(&run.request),
                })
            }
        }
    }

    fn attempt_at(&self, call: Call, phase: AttemptPhase) -> Option<(&Run, &Attempt)> {
        let id = call.attempt()?;
        let run = self.runs.get(&id.run)?;
        let attempt = run.attempt(id.number).filter(|attempt| attempt.phase == phase)?;
        Some((run, attempt))
    }
}

/// Returns whose fault it is that an attempt has no place or did not start: one that asks for a node that is not there is not
/// helped by trying it again.
fn class_of(error: &CallError) -> FailureClass {
    if error.diagnostic.code == Code::NodeLabelMissing {
        return FailureClass::Config;
    }
    FailureClass::Infrastructure
}

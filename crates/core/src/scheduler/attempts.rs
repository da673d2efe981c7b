//! From the queue to the end: what is decided about attempts.

use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::objects::RequeuingTimestamp;
use jiff::{SignedDuration, Timestamp};

use super::{
    Scheduler,
    queue::{Eviction, QuotaDecision},
    requests::never_ran,
};
use crate::{
    domain::{AttemptId, BackOff, Ending, Failure, FailureClass, Outcome, RunId, TimeLimit, Verdict},
    event::StopMode,
    fact::{Decision, RetryAfter, RetryUsed, StopReason},
};

impl Scheduler {
    /// Promises quota to whoever is next, as long as there is any, and takes it from whoever has to give it back.
    pub(super) fn start_what_fits(&mut self) {
        loop {
            let decided = self.queue.decide(self.now);
            self.touched.extend(&decided.retried);
            if decided.cycles_admitted + decided.cycles_inadmissible > 0 {
                self.decide(Decision::CyclesRun {
                    admitted: decided.cycles_admitted,
                    inadmissible: decided.cycles_inadmissible,
                });
            }
            for decision in decided.quota {
                self.on_quota_decided(decision);
            }
            if decided.admitted.is_empty() {
                return;
            }
            for attempt in decided.admitted {
                self.begin(attempt);
            }
        }
    }

    /// Goes on from what the queue decided, and has applied to itself.
    fn on_quota_decided(&mut self, decision: QuotaDecision) {
        match decision {
            QuotaDecision::Reserved {
                attempt,
                assignment,
                waited,
            } => {
                self.count_reserved(attempt.run, waited);
                self.record(Decision::QuotaReserved { attempt, assignment });
            }
            QuotaDecision::Evicted(evicted) => {
                self.note_eviction(&evicted);
                let Eviction {
                    attempt,
                    reason,
                    by,
                    reversal,
                    was_admitted,
                    message,
                } = evicted;
                self.record(Decision::Evicted {
                    attempt,
                    reason,
                    by,
                    reversal,
                    message,
                });
                if was_admitted {
                    self.stop_attempt(attempt.run, StopMode::Interrupt, StopReason::Evicted);
                }
            }
            QuotaDecision::PreemptionAwaited(run) => self.record(Decision::PreemptionAwaited { run }),
        }
    }

    fn begin(&mut self, attempt: AttemptId) {
        let request = self.runs[&attempt.run].request.clone();
        match self.approved_head(attempt.run, &request) {
            Some(head) => self.decide(Decision::Admitted {
                attempt,
                approved_by: head.by().clone(),
                cluster: self.queue.cluster_of(&request.queue),
            }),
            // The approval has expired, or the policy that it was given under has changed.
            None => self.decide(Decision::ApprovalAwaited { run: attempt.run }),
        }
    }

    /// The run's attempts have had quota for as long as they may; it does not come back.
    pub(super) fn on_execution_time_over(&mut self, id: AttemptId) {
        if self.live_attempt(id).is_some() {
            self.stop_attempt(id.run, StopMode::Interrupt, StopReason::ExecutionTimeOver);
        }
    }

    pub(super) fn on_grace_over(&mut self, id: AttemptId) {
        if let Some(stop) = self.live_attempt(id).and_then(|attempt| attempt.stop) {
            self.stop_attempt(id.run, StopMode::Terminate, stop.why);
        }
    }

    pub(super) fn on_reserved(&mut self, id: AttemptId) {
        if self.on_granted(id) || self.is_withdrawn(id) {
            return;
        }
        let run = &self.runs[&id.run];
        let stopped = run
            .attempt(id.number)
            .is_some_and(|attempt| attempt.stop.is_some());
        if stopped {
            return self.end_attempt(id, never_ran(Verdict::Stopped));
        }
        if self.approved_head(id.run, &run.request).is_none() {
            self.decide(Decision::AttemptEnded {
                attempt: id,
                outcome: never_ran(Verdict::Stopped),
            });
            self.wait_again(id);
        }
    }

    pub(super) fn on_released(&mut self, id: AttemptId) {
        self.call_whoever_waits_for_others();
        self.requeue(id.run);
    }

    /// An attempt that does not end by its own limits is told to end; one that does not heed that is over, and whatever it
    /// is in is removed by force.
    pub(super) fn on_overdue(&mut self, id: AttemptId) {
        let Some(attempt) = self.live_attempt(id) else {
            return;
        };
        if attempt.stop.is_none_or(|stop| stop.how != StopMode::Terminate) {
            return self.stop_attempt(id.run, StopMode::Terminate, StopReason::Overdue);
        }
        self.end_attempt(id, never_ran(Verdict::Stopped));
    }

    /// Ends an attempt of which no news says so, and decides what follows.
    pub(super) fn end_attempt(&mut self, attempt: AttemptId, outcome: Box<Outcome>) {
        self.decide(Decision::AttemptEnded { attempt, outcome });
        self.conclude(attempt);
    }

    /// Decides what the end of a run's attempt means for the run.
    pub(super) fn conclude(&mut self, id: AttemptId) {
        match self.judge(id) {
            Next::End(ending, failure) => self.end(id.run, ending, failure.map(|failure| *failure)),
            Next::TryAgain {
                after,
                requeues,
                at_most,
            } => self.try_again(id, after, requeues, at_most),
            Next::WaitAgain => self.wait_again(id),
        }
    }

    fn judge(&self, id: AttemptId) -> Next {
        let run = &self.runs[&id.run];
        let attempt = run.attempt(id.number).expect("only attempts that were made end");
        let outcome = attempt.outcome.as_ref().expect("it has ended");
        match (&outcome.verdict, attempt.stop.map(|stop| stop.why)) {
            (Verdict::Passed, _) => Next::End(Ending::Passed, None),
            // What takes the quota back may take the machine with it: that is no failure of either.
            (Verdict::Failed(failure), Some(StopReason::Evicted))
                if failure.class == FailureClass::Infrastructure =>
            {
                Next::WaitAgain
            }
            (Verdict::Failed(failure), None | Some(StopReason::Evicted | StopReason::ApprovalRevoked)) => {
                self.judge_failure(id.run, failure, None)
            }
            (
                Verdict::Failed(_) | Verdict::Stopped,
                Some(StopReason::Synchronized | StopReason::BaseChanged),
            ) => Next::End(Ending::Superseded, None),
            (
                Verdict::Failed(failure),
                Some(
                    StopReason::Cancelled
                    | StopReason::PullRequestClosed
                    | StopReason::Overdue
                    | StopReason::ExecutionTimeOver,
                ),
            ) => Next::End(Ending::of(failure), None),
            (Verdict::Stopped, Some(StopReason::Cancelled | StopReason::PullRequestClosed)) => {
                Next::End(Ending::Cancelled, None)
            }
            (Verdict::Stopped, Some(StopReason::Evicted | StopReason::ApprovalRevoked)) => Next::WaitAgain,
            (Verdict::Stopped, Some(StopReason::Overdue)) => {
                Next::End(Ending::TimedOut, Some(Box::new(overdue())))
            }
            (Verdict::Stopped, Some(StopReason::ExecutionTimeOver)) => {
                let limit = run.request.job.timeouts.execution;
                Next::End(Ending::TimedOut, Some(Box::new(execution_time_over(limit))))
            }
            // Nobody here asked for it: a machine that shuts down, or an admin with `kill`.
            (Verdict::Stopped, None) => {
                self.judge_failure(id.run, &stopped_by_others(), Some(stopped_by_others()))
            }
        }
    }

    /// Decides whether a run is tried again after a failure. `said` is the failure where no attempt says it.
    fn judge_failure(&self, id: RunId, failure: &Failure, said: Option<Failure>) -> Next {
        let requeuing = self.queue.objects().requeuing;
        let limit = requeuing.and_then(|requeuing| requeuing.backoff_limit_count);
        let run = &self.runs[&id];
        let (used, killed_agents) = (&run.retries_used, run.retries_used.killed_agents);
        let (after, used, wanted, limit) = match failure.class {
            FailureClass::Infrastructure => {
                let wanted = run.request.retries.infrastructure;
                (RetryAfter::Infrastructure, used.infrastructure, wanted, limit)
            }
            FailureClass::Notebook | FailureClass::Workload | FailureClass::Expectation => (
                RetryAfter::Blueprint,
                used.blueprint,
                run.request.retries.blueprint,
                None,
            ),
            FailureClass::Timeout(_) | FailureClass::Config => {
                return Next::End(Ending::of(failure), said.map(Box::new));
            }
        };
        let at_most = limit.map_or(wanted, |limit| limit.min(wanted));
        if used >= at_most {
            let is_killed_each_time = killed_agents > 1 && killed_agents == used + 1;
            let said = if at_most < wanted {
                Some(requeuing_limit_exceeded(failure.clone(), at_most))
            } else if is_killed_each_time && self.retry.killed_agents.is_some() {
                let why = format!("the agent was killed in each of {killed_agents} attempts");
                Some(killed_by_itself(failure.clone(), &why))
            } else {
                said
            };
            return Next::End(Ending::of(failure), said.map(Box::new));
        }
        if failure.diagnostic.code == Code::AgentLost
            && let Some(at_most) = self.retry.killed_agents.filter(|most| killed_agents > *most)
        {
            let said = too_many_killed_agents(failure.clone(), at_most);
            return Next::End(Ending::of(failure), Some(Box::new(said)));
        }
        Next::TryAgain {
            after,
            requeues: used + 1,
            at_most,
        }
    }

    /// Sends a run back to the gate and into its queue, where it is not tried before its back-off is over.
    fn try_again(&mut self, id: AttemptId, after: RetryAfter, requeues: u32, at_most: u32) {
        let now = self.now;
        let requeuing = self.queue.objects().requeuing;
        let pause = requeuing.map_or_else(
            || self.retry.wait_after(requeues),
            |requeuing| requeuing.pause_before(requeues),
        );
        let since = match requeuing.unwrap_or_default().timestamp {
            RequeuingTimestamp::Eviction => now,
            RequeuingTimestamp::Creation => self.age_of(id),
        };
        let back_off = BackOff {
            until: now.saturating_add(pause).expect("a time span"),
            requeues,
            at_most,
        };
        self.decide(Decision::Requeued {
            run: id.run,
            since,
            retry: Some(RetryUsed { after, back_off }),
        });
    }

    /// Sends a run back to the gate and into its queue, once nothing is left of the attempt that had to give way; there
    /// it is as old as it was.
    fn wait_again(&mut self, id: AttemptId) {
        self.decide(Decision::Requeued {
            run: id.run,
            since: self.age_of(id),
            retry: None,
        });
    }

    fn age_of(&self, id: AttemptId) -> Timestamp {
        let attempt = self.runs[&id.run].attempt(id.number);
        attempt.expect("only attempts that were made end").queued_at
    }
}

/// What follows on an attempt's end.
enum Next {
    /// The run is over, for a reason of its own where the attempt does not say it.
    End(Ending, Option<Box<Failure>>),
    /// It is tried again, for the so many-th time of so many at most.
    TryAgain {
        after: RetryAfter,
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
        class: FailureClass::Timeout(TimeLimit::Run),
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
        class: FailureClass::Timeout(TimeLimit::Execution),
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

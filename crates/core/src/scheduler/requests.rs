//! From a wish to the queue: requests, approvals, heads that move, cancelling and asking again.

use std::{collections::BTreeSet, sync::Arc};

use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::ExecutionTime;
use jiff::Timestamp;

use super::{
    Scheduler,
    run::{AttemptPhase, Phase, Report, Run, Stop, StopReason, Used},
    timers::Timer,
};
use crate::{
    domain::{
        Ending, Failure, FailureClass, Gpus, Head, Limit, Outcome, Project, RequestKey, Resources, RunId,
        RunRequest, Subject, Verdict,
    },
    event::{Approval, Call, StopMode},
};

impl Scheduler {
    pub(super) fn on_requested(&mut self, request: RunRequest) {
        if self.by_key.contains_key(&request.key) {
            return;
        }
        let id = RunId(self.runs.last_key_value().map_or(1, |(last, _)| last.0 + 1));
        let gang = request.job.gang();
        let execution = ExecutionTime::new(request.job.timeouts.execution);
        self.by_key.insert(request.key.clone(), id);
        if let Some(change) = request.subject.change {
            self.by_change
                .entry((request.subject.project.clone(), change))
                .or_default()
                .insert(id);
        }
        self.unsettled.insert(id);
        self.touched.insert(id);
        self.runs.insert(
            id,
            Run {
                id,
                request: Arc::new(request),
                gang,
                requested_at: self.now,
                retried_at: None,
                ended_at: None,
                phase: Phase::AwaitingApproval { since: self.now },
                refusal: None,
                attempts: Vec::new(),
                evicted_for: BTreeSet::new(),
                retries_used: Used::default(),
                execution,
                retry_keys: BTreeSet::new(),
                report: Report::NotDue,
                last_pass: None,
            },
        );
        self.pass_gate(id);
    }

    pub(super) fn on_approved(&mut self, approval: Approval) {
        let subject = approval.subject.clone();
        self.gate.approve(approval);
        let waiting: Vec<RunId> = self
            .awaiting
            .get(&subject)
            .into_iter()
            .flatten()
            .copied()
            .collect();
        for run in waiting {
            self.pass_gate(run);
        }
    }

    pub(super) fn on_head_moved(&mut self, project: Project, change: u64, head: &Head) {
        self.gate.head_moved(&project, change, head);
        let runs = self
            .by_change
            .get(&(project, change))
            .cloned()
            .unwrap_or_default();
        for run in runs {
            if self.runs[&run].request.subject.head != *head {
                self.stop(
                    run,
                    Stop {
                        how: StopMode::End,
                        why: StopReason::HeadMoved,
                    },
                );
            }
        }
    }

    pub(super) fn on_cancel_requested(&mut self, run: RunId, how: StopMode) {
        if self.runs.contains_key(&run) {
            self.stop(
                run,
                Stop {
                    how,
                    why: StopReason::Cancelled,
                },
            );
        }
    }

    pub(super) fn on_retry_requested(&mut self, key: RequestKey, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let fresh = run.retry_keys.insert(key);
        if !fresh || !matches!(run.phase, Phase::Ended(_)) {
            return;
        }
        run.retried_at = Some(self.now);
        run.ended_at = None;
        run.refusal = None;
        run.retries_used = Used::default();
        run.execution = ExecutionTime::new(run.request.job.timeouts.execution);
        run.report = Report::NotDue;
        run.phase = Phase::ComingBack {
            since: self.now,
            back_off: None,
        };
        self.touched.insert(id);
        self.unsettled.insert(id);
        self.forget_failures(Call::Report(id));
        self.requeue(id);
    }

    pub(super) fn on_queue_timeout(&mut self, id: RunId) {
        if !matches!(
            self.runs.get(&id).map(|run| run.phase),
            Some(Phase::Queued { .. })
        ) {
            return;
        }
        let why = self.queue.obstacle(id).unwrap_or_default();
        let diagnostic =
            Diagnostic::error(Code::QueueTimeout, "waited for quota as long as it may").because(why);
        let failure = Failure {
            class: FailureClass::Timeout(Limit::Queue),
            diagnostic,
            cell: None,
        };
        self.runs.get_mut(&id).expect("just found").refusal = Some(failure);
        self.end(id, Ending::TimedOut);
    }

    /// Sends a run on to the queue, if the gate lets it and the machine could ever hold it.
    pub(super) fn pass_gate(&mut self, id: RunId) {
        let run = &self.runs[&id];
        let (request, gang) = (Arc::clone(&run.request), run.gang);
        // Where an admin applied queues, it waits as in Kueue: the next quota may be larger.
        if let Some(quota) = self.queue.default_quota()
            && !self.queue.can_ever_fit(&request)
        {
            return self.refuse(id, too_much(gang, quota));
        }
        if self.gate.is_stale(&request.subject) || self.at_other_heads(id).any(|other| other > id) {
            return self.end(id, Ending::Superseded);
        }
        self.supersede_older(id);
        if self.gate.check(&request, self.now).is_none() {
            self.awaiting
                .entry(request.subject.clone())
                .or_default()
                .insert(id);
            return self.await_approval(id);
        }
        self.enqueue(id);
    }

    fn await_approval(&mut self, id: RunId) {
        let since = self.now;
        let run = self.change(id).expect("the run is known");
        if !matches!(run.phase, Phase::AwaitingApproval { .. }) {
            run.phase = Phase::AwaitingApproval { since };
        }
    }

    /// Returns the runs of the same pull request and blueprint that are at other heads and have not ended.
    fn at_other_heads(&self, id: RunId) -> impl Iterator<Item = RunId> {
        let Subject {
            project,
            change,
            head,
            blueprint,
            profile: _,
        } = &self.runs[&id].request.subject;
        let of_change = change.and_then(|change| self.by_change.get(&(project.clone(), change)));
        let of_change = of_change.into_iter().flatten().copied();
        of_change.filter(move |other| {
            let Run { request, phase, .. } = &self.runs[other];
            request.subject.blueprint == *blueprint
                && request.subject.head != *head
                && !matches!(phase, Phase::Ended(_))
        })
    }

    /// Ends whatever is older than a run of the same pull request and blueprint and at another head, so that of each only
    /// the newest is active. Where a push was told of, it has done so already.
    fn supersede_older(&mut self, id: RunId) {
        let older: Vec<RunId> = self.at_other_heads(id).filter(|other| *other < id).collect();
        for other in older {
            let stop = Stop {
                how: StopMode::End,
                why: StopReason::HeadMoved,
            };
            self.stop(other, stop);
        }
    }

    fn enqueue(&mut self, id: RunId) {
        let now = self.now;
        self.leave_gate(id);
        if let Phase::AwaitingApproval { since } = self.runs[&id].phase {
            self.count_gate(since);
        }
        let run = self.change(id).expect("the run is known");
        let (since, back_off) = match run.phase {
            Phase::ComingBack { since, back_off } => (since, back_off),
            Phase::AwaitingApproval { .. } | Phase::Queued { .. } | Phase::Active | Phase::Ended(_) => {
                (now, None)
            }
        };
        run.phase = Phase::Queued { since, back_off };
        let (attempt, request, evictions) = (run.next_attempt(), Arc::clone(&run.request), run.evictions());
        self.queue.submit(now, attempt, &request, since, evictions);
        if let Some(back_off) = back_off {
            self.queue.back_off(id, back_off.until);
        }
        if let Some(limit) = request.job.timeouts.queue {
            let tried_at = back_off.map_or(now, |back_off| back_off.until.max(now));
            let end = tried_at.saturating_add(limit).expect("a time span");
            self.timers.set(Timer::QueueTimeout(id), end);
        }
    }

    /// Sends a run that comes back to the gate again, once nothing is left of its last attempt.
    pub(super) fn requeue(&mut self, id: RunId) {
        let Some(run) = self.runs.get(&id) else { return };
        if matches!(run.phase, Phase::ComingBack { .. }) && run.is_clear() {
            self.pass_gate(id);
        }
    }

    /// Ends a run, or asks its attempt to end, whichever it takes.
    fn stop(&mut self, id: RunId, stop: Stop) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let ending = match stop.why {
            StopReason::HeadMoved => Ending::Superseded,
            StopReason::Cancelled
            | StopReason::Overdue
            | StopReason::ExecutionTimeOver
            | StopReason::Evicted => Ending::Cancelled,
        };
        match run.phase {
            Phase::Ended(_) => {}
            Phase::AwaitingApproval { .. } | Phase::Queued { .. } | Phase::ComingBack { .. } => {
                self.end(id, ending);
            }
            Phase::Active => self.stop_attempt(id, stop),
        }
    }

    pub(super) fn stop_attempt(&mut self, id: RunId, stop: Stop) {
        let Some(attempt) = self.runs.get_mut(&id).and_then(Run::active_mut) else {
            return;
        };
        // The first reason stays, so that the ending names what began it; the harder way replaces the softer. One who is
        // evicted would come back, so any other reason to stop replaces that one.
        let merged = attempt.stop.map_or(stop, |earlier| Stop {
            how: earlier.how.max(stop.how),
            why: if earlier.why == StopReason::Evicted {
                stop.why
            } else {
                earlier.why
            },
        });
        if attempt.stop == Some(merged) {
            return;
        }
        attempt.stop = Some(merged);
        let attempt_id = attempt.id;
        if matches!(attempt.phase, AttemptPhase::Starting | AttemptPhase::Running) {
            self.due.push(Call::Stop(attempt_id));
            self.expect_end_of(attempt_id, merged.how);
        }
        self.touched.insert(id);
        if self.waits_to_try_again(attempt_id) {
            self.on_finished_now(attempt_id, never_ran(Verdict::Stopped));
        }
    }

    fn refuse(&mut self, id: RunId, diagnostic: Diagnostic) {
        let failure = Failure {
            class: FailureClass::Config,
            diagnostic,
            cell: None,
        };
        self.runs.get_mut(&id).expect("the run is known").refusal = Some(failure);
        self.end(id, Ending::Refused);
    }

    /// Ends a run, wherever it is, and has its report written.
    pub(super) fn end(&mut self, id: RunId, ending: Ending) {
        self.end_at(id, ending, self.now);
    }

    /// Ends a run whose last attempt ended then.
    pub(super) fn end_at(&mut self, id: RunId, ending: Ending, ended_at: Timestamp) {
        self.leave_gate(id);
        self.queue.withdraw(id);
        self.timers.cancel(Timer::QueueTimeout(id));
        self.touched.insert(id);
        let run = self.runs.get_mut(&id).expect("the run is known");
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

    fn leave_gate(&mut self, id: RunId) {
        let subject = &self.runs[&id].request.subject;
        let Some(others) = self.awaiting.get_mut(subject) else {
            return;
        };
        others.remove(&id);
        if others.is_empty() {
            self.awaiting.remove(subject);
        }
    }
}

/// Returns what an attempt is said to have ended with when nothing of it ever ran.
pub(super) fn never_ran(verdict: Verdict) -> Box<Outcome> {
    Box::new(Outcome {
        verdict,
        usage: None,
        metrics: Default::default(),
        notices: Vec::new(),
    })
}

fn too_much(asked: Resources, quota: Resources) -> Diagnostic {
    if asked.gpu > quota.gpu {
        return too_many_gpus(asked.gpu, quota.gpu);
    }
    Diagnostic::error(
        Code::AsksTooMuch,
        format!("asks for {asked}, more than the queue's whole quota of {quota}"),
    )
    .hint("let it ask for less (spec.driver, spec.workload), in a profile if it is for here only")
    .hint("or let the quota grow: `blueproof quota get` shows it, `local.cpu` and `local.memory` of the configuration set it")
}

fn too_many_gpus(asked: Gpus, quota: Gpus) -> Diagnostic {
    let message = match quota {
        Gpus(0) => format!("asks for {asked} gpu, and there is no GPU here"),
        some => format!("asks for {asked} gpu, more than the {some} that there are here"),
    };
    Diagnostic::error(Code::AsksTooMuch, message)
        .hint("let it ask for fewer (spec.driver, spec.workload), in a profile if it is for here only")
        .hint("or run it where `nvidia-smi -L` lists enough, and CUDA_VISIBLE_DEVICES does not hide them")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Bytes, Cpus};

    #[test]
    fn a_run_that_asks_for_a_gpu_where_there_is_none_is_told_so() {
        let amounts = |gpu| Resources {
            cpu: Cpus::cores(2),
            memory: Bytes(24_684_092 << 10),
            gpu: Gpus(gpu),
        };
        let refused = |asked, quota| too_much(amounts(asked), amounts(quota)).message;
        assert_eq!(refused(1, 0), "asks for 1 gpu, and there is no GPU here");
        assert_eq!(
            refused(4, 2),
            "asks for 4 gpu, more than the 2 that there are here"
        );
        let processors = Resources {
            cpu: Cpus::cores(64),
            ..amounts(0)
        };
        let message =
            "asks for 64 cpu, 23.5Gi memory, more than the queue's whole quota of 2 cpu, 23.5Gi memory";
        assert_eq!(too_much(processors, amounts(0)).message, message);
    }
}

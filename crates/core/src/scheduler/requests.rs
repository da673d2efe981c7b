//! From a request to the queue: requests, approvals, heads that move, cancelling and asking again.

use std::sync::Arc;

use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::{Quantity, amount_in_words};

use super::{
    Scheduler, gate,
    run::{AttemptPhase, Phase, Run, Stop},
};
use crate::{
    domain::{
        Actor, Ending, Failure, FailureClass, Gpus, Job, Outcome, RequestKey, Resources, RunId, TimeLimit,
        Verdict,
    },
    event::StopMode,
    fact::{Decision, StopReason},
};

impl Scheduler {
    pub(super) fn on_requested(&mut self, key: &RequestKey) {
        if let Some(id) = self.by_key.get(key) {
            self.pass_gate(*id);
        }
    }

    pub(super) fn on_cancel_requested(&mut self, run: RunId, how: StopMode) {
        self.stop(run, how, StopReason::Cancelled);
    }

    pub(super) fn on_queue_timeout(&mut self, id: RunId) {
        if !matches!(
            self.runs.get(&id).map(|run| run.phase),
            Some(Phase::Queued { .. })
        ) {
            return;
        }
        let why = self.obstacle(id).unwrap_or_default();
        let diagnostic =
            Diagnostic::error(Code::QueueTimeout, "waited for quota as long as it may").because(why);
        let failure = Failure {
            class: FailureClass::Timeout(TimeLimit::Queue),
            diagnostic,
            cell: None,
        };
        self.end(id, Ending::TimedOut, Some(failure));
    }

    /// Sends a run on to the queue, if the gate lets it and the machine could ever hold it.
    pub(super) fn pass_gate(&mut self, id: RunId) {
        let run = &self.runs[&id];
        let request = Arc::clone(&run.request);
        if let Some(name) = request.job.pod_sets.repeated_name() {
            return self.refuse(id, two_of_one_name(name));
        }
        // Where an admin applied queues, it waits as in Kueue: the next quota may be larger.
        if let Some(quota) = self.queue.default_quota() {
            if let Some(refusal) = no_such_node(&request.job) {
                return self.refuse(id, refusal);
            }
            if !self.queue.can_ever_fit(&request) {
                return self.refuse(id, too_much(&request.job, quota));
            }
        }
        if self.gate.is_stale(&request.subject)
            || self
                .at_other_heads(id)
                .any(|other| other > id && self.supersedes(other, id))
        {
            return self.end(id, Ending::Superseded, None);
        }
        self.supersede_older(id);
        if self.approved_head(id, &request).is_none() {
            return self.await_approval(id);
        }
        let run = &self.runs[&id];
        let (since, back_off) = match run.phase {
            Phase::ComingBack { since, back_off } => (since, back_off),
            Phase::AwaitingApproval { .. } => run.age_when_held.unwrap_or((self.now, None)),
            Phase::Queued { .. } | Phase::Active | Phase::Ended(_) => (self.now, None),
        };
        self.decide(Decision::Enqueued {
            run: id,
            since,
            back_off,
        });
    }

    pub(super) fn await_approval(&mut self, id: RunId) {
        if !matches!(self.runs[&id].phase, Phase::AwaitingApproval { .. }) {
            self.decide(Decision::ApprovalAwaited { run: id });
        }
    }

    /// Returns the runs of the same pull request and blueprint that are at other heads, or for other bases, and have not
    /// ended.
    fn at_other_heads(&self, id: RunId) -> impl Iterator<Item = RunId> {
        let subject = &self.runs[&id].request.subject;
        let of_pull_request = subject
            .pull_request
            .and_then(|_| self.by_origin.get(&gate::origin(subject)));
        let of_pull_request = of_pull_request.into_iter().flatten().copied();
        of_pull_request.filter(move |other| {
            let Run { request, phase, .. } = &self.runs[other];
            let other = &request.subject;
            let bases = other.base.as_ref().zip(subject.base.as_ref());
            let is_elsewhere = other.head != subject.head || bases.is_some_and(|(other, own)| other != own);
            other.blueprint == subject.blueprint && is_elsewhere && !matches!(phase, Phase::Ended(_))
        })
    }

    /// Returns whether a request for another head says that the earlier one is out of date: whoever made that one may say so, and
    /// whoever may approve. Anybody else who may ask for runs would end what others wait for.
    fn supersedes(&self, newer: RunId, older: RunId) -> bool {
        let (newer, older) = (&self.runs[&newer].request, &self.runs[&older].request);
        let by = &newer.requested_by;
        *by == older.requested_by || self.gate.may_approve(by, &newer.subject.repository)
    }

    /// Ends whatever is older than a run of the same pull request and blueprint and at another head, so that of each requester only
    /// the newest is active. Where a push was told of, it has done so already.
    fn supersede_older(&mut self, id: RunId) {
        let older: Vec<RunId> = self
            .at_other_heads(id)
            .filter(|other| *other < id && self.supersedes(id, *other))
            .collect();
        for other in older {
            self.stop(other, StopMode::Terminate, StopReason::Synchronized);
        }
    }

    pub(super) fn on_retry_requested(&mut self, id: RunId, by: &Actor) {
        match self.runs.contains_key(&id) {
            true => self.requeue(id),
            false => self.decide(Decision::RetryRefused {
                run: id,
                by: by.clone(),
            }),
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
    pub(super) fn stop(&mut self, id: RunId, how: StopMode, why: StopReason) {
        let Some(run) = self.runs.get(&id) else { return };
        let ending = match why {
            StopReason::Synchronized | StopReason::BaseChanged => Ending::Superseded,
            StopReason::Cancelled
            | StopReason::PullRequestClosed
            | StopReason::ApprovalRevoked
            | StopReason::Overdue
            | StopReason::ExecutionTimeOver
            | StopReason::Evicted => Ending::Cancelled,
        };
        match run.phase {
            Phase::Ended(_) => {}
            Phase::AwaitingApproval { .. } | Phase::Queued { .. } | Phase::ComingBack { .. } => {
                self.end(id, ending, None);
            }
            Phase::Active => self.stop_attempt(id, how, why),
        }
    }

    pub(super) fn stop_attempt(&mut self, id: RunId, how: StopMode, why: StopReason) {
        let Some(attempt) = self.runs.get(&id).and_then(Run::active) else {
            return;
        };
        let (attempt, earlier, phase) = (attempt.id, attempt.stop, attempt.phase);
        let merged = earlier.map_or(Stop { how, why }, |earlier| earlier.and(how, why));
        if earlier == Some(merged) {
            return;
        }
        let Stop { how, why } = merged;
        self.decide(Decision::StopRequested { attempt, how, why });
        // What waits for a place is over at once, wherever it waits: to release it takes the request for a place back.
        let waits_for_place = phase == AttemptPhase::Reserving && !self.decides_as_first_log;
        if waits_for_place || self.waits_to_try_again(attempt) {
            self.end_attempt(attempt, never_ran(Verdict::Stopped));
        }
    }

    fn refuse(&mut self, id: RunId, diagnostic: Diagnostic) {
        let failure = Failure {
            class: FailureClass::Config,
            diagnostic,
            cell: None,
        };
        self.end(id, Ending::Refused, Some(failure));
    }

    /// Ends a run, wherever it is.
    pub(super) fn end(&mut self, run: RunId, ending: Ending, failure: Option<Failure>) {
        self.decide(Decision::Ended {
            run,
            ending,
            failure: failure.map(Box::new),
        });
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

fn two_of_one_name(name: &str) -> Diagnostic {
    let message = format!("asks for two pod sets `{name}`");
    Diagnostic::error(Code::BadValue, message).hint("give each pod set of a job a name of its own")
}

/// Returns why a job is refused that asks for nodes with labels: the default queue has one flavor, without any.
fn no_such_node(job: &Job) -> Option<Diagnostic> {
    let sets = job.pod_sets.as_slice().iter();
    let (set, (key, value)) = sets
        .flat_map(|set| set.node_selector.iter().map(move |label| (set, label)))
        .next()?;
    let message = format!(
        "the pod set {} asks for nodes with the label {key}={value}, and there are none here",
        set.name
    );
    let diagnostic = Diagnostic::error(Code::NodeLabelMissing, message);
    Some(
        diagnostic
            .hint("take it out of nodeSelector (spec.driver, spec.workload), in a profile if it is for here only")
            .hint("or apply quota with a ResourceFlavor whose nodeLabels say so: `blueproof quota apply -f FILE`"),
    )
}

fn too_much(job: &Job, quota: Resources) -> Diagnostic {
    let (asked, further) = (job.gang(), job.further());
    if asked.gpu > quota.gpu {
        return too_many_gpus(asked.gpu, quota.gpu);
    }
    if let Some((resource, amount)) = further.first_key_value() {
        return none_of(resource, *amount);
    }
    Diagnostic::error(
        Code::AsksTooMuch,
        format!("asks for {asked}, more than the queue's whole quota of {quota}"),
    )
    .hint("let it ask for less (spec.driver, spec.workload), in a profile if it is for here only")
    .hint("or let the quota grow: `blueproof quota get` shows it, `local.cpu` and `local.memory` of the configuration set it")
}

/// Says that the default queue has none of a resource: what this machine has of it, only an admin can say.
fn none_of(resource: &str, asked: Quantity) -> Diagnostic {
    let asked = amount_in_words(resource, asked);
    let message = format!("asks for {asked} {resource}, and the queue has a quota of none");
    Diagnostic::error(Code::AsksTooMuch, message)
        .hint("leave it out (spec.driver, spec.workload), in a profile if it is for here only")
        .hint("or apply quota of it where the machine has some: `blueproof quota apply -f FILE`")
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
    use crate::{
        domain::{Bytes, Cpus, PodSets},
        testing::request,
    };

    #[test]
    fn a_run_that_asks_for_a_gpu_where_there_is_none_is_told_so() {
        let amounts = |gpu| Resources {
            cpu: Cpus::cores(2),
            memory: Bytes(24_684_092 << 10),
            gpu: Gpus(gpu),
        };
        let of = |asked: Resources| Job {
            pod_sets: PodSets::of_amounts(asked, Resources::default()),
            ..request("a", "nano-lm").job
        };
        let refused = |asked, quota| too_much(&of(amounts(asked)), amounts(quota)).message;
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
        assert_eq!(too_much(&of(processors), amounts(0)).message, message);
    }
}

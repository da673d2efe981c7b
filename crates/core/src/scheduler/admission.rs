//! The seam to queues whose admission is external: what is asked of their cluster for a run, and what becomes of it.
//!
//! A run that waits in such a queue is queued like any other. Its cluster is asked for quota and a place at once, and decides
//! when it gets them: what it says comes in as news, and is written down as the decisions that the embedded queue takes. Which
//! of the two it was, nothing but this module and [`super::queue`] knows.
//!
//! A request that nobody needs any more is released, as an attempt is, and a place is asked for again only when that is done:
//! it would be for the same attempt's number.

use blueproof_diagnostic::{Code, Diagnostic};

use super::{
    Scheduler,
    queue::LinePlace,
    requests::never_ran,
    run::{AdmissionRequest, AttemptPhase, Phase, RequestPhase, Run},
};
use crate::{
    action::{Reservation, ReservedQuota},
    domain::{
        AttemptId, CallError, ClusterName, Ending, EvictionReason, Failure, FailureClass, Placement, RunId,
        Verdict,
    },
    event::{Call, StopMode},
    fact::{Decision, StopReason},
    pending::{AdmissionPending, PendingReason, PlacePending},
};

/// What is decided.
impl Scheduler {
    /// Asks for quota for each run that waits in a queue whose admission is external and has not asked yet.
    pub(super) fn request_quota(&mut self) {
        for attempt in self.queue.unrequested() {
            let run = &self.runs[&attempt.run];
            if run.admission.is_some() {
                continue; // An earlier request is still being released.
            }
            // The cluster of one that may not start would hold quota for nothing.
            match self.approved_head(run.id, &run.request) {
                Some(_) => {
                    let cluster = self.queue.cluster_of(&run.request.queue);
                    self.decide(Decision::QuotaRequested { attempt, cluster });
                }
                None => self.decide(Decision::ApprovalAwaited { run: attempt.run }),
            }
        }
    }

    /// Writes down what a cluster has given, and returns whether it was asked for.
    pub(super) fn on_granted(&mut self, id: AttemptId) -> bool {
        let Some(AdmissionRequest {
            phase: RequestPhase::Granted(place),
            cluster,
            ..
        }) = self.request_of(id)
        else {
            return false;
        };
        let (flavors, cluster) = (place.flavors.clone(), cluster.clone());
        let request = &self.runs[&id.run].request;
        let head = self.approved_head(id.run, request);
        let assignment = self.queue.assignment_of(id, &flavors);
        match head.zip(assignment) {
            Some((head, assignment)) => {
                self.decide(Decision::QuotaReserved {
                    attempt: id,
                    assignment,
                });
                self.decide(Decision::Admitted {
                    attempt: id,
                    approved_by: head.by().clone(),
                    cluster,
                });
            }
            // The approval has expired, or the policy that it was given under has changed.
            None => self.decide(Decision::ApprovalAwaited { run: id.run }),
        }
        true
    }

    /// A cluster takes the quota of an attempt back. It has its time to end, costs the run no retry, and nobody is to blame.
    pub(super) fn on_evicted(&mut self, id: AttemptId, reason: &EvictionReason, message: &str) {
        if self
            .live_attempt(id)
            .is_none_or(|attempt| attempt.eviction.is_some())
        {
            return;
        }
        self.decide(Decision::Evicted {
            attempt: id,
            reason: reason.clone(),
            by: None,
            reversal: false,
            message: Some(message.to_owned()),
        });
        self.stop_attempt(id.run, StopMode::Interrupt, StopReason::Evicted);
    }

    /// A cluster has lost an attempt, or what was asked of it.
    pub(super) fn on_lost(&mut self, id: AttemptId, message: &str) {
        if self.is_requested(id) {
            return self.on_call_failed(Call::Reserve(id), &lost(message));
        }
        let Some(attempt) = self.live_attempt(id) else {
            return;
        };
        let verdict = match attempt.stop {
            Some(_) => Verdict::Stopped,
            None => {
                let diagnostic = *lost(message).diagnostic;
                Verdict::Failed(Box::new(Failure::outside_cells(
                    FailureClass::Infrastructure,
                    diagnostic,
                )))
            }
        };
        self.end_attempt(id, never_ran(verdict));
    }

    /// Ends a run whose cluster cannot be asked for quota, however often that is tried.
    pub(super) fn give_up_request(&mut self, run: RunId, error: &CallError) {
        let failure = Failure::outside_cells(FailureClass::Infrastructure, (*error.diagnostic).clone());
        self.end(run, Ending::of(&failure), Some(failure));
    }
}

/// How facts change it.
impl Scheduler {
    pub(super) fn note_quota_requested(&mut self, id: AttemptId, cluster: &ClusterName) {
        let Some(cluster_queue) = self.queue.external_queue(id.run).map(str::to_owned) else {
            return;
        };
        let Some(run) = self.change(id.run) else { return };
        run.admission = Some(AdmissionRequest {
            attempt: id,
            cluster: cluster.clone(),
            cluster_queue,
            phase: RequestPhase::Pending,
            pending: None,
        });
        self.queue.note_requested(id.run);
        self.due.push(Call::Reserve(id));
    }

    /// Notes why a request waits, and returns whether it does.
    pub(super) fn note_request_pending(&mut self, id: AttemptId, reason: &str, message: &str) -> bool {
        let Some(request) = self.request_mut(id).filter(|request| request.is_pending()) else {
            return false;
        };
        request.pending = Some(PlacePending {
            cluster_reason: reason.to_owned(),
            message: message.to_owned(),
        });
        true
    }

    /// Notes that what was asked for is there, and returns whether anybody asked.
    pub(super) fn note_granted(&mut self, id: AttemptId, place: &Placement) -> bool {
        let Some(request) = self.request_mut(id).filter(|request| request.is_pending()) else {
            return false;
        };
        request.phase = RequestPhase::Granted(Box::new(place.clone()));
        self.forget_failures(Call::Reserve(id));
        true
    }

    /// Takes the place that an attempt was admitted with, if its cluster gave it one. A request that was withdrawn stays: what
    /// is to be released is released before a place is asked for.
    pub(super) fn take_granted(&mut self, id: AttemptId) -> Option<Placement> {
        let run = self.change(id.run)?;
        let is_granted = |request: &mut AdmissionRequest| {
            request.attempt == id && matches!(request.phase, RequestPhase::Granted(_))
        };
        match run.admission.take_if(is_granted)?.phase {
            RequestPhase::Granted(place) => Some(*place),
            RequestPhase::Pending | RequestPhase::Withdrawn => None,
        }
    }

    /// Has what a run asked for released, if it asked for anything.
    pub(super) fn withdraw_request(&mut self, id: RunId) {
        let Some(run) = self.change(id) else { return };
        let Some(request) = run.admission.as_mut().filter(|request| request.is_open()) else {
            return;
        };
        request.phase = RequestPhase::Withdrawn;
        request.pending = None;
        let attempt = request.attempt;
        self.forget_failures(Call::Reserve(attempt));
        self.due.push(Call::Release(attempt));
    }

    /// Has released what a cluster has for the next attempt of a run though nobody asks for it: news of a request that was
    /// withdrawn come late, or it is mistaken. Of attempts that there were, and of runs that are unknown, nothing is touched.
    pub(super) fn note_unasked(&mut self, id: AttemptId) -> bool {
        let Some(run) = self.runs.get_mut(&id.run) else {
            return false;
        };
        if run.admission.is_some() || run.next_attempt() != id {
            return false;
        }
        run.admission = Some(AdmissionRequest {
            attempt: id,
            cluster: self.queue.cluster_of(&run.request.queue),
            cluster_queue: String::new(),
            phase: RequestPhase::Withdrawn,
            pending: None,
        });
        self.touched.insert(id.run);
        self.unsettled.insert(id.run);
        self.due.push(Call::Release(id));
        true
    }

    /// Notes that nothing is left of what was asked for, and returns whether there was such a request. One that somebody
    /// else removed is made again.
    pub(super) fn note_request_gone(&mut self, id: AttemptId) -> bool {
        let Some(run) = self.runs.get_mut(&id.run) else {
            return false;
        };
        let Some(request) = run.admission.take_if(|request| request.attempt == id) else {
            return false;
        };
        self.touched.insert(id.run);
        self.forget_failures(Call::Release(id));
        if request.is_open() {
            self.forget_failures(Call::Reserve(id));
            self.queue.forget_requested(id.run);
        }
        // The embedded queue may have given the attempt quota meanwhile.
        self.due.push(Call::Reserve(id));
        true
    }

    /// Withdraws requests to queues in which their runs are no more: other queues hold.
    pub(super) fn withdraw_misdirected(&mut self) {
        let open = self.unsettled.iter().filter_map(|id| {
            let run = &self.runs[id];
            let request = run.admission.as_ref().filter(|request| request.is_open())?;
            let stays = self.queue.external_queue(*id) == Some(request.cluster_queue.as_str())
                && self.queue.cluster_of(&run.request.queue) == request.cluster;
            Some((*id, stays))
        });
        for (run, stays) in open.collect::<Vec<_>>() {
            match stays {
                true => self.queue.note_requested(run),
                false => self.withdraw_request(run),
            }
        }
    }
}

/// What is asked about it.
impl Scheduler {
    /// Returns the cluster that is asked for quota for an attempt, if one is.
    pub(super) fn requested_cluster(&self, id: AttemptId) -> Option<&ClusterName> {
        self.request_of(id).map(|request| &request.cluster)
    }

    fn request_of(&self, id: AttemptId) -> Option<&AdmissionRequest> {
        let request = self.runs.get(&id.run)?.admission.as_ref();
        request.filter(|request| request.attempt == id)
    }

    fn request_mut(&mut self, id: AttemptId) -> Option<&mut AdmissionRequest> {
        let request = self.runs.get_mut(&id.run)?.admission.as_mut();
        let request = request.filter(|request| request.attempt == id)?;
        self.touched.insert(id.run);
        Some(request)
    }

    /// Returns whether a cluster is asked for quota for this attempt, and has not decided.
    pub(super) fn is_requested(&self, id: AttemptId) -> bool {
        self.request_of(id).is_some_and(AdmissionRequest::is_pending)
    }

    /// Returns whether what was asked for this attempt is to be released.
    pub(super) fn is_withdrawn(&self, id: AttemptId) -> bool {
        self.request_of(id).is_some_and(|request| !request.is_open())
    }

    /// Returns what a place is asked for an attempt with, if one is to be asked for.
    pub(super) fn reservation(&self, id: AttemptId) -> Option<Reservation> {
        let run = self.runs.get(&id.run).filter(|_| !self.is_withdrawn(id))?;
        let quota = match self.is_requested(id) {
            true => ReservedQuota::Requested(self.queue.quota_request(id)?),
            false => {
                let attempt = run.attempt(id.number)?;
                let reserves = attempt.phase == AttemptPhase::Reserving;
                reserves.then_some(())?;
                ReservedQuota::Assigned(self.queue.assignment(id)?)
            }
        };
        Some(Reservation {
            attempt: id,
            cluster: self.cluster_of(id)?,
            pod_sets: run.request.job.pod_sets.clone(),
            flavors: self.queue.flavors_of(&quota),
            quota,
        })
    }

    /// Returns why a queued run waits, where its place in its line may be known.
    pub(super) fn why_queued(&self, run: &Run, place: Option<&LinePlace>) -> Option<PendingReason> {
        let Some(cluster_queue) = self.queue.external_queue(run.id) else {
            return self.queue.why_at(run.id, place);
        };
        let request = run.admission.as_ref();
        if request.is_some_and(|request| !request.is_open()) {
            return Some(PendingReason::WaitingForRelease);
        }
        Some(PendingReason::WaitingForAdmission(AdmissionPending {
            cluster_queue: cluster_queue.to_owned(),
            pending: request.and_then(|request| request.pending.clone()),
        }))
    }

    /// Returns what keeps a queued run waiting, in a few words.
    pub(super) fn obstacle(&self, id: RunId) -> Option<String> {
        let run = self.runs.get(&id)?;
        match self.queue.external_queue(id) {
            Some(_) => self.why_queued(run, None).map(|why| why.to_string()),
            None => self.queue.obstacle(id),
        }
    }

    /// Panics when a rule about requests is broken.
    pub(super) fn check_request(&self, run: &Run) {
        let Some(request) = &run.admission else {
            return;
        };
        let id = run.id;
        assert_eq!(request.attempt.run, id, "{id}: asks for itself");
        assert!(
            self.unsettled.contains(&id),
            "{id}: what it asked for is released before it is settled"
        );
        let granted = matches!(request.phase, RequestPhase::Granted(_));
        assert!(!granted, "{id}: what it was given is written down at once");
        if request.is_open() {
            assert_eq!(
                request.attempt,
                run.next_attempt(),
                "{id}: asks for its next attempt"
            );
            assert!(
                matches!(run.phase, Phase::Queued { .. }),
                "{id}: asks for quota while it is queued"
            );
            let queue = self.queue.external_queue(id);
            assert_eq!(
                queue,
                Some(request.cluster_queue.as_str()),
                "{id}: asks where it is queued"
            );
        }
    }
}

/// Returns the failure of what a cluster has lost.
pub(super) fn lost(message: &str) -> CallError {
    let diagnostic = Diagnostic::error(Code::AttemptLost, "its cluster lost it").because(message);
    CallError::later(diagnostic.hint("look for what became of its pods and nodes there"))
}

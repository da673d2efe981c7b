//! What the scheduler knows of one run.

mod written;

use std::{collections::BTreeSet, sync::Arc};

use blueproof_diagnostic::Diagnostic;
use blueproof_queue::ExecutionTime;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use written::{approved_head, shared};

use crate::{
    domain::{
        ApprovedHead, AttemptId, BackOff, ClusterName, Ending, EvictionReason, Failure, Outcome, Placement,
        RequestKey, Resources, RunId, RunRequest, RunState, Verdict,
    },
    event::StopMode,
    fact::StopReason,
    pending::PlacePending,
    view::{AttemptView, Eviction, FailingCall, LastPass, ReportView, RunView},
};

/// One run and all of its attempts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run {
    pub(super) id: RunId,
    #[serde(with = "shared")]
    pub(super) request: Arc<RunRequest>,
    pub(super) gang: Resources,
    pub(super) requested_at: Timestamp,
    /// When somebody last asked for another attempt.
    pub(super) retried_at: Option<Timestamp>,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) phase: Phase,
    /// How many attempts it had when it was held, or when it came while its pull request was.
    pub(super) attempts_when_held: Option<usize>,
    /// Its age in the queue, and how it backed off, when it was sent back to the gate because it is held.
    pub(super) age_when_held: Option<(Timestamp, Option<BackOff>)>,
    /// Why it ended without an attempt that says so.
    pub(super) refusal: Option<Failure>,
    pub(super) attempts: Vec<Attempt>,
    /// What is asked of a cluster for the next one, where its cluster decides about quota.
    pub(super) admission: Option<AdmissionRequest>,
    /// For which reasons it had to give quota back; of several that Kueue counts as one, the first.
    pub(super) evicted_for: BTreeSet<EvictionReason>,
    pub(super) retries_used: Used,
    pub(super) execution: ExecutionTime,
    pub(super) retry_keys: BTreeSet<RequestKey>,
    pub(super) report: Report,
    /// Which attempt had passed last when it ended.
    pub(super) last_pass: Option<LastPass>,
}

/// Where a run is, as far as no attempt knows better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Phase {
    AwaitingApproval {
        since: Timestamp,
    },
    Queued {
        since: Timestamp,
        /// How it backs off, or did when it came.
        back_off: Option<BackOff>,
    },
    /// Its last attempt is being cleared away. It waits again then, as old as this.
    ComingBack {
        since: Timestamp,
        /// How it backs off, unless it gave way.
        back_off: Option<BackOff>,
    },
    /// The last attempt tells.
    Active,
    Ended(Ending),
}

/// Retries that were taken by themselves, since the last time that somebody asked.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Used {
    pub(super) infrastructure: u32,
    /// Attempts whose agent was killed.
    pub(super) killed_agents: u32,
    pub(super) blueprint: u32,
}

/// Whether the run's report is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Report {
    NotDue,
    Due,
    Written,
    GivenUp(Box<Diagnostic>),
}

/// One attempt, from the promise of quota to the last trace of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attempt {
    pub(super) id: AttemptId,
    #[serde(with = "approved_head")]
    pub(super) head: ApprovedHead,
    /// The cluster that carries it out.
    #[serde(default)]
    pub(super) cluster: ClusterName,
    pub(super) phase: AttemptPhase,
    /// Since when it had waited, by which it is ordered when it has to wait again.
    pub(super) queued_at: Timestamp,
    /// When the run entered the queue for it.
    pub(super) entered_at: Option<Timestamp>,
    pub(super) reserved_at: Timestamp,
    pub(super) placed_at: Option<Timestamp>,
    pub(super) started_at: Option<Timestamp>,
    pub(super) ended_at: Option<Timestamp>,
    /// When it was seen that it had ended: since then it is cleared away.
    pub(super) seen_over_at: Option<Timestamp>,
    pub(super) place: Option<Placement>,
    /// Why it waits for a place, as its cluster says.
    pub(super) pending: Option<PlacePending>,
    pub(super) stop: Option<Stop>,
    pub(super) eviction: Option<Eviction>,
    pub(super) outcome: Option<Box<Outcome>>,
}

/// Quota that is asked of a cluster for the next attempt of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AdmissionRequest {
    pub(super) attempt: AttemptId,
    #[serde(default)]
    pub(super) cluster: ClusterName,
    pub(super) cluster_queue: String,
    pub(super) phase: RequestPhase,
    /// Why it waits, as its cluster says.
    pub(super) pending: Option<PlacePending>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum RequestPhase {
    /// Its cluster decides.
    Pending,
    /// It has quota and a place, which is being written down.
    Granted(Box<Placement>),
    /// Nobody needs it any more; it is being released.
    Withdrawn,
}

/// How far an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum AttemptPhase {
    Reserving,
    Starting,
    Running,
    Releasing,
    Gone,
}

/// How often a run had to give its quota back.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Evictions {
    pub(super) count: u32,
    /// For whom the last time, of those when it was for another.
    pub(super) last_by: Option<RunId>,
}

impl Evictions {
    /// Counts another, and for whom it was.
    pub(super) fn add(&mut self, by: Option<RunId>) {
        self.count += 1;
        self.last_by = by.or(self.last_by);
    }
}

/// That an attempt was asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stop {
    pub(super) how: StopMode,
    pub(super) why: StopReason,
}

impl Stop {
    /// Returns both. The first reason stays, so that the ending names what began it, and the harder way replaces the softer.
    /// One whose run would come back is replaced by one that ends the run.
    pub(super) fn and(self, how: StopMode, why: StopReason) -> Self {
        Self {
            how: self.how.max(how),
            why: if comes_back(self.why) && (!comes_back(why) || self.why == StopReason::Evicted) {
                why
            } else {
                self.why
            },
        }
    }
}

/// Returns whether the run waits again whose attempt is told to end for this reason.
fn comes_back(why: StopReason) -> bool {
    match why {
        StopReason::Evicted | StopReason::ApprovalRevoked => true,
        StopReason::Cancelled
        | StopReason::Synchronized
        | StopReason::BaseChanged
        | StopReason::PullRequestClosed
        | StopReason::Overdue
        | StopReason::ExecutionTimeOver => false,
    }
}

impl Run {
    pub(super) fn state(&self) -> RunState {
        match self.phase {
            Phase::AwaitingApproval { .. } => RunState::AwaitingApproval,
            Phase::Queued { .. } | Phase::ComingBack { .. } => RunState::Queued,
            Phase::Ended(ending) => RunState::Ended(ending),
            Phase::Active => self.attempts.last().map_or(RunState::Queued, Attempt::state),
        }
    }

    /// Returns the attempt of that number, whatever became of it.
    pub(super) fn attempt(&self, number: u32) -> Option<&Attempt> {
        self.attempts.get(number.checked_sub(1)? as usize)
    }

    pub(super) fn attempt_mut(&mut self, number: u32) -> Option<&mut Attempt> {
        self.attempts.get_mut(number.checked_sub(1)? as usize)
    }

    /// Returns the attempt that holds the run's place in the pipeline.
    pub(super) fn active(&self) -> Option<&Attempt> {
        self.attempts.last().filter(|attempt| attempt.is_live())
    }

    /// Returns an attempt that is not over.
    pub(super) fn live_mut(&mut self, id: AttemptId) -> Option<&mut Attempt> {
        self.attempt_mut(id.number).filter(|attempt| attempt.is_live())
    }

    pub(super) fn next_attempt(&self) -> AttemptId {
        let made = u32::try_from(self.attempts.len()).expect("fewer attempts than u32 can count");
        self.id.attempt(made + 1)
    }

    /// Returns how often an attempt had to give its quota back.
    pub(super) fn evictions(&self) -> Evictions {
        let mut evictions = Evictions::default();
        for eviction in self
            .attempts
            .iter()
            .filter_map(|attempt| attempt.eviction.as_ref())
        {
            evictions.add(eviction.by);
        }
        evictions
    }

    /// Notes that it has to give its quota back, and returns whether that is the first time for what Kueue counts as one
    /// reason.
    pub(super) fn note_eviction_for(&mut self, reason: &EvictionReason) -> bool {
        let is_like = |before: &EvictionReason| before.condition_reason() == reason.condition_reason();
        let is_first = !self.evicted_for.iter().any(is_like);
        if is_first {
            self.evicted_for.insert(reason.clone());
        }
        is_first
    }

    /// Returns whether nothing is left of any attempt, nor of what was asked for one.
    pub(super) fn is_clear(&self) -> bool {
        let mut attempts = self.attempts.iter();
        attempts.all(|attempt| attempt.phase == AttemptPhase::Gone) && self.admission.is_none()
    }

    /// Returns whether nothing remains to be done for this run.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Ended(_)) && self.report != Report::Due && self.is_clear()
    }

    fn failure(&self) -> Option<Failure> {
        if self.refusal.is_some() {
            return self.refusal.clone();
        }
        match &self.attempts.last()?.outcome.as_ref()?.verdict {
            Verdict::Failed(failure) => Some(*failure.clone()),
            Verdict::Passed | Verdict::Stopped => None,
        }
    }

    /// Returns the run as it stands, with what fails for it.
    pub(super) fn view(&self, failing_calls: Vec<FailingCall>) -> RunView {
        let request = &self.request;
        RunView {
            id: self.id,
            state: self.state(),
            subject: request.subject.clone(),
            revision: request.revision.clone(),
            requested_by: request.requested_by.clone(),
            asked_from: request.asked_from.clone(),
            request_key: request.key.clone(),
            queue: request.queue.clone(),
            priority: request.priority,
            resources: self.gang,
            further_resources: request.job.further(),
            requested_at: self.requested_at,
            retried_at: self.retried_at,
            ended_at: self.ended_at,
            attempts: self.attempts.iter().map(Attempt::view).collect(),
            failure: self.failure(),
            last_pass: self.last_pass.clone(),
            failing_calls,
            report: match &self.report {
                Report::NotDue => ReportView::NotDue,
                Report::Due => ReportView::Due,
                Report::Written => ReportView::Written,
                Report::GivenUp(problem) => ReportView::GivenUp(problem.clone()),
            },
            settled: self.is_settled(),
            outlook: None,
        }
    }
}

impl AdmissionRequest {
    pub(super) fn is_open(&self) -> bool {
        self.phase != RequestPhase::Withdrawn
    }

    pub(super) fn is_pending(&self) -> bool {
        self.phase == RequestPhase::Pending
    }
}

impl Attempt {
    pub(super) fn is_live(&self) -> bool {
        self.phase < AttemptPhase::Releasing
    }

    /// Returns how long it had its quota until it ended by itself; `None` where it did not, or never ran.
    pub(super) fn took(&self) -> Option<SignedDuration> {
        self.started_at.filter(|_| self.stop.is_none())?;
        let ended_at = self.ended_at?;
        Some(ended_at.duration_since(self.reserved_at))
    }

    fn state(&self) -> RunState {
        match self.phase {
            AttemptPhase::Reserving => RunState::Reserved,
            AttemptPhase::Starting => RunState::Starting,
            AttemptPhase::Running => RunState::Running,
            AttemptPhase::Releasing | AttemptPhase::Gone => RunState::Queued,
        }
    }

    fn view(&self) -> AttemptView {
        AttemptView {
            id: self.id,
            approved_by: self.head.by().clone(),
            place: self.place.clone(),
            pending: self.pending.clone(),
            queued_at: self.entered_at,
            reserved_at: self.reserved_at,
            started_at: self.started_at,
            ended_at: self.ended_at,
            eviction: self.eviction.clone(),
            outcome: self.outcome.as_deref().cloned(),
        }
    }
}

//! What the log holds: what came in, and what was decided about it.
//!
//! Facts are the truth of the whole system. State changes by applying them and in no other way, so that a replay needs no
//! rules, and rules may change under a log that is in use: [docs/design/facts-and-ports.md].
//!
//! [docs/design/facts-and-ports.md]: https://github.com/kubeflow/blueproof/blob/main/docs/design/facts-and-ports.md

use blueproof_queue::Assignment;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    approval::{Approval, ApprovalRefusal, ApprovalTarget, HoldTarget, RevocationReason},
    domain::{Actor, AttemptId, BackOff, ClusterName, Ending, EvictionReason, Failure, Outcome, RunId},
    event::{Call, Event, StopMode},
};

/// Something that came in, or that was decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Fact {
    /// It came in.
    Input(Event),
    /// It was decided.
    Decision(Decision),
}

impl Fact {
    /// Returns the kind of the input or the decision, as it is written in the log.
    pub fn kind(&self) -> &'static str {
        match self {
            Fact::Input(input) => input.kind(),
            Fact::Decision(decision) => decision.kind(),
        }
    }
}

/// Something that the scheduler decided. It happened: no later version of a rule takes it back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Decision {
    /// An approval counts.
    ApprovalAccepted {
        /// The approval.
        approval: Approval,
    },
    /// An approval does not count.
    ApprovalRefused {
        /// What it was of.
        #[serde(alias = "subject")]
        target: ApprovalTarget,
        /// Who gave it.
        by: Actor,
        /// Why.
        reason: ApprovalRefusal,
    },
    /// An approval that counted does so no more. What runs under it is told to end, and what waits needs another.
    ApprovalRevoked {
        /// The approval.
        approval: Approval,
        /// Why.
        reason: RevocationReason,
        /// By whom, if by somebody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
    },
    /// The time of an approval that counted is over. What runs under it goes on, and what waits needs another.
    ApprovalExpired {
        /// The approval.
        approval: Approval,
    },
    /// Nothing of this starts until it is resumed. What runs goes on.
    Held {
        /// What.
        target: HoldTarget,
        /// Who holds it.
        by: Actor,
    },
    /// What was held goes on.
    Resumed {
        /// What.
        target: HoldTarget,
        /// Who lifted the hold.
        by: Actor,
    },
    /// What is held stays so, though somebody wanted it to go on.
    ResumeRefused {
        /// What.
        target: HoldTarget,
        /// Who wanted it.
        by: Actor,
        /// Why not.
        reason: ApprovalRefusal,
    },
    /// A run waits for an approval again: the one that it had does not count any more.
    ApprovalAwaited {
        /// The run.
        run: RunId,
    },
    /// A run is approved and waits for quota.
    Enqueued {
        /// The run.
        run: RunId,
        /// Its age in the queue.
        since: Timestamp,
        /// Before when it is not tried, if it backs off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        back_off: Option<BackOff>,
    },
    /// The queues were gone through: in so many cycles a workload got quota, and in so many none of those that were tried
    /// did.
    CyclesRun {
        /// How many cycles gave quota.
        admitted: u32,
        /// How many did not.
        inadmissible: u32,
    },
    /// Quota for an attempt is asked for where the admission of its ClusterQueue is external.
    QuotaRequested {
        /// The attempt, which begins when it has it.
        attempt: AttemptId,
        /// The cluster that is asked.
        #[serde(default, skip_serializing_if = "ClusterName::is_local")]
        cluster: ClusterName,
    },
    /// An attempt has quota, which others may still be leaving.
    QuotaReserved {
        /// The attempt.
        attempt: AttemptId,
        /// What it has.
        assignment: Assignment,
    },
    /// An attempt begins: its quota is free for it, and its head is approved.
    Admitted {
        /// The attempt.
        attempt: AttemptId,
        /// Who approved its head.
        approved_by: Actor,
        /// The cluster that it is carried out on.
        #[serde(default, skip_serializing_if = "ClusterName::is_local")]
        cluster: ClusterName,
    },
    /// An attempt has to give its quota back. One that was not admitted yet has done so.
    Evicted {
        /// The attempt.
        attempt: AttemptId,
        /// Why.
        reason: EvictionReason,
        /// For which run, if for one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<RunId>,
        /// Whether that one had been evicted for this one.
        #[serde(default, skip_serializing_if = "is_false")]
        reversal: bool,
        /// What its cluster says of it, where its cluster decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A run that waits goes first in its queue: it waits for the quota of others that were evicted before.
    PreemptionAwaited {
        /// The run.
        run: RunId,
    },
    /// An attempt is told to end.
    StopRequested {
        /// The attempt.
        attempt: AttemptId,
        /// How.
        how: StopMode,
        /// Why.
        why: StopReason,
    },
    /// An attempt is over though nothing of it said so: it never ran, or does not heed what it is told.
    AttemptEnded {
        /// The attempt.
        attempt: AttemptId,
        /// What it is said to have ended with.
        outcome: Box<Outcome>,
    },
    /// A run waits again as soon as nothing is left of its attempt.
    Requeued {
        /// The run.
        run: RunId,
        /// Its age in the queue then.
        since: Timestamp,
        /// Which of its retries that is; `None` after an eviction, which costs none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<RetryUsed>,
    },
    /// A run is over.
    Ended {
        /// The run.
        run: RunId,
        /// How.
        ending: Ending,
        /// Why, where its last attempt does not say so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Box<Failure>>,
    },
    /// A call that failed is made again at a time.
    CallPostponed {
        /// The call.
        call: Call,
        /// When it is made again.
        until: Timestamp,
    },
    /// A call that was postponed is made now.
    CallRepeated {
        /// The call.
        call: Call,
    },
    /// A run's report is given up: it could not be written, however often it was tried.
    ReportGivenUp {
        /// The run.
        run: RunId,
    },
    /// A run that is not remembered is not tried again, though somebody wanted it.
    RetryRefused {
        /// The run.
        run: RunId,
        /// Who wanted it.
        by: Actor,
    },
    /// Settled runs are remembered no more: the store has them as they stand.
    Forgotten {
        /// The runs.
        runs: Vec<RunId>,
    },
    /// The clock is behind the log, which a clock that was ahead had written: time goes on from here, and each deadline is as
    /// far away as it was.
    ClockSetBack {
        /// What time it is.
        to: Timestamp,
        /// What time it was before. A log of earlier versions does not say: there it is the time of the fact before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Timestamp>,
    },
}

impl Decision {
    /// Returns the decision's kind as it is written in the log.
    pub fn kind(&self) -> &'static str {
        match self {
            Decision::ApprovalAccepted { .. } => "approvalAccepted",
            Decision::ApprovalRefused { .. } => "approvalRefused",
            Decision::ApprovalRevoked { .. } => "approvalRevoked",
            Decision::ApprovalExpired { .. } => "approvalExpired",
            Decision::Held { .. } => "held",
            Decision::Resumed { .. } => "resumed",
            Decision::ResumeRefused { .. } => "resumeRefused",
            Decision::ApprovalAwaited { .. } => "approvalAwaited",
            Decision::Enqueued { .. } => "enqueued",
            Decision::CyclesRun { .. } => "cyclesRun",
            Decision::QuotaRequested { .. } => "quotaRequested",
            Decision::QuotaReserved { .. } => "quotaReserved",
            Decision::Admitted { .. } => "admitted",
            Decision::Evicted { .. } => "evicted",
            Decision::PreemptionAwaited { .. } => "preemptionAwaited",
            Decision::StopRequested { .. } => "stopRequested",
            Decision::AttemptEnded { .. } => "attemptEnded",
            Decision::Requeued { .. } => "requeued",
            Decision::Ended { .. } => "ended",
            Decision::CallPostponed { .. } => "callPostponed",
            Decision::CallRepeated { .. } => "callRepeated",
            Decision::ReportGivenUp { .. } => "reportGivenUp",
            Decision::RetryRefused { .. } => "retryRefused",
            Decision::Forgotten { .. } => "forgotten",
            Decision::ClockSetBack { .. } => "clockSetBack",
        }
    }
}

/// Why an attempt is told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// Its run was cancelled.
    Cancelled,
    /// Its pull request has another head.
    #[serde(alias = "headMoved")]
    Synchronized,
    /// Its pull request has another base.
    BaseChanged,
    /// Its pull request was closed.
    PullRequestClosed,
    /// The approval that it runs under was revoked.
    ApprovalRevoked,
    /// It did not end by its own limits.
    Overdue,
    /// Its run has had quota for as long as it may.
    ExecutionTimeOver,
    /// It has to give its quota back.
    Evicted,
}

/// A retry that a run has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RetryUsed {
    /// After what.
    pub after: RetryAfter,
    /// How it backs off.
    pub back_off: BackOff,
}

/// What a run is tried again after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum RetryAfter {
    /// A failure of the machine.
    Infrastructure,
    /// A failure of the blueprint itself.
    Blueprint,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

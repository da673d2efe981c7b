//! What the scheduler is told.
//!
//! Events are facts and wishes from outside. They are the truth of the whole system: what is in the log is replayed
//! after a crash, and the same events give the same state.

use std::collections::BTreeSet;

use blueproof_queue::objects::Objects;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    approval::{Approval, HoldTarget, RevocationTarget},
    domain::{
        Actor, AttemptId, BaseRef, CallError, ClusterName, EvictionReason, Head, Inventory, Outcome,
        Placement, PullRequest, Repository, RequestKey, RunId, RunRequest,
    },
    policy::Policy,
};

/// Something that happened, or that somebody wants.
///
/// A repeated, late or unknown event changes nothing: GitHub redelivers webhooks, and clusters report old news.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Event {
    /// From now on this policy holds.
    Configured {
        /// The whole policy.
        policy: Box<Policy>,
    },
    /// From now on these queues hold, in place of the one that the policy's quota makes.
    QuotaApplied {
        /// All of them.
        objects: Box<Objects>,
        /// Who.
        by: Actor,
    },
    /// Somebody asks for a run.
    Requested {
        /// What for.
        request: Box<RunRequest>,
    },
    /// Somebody approved content.
    Approved {
        /// The approval.
        approval: Approval,
    },
    /// These people may approve from now on, beside those that the policy names, and no others.
    EntitlementChanged {
        /// What of; everything where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<Repository>,
        /// All of them.
        approvers: BTreeSet<Actor>,
        /// Where that is written, such as a commit's OWNERS.
        source: String,
        /// The digest of the repository's own policy: approvals of what it has count under that one alone. The admin's
        /// where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<String>,
        /// The command that it came with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<RequestKey>,
    },
    /// Somebody takes approvals back.
    RevokeRequested {
        /// Which.
        target: RevocationTarget,
        /// Who.
        by: Actor,
        /// The command that it came with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<RequestKey>,
    },
    /// Somebody wants nothing of something to start.
    HoldRequested {
        /// What.
        target: HoldTarget,
        /// Who.
        by: Actor,
        /// The command that it came with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<RequestKey>,
    },
    /// Somebody wants what is held to go on.
    ResumeRequested {
        /// What.
        target: HoldTarget,
        /// Who.
        by: Actor,
        /// The command that it came with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<RequestKey>,
    },
    /// A pull request is to be merged into another branch.
    BaseChanged {
        /// Which.
        #[serde(flatten)]
        pull_request: PullRequest,
        /// The branch.
        base: BaseRef,
        /// The command that it came with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<RequestKey>,
    },
    /// A pull request was closed, merged or not.
    PullRequestClosed {
        /// Which.
        #[serde(flatten)]
        pull_request: PullRequest,
        /// The command that it came with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<RequestKey>,
    },
    /// A pull request that was closed is open again.
    PullRequestReopened {
        /// Which.
        #[serde(flatten)]
        pull_request: PullRequest,
        /// The command that it came with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<RequestKey>,
    },
    /// A pull request has a new head.
    #[serde(alias = "headMoved")]
    Synchronized {
        /// Which.
        #[serde(flatten)]
        pull_request: PullRequest,
        /// The new head.
        head: Head,
        /// The command that it came with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<RequestKey>,
    },
    /// Somebody wants a run to end.
    CancelRequested {
        /// The run.
        run: RunId,
        /// Who.
        by: Actor,
        /// How.
        how: StopMode,
        /// The command that it came with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<RequestKey>,
    },
    /// Somebody wants an ended run to be tried once more.
    RetryRequested {
        /// What makes it the same wish when it comes again.
        key: RequestKey,
        /// The run.
        run: RunId,
        /// Who.
        by: Actor,
    },
    /// A cluster has something else than before.
    InventoryChanged {
        /// Which cluster.
        cluster: ClusterName,
        /// All that it has now.
        inventory: Box<Inventory>,
    },
    /// An attempt waits for a place.
    Pending {
        /// The attempt.
        attempt: AttemptId,
        /// Why, in the cluster's own word.
        reason: String,
        /// Why, in words.
        message: String,
    },
    /// An attempt has a place.
    Reserved {
        /// The attempt.
        attempt: AttemptId,
        /// Where.
        place: Placement,
    },
    /// An attempt runs.
    Started {
        /// The attempt.
        attempt: AttemptId,
    },
    /// An attempt is over.
    Finished {
        /// The attempt.
        attempt: AttemptId,
        /// How it ended.
        outcome: Box<Outcome>,
        /// When, where it says so itself: it may be seen only much later.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended_at: Option<Timestamp>,
    },
    /// An attempt has to give its quota back, which its cluster decided.
    #[serde(rename = "evictedByCluster")]
    Evicted {
        /// The attempt.
        attempt: AttemptId,
        /// Why.
        reason: EvictionReason,
        /// Why, in words.
        message: String,
    },
    /// Its cluster has lost an attempt: nothing more is to be learnt of it.
    Lost {
        /// The attempt.
        attempt: AttemptId,
        /// How, in words.
        message: String,
    },
    /// Nothing of an attempt is left.
    Released {
        /// The attempt.
        attempt: AttemptId,
    },
    /// A run's report is written.
    Reported {
        /// The run.
        run: RunId,
        /// How many attempts the report tells of.
        attempts: u32,
    },
    /// A call that the scheduler asked for did not succeed.
    CallFailed {
        /// Which.
        call: Call,
        /// Why.
        error: Box<CallError>,
    },
    /// A time came that the scheduler waited for.
    Tick,
}

impl Event {
    /// Returns the command that it came with, where it says so.
    pub fn via(&self) -> Option<&RequestKey> {
        match self {
            Event::Requested { request } => Some(&request.key),
            Event::RetryRequested { key, .. } => Some(key),
            Event::Approved { approval } => approval.via.as_ref(),
            Event::EntitlementChanged { via, .. }
            | Event::RevokeRequested { via, .. }
            | Event::HoldRequested { via, .. }
            | Event::ResumeRequested { via, .. }
            | Event::BaseChanged { via, .. }
            | Event::PullRequestClosed { via, .. }
            | Event::PullRequestReopened { via, .. }
            | Event::Synchronized { via, .. }
            | Event::CancelRequested { via, .. } => via.as_ref(),
            Event::Configured { .. }
            | Event::QuotaApplied { .. }
            | Event::InventoryChanged { .. }
            | Event::Pending { .. }
            | Event::Reserved { .. }
            | Event::Started { .. }
            | Event::Finished { .. }
            | Event::Evicted { .. }
            | Event::Lost { .. }
            | Event::Released { .. }
            | Event::Reported { .. }
            | Event::CallFailed { .. }
            | Event::Tick => None,
        }
    }

    /// Returns the event's kind as it is written in the log.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::Configured { .. } => "configured",
            Event::QuotaApplied { .. } => "quotaApplied",
            Event::Requested { .. } => "requested",
            Event::Approved { .. } => "approved",
            Event::EntitlementChanged { .. } => "entitlementChanged",
            Event::RevokeRequested { .. } => "revokeRequested",
            Event::HoldRequested { .. } => "holdRequested",
            Event::ResumeRequested { .. } => "resumeRequested",
            Event::BaseChanged { .. } => "baseChanged",
            Event::PullRequestClosed { .. } => "pullRequestClosed",
            Event::PullRequestReopened { .. } => "pullRequestReopened",
            Event::Synchronized { .. } => "synchronized",
            Event::CancelRequested { .. } => "cancelRequested",
            Event::RetryRequested { .. } => "retryRequested",
            Event::InventoryChanged { .. } => "inventoryChanged",
            Event::Pending { .. } => "pending",
            Event::Reserved { .. } => "reserved",
            Event::Started { .. } => "started",
            Event::Finished { .. } => "finished",
            Event::Evicted { .. } => "evictedByCluster",
            Event::Lost { .. } => "lost",
            Event::Released { .. } => "released",
            Event::Reported { .. } => "reported",
            Event::CallFailed { .. } => "callFailed",
            Event::Tick => "tick",
        }
    }
}

/// How an attempt is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum StopMode {
    /// Interrupt the cell that runs, as Ctrl-C does; nothing runs after it.
    Interrupt,
    /// Terminate the kernel in order, now. What was produced so far is kept.
    #[serde(alias = "end")]
    Terminate,
}

/// A call to a port, by what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Call {
    /// Make a place for an attempt.
    Reserve(AttemptId),
    /// Start an attempt.
    Start(AttemptId),
    /// Watch an attempt.
    Observe(AttemptId),
    /// Ask an attempt to end.
    Stop(AttemptId),
    /// Remove what is left of an attempt.
    Release(AttemptId),
    /// Write a run's report.
    Report(RunId),
}

impl Call {
    /// Returns the run that it is about.
    pub fn run(self) -> RunId {
        match self {
            Call::Reserve(id) | Call::Start(id) | Call::Observe(id) | Call::Stop(id) | Call::Release(id) => {
                id.run
            }
            Call::Report(id) => id,
        }
    }

    /// Returns the attempt that it is about; a report is about none.
    pub fn attempt(self) -> Option<AttemptId> {
        match self {
            Call::Reserve(id) | Call::Start(id) | Call::Observe(id) | Call::Stop(id) | Call::Release(id) => {
                Some(id)
            }
            Call::Report(_) => None,
        }
    }
}

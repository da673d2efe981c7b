//! What outlives us.

use std::collections::BTreeSet;

use async_trait::async_trait;
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::objects::Objects;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    approval::{Approval, HoldTarget, RevocationTarget},
    domain::{Actor, BaseRef, Head, PullRequest, Repository, RequestKey, RunId, RunRequest},
    event::{Event, StopMode},
    fact::Fact,
    view::RunView,
};

/// The log of facts, what is projected from it, and the wishes that nobody has taken up yet.
///
/// One engine at a time appends; any number of other processes read, and may leave wishes.
#[async_trait]
pub trait Store: Send + Sync {
    /// Appends facts and what follows from them, all or nothing, and returns when that will outlive a power cut, with the
    /// position of the last fact. Where the log does not end at `after` any more, nothing is appended and the error is
    /// [`Overtaken`](blueproof_diagnostic::Code::StoreOvertaken): somebody else has written.
    async fn append(&self, after: Seq, batch: Batch) -> Result<Seq, StoreError>;

    /// Returns at most `limit` facts after `after`, the oldest first.
    async fn facts(&self, after: Seq, limit: usize) -> Result<Vec<LoggedFact>, StoreError>;

    /// Keeps what a scheduler had come to after the fact at a position, in the shape of a version. The newest two are kept.
    async fn put_snapshot(&self, at: Seq, version: u32, bytes: Vec<u8>) -> Result<(), StoreError>;

    /// Returns the newest snapshot of a version, and after which fact it was made. One that is not whole, or is ahead of the
    /// log, is passed over.
    async fn snapshot(&self, version: u32) -> Result<Option<(Seq, Vec<u8>)>, StoreError>;

    /// Leaves a wish for whichever engine is or will be there. A wish whose key was left before changes nothing.
    async fn submit(&self, at: Timestamp, command: Command) -> Result<(), StoreError>;

    /// Returns the wishes that nobody has taken up yet, the oldest first.
    async fn commands(&self) -> Result<Vec<(CommandId, Command)>, StoreError>;

    /// Returns the store's version once it is another than `since`: something may have been written, by whichever
    /// process. Versions are only good for being compared. Safe to drop.
    async fn changed(&self, since: Option<Version>) -> Version;

    /// Returns a run as it stood when its last fact was appended.
    async fn run(&self, run: RunId) -> Result<Option<RunView>, StoreError>;

    /// Returns the run that a request made.
    async fn run_of(&self, key: &RequestKey) -> Result<Option<RunView>, StoreError>;

    /// Returns every run, the newest first, at most `limit`.
    async fn runs(&self, limit: usize) -> Result<Vec<RunView>, StoreError>;
}

/// The position of a fact in the log, counted from one; zero is before the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Seq(pub u64);

/// How many snapshots a store keeps: should the newest be damaged, another is there.
pub const SNAPSHOTS_KEPT: usize = 2;

/// Tells two states of a store apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(pub u64);

/// A fact as it stands in the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoggedFact {
    /// Its position.
    pub seq: Seq,
    /// When it was handled.
    pub at: Timestamp,
    /// What came in, or was decided.
    #[serde(flatten)]
    pub fact: Fact,
}

impl LoggedFact {
    /// Returns whether another step of the scheduler begins here: an input is followed by what was decided about it, and what
    /// fell due has a time of its own. `last_at` is the time of the fact before.
    pub fn begins_step(&self, last_at: Option<Timestamp>) -> bool {
        matches!(self.fact, Fact::Input(_)) || last_at != Some(self.at)
    }
}

/// What is appended at once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// New facts, each with the time at which it was applied.
    pub facts: Vec<(Timestamp, Fact)>,
    /// The runs that changed, as they stand after these facts.
    pub views: Vec<RunView>,
    /// The wishes that became events here.
    pub taken: Vec<CommandId>,
}

/// Names a wish in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u64);

/// A wish, or news from outside, that was left for the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Command {
    /// A run.
    Run {
        /// What for.
        request: Box<RunRequest>,
    },
    /// That a run ends.
    Cancel {
        /// What makes it the same wish when it comes again.
        key: RequestKey,
        /// The run.
        run: RunId,
        /// Who.
        by: Actor,
        /// How.
        how: StopMode,
    },
    /// That an ended run is tried once more.
    Retry {
        /// What makes it the same wish when it comes again.
        key: RequestKey,
        /// The run.
        run: RunId,
        /// Who.
        by: Actor,
    },
    /// That these queues hold from now on.
    ApplyQuota {
        /// What makes it the same wish when it comes again.
        key: RequestKey,
        /// All of them.
        objects: Box<Objects>,
        /// Who.
        by: Actor,
    },
    /// That content may run.
    Approve {
        /// What makes it the same wish when it comes again.
        key: RequestKey,
        /// The approval.
        approval: Box<Approval>,
    },
    /// That approvals count no more.
    Revoke {
        /// What makes it the same command when it comes again.
        key: RequestKey,
        /// Which.
        target: RevocationTarget,
        /// Who.
        by: Actor,
    },
    /// That nothing of something starts.
    Hold {
        /// What makes it the same command when it comes again.
        key: RequestKey,
        /// What.
        target: HoldTarget,
        /// Who.
        by: Actor,
    },
    /// That what is held goes on.
    Resume {
        /// What makes it the same command when it comes again.
        key: RequestKey,
        /// What.
        target: HoldTarget,
        /// Who.
        by: Actor,
    },
    /// That these people may approve from now on, and no others beside those that the policy names.
    Entitle {
        /// What makes it the same news when it comes again.
        key: RequestKey,
        /// What of; everything where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<Repository>,
        /// All of them.
        approvers: BTreeSet<Actor>,
        /// Where that is written, such as a commit's OWNERS.
        source: String,
    },
    /// That a pull request's other base is taken note of.
    ChangeBase {
        /// What makes it the same news when it comes again.
        key: RequestKey,
        /// Which.
        #[serde(flatten)]
        pull_request: PullRequest,
        /// The branch.
        base: BaseRef,
    },
    /// That a pull request is closed.
    ClosePullRequest {
        /// What makes it the same news when it comes again.
        key: RequestKey,
        /// Which.
        #[serde(flatten)]
        pull_request: PullRequest,
    },
    /// That a pull request is open again.
    ReopenPullRequest {
        /// What makes it the same news when it comes again.
        key: RequestKey,
        /// Which.
        #[serde(flatten)]
        pull_request: PullRequest,
    },
    /// That a pull request's new head is taken note of.
    #[serde(alias = "moveHead")]
    Synchronize {
        /// What makes it the same news when it comes again.
        key: RequestKey,
        /// Which.
        #[serde(flatten)]
        pull_request: PullRequest,
        /// The new head.
        head: Head,
    },
}

impl Command {
    /// Returns what makes it the same wish when it comes again.
    pub fn key(&self) -> &RequestKey {
        match self {
            Command::Run { request } => &request.key,
            Command::Cancel { key, .. }
            | Command::Retry { key, .. }
            | Command::ApplyQuota { key, .. }
            | Command::Approve { key, .. }
            | Command::Revoke { key, .. }
            | Command::Hold { key, .. }
            | Command::Resume { key, .. }
            | Command::Entitle { key, .. }
            | Command::ChangeBase { key, .. }
            | Command::ClosePullRequest { key, .. }
            | Command::ReopenPullRequest { key, .. }
            | Command::Synchronize { key, .. } => key,
        }
    }
}

impl From<Command> for Event {
    /// What may be asked about later says by which command it came.
    fn from(command: Command) -> Self {
        let via = Some(command.key().clone());
        match command {
            Command::Run { request } => Event::Requested { request },
            Command::Cancel { key: _, run, by, how } => Event::CancelRequested { run, by, how, via },
            Command::Retry { key, run, by } => Event::RetryRequested { key, run, by },
            Command::ApplyQuota { key: _, objects, by } => Event::QuotaApplied { objects, by },
            Command::Approve { key: _, approval } => {
                let approval = Approval { via, ..*approval };
                Event::Approved { approval }
            }
            Command::Revoke { key: _, target, by } => Event::RevokeRequested { target, by, via },
            Command::Hold { key: _, target, by } => Event::HoldRequested { target, by, via },
            Command::Resume { key: _, target, by } => Event::ResumeRequested { target, by, via },
            Command::Entitle {
                key: _,
                repository,
                approvers,
                source,
            } => Event::EntitlementChanged {
                repository,
                approvers,
                source,
                via,
            },
            Command::ChangeBase {
                key: _,
                pull_request,
                base,
            } => Event::BaseChanged {
                pull_request,
                base,
                via,
            },
            Command::ClosePullRequest { key: _, pull_request } => {
                Event::PullRequestClosed { pull_request, via }
            }
            Command::ReopenPullRequest { key: _, pull_request } => {
                Event::PullRequestReopened { pull_request, via }
            }
            Command::Synchronize {
                key: _,
                pull_request,
                head,
            } => Event::Synchronized {
                pull_request,
                head,
                via,
            },
        }
    }
}

/// A store that could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("{}", .diagnostic.message)]
pub struct StoreError {
    /// What went wrong.
    pub diagnostic: Box<Diagnostic>,
}

impl StoreError {
    /// Returns the error of an engine whose log has grown without it.
    pub fn overtaken(after: Seq, last: Seq) -> Self {
        let message = format!(
            "somebody else has written to the store: its log ends at fact {}, not at {}",
            last.0, after.0
        );
        let diagnostic = Diagnostic::error(Code::StoreOvertaken, message);
        diagnostic
            .hint("nothing was written here; read the log again and go on from there")
            .into()
    }

    /// Returns whether somebody else has written, so that the log must be read again before anything is appended.
    pub fn is_overtaken(&self) -> bool {
        self.diagnostic.code == Code::StoreOvertaken
    }
}

impl From<Diagnostic> for StoreError {
    fn from(diagnostic: Diagnostic) -> Self {
        Self {
            diagnostic: Box::new(diagnostic),
        }
    }
}

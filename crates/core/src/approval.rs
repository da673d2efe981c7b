//! What people say about content before it runs: that it may, that it may no longer, and that it is to wait.

mod head;

use std::{collections::BTreeSet, fmt};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::{
    Actor, BaseRef, BlueprintName, Head, JobDigest, ProfileName, PullRequest, Repository, RequestKey, RunId,
    RunRequest, Subject,
};
pub use head::{HeadRefusal, HeadStatus};

/// Somebody's statement that content may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Approval {
    /// What may run.
    #[serde(alias = "subject")]
    pub target: ApprovalTarget,
    /// The digest of the policy under which it was approved.
    pub policy: String,
    /// Who approved.
    pub by: Actor,
    /// When; absent where that was not noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// When it stops counting, by the calendar: a clock that is set back does not move it.
    pub expires_at: Option<Timestamp>,
    /// The command that it came with, such as a webhook's delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<RequestKey>,
}

/// What an approval is of: exactly one head, with the base that it was read against, which of its blueprints under which
/// profiles, and which jobs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", try_from = "StoredTarget")]
#[cfg_attr(feature = "schema", schemars(!try_from))]
pub struct ApprovalTarget {
    /// The repository or folder.
    pub repository: Repository,
    /// The pull request, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<u64>,
    /// The content.
    pub head: Head,
    /// The branch that the pull request is to be merged into; absent for what is no pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseRef>,
    /// Which of it.
    pub scope: Scope,
}

/// Which blueprints, under which profiles, and as which jobs an approval covers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scope {
    /// The blueprints.
    pub blueprints: Selection<BlueprintName>,
    /// The profiles; `null` among those that are named is the blueprint as it stands.
    pub profiles: Selection<Option<ProfileName>>,
    /// The jobs, by their digests; all where nothing is said. Who may ask for runs says what a job is: an approval of all is
    /// one of whatever they ask for, with this head.
    #[serde(default, skip_serializing_if = "Selection::is_all")]
    pub jobs: Selection<JobDigest>,
}

/// All of something, or those that are named.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Selection<T: Ord> {
    /// All.
    #[default]
    All,
    /// These.
    Named(BTreeSet<T>),
}

/// Which approvals are revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RevocationTarget {
    /// Those of this repository or folder.
    pub repository: Repository,
    /// Those of this pull request, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<u64>,
    /// Those of this head; of all where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Head>,
}

/// What is held: nothing of it starts until it is resumed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum HoldTarget {
    /// Each run of a pull request, and those that are still to come.
    PullRequest(PullRequest),
    /// One run.
    Run(RunId),
}

/// That something is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// What.
    pub target: HoldTarget,
    /// Who holds it.
    pub by: Actor,
    /// Since when.
    pub since: Timestamp,
}

/// Why an approval does not count, or a hold is not lifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ApprovalRefusal {
    /// Its author is none of those who may approve.
    NotEntitled,
    /// It was given under another policy than the one in force.
    OtherPolicy,
    /// Its time is over.
    Expired,
    /// Its author wrote what is to be approved.
    OwnPullRequest,
    /// The pull request is closed.
    PullRequestClosed,
    /// The pull request is held.
    Held,
    /// The pull request had this head before, and has another now.
    HeadChanged,
    /// It names another base than the pull request has.
    BaseChanged,
}

/// Why an approval that counted does so no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum RevocationReason {
    /// Somebody took it back.
    Requested,
    /// Who gave it may approve no more.
    NotEntitled,
    /// The pull request has another base.
    BaseChanged,
    /// The pull request was closed.
    PullRequestClosed,
    /// The pull request has another head.
    Synchronized,
}

/// An approval that does not count any more, as it is told to those who wait for another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LapsedApproval {
    /// Who had given it.
    pub approved_by: Actor,
    /// Why it does not count.
    pub lapse: Lapse,
}

/// How an approval stopped counting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Lapse {
    /// Its time is over.
    Expired {
        /// Since when.
        at: Timestamp,
    },
    /// It was revoked.
    Revoked {
        /// Why.
        reason: RevocationReason,
        /// By whom, if by somebody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// When.
        at: Timestamp,
    },
    /// Another policy is in force than the one that it was given under.
    OtherPolicy,
    /// The run has another job than those that it names.
    OtherJob,
}

impl Approval {
    /// Returns an approval that never expires and came with no command.
    pub fn new(target: ApprovalTarget, policy: impl Into<String>, by: Actor) -> Self {
        Self {
            target,
            policy: policy.into(),
            by,
            at: None,
            expires_at: None,
            via: None,
        }
    }
}

impl ApprovalTarget {
    /// Returns the target of an approval of one subject and nothing else.
    pub fn of(subject: &Subject) -> Self {
        Self {
            repository: subject.repository.clone(),
            pull_request: subject.pull_request,
            head: subject.head.clone(),
            base: subject.base.clone(),
            scope: Scope {
                blueprints: Selection::one(subject.blueprint.clone()),
                profiles: Selection::one(subject.profile.clone()),
                jobs: Selection::All,
            },
        }
    }

    /// Returns the target of an approval of all that a subject's head has.
    pub fn whole_head_of(subject: &Subject) -> Self {
        Self {
            scope: Scope::ALL,
            ..Self::of(subject)
        }
    }

    /// Returns whether what is asked for is of the same head, and in the scope. Bases are compared where the subject has one.
    pub fn covers(&self, request: &RunRequest) -> bool {
        let subject = &request.subject;
        self.has_head_of(subject) && self.has_base_of(subject) && self.scope.has_job(request)
    }

    /// Returns whether a subject has the base that was approved, or none.
    pub fn has_base_of(&self, subject: &Subject) -> bool {
        subject.base.is_none() || subject.base == self.base
    }

    /// Returns whether a subject is of the same head, and its blueprint and profile in the scope, whatever its base and job.
    pub fn has_head_of(&self, subject: &Subject) -> bool {
        self.repository == subject.repository
            && self.pull_request == subject.pull_request
            && self.head == subject.head
            && self.scope.blueprints.has(&subject.blueprint)
            && self.scope.profiles.has(&subject.profile)
    }
}

impl Scope {
    /// Everything.
    pub const ALL: Self = Self {
        blueprints: Selection::All,
        profiles: Selection::All,
        jobs: Selection::All,
    };

    /// Returns whether the job of what is asked for is among those that are approved.
    pub fn has_job(&self, request: &RunRequest) -> bool {
        self.jobs.is_all() || self.jobs.has(&request.job.digest())
    }
}

impl<T: Ord> Selection<T> {
    /// Returns the selection of one alone.
    pub fn one(only: T) -> Self {
        Self::Named(BTreeSet::from([only]))
    }

    /// Returns the selection of those that are named; where none is, of all.
    pub fn named_or_all(named: impl IntoIterator<Item = T>) -> Self {
        let named = BTreeSet::from_iter(named);
        if named.is_empty() {
            Self::All
        } else {
            Self::Named(named)
        }
    }

    /// Returns whether it is of all.
    pub fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    fn has(&self, one: &T) -> bool {
        match self {
            Self::All => true,
            Self::Named(named) => named.contains(one),
        }
    }
}

impl ApprovalRefusal {
    /// Returns it as a sentence goes on: "it is refused: …".
    pub fn as_words(self) -> &'static str {
        match self {
            Self::NotEntitled => "whoever gave it may not approve",
            Self::OtherPolicy => "another policy is in force than the one that it was given under",
            Self::Expired => "its time is over",
            Self::OwnPullRequest => "nobody approves their own pull request",
            Self::PullRequestClosed => "the pull request is closed",
            Self::Held => "the pull request is held",
            Self::HeadChanged => "the pull request has another head now",
            Self::BaseChanged => "the pull request has another base",
        }
    }
}

impl fmt::Display for HoldTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PullRequest(pull_request) => write!(f, "{pull_request}"),
            Self::Run(run) => write!(f, "{run}"),
        }
    }
}

impl fmt::Display for LapsedApproval {
    /// Says it as a sentence goes on, without a full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = &self.approved_by;
        match &self.lapse {
            Lapse::Expired { at } => write!(f, "the approval of {by} expired at {}", to_the_second(*at)),
            Lapse::OtherPolicy => write!(f, "{by} approved it under another policy than the one in force"),
            Lapse::OtherJob => write!(
                f,
                "{by} approved this head, but not what this run does with it: it asks for something else"
            ),
            Lapse::Revoked {
                reason,
                by: revoked_by,
                at: _,
            } => match (reason, revoked_by) {
                (RevocationReason::Requested, Some(who)) => write!(f, "{who} revoked the approval of {by}"),
                (RevocationReason::Requested, None) => write!(f, "the approval of {by} was revoked"),
                (RevocationReason::NotEntitled, _) => write!(f, "{by}, who approved it, may approve no more"),
                (RevocationReason::BaseChanged, _) => write!(f, "{by} approved it for another base"),
                (RevocationReason::PullRequestClosed, _) => {
                    write!(f, "the pull request was closed after {by} had approved it")
                }
                (RevocationReason::Synchronized, _) => {
                    write!(f, "{by} approved another head of the pull request")
                }
            },
        }
    }
}

fn to_the_second(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A target as it is stored. Logs of before there were scopes have a subject in its place.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredTarget {
    #[serde(alias = "project")]
    repository: Repository,
    #[serde(default, alias = "change")]
    pull_request: Option<u64>,
    head: Head,
    #[serde(default)]
    base: Option<BaseRef>,
    #[serde(default)]
    scope: Option<Scope>,
    #[serde(default)]
    blueprint: Option<BlueprintName>,
    #[serde(default)]
    profile: Option<ProfileName>,
}

impl TryFrom<StoredTarget> for ApprovalTarget {
    type Error = &'static str;

    fn try_from(stored: StoredTarget) -> Result<Self, Self::Error> {
        let scope = match (stored.scope, stored.blueprint) {
            (Some(scope), _) => scope,
            (None, Some(blueprint)) => Scope {
                blueprints: Selection::one(blueprint),
                profiles: Selection::one(stored.profile),
                jobs: Selection::All,
            },
            (None, None) => return Err("an approval needs a scope"),
        };
        Ok(Self {
            repository: stored.repository,
            pull_request: stored.pull_request,
            head: stored.head,
            base: stored.base,
            scope,
        })
    }
}

#[cfg(test)]
mod tests;

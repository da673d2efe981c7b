//! What is left in a store for whoever leads.

use std::collections::BTreeSet;

use blueproof_diagnostic::Diagnostic;
use blueproof_queue::objects::Objects;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    approval::{Approval, HoldTarget, RevocationTarget},
    domain::{Actor, BaseRef, Head, Job, PullRequest, Repository, RequestKey, Retries, RunId, RunRequest},
    event::{Event, StopMode},
};

/// Names a command in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u64);

/// What was left for the engine: what somebody asks for, or news from outside.
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
        /// What makes it the same command when it comes again.
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
        /// What makes it the same command when it comes again.
        key: RequestKey,
        /// The run.
        run: RunId,
        /// Who.
        by: Actor,
    },
    /// That these queues hold from now on.
    ApplyQuota {
        /// What makes it the same command when it comes again.
        key: RequestKey,
        /// All of them.
        objects: Box<Objects>,
        /// Who.
        by: Actor,
    },
    /// That content may run.
    Approve {
        /// What makes it the same command when it comes again.
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
        /// The digest of the repository's own policy: approvals of what it has count under that one alone. The admin's
        /// where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<String>,
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

/// A command that was left and that nobody has taken up yet.
pub type LeftCommand = (CommandId, Result<Command, Box<Diagnostic>>);

/// What came of a command that was taken up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// It became an input.
    Taken,
    /// It became an input, and was refused.
    Refused(Box<Diagnostic>),
    /// It is quarantined: it cannot be read, or deciding about it failed. It stays as it was left.
    #[serde(alias = "setAside")]
    Quarantined(Box<Diagnostic>),
}

/// A command as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StoredCommand {
    /// What makes it the same command when it comes again.
    pub key: RequestKey,
    /// When it was left.
    pub at: Timestamp,
    /// Its kind; empty where that was not noted.
    #[serde(rename = "command")]
    pub kind: String,
    /// What came of it; absent while nobody has taken it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
}

impl Command {
    /// Returns its kind as it is stored.
    pub fn kind(&self) -> &'static str {
        match self {
            Command::Run { .. } => "run",
            Command::Cancel { .. } => "cancel",
            Command::Retry { .. } => "retry",
            Command::ApplyQuota { .. } => "applyQuota",
            Command::Approve { .. } => "approve",
            Command::Revoke { .. } => "revoke",
            Command::Hold { .. } => "hold",
            Command::Resume { .. } => "resume",
            Command::Entitle { .. } => "entitle",
            Command::ChangeBase { .. } => "changeBase",
            Command::ClosePullRequest { .. } => "closePullRequest",
            Command::ReopenPullRequest { .. } => "reopenPullRequest",
            Command::Synchronize { .. } => "synchronize",
        }
    }

    /// Returns what makes it the same command when it comes again.
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

impl Command {
    /// The most bytes of a command that comes from elsewhere, as JSON, but for queues, people who may approve, and the job of a run.
    pub const LARGEST: usize = 16 << 10;

    /// Returns what is wrong with a command that comes from elsewhere, where its type does not tell: its key, and that of the
    /// command that an approval says to have come by, are [valid](RequestKey::is_valid), and so are the number of
    /// [retries](Retries::is_valid) and the [size](Job::LARGEST) of a run's job.
    ///
    /// # Errors
    ///
    /// What has to be changed.
    pub fn check(&self) -> Result<(), String> {
        let mut keys = vec![self.key()];
        if let Command::Approve { approval, .. } = self {
            keys.extend(&approval.via);
        }
        if !keys.into_iter().all(RequestKey::is_valid) {
            return Err(format!("a key has 1 to {} characters", RequestKey::LONGEST));
        }
        let Command::Run { request } = self else {
            return self.check_size(0);
        };
        if !request.retries.is_valid() {
            return Err(format!(
                "there are at most {} retries of each kind",
                Retries::MOST
            ));
        }
        let job = request.job.size();
        if job > Job::LARGEST {
            return Err(format!("a job has at most {} bytes as JSON", Job::LARGEST));
        }
        self.check_size(job)
    }

    /// Checks that no more is said than has a use, beside a job of so many bytes: it is kept for as long as its run is remembered,
    /// and told to whoever asks.
    fn check_size(&self, job: usize) -> Result<(), String> {
        // Teams and people are as many as there are, and the next ones take their place.
        if matches!(self, Command::ApplyQuota { .. } | Command::Entitle { .. }) {
            return Ok(());
        }
        match serde_json::to_vec(self) {
            Ok(written) if written.len() <= job + Self::LARGEST => Ok(()),
            Ok(_) | Err(_) => Err(format!(
                "a command has at most {} bytes as JSON, beside the job of a run",
                Self::LARGEST
            )),
        }
    }

    /// Returns the same command by whoever it is in truth by, which `actor` returns for whom it says itself to be by. News from
    /// outside are by nobody.
    pub fn by(mut self, actor: impl Fn(Actor) -> Actor) -> Self {
        let by = match &mut self {
            Command::Run { request } => &mut request.requested_by,
            Command::Approve { approval, .. } => &mut approval.by,
            Command::Cancel { by, .. }
            | Command::Retry { by, .. }
            | Command::ApplyQuota { by, .. }
            | Command::Revoke { by, .. }
            | Command::Hold { by, .. }
            | Command::Resume { by, .. } => by,
            Command::Entitle { .. }
            | Command::ChangeBase { .. }
            | Command::ClosePullRequest { .. }
            | Command::ReopenPullRequest { .. }
            | Command::Synchronize { .. } => return self,
        };
        *by = actor(by.clone());
        self
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
                policy,
            } => Event::EntitlementChanged {
                repository,
                approvers,
                source,
                policy,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;

    #[test]
    fn keys_retries_and_jobs_are_within_their_limits() {
        let run = |change: fn(&mut RunRequest)| {
            let mut request = Box::new(request("a", "nano-lm"));
            change(&mut request);
            Command::Run { request }.check()
        };
        let longest = "k".repeat(RequestKey::LONGEST);
        assert_eq!(
            run(|request| request.retries.infrastructure = Retries::MOST),
            Ok(())
        );
        assert!(run(|request| request.retries.blueprint = Retries::MOST + 1).is_err());
        assert!(run(|request| request.job.work = "x".repeat(Job::LARGEST).into()).is_err());
        assert!(run(|request| request.key = RequestKey(String::new())).is_err());
        assert!(run(|request| request.asked_from = Some("x".repeat(Command::LARGEST).into())).is_err());
        let keyed = |key: String| RequestKey(key).is_valid();
        assert!(keyed(longest.clone()) && !keyed(format!("{longest}k")));
    }
}

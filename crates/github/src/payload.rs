//! What is in a delivery, as far as we act on it.
//!
//! The structures are narrow on purpose: GitHub adds fields and values all the time, and leaves out what its schemas say is there.
//! A word that we do not know is kept as it is, and an event that we do not act on is
//! [`Payload::Other`]. What cannot be read at all is an error, never a guess.
//!
//! Source: <https://docs.github.com/en/webhooks/webhook-events-and-payloads>.

mod checks;
mod commit;
mod common;
mod installations;
mod pull_requests;
mod words;
mod workflows;

use serde::de::DeserializeOwned;

pub use checks::{
    CheckRun, CheckRunAction, CheckRunEvent, CheckSuite, CheckSuiteAction, CheckSuiteEvent, RequestedAction,
};
pub use commit::{CommitSha, ParseCommitShaError};
pub use common::{Account, AccountKind, App, InstallationId, RepositoryInfo};
pub use installations::{
    Installation, InstallationAction, InstallationEvent, InstallationRepositoriesEvent, RepositoryAction,
    RepositoryEvent, RepositoryName,
};
pub use pull_requests::{
    Branch, Comment, CommentAction, Issue, IssueCommentEvent, Label, PullRequestAction, PullRequestEvent,
    PullRequestInfo, PullRequestState,
};
pub use workflows::{
    MergeGroup, MergeGroupAction, MergeGroupEvent, PushEvent, WorkflowJob, WorkflowJobAction,
    WorkflowJobEvent, WorkflowJobStatus,
};

use crate::webhook::EventName;

/// What a delivery says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// Something of a pull request.
    PullRequest(Box<PullRequestEvent>),
    /// Something of a comment on an issue or a pull request.
    IssueComment(Box<IssueCommentEvent>),
    /// Something of a check run.
    CheckRun(Box<CheckRunEvent>),
    /// Something of a check suite.
    CheckSuite(Box<CheckSuiteEvent>),
    /// A branch or tag has another commit.
    Push(Box<PushEvent>),
    /// Something of a group in a merge queue.
    MergeGroup(Box<MergeGroupEvent>),
    /// Something of a job of GitHub Actions.
    WorkflowJob(Box<WorkflowJobEvent>),
    /// Something of an installation of the App.
    Installation(Box<InstallationEvent>),
    /// An installation has more or fewer repositories.
    InstallationRepositories(Box<InstallationRepositoriesEvent>),
    /// Something of a repository itself.
    Repository(Box<RepositoryEvent>),
    /// The webhook was set up.
    Ping,
    /// An event that we do not act on.
    Other,
}

/// A payload that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("could not read the payload of the event `{event}`")]
pub struct PayloadError {
    event: EventName,
    #[source]
    source: serde_json::Error,
}

impl Payload {
    /// Reads the body of a delivery.
    ///
    /// # Errors
    ///
    /// The body is no JSON, or lacks something that we need.
    pub fn parse(event: &EventName, body: &[u8]) -> Result<Self, PayloadError> {
        match event.as_str() {
            "pull_request" => read(event, body).map(Self::PullRequest),
            "issue_comment" => read(event, body).map(Self::IssueComment),
            "check_run" => read(event, body).map(Self::CheckRun),
            "check_suite" => read(event, body).map(Self::CheckSuite),
            "push" => read(event, body).map(Self::Push),
            "merge_group" => read(event, body).map(Self::MergeGroup),
            "workflow_job" => read(event, body).map(Self::WorkflowJob),
            "installation" => read(event, body).map(Self::Installation),
            "installation_repositories" => read(event, body).map(Self::InstallationRepositories),
            "repository" => read(event, body).map(Self::Repository),
            "ping" => read::<serde::de::IgnoredAny>(event, body).map(|_| Self::Ping),
            _ => read::<serde::de::IgnoredAny>(event, body).map(|_| Self::Other),
        }
    }

    /// Returns the repository that it is about, where it is about one.
    pub fn repository(&self) -> Option<&RepositoryInfo> {
        match self {
            Self::PullRequest(event) => Some(&event.repository),
            Self::IssueComment(event) => Some(&event.repository),
            Self::CheckRun(event) => Some(&event.repository),
            Self::CheckSuite(event) => Some(&event.repository),
            Self::Push(event) => Some(&event.repository),
            Self::MergeGroup(event) => Some(&event.repository),
            Self::WorkflowJob(event) => Some(&event.repository),
            Self::Repository(event) => Some(&event.repository),
            Self::Installation(_) | Self::InstallationRepositories(_) | Self::Ping | Self::Other => None,
        }
    }
}

fn read<T: DeserializeOwned>(event: &EventName, body: &[u8]) -> Result<Box<T>, PayloadError> {
    // GitHub sends none, but what stands in between may.
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let read = serde_json::from_slice(body).map_err(|source| PayloadError {
        event: event.clone(),
        source,
    })?;
    Ok(Box::new(read))
}

#[cfg(test)]
mod tests;

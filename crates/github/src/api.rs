//! What is asked of GitHub, in our words.
//!
//! A call makes one attempt and says of a failure whether another one may help; who calls decides whether there is one. Nothing here
//! waits for a rate limit: an error says until when it lasts.

mod actions;
mod checks;
mod error;
mod hook;

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use blueproof_core::domain::Repository;
use jiff::Timestamp;

pub use actions::{Actions, JitRunner, NewJitRunner, RunnerScope, WorkflowRun};
pub use checks::{
    Annotation, CheckAction, CheckConclusion, CheckOutput, CheckRunId, CheckRunState, CheckStatus,
    ExistingCheckRun, ParseActionError,
};
pub use error::{ApiError, ApiRetry};
#[cfg(any(test, feature = "testing"))]
pub use hook::MockAppHook;
pub use hook::{AppHook, HookCursor, HookDelivery, HookDeliveryId, HookPage};

use crate::payload::{Account, Comment, CommitSha, MergeGroup, PullRequestInfo, RepositoryInfo};

/// GitHub's REST API, as far as it is used.
///
/// Source: <https://docs.github.com/en/rest>.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait GitHub: Send + Sync {
    /// Returns a repository by its number: names change.
    async fn repository(&self, id: RepositoryId) -> Result<RepositoryInfo, ApiError>;

    /// Returns a pull request as it stands. It may be behind what a webhook has told.
    async fn pull_request(&self, repository: RepositoryId, number: u64) -> Result<PullRequestInfo, ApiError>;

    /// Returns every open pull request of a repository.
    async fn open_pull_requests(&self, repository: RepositoryId) -> Result<Vec<PullRequestInfo>, ApiError>;

    /// Returns the paths that a pull request changes, both of a file that was renamed. GitHub tells of no more than 3000 files.
    async fn changed_paths(&self, repository: RepositoryId, number: u64) -> Result<ChangedPaths, ApiError>;

    /// Returns the comments on issues and pull requests that were changed since then, the first one first.
    async fn comments_since(
        &self,
        repository: RepositoryId,
        since: Timestamp,
    ) -> Result<Vec<IssueComment>, ApiError>;

    /// Returns the newest commit of a branch.
    async fn branch(&self, repository: RepositoryId, name: &str) -> Result<CommitSha, ApiError>;

    /// Returns the names of the checks that a branch requires of what is merged into it, by its protection or by a ruleset.
    async fn required_checks(
        &self,
        repository: RepositoryId,
        branch: &str,
    ) -> Result<BTreeSet<String>, ApiError>;

    /// Returns the text of a file at a commit; `None` where there is none.
    async fn file(
        &self,
        repository: RepositoryId,
        path: &str,
        at: &CommitSha,
    ) -> Result<Option<String>, ApiError>;

    /// Returns the paths of all files at a commit that are called so, such as every `OWNERS`.
    async fn paths_named(
        &self,
        repository: RepositoryId,
        name: &str,
        at: &CommitSha,
    ) -> Result<Vec<String>, ApiError>;

    /// Returns every file of a commit by its path, with the name of its content; `None` where there are more than GitHub tells of.
    async fn blobs(
        &self,
        repository: RepositoryId,
        at: &CommitSha,
    ) -> Result<Option<BTreeMap<String, String>>, ApiError>;

    /// Returns the paths that a commit changes of another one that is before it. GitHub tells of no more than 300 files.
    async fn compare(
        &self,
        repository: RepositoryId,
        base: &CommitSha,
        head: &CommitSha,
    ) -> Result<ChangedPaths, ApiError>;

    /// Returns the merge groups that there are.
    async fn merge_groups(&self, repository: RepositoryId) -> Result<Vec<MergeGroup>, ApiError>;

    /// Returns the account that has a login now; `None` where nobody has it.
    async fn account(&self, login: &str) -> Result<Option<Account>, ApiError>;

    /// Returns everybody who may at least push to a repository, by whatever they may it: as owner, in a team, by invitation.
    async fn collaborators(&self, repository: RepositoryId) -> Result<Vec<Collaborator>, ApiError>;

    /// Returns our own check runs of a commit; without an App there are none.
    async fn check_runs(
        &self,
        repository: RepositoryId,
        head: &CommitSha,
    ) -> Result<Vec<ExistingCheckRun>, ApiError>;

    /// Makes a check run. Repeating it makes a second one: whoever repeats it looks first which there are. Only an App may write check
    /// runs: without one it becomes a commit status, which has a title and no more.
    async fn create_check_run(
        &self,
        repository: RepositoryId,
        head: &CommitSha,
        check: &CheckOutput,
    ) -> Result<CheckRunId, ApiError>;

    /// Makes a check run of a commit equal to this. Repeating it does no harm but that annotations stand there twice.
    async fn update_check_run(
        &self,
        repository: RepositoryId,
        head: &CommitSha,
        id: CheckRunId,
        check: &CheckOutput,
    ) -> Result<(), ApiError>;

    /// Returns the comments of a pull request, the first one first.
    async fn comments(&self, repository: RepositoryId, number: u64) -> Result<Vec<Comment>, ApiError>;

    /// Comments on a pull request. Repeating it makes a second comment.
    async fn create_comment(
        &self,
        repository: RepositoryId,
        number: u64,
        markdown: &str,
    ) -> Result<Comment, ApiError>;

    /// Replaces the text of a comment.
    async fn update_comment(&self, repository: RepositoryId, id: u64, markdown: &str)
    -> Result<(), ApiError>;

    /// Puts a reaction on a comment. One that is there already stays.
    async fn react(&self, repository: RepositoryId, comment: u64, reaction: Reaction)
    -> Result<(), ApiError>;
}

/// A repository's number, which stays when it is renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepositoryId(pub u64);

impl RepositoryId {
    /// Returns it as the rest of blueproof knows it.
    pub fn to_repository(self) -> Repository {
        Repository::GitHub(self.0)
    }
}

/// The paths that a pull request changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedPaths {
    /// Relative to the root.
    pub paths: BTreeSet<String>,
    /// Whether there may be more.
    pub is_cut_off: bool,
}

/// A comment with what it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueComment {
    /// The number of the issue or pull request.
    pub number: u64,
    /// The comment.
    pub comment: Comment,
}

/// Somebody with rights in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collaborator {
    /// Who.
    pub account: Account,
    /// What they may do at most.
    pub permission: Permission,
}

/// What somebody may do in a repository, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// Nothing.
    None,
    /// Read.
    Read,
    /// Read, and sort issues.
    Triage,
    /// Push.
    Write,
    /// Push, and settings without danger.
    Maintain,
    /// Everything.
    Admin,
}

/// An answer to a comment that disturbs nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// It was seen.
    Eyes,
    /// It was done.
    Rocket,
    /// It was not understood, or not allowed.
    Confused,
}

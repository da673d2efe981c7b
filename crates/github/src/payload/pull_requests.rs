//! Pull requests, and comments on them.

use blueproof_core::domain::{Actor, BaseRef};
use jiff::Timestamp;
use serde::Deserialize;

use super::{
    commit::CommitSha,
    common::{Account, App, InstallationId, RepositoryInfo},
    words::open_words,
};

/// The number of the account that GitHub shows in the place of one that is gone.
const GHOST: u64 = 10137;

/// The event `pull_request`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PullRequestEvent {
    /// What happened.
    pub action: PullRequestAction,
    /// The pull request, as it was then.
    pub pull_request: PullRequestInfo,
    /// The label that was added or removed.
    #[serde(default)]
    pub label: Option<Label>,
    /// Its repository.
    pub repository: RepositoryInfo,
    /// Who did it.
    pub sender: Account,
    /// The installation of the App.
    #[serde(default)]
    pub installation: Option<InstallationId>,
}

open_words! {
    /// What happened to a pull request.
    pub enum PullRequestAction {
        /// It was opened.
        Opened = "opened",
        /// Its head is another commit.
        Synchronize = "synchronize",
        /// Its title, text or base is another.
        Edited = "edited",
        /// It was closed, merged or not.
        Closed = "closed",
        /// It is open again.
        Reopened = "reopened",
        /// It is a draft no more.
        ReadyForReview = "ready_for_review",
        /// It is a draft again.
        ConvertedToDraft = "converted_to_draft",
        /// It has a label more.
        Labeled = "labeled",
        /// It has a label less.
        Unlabeled = "unlabeled",
    }
}

/// A pull request, as GitHub tells of it in payloads and in its REST API.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PullRequestInfo {
    /// Its number in the repository.
    pub number: u64,
    /// Whether it is open.
    pub state: PullRequestState,
    /// Whether it is a draft.
    #[serde(default)]
    pub draft: Option<bool>,
    /// Who opened it; absent where the account is gone.
    pub user: Option<Account>,
    /// What is to be merged.
    pub head: Branch<CommitSha>,
    /// What it is to be merged into.
    pub base: Branch<String>,
    /// When anything of it changed last, by GitHub's clock.
    pub updated_at: Timestamp,
    /// Its labels.
    #[serde(default)]
    pub labels: Vec<Label>,
}

open_words! {
    /// Whether a pull request is open.
    pub enum PullRequestState {
        /// It is.
        Open = "open",
        /// It is not: merged, or given up.
        Closed = "closed",
    }
}

/// One side of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Branch<Sha> {
    /// The name of the branch.
    #[serde(rename = "ref")]
    pub name: String,
    /// Its commit. That of a base is not compared with anything.
    pub sha: Sha,
    /// The repository that it is in; absent where a fork was deleted.
    #[serde(default)]
    pub repo: Option<RepositoryInfo>,
}

/// A label.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Label {
    /// Its name.
    pub name: String,
}

/// The event `issue_comment`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct IssueCommentEvent {
    /// What happened.
    pub action: CommentAction,
    /// What it is on.
    pub issue: Issue,
    /// The comment.
    pub comment: Comment,
    /// Its repository.
    pub repository: RepositoryInfo,
    /// Who did it.
    pub sender: Account,
    /// The installation of the App.
    #[serde(default)]
    pub installation: Option<InstallationId>,
}

open_words! {
    /// What happened to a comment.
    pub enum CommentAction {
        /// It was written.
        Created = "created",
        /// It was changed.
        Edited = "edited",
        /// It was removed.
        Deleted = "deleted",
    }
}

/// What a comment is on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Issue {
    /// Its number; issues and pull requests share them.
    pub number: u64,
    /// There where it is a pull request.
    #[serde(default)]
    pub pull_request: Option<serde_json::Value>,
}

/// A comment, as GitHub tells of it in payloads and in its REST API.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Comment {
    /// Its number.
    pub id: u64,
    /// Its Markdown.
    #[serde(default)]
    pub body: Option<String>,
    /// Who wrote it; absent where the account is gone.
    pub user: Option<Account>,
    /// The App that wrote it, where one did.
    #[serde(default, rename = "performed_via_github_app")]
    pub app: Option<App>,
    /// When it was written, by GitHub's clock.
    pub created_at: Timestamp,
    /// When it was changed last, by GitHub's clock.
    pub updated_at: Timestamp,
}

impl PullRequestInfo {
    /// Returns who opened it. Where that account is gone, whoever GitHub shows in its place is nobody who could approve anything.
    pub fn author(&self) -> Actor {
        let ghost = || Actor::GitHub {
            id: GHOST,
            login: "ghost".into(),
        };
        self.user.as_ref().map_or_else(ghost, Account::to_actor)
    }

    /// Returns the branch that it is to be merged into, where git could call one so.
    pub fn base_ref(&self) -> Option<BaseRef> {
        self.base.name.parse().ok()
    }
}

impl Issue {
    /// Returns whether it is a pull request.
    pub fn is_pull_request(&self) -> bool {
        self.pull_request.is_some()
    }
}

impl Comment {
    /// Returns whether it says what it said when it was written.
    pub fn is_unedited(&self) -> bool {
        self.created_at == self.updated_at
    }
}

//! Check runs and check suites.

use serde::Deserialize;

use super::{
    commit::CommitSha,
    common::{Account, App, InstallationId, RepositoryInfo},
    words::open_words,
};

/// The event `check_run`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CheckRunEvent {
    /// What happened.
    pub action: CheckRunAction,
    /// The check run.
    pub check_run: CheckRun,
    /// The button that was pressed.
    #[serde(default)]
    pub requested_action: Option<RequestedAction>,
    /// Its repository.
    pub repository: RepositoryInfo,
    /// Who did it.
    pub sender: Account,
    /// The installation of the App.
    #[serde(default)]
    pub installation: Option<InstallationId>,
}

open_words! {
    /// What happened to a check run.
    pub enum CheckRunAction {
        /// It was made.
        Created = "created",
        /// It has a conclusion.
        Completed = "completed",
        /// Somebody wants it once more.
        Rerequested = "rerequested",
        /// Somebody pressed one of its buttons.
        RequestedAction = "requested_action",
    }
}

/// A check run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CheckRun {
    /// Its number.
    pub id: u64,
    /// What it is called.
    pub name: String,
    /// The commit that it is of.
    pub head_sha: CommitSha,
    /// What its App calls it; of ours, the run.
    #[serde(default)]
    pub external_id: Option<String>,
    /// The App that made it. Only our own mean anything.
    #[serde(default)]
    pub app: Option<App>,
}

/// A button of a check run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RequestedAction {
    /// What its App calls it.
    pub identifier: String,
}

/// The event `check_suite`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CheckSuiteEvent {
    /// What happened.
    pub action: CheckSuiteAction,
    /// The check suite.
    pub check_suite: CheckSuite,
    /// Its repository.
    pub repository: RepositoryInfo,
    /// Who did it.
    pub sender: Account,
    /// The installation of the App.
    #[serde(default)]
    pub installation: Option<InstallationId>,
}

open_words! {
    /// What happened to a check suite.
    pub enum CheckSuiteAction {
        /// It has a conclusion.
        Completed = "completed",
        /// There is a commit to check.
        Requested = "requested",
        /// Somebody wants all of it once more.
        Rerequested = "rerequested",
    }
}

/// A check suite.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CheckSuite {
    /// Its number.
    pub id: u64,
    /// The commit that it is of.
    pub head_sha: CommitSha,
    /// The App that it is for.
    #[serde(default)]
    pub app: Option<App>,
}

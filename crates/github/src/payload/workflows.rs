//! Pushes, merge queues, and jobs of GitHub Actions.

use jiff::Timestamp;
use serde::Deserialize;

use super::{
    commit::CommitSha,
    common::{Account, InstallationId, RepositoryInfo},
    words::open_words,
};

/// The event `push`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PushEvent {
    /// The whole name of the branch or tag, such as `refs/heads/main`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Its commit now; zeros where it was deleted.
    pub after: String,
    /// Its repository.
    pub repository: RepositoryInfo,
    /// The installation of the App.
    #[serde(default)]
    pub installation: Option<InstallationId>,
}

/// The event `merge_group`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MergeGroupEvent {
    /// What happened.
    pub action: MergeGroupAction,
    /// The group.
    pub merge_group: MergeGroup,
    /// Its repository.
    pub repository: RepositoryInfo,
    /// The installation of the App.
    #[serde(default)]
    pub installation: Option<InstallationId>,
}

open_words! {
    /// What happened to a merge group.
    pub enum MergeGroupAction {
        /// Its checks are waited for.
        ChecksRequested = "checks_requested",
        /// It is gone: merged, or given up.
        Destroyed = "destroyed",
    }
}

/// Pull requests that are to be merged together.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MergeGroup {
    /// The commit that would be merged.
    pub head_sha: CommitSha,
    /// The branch that GitHub made for it.
    pub head_ref: String,
    /// The commit that it would be merged onto.
    pub base_sha: CommitSha,
    /// The whole name of the branch that it would be merged into.
    pub base_ref: String,
}

impl MergeGroup {
    /// Returns the name of the branch that it would be merged into.
    pub fn branch(&self) -> &str {
        self.base_ref
            .strip_prefix("refs/heads/")
            .unwrap_or(&self.base_ref)
    }
}

/// The event `workflow_job`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WorkflowJobEvent {
    /// What happened.
    pub action: WorkflowJobAction,
    /// The job.
    pub workflow_job: WorkflowJob,
    /// Its repository.
    pub repository: RepositoryInfo,
    /// Who had it run.
    pub sender: Account,
    /// The installation of the App.
    #[serde(default)]
    pub installation: Option<InstallationId>,
}

open_words! {
    /// What happened to a job.
    pub enum WorkflowJobAction {
        /// It waits for a runner.
        Queued = "queued",
        /// It waits for an environment.
        Waiting = "waiting",
        /// A runner has it.
        InProgress = "in_progress",
        /// It is over.
        Completed = "completed",
    }
}

/// A job of GitHub Actions.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WorkflowJob {
    /// Its number.
    pub id: u64,
    /// The number of its workflow run.
    pub run_id: u64,
    /// Which attempt of that.
    #[serde(default)]
    pub run_attempt: Option<u32>,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// The commit that the workflow runs for.
    pub head_sha: CommitSha,
    /// What its runner has to have.
    #[serde(default)]
    pub labels: Vec<String>,
    /// How it stands.
    pub status: WorkflowJobStatus,
    /// What came of it, once it is over: `success`, `failure`, `cancelled` and others.
    #[serde(default)]
    pub conclusion: Option<String>,
    /// The name of its runner; absent or empty while it has none.
    #[serde(default)]
    pub runner_name: Option<String>,
    /// When it began; set from the start.
    #[serde(default)]
    pub started_at: Option<Timestamp>,
    /// When it was over.
    #[serde(default)]
    pub completed_at: Option<Timestamp>,
}

open_words! {
    /// How a job stands.
    pub enum WorkflowJobStatus {
        /// It waits for a runner.
        Queued = "queued",
        /// It waits for an environment.
        Waiting = "waiting",
        /// A runner has it.
        InProgress = "in_progress",
        /// It is over.
        Completed = "completed",
    }
}

impl PushEvent {
    /// Returns whether it is to the branch that policy and OWNERS are read from.
    pub fn is_to_default_branch(&self) -> bool {
        let branch = self.reference.strip_prefix("refs/heads/");
        branch.is_some() && branch == self.repository.default_branch.as_deref()
    }
}

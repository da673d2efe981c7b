//! What is asked of GitHub about workflows and their runners, in our words.

use async_trait::async_trait;
use blueproof_core::ports::JitConfig;
use serde::Deserialize;

use super::{ApiError, RepositoryId};
use crate::payload::{CommitSha, WorkflowJob};

/// GitHub's REST API about GitHub Actions, as far as it is used. A call makes one attempt.
///
/// Source: <https://docs.github.com/en/rest/actions>.
#[async_trait]
pub trait Actions: Send + Sync {
    /// Returns a workflow run.
    async fn workflow_run(&self, repository: RepositoryId, run: u64) -> Result<WorkflowRun, ApiError>;

    /// Returns the workflow runs that are not over.
    async fn unfinished_runs(&self, repository: RepositoryId) -> Result<Vec<WorkflowRun>, ApiError>;

    /// Returns the jobs of the latest attempt of a workflow run.
    async fn workflow_jobs(&self, repository: RepositoryId, run: u64) -> Result<Vec<WorkflowJob>, ApiError>;

    /// Has a job run once more. GitHub refuses it while its workflow run is not over.
    async fn rerun_job(&self, repository: RepositoryId, job: u64) -> Result<(), ApiError>;

    /// Returns the number of a runner group of an organisation.
    async fn runner_group(&self, organization: &str, name: &str) -> Result<Option<u64>, ApiError>;

    /// Registers a runner for one job. A name that is taken is refused.
    async fn jit_runner(&self, scope: &RunnerScope, new: &NewJitRunner) -> Result<JitRunner, ApiError>;

    /// Returns the number of the runner of a name.
    async fn find_runner(&self, scope: &RunnerScope, name: &str) -> Result<Option<u64>, ApiError>;

    /// Has GitHub forget a runner. One that it does not know is a success; one that has a job is refused.
    async fn remove_runner(&self, scope: &RunnerScope, runner: u64) -> Result<(), ApiError>;
}

/// What runners are registered for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerScope {
    /// An organisation.
    Organization(String),
    /// A repository, `OWNER/NAME`.
    Repository(String),
}

/// A runner to be registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJitRunner {
    /// Its name.
    pub name: String,
    /// The number of its group.
    pub group: u64,
    /// Its labels.
    pub labels: Vec<String>,
    /// The folder that it works in, below its own.
    pub work_folder: String,
}

/// A runner that is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JitRunner {
    /// Its number.
    pub id: u64,
    /// What it is started with, once.
    pub config: JitConfig,
}

/// A workflow run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WorkflowRun {
    /// Its number.
    pub id: u64,
    /// The commit that it runs for; of a pull request its head, and not what GitHub merged it into.
    pub head_sha: CommitSha,
    /// What started it, such as `push`.
    pub event: String,
    /// How it stands; `completed` is over.
    #[serde(default)]
    pub status: Option<String>,
}

impl WorkflowRun {
    /// Returns whether it is over.
    pub fn is_completed(&self) -> bool {
        self.status.as_deref() == Some("completed")
    }
}

//! Where runners are registered at GitHub.

use async_trait::async_trait;
use blueproof_core::ports::{JitConfig, RunnerName};
use blueproof_scale_set::{Client, Error, Removal, RunnerId, ScaleSetId};

use crate::{label::UniqueLabel, record::RunnerJob};

/// The folder that a runner works in, below its own. It is the one that GitHub's own images have.
pub const WORK_FOLDER: &str = "_work";

/// Registers runners, and has GitHub forget them. A call makes one attempt.
#[async_trait]
pub trait Registrar: Send + Sync {
    /// Registers a runner, and returns with what it is started: once, and by nobody else.
    async fn register(
        &self,
        name: &RunnerName,
        label: Option<&UniqueLabel>,
    ) -> Result<Registered, RegistrarError>;

    /// Has GitHub forget a runner, found by its number or else by its name. One that it does not know is a success.
    async fn deregister(
        &self,
        name: &RunnerName,
        registration: Option<i64>,
    ) -> Result<Deregistration, RegistrarError>;
}

/// Has jobs run once more whose runner was lost.
#[async_trait]
pub trait Reruns: Send + Sync {
    /// Has the job run once more that a runner had.
    async fn rerun(&self, runner: &RunnerName, job: &RunnerJob) -> Result<RerunAnswer, RegistrarError>;
}

/// A runner that is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// Its number at GitHub.
    pub registration: i64,
    /// What it is started with.
    pub config: JitConfig,
}

/// What came of having GitHub forget a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deregistration {
    /// GitHub knows it no more.
    Gone,
    /// It has a job, and stays.
    JobStillRunning,
}

/// What came of having a job run once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RerunAnswer {
    /// It is.
    Requested,
    /// Its workflow run is not over yet.
    TooEarly,
    /// There is no reason to: it passed, or it is not there.
    Declined,
}

/// A call to GitHub about a runner that did not succeed.
#[derive(Debug, thiserror::Error)]
#[error("could not {doing}")]
pub struct RegistrarError {
    doing: String,
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl RegistrarError {
    /// Returns an error of what was tried.
    pub fn new(
        doing: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self {
            doing: doing.into(),
            source: source.into(),
        }
    }
}

/// Registers runners of a scale set.
#[derive(Debug, Clone)]
pub struct ScaleSetRegistrar {
    client: Client,
    scale_set: ScaleSetId,
}

impl ScaleSetRegistrar {
    /// Returns the registrar of a scale set.
    pub fn new(client: Client, scale_set: ScaleSetId) -> Self {
        Self { client, scale_set }
    }
}

fn of_runner(doing: &str, name: &RunnerName, error: Error) -> RegistrarError {
    RegistrarError::new(format!("{doing} runner {name}"), error)
}

#[async_trait]
impl Registrar for ScaleSetRegistrar {
    async fn register(
        &self,
        name: &RunnerName,
        _label: Option<&UniqueLabel>,
    ) -> Result<Registered, RegistrarError> {
        // A name is used once. So nobody's runner is replaced: one that is there is left from a call whose answer was lost.
        let made = self
            .client
            .replace_runner(self.scale_set, name.as_str(), WORK_FOLDER)
            .await
            .map_err(|error| of_runner("register", name, error))?;
        Ok(Registered {
            registration: made.runner.id.0,
            config: JitConfig::new(made.encoded.expose().to_owned()),
        })
    }

    async fn deregister(
        &self,
        name: &RunnerName,
        registration: Option<i64>,
    ) -> Result<Deregistration, RegistrarError> {
        let failed = |error| of_runner("remove", name, error);
        let id = match registration {
            Some(id) => RunnerId(id),
            None => match self.client.find_runner(name.as_str()).await.map_err(failed)? {
                Some(found) => found.id,
                None => return Ok(Deregistration::Gone),
            },
        };
        match self.client.remove_runner(id).await.map_err(failed)? {
            Removal::Gone => Ok(Deregistration::Gone),
            Removal::JobStillRunning => Ok(Deregistration::JobStillRunning),
        }
    }
}

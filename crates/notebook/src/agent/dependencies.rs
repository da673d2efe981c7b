//! What an agent needs from others: an environment, what is measured, and the values of secrets.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use blueproof_core::{
    attempt::AttemptSpec,
    domain::{Bytes, Failure},
    ports::GpuMeter,
};
use serde_json::Value;

use crate::{
    executor::{Graces, OutputLimits},
    observer::Observer,
    plan::Plan,
    process::{Launcher, PROCESSES_AT_MOST},
};

/// Everything that an agent does not do itself.
pub struct Dependencies {
    /// The step between the agent and its kernel.
    pub launcher: Launcher,
    /// Finds or makes the Python.
    pub environment: Arc<dyn PrepareEnvironment>,
    /// Measures.
    pub observer: Box<dyn Observer>,
    /// Knows the values of secrets.
    pub secrets: Box<dyn SecretValues>,
    /// Measures what is made of devices; not asked where the attempt has none.
    pub gpus: Box<dyn GpuMeter>,
    /// Further environment variables for the notebook, such as `KUBECONFIG`.
    pub variables: BTreeMap<String, String>,
    /// How patiently things are ended.
    pub graces: Graces,
    /// How much is kept of what cells print and show.
    pub outputs: OutputLimits,
    /// What a notebook in a sandbox may have.
    pub sandbox: SandboxLimits,
}

/// What a notebook in a sandbox may have, whatever it was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SandboxLimits {
    /// How much its files may take.
    pub disk: Bytes,
    /// How many processes and threads it may have at once, where its user is its own alone. Its cgroup has a limit, too.
    pub processes: u64,
}

impl Default for SandboxLimits {
    /// Returns room for a model of 7 billion parameters and what comes of it, and as many processes as a cgroup may have.
    fn default() -> Self {
        Self {
            disk: Bytes(32 << 30),
            processes: PROCESSES_AT_MOST,
        }
    }
}

/// What is to be prepared.
pub struct Preparing<'a> {
    /// The attempt.
    pub spec: &'a AttemptSpec,
    /// What is to be done in it.
    pub plan: &'a Plan,
    /// The attempt's own copy of the checkout: what was approved, whatever is changed meanwhile.
    pub checkout: &'a Path,
    /// Where to make it for this attempt alone; `None` where it may be one that others use, too.
    pub own: Option<&'a Path>,
}

/// A Python that has ipykernel and everything that the plan asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The interpreter.
    pub python: PathBuf,
    /// What it is, in a few words, such as `python 3.12 + numpy 2.5 (cached)`.
    pub detail: String,
    /// All that is known of it, for the report.
    pub environment: Value,
}

/// Finds or makes the Python that a plan asks for.
pub trait PrepareEnvironment: Send + Sync {
    /// Returns the Python; `progress` is told what is being done.
    ///
    /// It may block. When startup takes too long, the processes that it has started are killed, and what it returns
    /// then is not looked at.
    ///
    /// # Errors
    ///
    /// Why there is none, and who is to blame for it.
    fn prepare(
        &self,
        preparing: &Preparing<'_>,
        progress: &mut dyn FnMut(String),
    ) -> Result<Prepared, Box<Failure>>;

    /// Returns whether a Python that others use, too, is still as it was prepared. It may block.
    fn is_as_prepared(&self, prepared: &Prepared) -> bool;
}

/// Knows the values of secrets.
pub trait SecretValues {
    /// Returns the value of the secret of this name, or `None` where it is not known here.
    fn value(&self, name: &str) -> Option<String>;
}

impl SecretValues for BTreeMap<String, String> {
    fn value(&self, name: &str) -> Option<String> {
        self.get(name).cloned()
    }
}

/// An attempt that an agent could not carry out or finish.
#[derive(Debug, thiserror::Error)]
#[error("could not {doing}")]
pub struct AgentError {
    doing: &'static str,
    #[source]
    source: io::Error,
}

impl AgentError {
    pub(crate) fn new(doing: &'static str, source: io::Error) -> Self {
        Self { doing, source }
    }
}

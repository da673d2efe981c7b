//! This machine as a place to run on.
//!
//! The store in a file, attempts as processes with the GPUs that are here, reports beside the store: the parts that the
//! command and the scheduler's server are both put together of. Nothing is decided here.

mod gpus;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use blueproof_cluster::local::{AgentCommand, LocalDriver, TryIsolation};
use blueproof_core::{
    attempt::{RunsFolder, StoreIdentity},
    domain::{Actor, Bytes, Cpus, Resources},
    engine::Ports,
    policy::{LocalApproval, Policy},
    ports::{CallError, ClusterDriver, Clusters, RemovableOutput, Reporter, StoreError, SystemClock},
    sqlite::SqliteStore,
};
use blueproof_diagnostic::Diagnostic;
use blueproof_host::{Host, KeptGate};
use blueproof_notebook::{Launcher, report::FolderReporter, try_isolation};

pub use blueproof_cluster::local::IsolationPolicy;
pub use gpus::meter;

/// What a machine is made of.
#[derive(Debug, Clone)]
pub struct MachineConfig {
    /// The SQLite file with all runs. What is kept of runs is beside it.
    pub store: PathBuf,
    /// The folder in which Python environments are kept for reuse.
    pub environments: PathBuf,
    /// The program that carries out attempts: `blueproof`.
    pub agent: OsString,
    /// What the local queue goes by.
    pub policy: LocalPolicy,
    /// Which notebooks run in a sandbox.
    pub isolation: IsolationPolicy,
}

/// What the local queue goes by.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalPolicy {
    /// How many cores it may promise; `None` is what the machine has.
    pub cpu: Option<Cpus>,
    /// How much memory it may promise; `None` is what the machine has.
    pub memory: Option<Bytes>,
    /// Whether users of this machine approve their own runs by asking for them; `None` is as it is in the store, and that they do
    /// in a new one.
    pub self_approve: Option<LocalApproval>,
    /// Which users of this machine may approve the runs of others; `None` is as it is in the store, and nobody in a new one.
    pub approvers: Option<Vec<String>>,
}

/// A store and the machine that its runs run on.
pub struct Machine {
    /// The store.
    pub store: Arc<SqliteStore>,
    /// What attempts leave.
    pub output: Arc<dyn RemovableOutput>,
    /// Leads or follows at the store.
    pub host: Host,
    /// What this machine is, in words.
    pub description: String,
    /// What this machine has and cannot promise.
    pub warnings: Vec<Diagnostic>,
}

/// What others add to a machine.
#[derive(Default)]
pub struct Additions {
    /// Where runs are reported, beside the reports in files.
    pub reporters: Vec<Arc<dyn Reporter>>,
    /// Stands between the scheduler and what runs attempts here.
    pub around_driver: Option<AroundDriver>,
}

/// Puts a cluster around another one.
pub type AroundDriver = Box<dyn FnOnce(Arc<dyn ClusterDriver>) -> Arc<dyn ClusterDriver> + Send>;

/// Why there is no machine to run on.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What this machine has cannot be told.
    #[error(transparent)]
    Inventory(#[from] CallError),
}

impl From<MachineError> for Diagnostic {
    fn from(error: MachineError) -> Self {
        match error {
            MachineError::Store(error) => *error.diagnostic,
            MachineError::Inventory(error) => *error.diagnostic,
        }
    }
}

impl Machine {
    /// Opens the store, which is made where there is none, and looks at the machine. `note` is told of what takes long.
    pub async fn open(config: &MachineConfig, note: fn(&str)) -> Result<Self, MachineError> {
        Self::open_with(config, note, Additions::default()).await
    }

    /// Opens it as [`open`](Self::open) does, with what others add to it.
    pub async fn open_with(
        config: &MachineConfig,
        note: fn(&str),
        additions: Additions,
    ) -> Result<Self, MachineError> {
        let store = Arc::new(SqliteStore::open(&config.store)?);
        let driver = config.driver(store.identity(), note);
        let inventory = driver.inventory().await?;
        let output = driver.output();
        let mut reporters: Vec<Arc<dyn Reporter>> = vec![Arc::new(FolderReporter::new(output.clone()))];
        reporters.extend(additions.reporters);
        let driver: Arc<dyn ClusterDriver> = Arc::new(driver);
        let driver = match additions.around_driver {
            Some(around) => around(driver),
            None => driver,
        };
        let ports = Ports {
            store: store.clone(),
            clusters: Clusters::one(driver),
            reporters,
            clock: Arc::new(SystemClock),
        };
        let policy = config.policy.of(inventory.allocatable());
        Ok(Self {
            host: Host::new(ports, store.clone(), policy).keeping(config.policy.kept()),
            store,
            output,
            description: inventory.description,
            warnings: inventory.warnings,
        })
    }
}

impl MachineConfig {
    /// Returns the folder with the runs of all stores that lie beside this one.
    pub fn runs(&self) -> PathBuf {
        self.store.parent().unwrap_or(Path::new("/")).join("runs")
    }

    /// Returns what the local queue would go by on this machine. Nothing is opened or made.
    pub async fn policy_here(&self, note: fn(&str)) -> Result<Policy, CallError> {
        let no_store = StoreIdentity {
            id: String::new(),
            folder: String::new(),
            secret: [0; 32],
        };
        let inventory = self.driver(&no_store, note).inventory().await;
        Ok(self.policy.of(inventory?.allocatable()))
    }

    fn driver(&self, store: &StoreIdentity, note: fn(&str)) -> LocalDriver {
        let agent = AgentCommand {
            program: self.agent.clone(),
            arguments: vec!["agent".into()],
        };
        let runs = RunsFolder::new(self.runs(), store.clone());
        let launcher = Launcher::new(&self.agent, ["agent-launch"]);
        let attempt = TryIsolation(Arc::new(move || try_isolation(&launcher)));
        LocalDriver::new(runs, self.environments.clone(), agent)
            .with_devices(gpus::look(note))
            .with_isolation(self.isolation, attempt)
    }
}

impl LocalPolicy {
    /// Returns the policy: what is configured, and else all that the machine has.
    fn of(&self, total: Resources) -> Policy {
        let quota = Resources {
            cpu: self.cpu.unwrap_or(total.cpu),
            memory: self.memory.unwrap_or(total.memory),
            gpu: total.gpu,
        };
        let mut policy = Policy::local(quota);
        policy.gate.local = self.self_approve.unwrap_or(policy.gate.local);
        let approvers = self.approvers.iter().flatten();
        policy.gate.approvers = approvers.cloned().map(Actor::Local).collect();
        policy
    }

    /// Returns what of the gate is not configured here.
    fn kept(&self) -> KeptGate {
        KeptGate {
            self_approval: self.self_approve.is_none(),
            approvers: self.approvers.is_none(),
        }
    }
}

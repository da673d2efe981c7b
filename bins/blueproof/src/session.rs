//! One run, from this process: the pipeline is driven here while nobody else drives it, and followed otherwise.
//!
//! Whoever holds the store's lock drives, for everybody. When that process ends, however it ends, the lock is free and
//! the next one that waits takes over by replaying the log: a hand-over and a crash are the same thing.

mod interrupt;
mod watch;

pub(crate) use watch::Watch;

use std::{convert::Infallible, os::unix::process::CommandExt, process::Stdio, sync::Arc, time::Duration};

use blueproof_cluster::local::{AgentCommand, LocalDriver};
use blueproof_core::{
    attempt::{RunsFolder, StoreIdentity},
    domain::{Actor, RequestKey, Resources, RunId},
    engine::{Engine, Ports},
    policy::Policy,
    ports::{Answer, ClusterDriver, Command, Reporter, Store, StoreError, SystemClock},
    scheduler::Scheduler,
    sqlite::SqliteStore,
    view::RunView,
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_notebook::report::FolderReporter;
use jiff::Timestamp;

use crate::{
    config::Config,
    exit::{Exit, Problem},
    gpus,
    reading::stopped_driver,
    show::{self, progress::Say},
};

/// How often a process that follows looks whether it is its turn to drive.
const LOOK_FOR_TURN: Duration = Duration::from_millis(200);

/// How often a process that follows looks whether whoever drives was stopped.
const LOOK_AFTER_DRIVER: Duration = Duration::from_secs(1);

/// Everything that a session works with.
pub(crate) struct Session {
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) driver: Arc<LocalDriver>,
    pub(crate) policy: Policy,
    pub(crate) description: String,
    /// What this machine has and cannot promise.
    pub(crate) warnings: Vec<Diagnostic>,
    reporter: Arc<dyn Reporter>,
    runs: RunsFolder,
}

/// The run that a session is about.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// The one that this request makes or made.
    Request(RequestKey),
    /// One that is known.
    Run(RunId),
}

impl Session {
    /// Opens the store and looks at the machine.
    pub(crate) async fn open(config: &Config) -> Result<Self, Problem> {
        let store = Arc::new(SqliteStore::open(&config.store.value)?);
        let runs = config.runs_of(store.identity());
        let driver = Arc::new(local_driver(config, runs.clone())?);
        let inventory = driver.inventory().await?;
        let reporter = Arc::new(FolderReporter::new(runs.clone()));
        Ok(Self {
            store,
            driver,
            reporter,
            policy: policy(config, inventory.total),
            description: inventory.description,
            warnings: inventory.warnings,
            runs,
        })
    }

    /// Returns where what is kept of runs is.
    pub(crate) fn kept(&self) -> &RunsFolder {
        &self.runs
    }

    /// Starts a process that drives until nothing remains to be done, for runs that nobody stays with.
    pub(crate) fn spawn_host(&self) -> Result<(), Problem> {
        let mut host = std::process::Command::new(own_program()?);
        host.arg("host").arg("--store").arg(self.store.path());
        host.stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        host.spawn().map(drop).map_err(|error| {
            let diagnostic = Diagnostic::error(
                Code::AgentNotStarted,
                "could not start a process that drives the run",
            );
            Problem {
                diagnostics: vec![diagnostic.caused_by(&error)],
                exit: Exit::Infrastructure,
            }
        })
    }

    /// Returns the target as soon as `done` holds of it, driving nothing.
    pub(crate) async fn until_others(
        &self,
        target: &Target,
        done: impl Fn(&RunView) -> bool,
    ) -> Result<RunView, Problem> {
        let mut seen = None;
        loop {
            match target.read(&*self.store).await? {
                Some(view) if done(&view) => return Ok(view),
                Some(_) => {}
                None => self.check_not_set_aside(target).await?,
            }
            seen = Some(self.store.changed(seen).await);
        }
    }

    /// Leaves a command for whoever leads.
    pub(crate) async fn submit(&self, command: Command) -> Result<(), Problem> {
        Ok(self.store.submit(Timestamp::now(), command).await?)
    }

    /// Returns all runs, the newest first.
    pub(crate) async fn runs(&self) -> Result<Vec<RunView>, Problem> {
        Ok(self.store.runs(i64::MAX as usize).await?)
    }

    /// Drives or follows until a command was taken up; where it was refused or set aside, that is the problem.
    pub(crate) async fn until_answered(&self, command: &RequestKey) -> Result<(), Problem> {
        loop {
            let stored = self.store.command(command).await?;
            if let Some(answer) = stored.and_then(|stored| stored.answer) {
                return outcome(answer);
            }
            self.drive_or_wait(&|_: &Scheduler| true).await?;
        }
    }

    /// Returns why the request will never make a run that a target waits for, where its command was set aside.
    async fn check_not_set_aside(&self, target: &Target) -> Result<(), Problem> {
        match target {
            Target::Request(key) => match self.store.command(key).await?.and_then(|stored| stored.answer) {
                Some(answer) => outcome(answer),
                None => Ok(()),
            },
            Target::Run(_) => Ok(()),
        }
    }

    /// Drives or follows until `done` holds of the target.
    pub(crate) async fn until(
        &self,
        target: &Target,
        done: impl Fn(&RunView) -> bool,
    ) -> Result<RunView, Problem> {
        let is_done = |scheduler: &Scheduler| target.find_in(scheduler).is_some_and(|view| done(&view));
        loop {
            match target.read(&*self.store).await? {
                Some(view) if done(&view) => return Ok(view),
                Some(_) => {}
                None => self.check_not_set_aside(target).await?,
            }
            self.drive_or_wait(&is_done).await?;
        }
    }

    /// Drives or follows until nothing remains to be done for any run.
    pub(crate) async fn until_idle(&self) -> Result<(), Problem> {
        loop {
            if let Some(_leadership) = self.store.try_lead()?
                && self.drive(&Scheduler::is_idle).await? == Driven::ToTheEnd
                && self.store.commands().await?.is_empty()
            {
                return Ok(());
            }
            // Whoever drives instead may stop as soon as its own run is over; what then remains is ours.
            tokio::time::sleep(LOOK_FOR_TURN).await;
        }
    }

    /// Says that the process which drives for everybody was stopped, once each time that it is; it may go on at any time. For
    /// ever; safe to drop.
    pub(crate) async fn look_after_the_driver(&self, say: &Say) -> Infallible {
        let mut was_stopped = false;
        loop {
            tokio::time::sleep(LOOK_AFTER_DRIVER).await;
            let stopped = stopped_driver(&self.store);
            if let Some(warning) = stopped.as_ref().filter(|_| !was_stopped) {
                say.warning(warning);
            }
            was_stopped = stopped.is_some();
        }
    }

    async fn drive_or_wait(&self, is_done: &impl Fn(&Scheduler) -> bool) -> Result<(), Problem> {
        let driven = match self.store.try_lead()? {
            Some(_leadership) => self.drive(is_done).await?,
            None => Driven::Overtaken,
        };
        if driven == Driven::Overtaken {
            tokio::time::sleep(LOOK_FOR_TURN).await;
        }
        Ok(())
    }

    /// Drives until `is_done` holds, or until somebody else has driven, too: what they decided is read from the log then.
    async fn drive(&self, is_done: &impl Fn(&Scheduler) -> bool) -> Result<Driven, StoreError> {
        let driven = async {
            let mut engine = self.engine().await?;
            let driven = engine.run_until(is_done).await;
            engine.take_set_aside().iter().for_each(show::aside);
            driven
        };
        match driven.await {
            Ok(()) => Ok(Driven::ToTheEnd),
            Err(error) if error.is_overtaken() => Ok(Driven::Overtaken),
            Err(error) => Err(error),
        }
    }

    async fn engine(&self) -> Result<Engine, StoreError> {
        let ports = Ports {
            store: self.store.clone(),
            cluster: self.driver.clone(),
            reporters: vec![self.reporter.clone()],
            clock: Arc::new(SystemClock),
        };
        Engine::open(ports, self.policy.clone()).await
    }
}

/// Returns what a command's answer is to whoever left it.
fn outcome(answer: Answer) -> Result<(), Problem> {
    let (problem, exit) = match answer {
        Answer::Taken => return Ok(()),
        Answer::Refused(problem) => (problem, Exit::Refused),
        Answer::SetAside(problem) => (problem, Exit::Infrastructure),
    };
    Err(Problem {
        diagnostics: vec![*problem],
        exit,
    })
}

/// How far this process has driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Driven {
    /// As far as it was to.
    ToTheEnd,
    /// Somebody else drives.
    Overtaken,
}

impl Target {
    /// Returns the run as it is stored.
    pub(crate) async fn read(&self, store: &dyn Store) -> Result<Option<RunView>, StoreError> {
        match self {
            Target::Request(key) => store.run_of(key).await,
            Target::Run(run) => store.run(*run).await,
        }
    }

    fn find_in(&self, scheduler: &Scheduler) -> Option<RunView> {
        match self {
            Target::Request(key) => scheduler.view(scheduler.run_of(key)?),
            Target::Run(run) => scheduler.view(*run),
        }
    }
}

fn local_driver(config: &Config, runs: RunsFolder) -> Result<LocalDriver, Problem> {
    let agent = AgentCommand {
        program: own_program()?,
        arguments: vec!["agent".into()],
    };
    let driver = LocalDriver::new(runs, config.environments.value.clone(), agent);
    Ok(driver.with_devices(gpus::look()))
}

/// Returns what the local queue would go by on this machine. Nothing is opened or made.
pub(crate) async fn policy_here(config: &Config) -> Result<Policy, Problem> {
    let no_store = StoreIdentity {
        id: String::new(),
        folder: String::new(),
        secret: [0; 32],
    };
    let inventory = local_driver(config, config.runs_of(&no_store))?
        .inventory()
        .await?;
    Ok(policy(config, inventory.total))
}

/// Returns what the local queue goes by: what is configured, and else all that the machine has.
fn policy(config: &Config, total: Resources) -> Policy {
    let quota = Resources {
        cpu: config.local_cpu.value.unwrap_or(total.cpu),
        memory: config.local_memory.value.unwrap_or(total.memory),
        gpu: total.gpu,
    };
    let mut policy = Policy::local(quota);
    policy.gate.local = config.local_self_approve.value;
    let approvers = config.local_approvers.value.iter().cloned();
    policy.gate.approvers = approvers.map(Actor::Local).collect();
    policy
}

/// Returns a key that no other request has.
pub(crate) fn new_key() -> RequestKey {
    RequestKey(format!("cli-{}", uuid::Uuid::new_v4()))
}

/// Returns the user of this machine who types.
pub(crate) fn local_user() -> Actor {
    let named = |variable| {
        std::env::var(variable)
            .ok()
            .filter(|name: &String| !name.is_empty())
    };
    let name = ["USER", "LOGNAME"].into_iter().find_map(named);
    Actor::Local(name.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw())))
}

/// Returns this program, which is also every attempt's agent.
pub(crate) fn own_program() -> Result<std::ffi::OsString, Problem> {
    std::env::current_exe().map(Into::into).map_err(|error| {
        let diagnostic = Diagnostic::error(Code::AgentNotStarted, "could not find this program's own file");
        Problem {
            diagnostics: vec![diagnostic.caused_by(&error)],
            exit: Exit::Infrastructure,
        }
    })
}

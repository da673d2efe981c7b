//! The store and this machine, for a command that changes something: [`Host`] leads or follows.

mod interrupt;
mod stopped;
mod watch;

pub(crate) use interrupt::OnInterrupt;
pub(crate) use stopped::stopped_driver;
pub(crate) use watch::Watch;

use std::{
    convert::Infallible,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use blueproof_core::{
    domain::{Actor, RequestKey},
    policy::Policy,
    ports::{AttemptOutput, Command},
    view::RunView,
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_host::{Host, Target, until_taken_up};
use blueproof_machine::{LocalPolicy, Machine, MachineConfig};
use blueproof_queue::objects::Objects;
use jiff::Timestamp;
use nix::unistd::{Uid, User};

use crate::{
    backend::Backend,
    config::Config,
    exit::{Exit, Problem},
    output,
    show::{self, progress::Say},
};

/// How often a process that follows looks whether whoever drives was stopped.
const LOOK_AFTER_DRIVER: Duration = Duration::from_secs(1);

/// Everything that a session works with.
pub(crate) struct Session {
    pub(crate) store: Backend,
    pub(crate) description: String,
    /// What this machine has and cannot promise.
    pub(crate) warnings: Vec<Diagnostic>,
    policy: Policy,
    /// Leads where nobody else does; none where a server does.
    host: Option<Host>,
    /// The configuration file that was named, if one was.
    config_file: Option<PathBuf>,
}

impl Session {
    /// Opens the store and looks at the machine, or turns to the server that is configured.
    pub(crate) async fn open(config: &Config) -> Result<Self, Problem> {
        if let Some(Backend::Server(client)) = Backend::server(config)? {
            return Ok(Self {
                policy: client.policy().await?,
                description: "scheduler".into(),
                store: Backend::Server(client),
                host: None,
                config_file: None,
                warnings: Vec::new(),
            });
        }
        let machine = Machine::open(&machine(config)?, output::note).await?;
        Ok(Self {
            store: Backend::Here {
                store: machine.store,
                output: machine.output,
            },
            policy: machine.host.policy().clone(),
            host: Some(machine.host.telling(show::aside)),
            description: machine.description,
            config_file: config.named_file().map(Path::to_owned),
            warnings: machine.warnings,
        })
    }

    /// Returns what is in force while this process leads, or on the server.
    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the queues in force: those that an admin applied, else the default ones.
    pub(crate) async fn queues(&self) -> Result<Objects, Problem> {
        let applied = self.store.applied_quota().await?;
        Ok(applied.unwrap_or_else(|| self.policy.default_objects()))
    }

    /// Returns what attempts leave.
    pub(crate) fn output(&self) -> Arc<dyn AttemptOutput> {
        self.store.output()
    }

    /// Starts a process that drives until nothing remains to be done, for runs that nobody stays with.
    pub(crate) fn spawn_host(&self) -> Result<(), Problem> {
        let Some(store) = self.store.file() else {
            return Ok(());
        };
        let mut host = std::process::Command::new(own_program()?);
        host.arg("host").arg("--store").arg(store.path());
        if let Some(file) = &self.config_file {
            host.arg("--config").arg(file);
        }
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

    /// Returns the target as soon as `done` holds of it, leaving the work to others.
    pub(crate) async fn until_others(
        &self,
        target: &Target,
        done: impl Fn(&RunView) -> bool,
    ) -> Result<RunView, Problem> {
        Ok(target.until(&*self.store, done).await?)
    }

    /// Leaves a command for whoever leads.
    pub(crate) async fn submit(&self, command: Command) -> Result<(), Problem> {
        Ok(self.store.submit(Timestamp::now(), command).await?)
    }

    /// Returns all runs, the newest first.
    pub(crate) async fn runs(&self) -> Result<Vec<RunView>, Problem> {
        Ok(self.store.runs(i64::MAX as usize).await?)
    }

    /// Leads or follows until a command was taken up; where it was refused or quarantined, that is the problem.
    pub(crate) async fn until_taken_up(&self, command: &RequestKey) -> Result<(), Problem> {
        let Some(host) = &self.host else {
            return Ok(until_taken_up(&*self.store, command).await?);
        };
        Ok(host.until_taken_up(command).await?)
    }

    /// Leads or follows until `done` holds of the target.
    pub(crate) async fn until(
        &self,
        target: &Target,
        done: impl Fn(&RunView) -> bool,
    ) -> Result<RunView, Problem> {
        let Some(host) = &self.host else {
            return self.until_others(target, done).await;
        };
        Ok(host.until(target, done).await?)
    }

    /// Leads or follows until nothing remains to be done for any run.
    pub(crate) async fn until_idle(&self) -> Result<(), Problem> {
        let Some(host) = &self.host else { return Ok(()) };
        Ok(host.until_idle().await?)
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
}

/// Returns what the local queue would go by on this machine. Nothing is opened or made.
pub(crate) async fn policy_here(config: &Config) -> Result<Policy, Problem> {
    Ok(machine(config)?.policy_here(output::note).await?)
}

/// Returns what this machine is made of.
fn machine(config: &Config) -> Result<MachineConfig, Problem> {
    Ok(MachineConfig {
        store: config.store.value.clone(),
        environments: config.environments.value.clone(),
        agent: own_program()?,
        policy: LocalPolicy {
            cpu: config.local_cpu.value,
            memory: config.local_memory.value,
            self_approve: config.local_self_approve.configured().copied(),
            approvers: config
                .local_approvers
                .configured()
                .map(|names| names.iter().cloned().collect()),
        },
        isolation: config.local_isolation.value,
    })
}

/// Returns a key that no other request has.
pub(crate) fn new_key() -> RequestKey {
    RequestKey(format!("cli-{}", uuid::Uuid::new_v4()))
}

/// Returns the user of this machine who types, by `USER` or `LOGNAME`, else by the user database.
pub(crate) fn local_user() -> Actor {
    let named = |variable| {
        std::env::var(variable)
            .ok()
            .filter(|name: &String| !name.is_empty())
    };
    let name = ["USER", "LOGNAME"].into_iter().find_map(named);
    Actor::Local(
        name.or_else(account_name)
            .unwrap_or_else(|| format!("uid {}", Uid::current())),
    )
}

/// Returns what the system calls the user that this process runs as; services and cron have no variable with it.
fn account_name() -> Option<String> {
    let user = User::from_uid(Uid::current()).ok().flatten()?;
    Some(user.name)
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

//! Runners as processes of this machine.
//!
//! Each has a folder of its own: what says that it was begun is there before its program is started, so that none is ever
//! started twice, and its process goes on when we are gone. Whoever comes later finds it by what the folder says. A runner is
//! not kept from anything that its user may do on this machine: it is for machines that nobody minds losing.

mod folder;
mod processes;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use blueproof_core::{
    attempt::{Presence, ProcessName},
    event::StopMode,
    ports::{CallError, NEWS_AT_MOST, Runner, RunnerName, RunnerNews, RunnerProvider, RunnerState},
};
use blueproof_diagnostic::{Code, Diagnostic};
use rustix::process::Signal;
use tokio::{
    process::{Child, Command},
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};

use crate::signal::signal;
use folder::{Begin, Ended, RunnerFolder};

/// The variable by which GitHub's runner takes its configuration; it takes it out of its own environment before a job begins.
const CONFIG_VARIABLE: &str = "ACTIONS_RUNNER_INPUT_JITCONFIG";

/// The variable that marks what a runner started: the value is its folder.
const MARK_VARIABLE: &str = "BLUEPROOF_RUNNER";

/// Of our own environment nothing else is passed on: it may hold tokens.
const PASSED_ON: [&str; 4] = ["PATH", "LANG", "LC_ALL", "TZ"];

/// How often it is looked whether a runner is there that somebody else started.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The program of a runner.
#[derive(Debug, Clone)]
pub struct RunnerCommand {
    /// The program, such as GitHub's `run.sh`. It is started in an empty folder of its own, and finds its configuration in the
    /// variable `ACTIONS_RUNNER_INPUT_JITCONFIG`.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// Starts runners as processes of this machine.
#[derive(Debug)]
pub struct ProcessRunners {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    command: RunnerCommand,
    listeners: Mutex<Vec<mpsc::Sender<RunnerNews>>>,
    tasks: Mutex<Tasks>,
}

/// What is done for whom. All of it ends with the provider, and no runner does.
#[derive(Debug, Default)]
struct Tasks {
    running: JoinSet<()>,
    following: BTreeMap<RunnerName, AbortHandle>,
}

impl ProcessRunners {
    /// Returns a provider that keeps runners in the folder `root`, which is made when it is needed.
    pub fn new(root: PathBuf, command: RunnerCommand) -> Self {
        Self {
            shared: Arc::new(Shared {
                root,
                command,
                listeners: Mutex::default(),
                tasks: Mutex::default(),
            }),
        }
    }

    /// Tells how a runner stands, and each change until it is over.
    fn follow(&self, name: &RunnerName, child: Option<Child>) {
        let shared = Arc::clone(&self.shared);
        let mut tasks = lock(&self.shared.tasks);
        tasks.following.retain(|_, task| !task.is_finished());
        let of = name.clone();
        let begun = tasks.running.spawn(async move { shared.follow(of, child).await });
        tasks.following.insert(name.clone(), begun);
    }

    /// Returns whether a runner is followed already.
    fn is_followed(&self, name: &RunnerName) -> bool {
        let tasks = lock(&self.shared.tasks);
        tasks.following.get(name).is_some_and(|task| !task.is_finished())
    }
}

impl Shared {
    fn folder(&self, name: &RunnerName) -> RunnerFolder {
        RunnerFolder::new(&self.root, name)
    }

    fn spawn(&self, runner: &Runner, folder: &RunnerFolder) -> Result<Child, CallError> {
        let RunnerCommand { program, arguments } = &self.command;
        let output = folder.output()?;
        let errors = output
            .try_clone()
            .map_err(|error| folder.cannot("open the output in", &error))?;
        let passed_on = PASSED_ON
            .iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(passed_on)
            .env("HOME", folder.work())
            .env(MARK_VARIABLE, folder.root())
            .env(CONFIG_VARIABLE, runner.config.expose())
            .current_dir(folder.work())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0);
        command.spawn().map_err(|error| {
            let message = format!("could not start the runner `{}`", program.to_string_lossy());
            let diagnostic = Diagnostic::error(Code::RunnerNotStarted, message).caused_by(&error);
            CallError::later(diagnostic.hint("see that the runner's program is there and may be executed"))
        })
    }

    async fn tell(&self, name: &RunnerName, state: RunnerState) {
        let listeners = {
            let mut listeners = lock(&self.listeners);
            listeners.retain(|listener| !listener.is_closed());
            listeners.clone()
        };
        let runner = name.clone();
        let news = RunnerNews { runner, state };
        for listener in listeners {
            // One that listens no more has asked for nothing more either.
            let _ = listener.send(news.clone()).await;
        }
    }

    async fn follow(&self, name: RunnerName, child: Option<Child>) {
        let folder = self.folder(&name);
        self.tell(&name, RunnerState::Running).await;
        let end = match child {
            Some(child) => wait_for(child, &folder).await,
            None => look_for(&folder).await,
        };
        self.tell(&name, end).await;
    }

    async fn remove(&self, name: &RunnerName) -> Result<(), CallError> {
        let folder = self.folder(name);
        if let Some(process) = folder.process()?
            && process.presence() == Presence::Elsewhere
        {
            return Err(folder.elsewhere());
        }
        processes::end_all(MARK_VARIABLE, &folder).await?;
        folder.remove()
    }
}

/// Returns how a runner stands that was begun, has not ended as far as is written down, and is followed by nobody.
fn unfollowed(folder: &RunnerFolder) -> Result<RunnerState, CallError> {
    Ok(match folder.process()? {
        Some(process) if process.presence() != Presence::Gone => RunnerState::Running,
        Some(_) => unwatched(),
        None => RunnerState::Lost {
            message: "it was to be started, and whether it was is not known".into(),
        },
    })
}

/// Waits until a runner ends that we started, and writes down how.
async fn wait_for(mut child: Child, folder: &RunnerFolder) -> RunnerState {
    let ended = match child.wait().await {
        Ok(status) => Ended::of(status),
        Err(error) => Ended::Unknown(format!("its end could not be waited for: {error}")),
    };
    // Where that cannot be written it is told all the same; whoever comes later finds that it ended while nobody watched.
    let _ = folder.note_end(&ended);
    ended.into()
}

/// Waits until a runner ends that somebody else started: how it ended only they know, who may have written it down.
async fn look_for(folder: &RunnerFolder) -> RunnerState {
    loop {
        let is_there = folder.process().ok().flatten();
        if is_there.is_none_or(|process| process.presence() == Presence::Gone) {
            let ended = folder.ended().ok().flatten();
            return ended.map_or_else(unwatched, RunnerState::from);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn unwatched() -> RunnerState {
    RunnerState::Lost {
        message: "it ended while nobody watched".into(),
    }
}

#[async_trait]
impl RunnerProvider for ProcessRunners {
    fn news(&self) -> mpsc::Receiver<RunnerNews> {
        let (sender, receiver) = mpsc::channel(NEWS_AT_MOST);
        lock(&self.shared.listeners).push(sender);
        receiver
    }

    async fn start(&self, runner: &Runner) -> Result<(), CallError> {
        let folder = self.shared.folder(&runner.name);
        if folder.begin()? == Begin::Before {
            return self.observe(&runner.name).await;
        }
        let child = match self.shared.spawn(runner, &folder) {
            Ok(child) => child,
            Err(error) => {
                // Nothing has read the configuration, so that it may be tried again.
                folder.remove()?;
                return Err(error);
            }
        };
        if let Some(process) = child.id().and_then(ProcessName::of) {
            folder.note_process(&process)?;
        }
        self.follow(&runner.name, Some(child));
        Ok(())
    }

    async fn observe(&self, name: &RunnerName) -> Result<(), CallError> {
        let folder = self.shared.folder(name);
        if !folder.is_begun() {
            let message = format!("nothing is known of the runner {name}");
            return Err(CallError::never(Diagnostic::error(Code::RunnerUnknown, message)));
        }
        // Looked at first: who follows it writes down how it ended before telling it, and so tells it after this.
        let is_followed = self.is_followed(name);
        let state = match folder.ended()? {
            Some(ended) => ended.into(),
            None if is_followed => RunnerState::Running,
            None => unfollowed(&folder)?,
        };
        if state == RunnerState::Running && !is_followed {
            self.follow(name, None);
        } else {
            self.shared.tell(name, state).await;
        }
        Ok(())
    }

    async fn stop(&self, name: &RunnerName, how: StopMode) -> Result<(), CallError> {
        let folder = self.shared.folder(name);
        let Some(process) = folder.process()? else {
            return Ok(());
        };
        let asked = match how {
            StopMode::Interrupt => Signal::INT,
            StopMode::Terminate => Signal::TERM,
        };
        match process.presence() {
            Presence::Elsewhere => Err(folder.elsewhere()),
            Presence::Gone => Ok(()),
            Presence::Alive => {
                signal(&process, asked).map_err(|error| folder.cannot("signal the runner of", &error))
            }
        }
    }

    async fn remove(&self, name: &RunnerName) -> Result<(), CallError> {
        let shared = Arc::clone(&self.shared);
        let name = name.clone();
        let mut tasks = lock(&self.shared.tasks);
        let followed = tasks.following.remove(&name);
        tasks.running.spawn(async move {
            if let Some(followed) = followed {
                followed.abort();
            }
            let state = match shared.remove(&name).await {
                Ok(()) => RunnerState::Removed,
                Err(error) => RunnerState::NotRemoved { error },
            };
            shared.tell(&name, state).await;
        });
        Ok(())
    }
}

impl Drop for ProcessRunners {
    fn drop(&mut self) {
        lock(&self.shared.tasks).running.abort_all();
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

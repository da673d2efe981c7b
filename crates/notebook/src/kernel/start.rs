//! Starting a kernel, and ending it.

use std::{
    ffi::OsString,
    io,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use blueproof_core::attempt::Cgroup;
use rustix::process::Signal;

use super::{
    Channels, Incoming, Runtime, Variables, WireError,
    output::{Output, OutputEnds},
};
use crate::{
    process::{Child, End, Launcher, Wrapping},
    sandbox::Sandbox,
};

/// How long a kernel may take to greet. ipykernel before 7 does not greet at all.
const WELCOME_PATIENCE: Duration = Duration::from_millis(500);

/// IPython's history of this session alone: its database would lie in a home that goes with the attempt, and making it takes
/// a tenth of the kernel's start.
const NO_HISTORY_FILE: &str = "--HistoryManager.hist_file=:memory:";

/// What a kernel is started from.
pub(crate) struct Starting<'a> {
    /// The program and its arguments.
    pub(crate) command: &'a [OsString],
    /// The step between this process and the kernel.
    pub(crate) launcher: &'a Launcher,
    /// What it is in, with all that it starts.
    pub(crate) cgroup: Option<&'a Cgroup>,
    /// What keeps it from the machine, where anything does.
    pub(crate) sandbox: Option<&'a Sandbox>,
    /// Where it works.
    pub(crate) folder: &'a Path,
    /// All that it sees of an environment.
    pub(crate) variables: &'a Variables,
    /// Where its own output goes.
    pub(crate) log: &'a Path,
}

/// Why a kernel did not come up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// No process could be made.
    #[error("could not start the kernel's process")]
    Spawn(#[source] io::Error),
    /// Its process ended before it answered.
    #[error("the kernel ended before it answered: {0}")]
    Ended(End),
    /// It could not be spoken to.
    #[error("could not speak to the kernel")]
    Wire(#[source] WireError),
}

/// A kernel's process.
pub(crate) struct Kernel {
    /// The process.
    pub(crate) child: Child,
    /// What it and its children write.
    pub(crate) output: Output,
}

impl Kernel {
    /// Starts the process. It leads a session and process group of its own and dies with this process.
    pub(crate) fn spawn(starting: &Starting<'_>) -> Result<Self, StartError> {
        let (output, ends) = Output::open(starting.log).map_err(StartError::Spawn)?;
        let wrapping = match starting.sandbox {
            Some(_) => Wrapping::Sandboxed,
            None => Wrapping::Bare,
        };
        let command = command(starting, ends).map_err(StartError::Spawn)?;
        let child = Child::spawn(command, wrapping).map_err(StartError::Spawn)?;
        Ok(Self { child, output })
    }

    /// Connects, and waits until the kernel answers. Bounding the wait is up to the caller.
    pub(crate) async fn connect(&mut self, runtime: &Runtime) -> Result<Channels, StartError> {
        let answered = async {
            runtime.endpoints().made().await;
            let mut channels = Channels::connect(runtime.endpoints()).await?;
            channels.welcomed(WELCOME_PATIENCE).await;
            let request = channels.ask_info().await?;
            loop {
                match channels.next().await {
                    Incoming::Shell(reply) if reply.parent.as_ref() == Some(&request) => return Ok(channels),
                    Incoming::Shell(_) | Incoming::IoPub(_) | Incoming::Control | Incoming::Unreadable(_) => {
                    }
                }
            }
        };
        tokio::select! {
            channels = answered => channels.map_err(StartError::Wire),
            end = self.child.wait() => {
                // Its last words are looked for in the log.
                self.output.end();
                Err(end.map_or_else(StartError::Spawn, StartError::Ended))
            }
        }
    }

    /// Ends the kernel where it has not ended: tells it, then kills it after `grace`.
    pub(crate) async fn end(&mut self, grace: Duration) {
        self.output.end();
        if self.child.try_wait().is_ok_and(|end| end.is_some()) {
            return;
        }
        self.child.signal_group(Signal::TERM);
        if tokio::time::timeout(grace, self.child.wait()).await.is_err() {
            self.child.signal_group(Signal::KILL);
            let _ = self.child.wait().await;
        }
    }
}

fn command(starting: &Starting<'_>, ends: OutputEnds) -> io::Result<Command> {
    let (program, arguments) = starting.command.split_first().expect("it names a program");
    let mut command = starting
        .launcher
        .command(starting.cgroup, starting.sandbox, program)?;
    // A kernel that has a parent prints no advice on how to connect to it. One in a sandbox sees the first process there.
    let parent = starting.sandbox.map_or_else(std::process::id, |_| 1);
    command
        .args(arguments)
        .current_dir(starting.folder)
        .env_clear()
        .envs(starting.variables)
        .env("JPY_PARENT_PID", parent.to_string())
        .stdin(Stdio::null())
        .stdout(ends.stdout)
        .stderr(ends.stderr);
    Ok(command)
}

/// Returns the command that starts Python's own kernel.
pub(crate) fn python_command(python: &Path, connection_file: &Path) -> Vec<OsString> {
    let arguments = ["-m", "ipykernel_launcher", NO_HISTORY_FILE, "-f"].map(OsString::from);
    let first = std::iter::once(python.into());
    first.chain(arguments).chain([connection_file.into()]).collect()
}

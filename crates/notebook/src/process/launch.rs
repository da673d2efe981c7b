//! The small step between an agent and its kernel.
//!
//! What must happen in a new process before its program runs (a session of its own, death with its parent) needs
//! either `unsafe` code between fork and exec, or a program that does it and then becomes the other one. This is that
//! program. ipykernel's own watch over its parent (`JPY_PARENT_PID`) is not enough: it looks once a second, older ones
//! only notice a parent that became process 1, and none does while a notebook holds the interpreter's lock.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use blueproof_core::attempt::Cgroup;
use rustix::process::{Pid, Resource, Rlimit, Signal};

use crate::sandbox::{self, Sandbox};

/// A program that calls [`launch`] with the arguments that come after its own.
#[derive(Debug, Clone)]
pub struct Launcher {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Launcher {
    /// Names the program, and what comes before the arguments that [`launch`] is to be given.
    pub fn new(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item: Into<OsString>>) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
        }
    }

    /// Returns the command that runs `program` in a session of its own and, where it can be entered, in `cgroup`, to be killed
    /// when this process dies; in a sandbox, where there is to be one.
    ///
    /// It must be spawned from a thread that lives as long as the process: Linux counts a parent's thread as the parent.
    pub(crate) fn command(
        &self,
        cgroup: Option<&Cgroup>,
        sandbox: Option<&Sandbox>,
        program: impl AsRef<OsStr>,
    ) -> io::Result<Command> {
        let no_text = || io::Error::new(io::ErrorKind::InvalidInput, "a path of the sandbox is no UTF-8");
        let sandbox = match sandbox {
            Some(sandbox) => sandbox.to_argument().ok_or_else(no_text)?,
            None => OsString::new(),
        };
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command.arg(std::process::id().to_string());
        command.arg(cgroup.map_or(Path::new(""), Cgroup::folder));
        command.arg(sandbox);
        command.arg(program.as_ref());
        Ok(command)
    }
}

/// Becomes another program that dies with its parent: `PARENT CGROUP SANDBOX PROGRAM ARGUMENT…`. Returns only when that failed.
pub fn launch(arguments: impl IntoIterator<Item = OsString>) -> io::Error {
    let mut arguments = arguments.into_iter();
    let mut next = || arguments.next();
    let (Some(parent), Some(cgroup), Some(sandbox), Some(program)) = (next(), next(), next(), next()) else {
        return io::Error::new(
            io::ErrorKind::InvalidInput,
            "expected a parent's id, a cgroup, a sandbox and a program",
        );
    };
    if let Err(error) = detach_and_die_with(&parent) {
        return error;
    }
    if !cgroup.is_empty() {
        // Whether it went well is seen from outside; a kernel runs without a cgroup, too.
        let _ = Cgroup::new(cgroup.into()).enter();
    }
    match sandbox.to_str() {
        Some("") => Command::new(program).args(arguments).exec(),
        Some(sandbox) => sandbox::enter(sandbox, &program, arguments),
        None => io::Error::new(io::ErrorKind::InvalidInput, "the sandbox is no UTF-8"),
    }
}

fn detach_and_die_with(parent: &OsStr) -> io::Result<()> {
    rustix::process::setsid()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // A parent that died before the line above will never send the signal.
    let now = rustix::process::getppid().map(Pid::as_raw_nonzero);
    if now.map(|pid| pid.to_string()).as_deref().map(OsStr::new) != Some(parent) {
        return Err(io::Error::other("the agent is gone"));
    }
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    rustix::process::setrlimit(Resource::Core, none)?;
    // Under memory pressure the notebook goes before whoever has to report that it went.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
    Ok(())
}

//! The sandbox that packages of a stranger's choice are installed in.
//!
//! An installer reads and unpacks what strangers have written, and starts an interpreter. So it is a user of its own where that
//! can be, writes to the environment alone, and reads what of the machine it needs. It has the machine's network, as it must
//! reach the index; no code of a package runs there, because only wheels are installed.

use std::{
    fs, io,
    os::{fd::OwnedFd, unix::fs::PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
};

use blueproof_core::domain::Bytes;
use blueproof_diagnostic::{Code, Diagnostic};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use super::{
    Host, Patience, Unprepared,
    child::{self, Ended, Unfinished},
    requirements::DISPOSABLE,
};
use crate::{
    process::{DiskWatch, Launcher},
    sandbox::{Identity, Sandbox, SandboxNetwork, interpreter_folders, is_in_every_sandbox},
};

/// How much memory an installer may have: it holds what an index lists and a package says of itself, and never a package.
const MEMORY: Bytes = Bytes(8 << 30);

/// The status of a sandbox whose program the system ended because a file became too large.
const OF_TOO_LARGE_FILE: i32 = 128 + Signal::XFSZ.as_raw();

/// How packages of a stranger's choice are installed.
#[derive(Debug, Clone)]
pub(crate) struct Strangers {
    /// The step between the agent and the sandbox.
    pub(crate) launcher: Launcher,
    /// How much an environment may take, with what is needed to make it.
    pub(crate) disk: Bytes,
    /// How many processes and threads there may be at once.
    pub(crate) processes: u64,
}

/// The sandbox of one installation.
pub(super) struct Apart<'a> {
    strangers: &'a Strangers,
    sandbox: Sandbox,
    identity: Option<Identity>,
    folder: PathBuf,
}

impl<'a> Apart<'a> {
    /// Describes the sandbox in which the environment in `folder` is made by `programs` from what is in `asked`. Of programs that are
    /// interpreters, their folders are in reach.
    pub(super) fn plan(
        strangers: &'a Strangers,
        host: &Host,
        programs: &[PathBuf],
        folder: &Path,
        asked: &Path,
    ) -> Result<Self, Unprepared> {
        let identity = Identity::choose(uuid::Uuid::new_v4().as_u128());
        let sandbox = Sandbox::new(Path::new("/")).map_err(|missing| unavailable(&missing))?;
        let mut sandbox = sandbox
            .of_user(identity)
            .with_network(SandboxNetwork::Machine)
            .limited(strangers.disk, strangers.processes)
            .with_address_space(MEMORY);
        for program in programs {
            let folders = interpreter_folders(program).map_err(|folder| {
                let why = format!("{} holds more than a Python", folder.display());
                unavailable(&io::Error::other(why))
            })?;
            for folder in folders {
                sandbox = sandbox.reading(folder);
            }
        }
        let can_read = |path: &PathBuf| identity.is_none() || is_readable(path);
        for path in host.settings().into_iter().filter(can_read) {
            if !is_in_every_sandbox(&path) {
                sandbox = sandbox.reading(path);
            }
        }
        Ok(Self {
            strangers,
            sandbox: sandbox.reading(asked).writing(folder),
            identity,
            folder: folder.to_owned(),
        })
    }

    /// Has it read one more file.
    pub(super) fn reading(mut self, file: &Path) -> Self {
        if !is_in_every_sandbox(file) {
            self.sandbox = self.sandbox.reading(file);
        }
        self
    }

    /// Gives the environment's folder to the user of the sandbox.
    pub(super) fn own(&self) -> io::Result<()> {
        self.identity
            .map_or(Ok(()), |identity| identity.own(&self.folder))
    }

    /// Runs a command of the host in the sandbox, with the same variables.
    pub(super) fn run(
        &self,
        command: &Command,
        stdin: OwnedFd,
        patience: Patience<'_>,
        on_line: &mut dyn FnMut(&str),
    ) -> Result<Ended, Unprepared> {
        let launched = self
            .strangers
            .launcher
            .command(None, Some(&self.sandbox), command.get_program());
        let mut launched = launched.map_err(|error| unavailable(&error))?;
        let variables = command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?)));
        launched
            .args(command.get_args())
            .env_clear()
            .envs(variables)
            .current_dir("/")
            .stdin(stdin);
        let mut watch = None;
        let ended = child::run_leader(launched, patience, on_line, &mut |child| {
            let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok();
            let over = |process| DiskWatch::over(vec![self.folder.clone()], self.strangers.disk, process);
            watch = process.map(over);
        });
        let is_too_large = |ended: &Ended| ended.status.code() == Some(OF_TOO_LARGE_FILE);
        if ended.as_ref().is_ok_and(is_too_large) || watch.is_some_and(|watch| watch.hit().is_some()) {
            return Err(self.too_large());
        }
        let ended = ended.map_err(|unfinished| match unfinished {
            Unfinished::Killed(why) => why,
            Unfinished::NotStarted(error) => unavailable(&error),
        })?;
        let refused = ended.lines.iter().find(|line| line.starts_with("bwrap: "));
        match refused.filter(|_| !ended.status.success()) {
            Some(words) => Err(unavailable(&io::Error::other(words.clone()))),
            None => Ok(ended),
        }
    }

    /// Says that the packages are too large.
    pub(super) fn too_large(&self) -> Unprepared {
        let message = format!("the packages take more than {}", self.strangers.disk);
        Unprepared::config(
            Diagnostic::error(Code::DiskLimit, message)
                .because("so much may an environment of a pull request take, and the disk of this machine is not filled for one")
                .hint("ask for fewer or smaller packages under spec.env.requirements")
                .hint(DISPOSABLE),
        )
    }
}

/// Returns whether other users can read what is there.
fn is_readable(path: &Path) -> bool {
    let needed = if path.is_dir() { 0o005 } else { 0o004 };
    fs::metadata(path).is_ok_and(|about| about.permissions().mode() & needed == needed)
}

fn unavailable(error: &dyn std::error::Error) -> Unprepared {
    let message = "the sandbox could not be made that packages are installed in";
    let diagnostic = Diagnostic::error(Code::SandboxUnavailable, message);
    Unprepared::infrastructure(diagnostic.caused_by(error))
}

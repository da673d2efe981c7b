//! The Python that runs a notebook: found or made, kept for reuse, and described.
//!
//! An environment is known by what it was asked for and by the interpreter that it stands on. It is built where it
//! stays, because a virtual environment cannot be moved, and counts only once its description is written, which is the
//! last step. What the host says about indexes, proxies and certificates is used for installing and for nothing else.

mod apart;
mod cache;
pub(crate) mod child;
mod code;
mod explain;
mod fresh;
mod host;
mod index;
mod install;
mod installer;
mod interpreter;
mod lockfile;
mod metadata;
mod offline;
mod own;
mod pep723;
mod requirements;
#[cfg(test)]
mod tests;
mod wanted;
mod wheels;
mod words;

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use blueproof_core::domain::{Failure, FailureClass};
use blueproof_diagnostic::Diagnostic;
use serde::{Deserialize, Serialize};

pub(crate) use apart::Strangers;
pub(crate) use explain::{exhausted, exhausted_line};
pub use host::Host;
pub(crate) use own::{copy as own_copy, installs};
pub use pep723::pep723;
pub(crate) use requirements::{checked as checked_requirement, checked_by_name};

use crate::plan::Environment;
use cache::{Cache, Found};
use install::Maker;
use wanted::{Chooser, Wanted};

/// The folder of the environments whose packages strangers chose, among all.
const OF_STRANGERS: &str = "strangers";

/// A Python with everything that a notebook asked for, ready to start a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The interpreter to start. It lies in a folder that other attempts use too.
    pub python: PathBuf,
    /// Its version, such as `3.12.4`.
    pub version: String,
    /// Every package that is installed, with its version, in the order of their names.
    pub packages: Vec<Package>,
    /// What tells this environment from others: equal for equal requests on equal interpreters.
    pub key: String,
    /// Whether it was there already or had to be made.
    pub origin: Origin,
    /// What installed its packages.
    pub tool: Tool,
}

/// The Python that ran a notebook, as a report tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentReport {
    /// Its version.
    pub python: String,
    /// What tells it from others.
    pub key: String,
    /// What installed its packages, such as `uv`.
    pub tool: String,
    /// What is installed.
    pub packages: Vec<Package>,
}

/// An installed package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Package {
    /// Its name, as its author writes it.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// Whether an environment was there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// An earlier attempt made it.
    Cached,
    /// It was made just now.
    Built,
}

/// What installs packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// `uv`.
    Uv,
    /// `python -m venv`, and pip.
    Venv,
}

/// How long somebody is ready to wait.
#[derive(Debug, Clone, Copy)]
pub struct Patience<'a> {
    /// Set by the caller when the work is no longer wanted.
    pub stop: &'a AtomicBool,
    /// When it has taken too long. `None` waits for ever.
    pub deadline: Option<Instant>,
}

/// Why there is no environment.
#[derive(Debug, Clone, PartialEq)]
pub enum Unprepared {
    /// It cannot be made. Class *config* is the blueprint's or the host's to mend; *infrastructure* may pass elsewhere.
    Failed(Box<Failure>),
    /// The caller asked to stop.
    Stopped,
    /// The caller's deadline has passed.
    OutOfTime,
}

/// Returns the normalised names of the packages that a lock in `folder` brings; `None` where it cannot be read.
pub(crate) fn locked_names(folder: &Path, lock: &Path) -> Option<Vec<String>> {
    let lock = lockfile::Lock::read(folder, lock).ok()?;
    Some(
        lock.requirements
            .iter()
            .map(|line| requirements::name_of(line))
            .collect(),
    )
}

/// Reports a lock in `folder` that no environment can be made of.
pub(crate) fn checked_lock(folder: &Path, lock: &Path) -> Result<(), Box<Diagnostic>> {
    lockfile::Lock::read(folder, lock).map(drop).map_err(of_config)
}

/// Reports a version of Python that `text` does not tell, or one that no kernel runs on any more.
pub(crate) fn checked_python(text: &str) -> Result<(), Box<Diagnostic>> {
    interpreter::PythonRequest::parse(text)
        .and_then(|request| request.supported())
        .map_err(of_config)
}

/// Returns whether the environment of this interpreter is still as it was made. One that cannot be read is not.
pub(crate) fn is_as_made(python: &Path) -> bool {
    let folder = python.parent().and_then(Path::parent);
    folder.is_some_and(cache::is_as_made)
}

fn of_config(unprepared: Unprepared) -> Box<Diagnostic> {
    match unprepared {
        Unprepared::Failed(failure) => Box::new(failure.diagnostic),
        Unprepared::Stopped | Unprepared::OutOfTime => unreachable!("nothing was waited for"),
    }
}

/// Returns an environment that satisfies `wanted`: an earlier one where there is one, else a new one under `cache`.
///
/// Blocks: for a few milliseconds where the environment is there, for as long as downloads take where it is not. Of
/// several callers at once, in any number of processes, one builds and the others wait for it. A caller that is killed
/// leaves nothing that is taken for complete. When `patience` ends, everything that was started is killed before
/// this returns. `progress` is given short texts such as `downloading numpy-2.3.1 (16.4 MB)`; they come from outside
/// and are not sanitised.
///
/// # Errors
/// See [`Unprepared`].
pub fn prepare(
    wanted: &Environment,
    checkout: &Path,
    cache: &Path,
    patience: Patience<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Prepared, Unprepared> {
    prepare_on(&Host::current(), wanted, checkout, cache, patience, progress)
}

/// Does what [`prepare`] does, on a host other than the one that this process finds itself on.
///
/// # Errors
/// See [`Unprepared`].
pub fn prepare_on(
    host: &Host,
    wanted: &Environment,
    checkout: &Path,
    cache: &Path,
    patience: Patience<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Prepared, Unprepared> {
    let maker = Maker {
        host,
        strangers: None,
    };
    prepare_by(maker, wanted, checkout, cache, patience, progress)
}

/// Does what [`prepare_on`] does where a stranger chose the packages: none of their code runs, and what installs them does so in a
/// sandbox. The environment is one of strangers alone, below `cache` in a folder of its own, and its interpreter is to be started
/// in a sandbox alone.
///
/// # Errors
/// See [`Unprepared`].
pub(crate) fn prepare_for_stranger(
    maker: (&Host, &Strangers),
    wanted: &Environment,
    checkout: &Path,
    cache: &Path,
    patience: Patience<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Prepared, Unprepared> {
    let (host, strangers) = maker;
    let maker = Maker {
        host,
        strangers: Some(strangers),
    };
    let cache = cache.join(OF_STRANGERS);
    prepare_by(maker, wanted, checkout, &cache, patience, progress)
}

fn prepare_by(
    maker: Maker<'_>,
    wanted: &Environment,
    checkout: &Path,
    cache: &Path,
    patience: Patience<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Prepared, Unprepared> {
    let host = maker.host;
    let chooser = maker.strangers.map_or(Chooser::Trusted, |_| Chooser::Stranger);
    let wanted = Wanted::read(wanted, checkout, chooser)?;
    let cache = Cache::open(cache)?;
    let request = wanted.request_hash(host);
    if let Some(prepared) = cache.recall(&request) {
        return Ok(prepared);
    }
    let interpreter = interpreter::find(wanted.python.as_ref(), host, patience)?;
    let key = wanted.key(&interpreter);
    let lock = cache.lock(&key, patience, progress)?;
    let prepared = match cache.find(&key) {
        Found::Complete(prepared) => *prepared,
        Found::Free(folder) => {
            let description =
                install::build(maker, &wanted, &interpreter, &folder, &lock, patience, progress)?;
            cache.complete(&key, &folder, &description)?
        }
    };
    cache.remember(&request, &prepared)?;
    Ok(prepared)
}

impl Prepared {
    /// Returns it as the report shows it.
    pub(crate) fn describe(&self) -> EnvironmentReport {
        EnvironmentReport {
            python: self.version.clone(),
            key: self.key.clone(),
            tool: match self.tool {
                Tool::Uv => "uv".into(),
                Tool::Venv => "venv and pip".into(),
            },
            packages: self.packages.clone(),
        }
    }

    /// Returns the version of a package, whatever way its name is spelled. `None` where it is not installed.
    pub fn version_of(&self, package: &str) -> Option<&str> {
        let wanted = requirements::normalised(package);
        let found = self
            .packages
            .iter()
            .find(|package| requirements::normalised(&package.name) == wanted)?;
        Some(&found.version)
    }
}

impl Patience<'_> {
    /// Returns why there is no more waiting, once there is none.
    fn check(&self) -> Result<(), Unprepared> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Unprepared::Stopped);
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Unprepared::OutOfTime),
            _ => Ok(()),
        }
    }
}

impl Unprepared {
    /// Something that the blueprint or the host's owner has to mend.
    fn config(diagnostic: Diagnostic) -> Self {
        Self::failed(FailureClass::Config, diagnostic)
    }

    /// Something that may go well elsewhere, or later.
    fn infrastructure(diagnostic: Diagnostic) -> Self {
        Self::failed(FailureClass::Infrastructure, diagnostic)
    }

    fn failed(class: FailureClass, diagnostic: Diagnostic) -> Self {
        Self::Failed(Box::new(Failure::outside_cells(class, diagnostic)))
    }
}

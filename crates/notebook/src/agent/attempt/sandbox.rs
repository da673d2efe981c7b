//! The sandbox of an attempt: what of it is in the notebook's reach, and what is refused because a sandbox does not grant it.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use blueproof_core::{attempt::SandboxMode, domain::FailureClass};
use blueproof_diagnostic::{Code, Diagnostic};

use super::Attempt;
use crate::{
    agent::{
        Prepared,
        halt::{Halt, Step, config, failure, halt_disk},
    },
    environment::checked_by_name,
    kernel::{KernelSpec, Runtime, Variables},
    plan::Network,
    process::{Child, DiskWatch},
    sandbox::{Sandbox, interpreter_folders, nodes_of},
};

/// What a notebook in a sandbox is given of the agent's own environment: nothing that tells of the machine's user.
const PASSED: [&str; 9] = [
    "CUDA_DEVICE_ORDER",
    "CUDA_HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "NVIDIA_DRIVER_CAPABILITIES",
    "TZ",
];

impl Attempt<'_> {
    /// Returns whether the notebook runs in a sandbox.
    pub(super) fn is_sandboxed(&self) -> bool {
        match self.spec.sandbox {
            SandboxMode::Off => false,
            SandboxMode::Requested | SandboxMode::Required => true,
        }
    }

    /// Refuses what a sandbox does not grant, before anything is made.
    pub(super) fn refuse_beyond_sandbox(&self) -> Step<()> {
        if !self.is_sandboxed() {
            return Ok(());
        }
        if let Some(secret) = self.plan.secrets.first() {
            let message = format!("the blueprint asks for the secret {} (spec.secrets)", secret.name);
            return Err(refused(message, "a notebook in a sandbox gets no secret")
                .hinting("leave out what needs it under a profile, or run it from a folder of your own"));
        }
        self.refuse_packages()?;
        match &self.plan.network {
            Network::Any | Network::None => Ok(()),
            Network::Hosts(hosts) => {
                let message = format!(
                    "the blueprint asks for a network to {} (spec.network)",
                    hosts.join(", ")
                );
                Err(refused(
                    message,
                    "a sandbox has no network: which hosts are reached cannot be enforced here",
                )
                .hinting("set `network: none` under a profile, and bring the data with the checkout"))
            }
        }
    }

    /// Refuses packages of a stranger's choice that are not named by names. A lock is looked at when it is read.
    fn refuse_packages(&self) -> Step<()> {
        let mut requirements = self.plan.environment.requirements.iter();
        match self.spec.sandbox {
            SandboxMode::Off | SandboxMode::Requested => Ok(()),
            SandboxMode::Required => {
                requirements.try_for_each(|line| checked_by_name(line).map_err(|refused| config(*refused)))
            }
        }
    }

    /// Returns the sandbox that the kernel is to run in, if it is; what it writes to is its user's own.
    pub(super) fn sandbox(
        &self,
        prepared: &Prepared,
        runtime: &Runtime,
        kernelspec: Option<&KernelSpec>,
        folder: &Path,
    ) -> Step<Option<Sandbox>> {
        if !self.is_sandboxed() {
            return Ok(None);
        }
        if let Some(spec) = kernelspec {
            let message = format!("the notebook is for the kernel `{}`", spec.name);
            let why = "only Python's own kernel can be reached in a sandbox: others listen on ports of its own network";
            return Err(Halt::from(refused(message, why)));
        }
        let mut sandbox = Sandbox::new(folder).map_err(|missing| unavailable(&missing))?;
        let interpreter = interpreter_folders(&prepared.python).map_err(|folder| {
            let why = format!(
                "its Python lies in {}, which holds more than that",
                folder.display()
            );
            unavailable(&io::Error::other(why))
        })?;
        for folder in interpreter {
            sandbox = sandbox.reading(folder);
        }
        for path in self.writable(runtime)? {
            if let Some(identity) = self.identity {
                identity.own(&path).map_err(|error| halt_disk(&error))?;
            }
            sandbox = sandbox.writing(path);
        }
        let limits = self.dependencies.sandbox;
        let devices = self.spec.devices.as_deref().unwrap_or_default();
        let nodes = nodes_of(devices).map_err(|unknown| unavailable(&unknown))?;
        Ok(Some(
            sandbox
                .of_user(self.identity)
                .with_devices(nodes)
                .with_memory(self.spec.granted.memory)
                .limited(limits.disk, limits.processes),
        ))
    }

    /// Returns the folders that the notebook may write to: its copy of the checkout, its home, its temporary folder and its
    /// sockets; each by every path by which it is spoken of.
    fn writable(&self, runtime: &Runtime) -> Step<Vec<PathBuf>> {
        let work = std::path::absolute(&self.work).map_err(|error| halt_disk(&error))?;
        let real = work.canonicalize().map_err(|error| halt_disk(&error))?;
        let mut folders = vec![runtime.folder().to_owned()];
        for name in WRITABLE {
            folders.push(work.join(name));
            if real != work {
                folders.push(real.join(name));
            }
        }
        Ok(folders)
    }

    /// Says that a network was asked for and there was none, where a sandbox is why. It explains a failure to reach anything.
    pub(super) fn without_network(&self) -> Option<Diagnostic> {
        let asks = match self.plan.network {
            Network::Any => self.is_sandboxed(),
            Network::None | Network::Hosts(_) => false,
        };
        asks.then(|| {
            let message = "the notebook ran in a sandbox, which has no network";
            Diagnostic::warning(Code::SandboxRefused, message).hint("set `network: none` where it needs none")
        })
    }

    /// Returns what the notebook is given of the agent's own environment.
    pub(super) fn host_variables(&self) -> Vec<(OsString, OsString)> {
        let all = std::env::vars_os();
        if !self.is_sandboxed() {
            return all.collect();
        }
        let is_passed = |name: &OsString| name.to_str().is_some_and(|name| PASSED.contains(&name));
        let mut passed: Vec<_> = all.filter(|(name, _)| is_passed(name)).collect();
        passed.extend(["USER", "LOGNAME"].map(|name| (name.into(), "notebook".into())));
        passed
    }

    /// Returns what else the notebook is given: the agent's own further variables are not a stranger's.
    pub(super) fn further_variables(&self) -> Variables {
        if self.is_sandboxed() {
            return Variables::new();
        }
        let given = self.dependencies.variables.iter();
        given.map(|(name, value)| (name.clone(), value.into())).collect()
    }

    /// Refuses to start the kernel where what must be limited is not.
    pub(super) fn check_limits(&self) -> Step<()> {
        let unlimited = self.traces.confinement.unlimited();
        let needs_cgroup = self.identity.is_none();
        let processes = unlimited.processes.as_ref().filter(|_| needs_cgroup);
        let why = match self.spec.sandbox {
            SandboxMode::Off | SandboxMode::Requested => None,
            SandboxMode::Required => unlimited.memory.as_ref().or(processes),
        };
        why.map_or(Ok(()), |why| {
            Err(unavailable(&io::Error::other(format!(
                "nothing limits it: {why}"
            ))))
        })
    }

    /// Begins to watch what the notebook writes, if it is in a sandbox.
    pub(super) fn watch_disk(&self, kernel: &Child) -> Option<DiskWatch> {
        let folders = || WRITABLE.map(|name| self.work.join(name)).to_vec();
        self.is_sandboxed()
            .then(|| DiskWatch::begin(folders(), self.dependencies.sandbox.disk, kernel))
            .flatten()
    }
}

/// What a notebook may write to in its working folder.
const WRITABLE: [&str; 3] = ["checkout", "home", "tmp"];

/// Something that was asked for and is not granted.
struct Refused(Diagnostic);

fn refused(message: String, why: &str) -> Refused {
    Refused(Diagnostic::error(Code::SandboxRefused, message).because(why))
}

impl Refused {
    fn hinting(self, hint: &str) -> Halt {
        config(self.0.hint(hint))
    }
}

impl From<Refused> for Halt {
    fn from(Refused(diagnostic): Refused) -> Self {
        config(diagnostic)
    }
}

/// Says that this machine cannot make the sandbox.
fn unavailable(error: &dyn std::error::Error) -> Halt {
    let diagnostic = Diagnostic::error(
        Code::SandboxUnavailable,
        "the sandbox of the notebook could not be made",
    );
    Halt::Failed(failure(FailureClass::Infrastructure, diagnostic.caused_by(error)))
}

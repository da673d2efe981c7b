//! The notebook's kernel: which it is, and its start.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Instant,
};

use super::Attempt;
use crate::{
    agent::{
        Prepared,
        halt::{Halt, Step, config, halt_disk},
    },
    executor::until,
    ipynb::Notebook,
    kernel::{
        Channels, Kernel, KernelSpec, KernelSpecs, Runtime, StartError, Starting, Transport, Variables,
        kernel_variables, prefix_of, python_command, visible_devices,
    },
    process::MARKER,
    sandbox::Sandbox,
    verdict,
};

/// How often a kernel is started that finds a port taken which was free a moment before.
const STARTS_AT_MOST: usize = 4;

/// A kernel that is to be started.
pub(super) struct Program {
    /// How it is started, where it is not the environment's Python.
    pub(super) kernelspec: Option<KernelSpec>,
    command: Vec<OsString>,
    runtime: Runtime,
    variables: Variables,
    sandbox: Option<Sandbox>,
    folder: PathBuf,
}

impl Attempt<'_> {
    /// Returns the kernel that the notebook was written for, as this environment starts it.
    pub(super) fn program(
        &self,
        notebook: &Notebook,
        prepared: &Prepared,
        secrets: Variables,
        folder: &Path,
    ) -> Step<Program> {
        let python = &prepared.python;
        let wanted = notebook.foreign_kernel();
        let find = |wanted| KernelSpecs::of(prefix_of(python)).find(&wanted);
        let kernelspec = wanted.map(find).transpose();
        let kernelspec = kernelspec.map_err(|refused| config(*refused))?;
        let transport = kernelspec.as_ref().map_or(Transport::Unix, |_| Transport::Tcp);
        let sockets = self.traces.sockets.clone();
        let runtime = Runtime::create(sockets, &self.work, transport);
        let runtime = runtime.map_err(|error| halt_disk(&error))?;
        let variables = self.variables(python, &runtime, kernelspec.as_ref(), secrets);
        let file = runtime.connection_file();
        let command = match &kernelspec {
            Some(spec) => spec.command(python, &file),
            None => python_command(python, &file),
        };
        if let Some(spec) = &kernelspec {
            let refused = spec.check_program(&command[0], &variables);
            refused.map_err(|refused| config(*refused))?;
        }
        let sandbox = self.sandbox(prepared, &runtime, kernelspec.as_ref(), folder)?;
        Ok(Program {
            sandbox,
            kernelspec,
            command,
            runtime,
            variables,
            folder: folder.to_owned(),
        })
    }

    /// Starts the kernel, and waits until it answers.
    pub(super) async fn start(&mut self, program: &mut Program) -> Step<(Kernel, Channels)> {
        self.traces.confinement.make(&self.spec.granted);
        self.check_limits()?;
        self.meter.begin();
        self.kernel_began = Some(Instant::now());
        for _ in 1..STARTS_AT_MOST {
            match self.start_once(program).await? {
                Ok(started) => return Ok(started),
                Err(StartError::Ended(_)) if self.renews(program)? => {}
                Err(error) => return Err(self.not_started(&error, program)),
            }
        }
        let last = self.start_once(program).await?;
        last.map_err(|error| self.not_started(&error, program))
    }

    /// Chooses other addresses where the kernel could not have those that it was to have.
    fn renews(&self, program: &mut Program) -> Step<bool> {
        let renewed = program.runtime.renew_if_taken();
        renewed.map_err(|error| halt_disk(&error))
    }

    async fn start_once(&mut self, program: &Program) -> Step<Result<(Kernel, Channels), StartError>> {
        let log = self.layout.kernel_log();
        let starting = Starting {
            command: &program.command,
            launcher: &self.dependencies.launcher,
            cgroup: self.traces.confinement.cgroup(),
            sandbox: program.sandbox.as_ref(),
            folder: &program.folder,
            variables: &program.variables,
            log: &log,
        };
        let mut kernel = match Kernel::spawn(&starting) {
            Ok(kernel) => kernel,
            Err(error) => return Ok(Err(error)),
        };
        let startup_ends = self.startup_ends();
        let halt = tokio::select! {
            connected = kernel.connect(&program.runtime) => match connected {
                Ok(channels) => {
                    self.traces.confinement.expect(kernel.child.id());
                    return Ok(Ok((kernel, channels)));
                }
                Err(error) => Ok(Err(error)),
            },
            _ = self.stops.next() => Err(Halt::Stopped),
            () = until(startup_ends) => Err(self.startup_too_long("the kernel had not answered")),
        };
        kernel.end(self.dependencies.graces.terminate).await;
        halt
    }

    fn not_started(&self, error: &StartError, program: &Program) -> Halt {
        let hit = self.traces.confinement.hit(&self.spec.granted);
        let kernelspec = program.kernelspec.as_ref().map(|spec| spec.name.as_str());
        let log = self.layout.kernel_log();
        Halt::Failed(verdict::start_failure(error, &log, hit, kernelspec))
    }

    fn variables(
        &self,
        python: &Path,
        runtime: &Runtime,
        kernelspec: Option<&KernelSpec>,
        secrets: Variables,
    ) -> Variables {
        let threads = self.spec.granted.cpu.threads();
        let mut variables = kernel_variables(
            self.host_variables(),
            python,
            &self.home(),
            &runtime.temporary(),
            threads,
        );
        if let Some(kernelspec) = kernelspec {
            kernelspec.add_variables(&mut variables);
        }
        variables.extend(self.further_variables());
        variables.extend(secrets);
        if let Some(devices) = &self.spec.devices {
            variables.extend(visible_devices(devices));
        }
        variables.insert(MARKER.into(), self.traces.marker.clone().into());
        variables
    }
}

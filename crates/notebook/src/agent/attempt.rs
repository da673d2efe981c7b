//! One attempt from its beginning to its end: what comes before the kernel is in `prepare`, its start in `kernel`, what
//! comes after in `conclude`.

mod asked;
mod conclude;
mod environment;
mod kernel;
mod machine;
mod prepare;
mod sandbox;
mod secrets;

use std::{
    collections::HashMap,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use blueproof_core::{
    attempt::{
        AttemptLayout, AttemptSpec, AttemptStage, Disturbance, KeptFile, LogWriter, Machine, ProcessName,
        RecordKind, read_regular, remove_folder,
    },
    domain::{FailureClass, GpuUse, Outcome, TimeLimit, Verdict as Judgement},
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use jiff::SignedDuration;
use sha2::{Digest, Sha256};

use super::{
    AgentError, Dependencies, Prepared,
    halt::{Halt, Step, config, failed, failure, halt_disk, halted, read_spec, tampered, unreadable},
    signals,
};
use crate::{
    analysis::reads::Reads,
    disk,
    executor::{Belonging, Executor, Finish, Notebook, Recorder, Stops, deadline},
    files,
    ipynb::{self, FileLines},
    journal::Journal,
    kernel::{Runtime, Variables},
    plan::Plan,
    process::{self, Confinement, LimitsHit, Meter},
    sandbox::Identity,
    text::{counted, duration},
};

/// How long what a notebook left running may take to end by itself once it is told to.
const LEFTOVER_GRACE: Duration = Duration::from_millis(300);

/// The longest log of a kernel that is looked through for secrets.
const LONGEST_KERNEL_LOG: u64 = 64 << 20;

/// What an attempt works with.
struct Attempt<'a> {
    layout: &'a AttemptLayout,
    /// The folder in which the notebook works.
    work: PathBuf,
    spec: AttemptSpec,
    plan: Plan,
    dependencies: Dependencies,
    journal: Journal,
    meter: Meter,
    stops: Stops,
    traces: Traces,
    /// Which user the notebook is in its sandbox, where that can be another one than the agent's.
    identity: Option<Identity>,
    /// Which limits the notebook has met.
    limits_hit: LimitsHit,
    /// Where the lines of its cells stand in the notebook's file.
    lines: FileLines,
    begun: Instant,
    /// The executed notebook, once its cells have run.
    executed: Option<Notebook>,
    artifacts: Vec<KeptFile>,
    /// Whether the environment is this attempt's alone.
    has_own_environment: bool,
    /// Looks whether the shared environment is still as it was, from the last cell's end on.
    environment_look: Option<JoinHandle<bool>>,
    /// How long the environment took, once it is there.
    environment_took: Option<Duration>,
    /// When the kernel was started.
    kernel_began: Option<Instant>,
    /// Parameters that no cell reads.
    unread: Vec<String>,
    overridden: Vec<asked::Overridden>,
    gpu_used: Option<GpuUse>,
    machine: Machine,
    /// What says that a device, and with it the machine, was at fault.
    gpu_fault: Option<Box<Diagnostic>>,
}

/// What the attempt leaves elsewhere than in its folder, and is found by when its agent is gone.
struct Traces {
    /// The value of the variable that marks its processes.
    marker: String,
    /// Where the kernel's sockets are made.
    sockets: PathBuf,
    /// What its processes are in.
    confinement: Confinement,
}

/// Carries out the attempt; whatever happens, its last record is that it is finished.
pub(crate) fn carry_out(
    layout: &AttemptLayout,
    work: PathBuf,
    log: LogWriter,
    dependencies: Dependencies,
) -> Result<(), AgentError> {
    let mut journal = Journal::new(log);
    let read = read_spec(layout);
    let spec = read.as_ref().ok().map(|(spec, _)| spec);
    let traces = Traces::new(spec, layout);
    begin(&mut journal, &traces).map_err(|source| AgentError::new("write the attempt's log", source))?;
    process::adopt_orphans().map_err(|source| AgentError::new("adopt orphans", source))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| AgentError::new("start", source))?;
    let (mut outcome, mut journal) = runtime.block_on(async {
        let (spec, plan) = match read {
            Ok(read) => read,
            Err(failure) => return Ok((failed(failure), journal)),
        };
        let stops = signals::listen().map_err(|source| AgentError::new("listen for signals", source))?;
        let attempt = Attempt {
            layout,
            work,
            spec,
            plan,
            dependencies,
            journal,
            meter: Meter::default(),
            stops,
            identity: Identity::choose(uuid::Uuid::new_v4().as_u128()),
            traces,
            limits_hit: LimitsHit::default(),
            lines: FileLines::default(),
            begun: Instant::now(),
            executed: None,
            artifacts: Vec::new(),
            has_own_environment: false,
            environment_look: None,
            environment_took: None,
            kernel_began: None,
            unread: Vec::new(),
            overridden: Vec::new(),
            gpu_used: None,
            machine: machine::this(),
            gpu_fault: None,
        };
        Ok(attempt.run().await)
    })?;
    if let Some(disturbance) = journal
        .reclaim()
        .map_err(|source| AgentError::new("write the attempt's log", source))?
    {
        outcome.verdict = disturbed(disturbance, &outcome.verdict);
    }
    journal.record(RecordKind::Finished {
        outcome: Box::new(outcome),
    });
    journal
        .sync()
        .map_err(|source| AgentError::new("write the attempt's log", source))
}

/// Writes down what is needed to end the attempt, before there is anything to end.
fn begin(journal: &mut Journal, traces: &Traces) -> io::Result<()> {
    journal.record(RecordKind::Begun {
        process: ProcessName::of(std::process::id()).expect("this process is here"),
        version: env!("CARGO_PKG_VERSION").into(),
        marker: traces.marker.clone(),
        sockets: traces.sockets.clone(),
        cgroup: traces.confinement.cgroup().cloned(),
    });
    // Whoever finds nothing here later must know that something was taken away.
    journal.sync()
}

impl Traces {
    fn new(spec: Option<&AttemptSpec>, layout: &AttemptLayout) -> Self {
        let random = || uuid::Uuid::new_v4().simple();
        Self {
            marker: format!("{}{}", random(), random()),
            sockets: Runtime::new_folder(),
            confinement: match spec {
                Some(spec) => Confinement::plan(&cgroup_name(spec, layout)),
                None => Confinement::none("nothing is started"),
            },
        }
    }
}

impl Attempt<'_> {
    async fn run(mut self) -> (Outcome, Journal) {
        let mut outcome = match self.prepare().await {
            Ok((prepared, secrets)) => self.execute(&prepared, secrets).await,
            Err(halt) => {
                self.end_processes();
                halted(halt)
            }
        };
        // What stays in it is as little to be ended as what a sweep leaves.
        let _ = self.traces.confinement.end();
        // What stays is told by the driver, which tries again.
        let _ = remove_folder(&self.work);
        // A notebook may have taken away the right to write here.
        let _ = fs::set_permissions(self.layout.root(), fs::Permissions::from_mode(0o700));
        self.keep_files();
        if let Err(error) = self.redact_kernel_log() {
            self.journal.failed(error);
        }
        if let Some(error) = self.journal.take_error() {
            outcome.verdict = failed(disk::disk_failure(&error)).verdict;
        }
        (outcome, self.journal)
    }

    /// Saves the executed notebook, now that nobody else can write there and that what may have filled the disk is removed,
    /// and writes down what is kept.
    fn keep_files(&mut self) {
        let machine = std::mem::take(&mut self.machine);
        self.journal.record(RecordKind::MachineSeen { machine });
        let saved = self
            .executed
            .take()
            .map(|notebook| notebook.save(&self.layout.executed_notebook()));
        let notebook = saved.transpose().unwrap_or_else(|error| {
            self.journal.failed(error);
            None
        });
        let artifacts = std::mem::take(&mut self.artifacts);
        self.journal.record(RecordKind::FilesKept { notebook, artifacts });
    }

    /// Starts the kernel, runs the cells, ends everything that was started, and looks at what came of it.
    async fn execute(&mut self, prepared: &Prepared, secrets: Variables) -> Outcome {
        self.journal.record(RecordKind::StageBegun {
            stage: AttemptStage::Run,
        });
        let ran = self.run_cells(prepared, secrets).await;
        self.end_processes();
        let is_changed = self.is_environment_changed(prepared);
        let (finish, begun) = match ran {
            Ok(ran) => ran,
            Err(Halt::Failed(failure)) if is_changed => return failed(environment::changed(Some(&failure))),
            Err(halt) => return halted(halt),
        };
        self.give_devices_back();
        self.notice(&finish);
        let verdict = self.judge(&finish);
        let verdict = self.blame_devices(verdict);
        let verdict = if is_changed {
            environment::blame_environment(verdict)
        } else {
            verdict
        };
        if matches!(verdict, Judgement::Passed) {
            self.stage_ended(AttemptStage::Run, counted(finish.cells, "cell"), begun);
        }
        let outcome = self.collect(verdict);
        self.executed = Some(finish.notebook);
        outcome
    }

    /// Ends all that the notebook started.
    fn end_processes(&mut self) {
        let cgroup = self.traces.confinement.cgroup();
        process::sweep(&self.traces.marker, cgroup, LEFTOVER_GRACE, &mut self.meter);
    }

    /// Ends the measuring of devices, once nothing can use them any more, and tells what each cell made of them.
    fn give_devices_back(&mut self) {
        if !self.spec.has_devices() {
            return;
        }
        let used = self.dependencies.gpus.end();
        for (cell, gpu) in used.cells {
            self.journal.record(RecordKind::CellUsed { cell, gpu });
        }
        for diagnostic in used.notices {
            self.journal.record(RecordKind::Noticed { diagnostic });
        }
        if !used.unhealthy.is_empty() {
            let devices = used.unhealthy;
            self.journal.record(RecordKind::DevicesUnhealthy { devices });
        }
        self.gpu_used = used.whole;
        self.machine.devices = used.models;
        self.machine.driver = used.driver;
        self.gpu_fault = used.fault;
    }

    /// Returns what came of the cells, and when the kernel was ready for them: its start is told as a time of its own.
    async fn run_cells(&mut self, prepared: &Prepared, secrets: Variables) -> Step<(Finish, Instant)> {
        let notebook_path = self.notebook_path()?;
        let read = ipynb::Notebook::read(&notebook_path)
            .map_err(|problems| unreadable(&self.plan.notebook, problems))?;
        asked::refuse(&read, &self.plan, &self.spec)?;
        let reads = Reads::of(&read, self.plan.parameters.keys());
        self.overridden = asked::overridden(&reads, &self.plan);
        self.unread = asked::unread(&reads, &self.plan, &self.overridden);
        let folder = notebook_path.parent().unwrap_or(&notebook_path);
        let mut program = self.program(&read, prepared, secrets, folder)?;
        self.lines = read.lines();
        let mut notebook = Notebook::new(read);
        notebook.inject(&self.plan.parameters);
        let root = self.checkout();
        let root = root.canonicalize().unwrap_or(root);
        let executed = self.layout.executed_notebook();
        notebook.save(&executed).map_err(|error| halt_disk(&error))?;
        let cells = notebook.code_cells().len();
        self.dependencies.observer.begin(&self.plan, folder);
        let has_devices = self.spec.has_devices();
        if let Some(devices) = self.spec.devices.as_deref().filter(|_| has_devices) {
            self.dependencies.gpus.begin(devices);
        }
        let (mut kernel, mut channels) = self.start(&mut program).await?;
        self.journal.record(RecordKind::KernelReady {
            pid: kernel.child.id(),
            cells: u32::try_from(cells).unwrap_or(u32::MAX),
        });
        let disk = self.watch_disk(&kernel.child);
        let ready = Instant::now();
        let executor = Executor {
            kernel: &mut kernel,
            channels: &mut channels,
            recorder: Recorder::new(
                &mut self.journal,
                self.dependencies.observer.as_mut(),
                self.dependencies.outputs,
            ),
            notebook,
            meter: &mut self.meter,
            gpus: has_devices.then_some(self.dependencies.gpus.as_mut()),
            stops: &mut self.stops,
            timeouts: &self.spec.timeouts,
            graces: self.dependencies.graces,
            shell_install: self.plan.shell_install,
            kernelspec: program.kernelspec.as_ref(),
            save_to: &executed,
            root: &root,
            requests: HashMap::new(),
            belonging: Belonging::default(),
            unreadable: None,
        };
        let finish = executor.run().await;
        self.look_at_environment(prepared);
        kernel.end(self.dependencies.graces.terminate).await;
        self.meter.keep_child(&kernel.child);
        self.limits_hit = self.traces.confinement.hit(&self.spec.granted);
        self.limits_hit.disk = disk.and_then(|watch| watch.hit());
        Ok((finish, ready))
    }

    fn redact_kernel_log(&self) -> io::Result<()> {
        let path = self.layout.kernel_log();
        match read_regular(&path, LONGEST_KERNEL_LOG) {
            Ok(text) => {
                let text = String::from_utf8_lossy(&text);
                let clean = self.journal.redact(&text);
                if clean == text {
                    return Ok(());
                }
                files::replace(&path, clean.as_bytes())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            // What cannot be looked through is not kept.
            Err(_) => remove_folder(&path),
        }
    }

    fn stage_ended(&mut self, stage: AttemptStage, detail: String, begun: Instant) {
        let took = signed(begun.elapsed());
        self.journal
            .record(RecordKind::StageEnded { stage, detail, took });
    }

    fn notebook_path(&self) -> Step<PathBuf> {
        self.inside(&self.plan.notebook)
    }

    /// Returns where a file of the checkout is. One that a symbolic link leads out of it is none: nobody approved its content.
    fn inside(&self, path: &Path) -> Step<PathBuf> {
        let leaves = |how: &str| {
            let diagnostic =
                Diagnostic::error(Code::FileMissing, format!("the path leaves the checkout{how}"));
            config(diagnostic.at(SourceLocation::file(path.display().to_string())))
        };
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(leaves(""));
        }
        let (checkout, whole) = (self.checkout(), self.checkout().join(path));
        match (checkout.canonicalize(), whole.canonicalize()) {
            (Ok(checkout), Ok(real)) if !real.starts_with(&checkout) => {
                Err(leaves(" through a symbolic link"))
            }
            // What is not there is told where it is needed.
            (Ok(_), Ok(_)) | (Err(_), _) | (_, Err(_)) => Ok(whole),
        }
    }

    fn startup_ends(&self) -> Option<Instant> {
        deadline(self.begun, self.spec.timeouts.startup)
    }

    fn startup_too_long(&self, what: &str) -> Halt {
        let limit = self.spec.timeouts.startup.unwrap_or_default();
        let message = format!("{what} within {limit:#} (timeouts.startup)");
        let mut diagnostic = Diagnostic::error(Code::StartupTimeout, message);
        if let Some(took) = self.environment_took {
            let took = duration(signed(took));
            diagnostic = diagnostic.because(format!("making the environment took {took} of it"));
        }
        let diagnostic = diagnostic
            .hint("allow more under spec.timeouts.startup; a second start finds the packages in the cache");
        Halt::Failed(failure(FailureClass::Timeout(TimeLimit::Startup), diagnostic))
    }

    fn checkout(&self) -> PathBuf {
        self.work.join("checkout")
    }

    fn home(&self) -> PathBuf {
        self.work.join("home")
    }
}

/// Names an attempt's cgroup: the same for each agent of the attempt, and another one for each other attempt, also of a store
/// of which there is a copy.
pub(super) fn cgroup_name(spec: &AttemptSpec, layout: &AttemptLayout) -> String {
    let folder = std::path::absolute(layout.root()).unwrap_or_else(|_| layout.root().to_owned());
    let digest = Sha256::digest(folder.as_os_str().as_encoded_bytes());
    let place = files::hexadecimal(&digest[..4]);
    format!("blueproof-{}-{}-{place}", spec.store, spec.attempt)
}

/// Returns the verdict on a notebook that wrote where only its agent writes.
fn disturbed(disturbance: Disturbance, verdict: &Judgement) -> Judgement {
    let mut failure = tampered(disturbance);
    if let Judgement::Failed(failed) = verdict {
        let message = &failed.diagnostic.message;
        failure.diagnostic = failure.diagnostic.because(format!("before that: {message}"));
    }
    Judgement::Failed(Box::new(failure))
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

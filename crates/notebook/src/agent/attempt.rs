//! One attempt from its beginning to its end.

use std::{
    collections::HashMap,
    fs,
    path::{Component, Path, PathBuf},
    time::{Duration, Instant},
};

use blueproof_core::{
    attempt::{AttemptLayout, AttemptSpec, LogWriter, RecordKind, Stage},
    diagnostic::{Code, Diagnostic, Place},
    domain::{Bytes, FailureClass, Head, Limit, Outcome, Usage, Verdict as Judgement},
};
use jiff::SignedDuration;
use tokio::sync::mpsc;

use super::{
    AgentError, Collect, Dependencies, Journal, Prepared, Preparing,
    halt::{Halt, Step, config, failed, failure, halt_disk, halted, read_spec, unreadable},
    recovery::{Started, remove_folder},
    signals,
};
use crate::{
    executor::{Executor, Finish, Notebook, Over, Recorder, Stops, Why},
    kernel::{Channels, Kernel, Runtime, StartError, Starting, Variables, kernel_variables},
    plan::Plan,
    process::{self, MARKER, Meter},
    snapshot::{self, SnapshotError},
    text::Redactor,
    verdict,
};

/// How long what a notebook left running may take to end by itself once it is told to.
const LEFTOVER_GRACE: Duration = Duration::from_millis(300);

/// What an attempt works with.
struct Attempt<'a> {
    layout: &'a AttemptLayout,
    spec: AttemptSpec,
    plan: Plan,
    dependencies: Dependencies,
    journal: Journal,
    meter: Meter,
    stops: Stops,
    marker: String,
    begun: Instant,
    unsaved: Option<Notebook>,
}

/// Carries out the attempt; whatever happens, its last record is that it is finished.
pub(crate) fn carry_out(
    layout: &AttemptLayout,
    log: LogWriter,
    dependencies: Dependencies,
) -> Result<(), AgentError> {
    let mut journal = Journal::new(log);
    let marker = format!(
        "{}{}",
        uuid::Uuid::new_v4().simple(),
        uuid::Uuid::new_v4().simple()
    );
    let started = Started {
        marker: marker.clone(),
        sockets: None,
    };
    started
        .save(layout)
        .map_err(|source| AgentError::new("write into the attempt's folder", source))?;
    journal.record(RecordKind::Begun {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").into(),
    });
    process::adopt_orphans().map_err(|source| AgentError::new("adopt orphans", source))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| AgentError::new("start", source))?;
    let (outcome, mut journal) = runtime.block_on(async {
        let (spec, plan) = match read_spec(layout) {
            Ok(read) => read,
            Err(failure) => return Ok((failed(failure), journal)),
        };
        let stops = signals::listen().map_err(|source| AgentError::new("listen for signals", source))?;
        let attempt = Attempt {
            layout,
            spec,
            plan,
            dependencies,
            journal,
            meter: Meter::default(),
            stops,
            marker,
            begun: Instant::now(),
            unsaved: None,
        };
        Ok(attempt.run().await)
    })?;
    journal.record(RecordKind::Finished {
        outcome: Box::new(outcome),
    });
    let _ = fs::remove_file(layout.started());
    journal
        .sync()
        .map_err(|source| AgentError::new("write the attempt's log", source))
}

impl Attempt<'_> {
    async fn run(mut self) -> (Outcome, Journal) {
        let mut outcome = match self.prepare().await {
            Ok((prepared, secrets)) => self.execute(&prepared, secrets).await,
            Err(halt) => halted(halt),
        };
        process::sweep(&self.marker, LEFTOVER_GRACE, &mut self.meter);
        remove_folder(&self.layout.work());
        self.save_again();
        if !self.plan.secrets.is_empty()
            && let Err(error) = self.redact_kernel_log()
        {
            self.journal.failed(error);
        }
        if let Some(error) = self.journal.take_error() {
            outcome.verdict = failed(verdict::disk_failure(&error)).verdict;
        }
        (outcome, self.journal)
    }

    /// Saves the executed notebook where the disk did not take it before: what filled it may just have been removed.
    fn save_again(&mut self) {
        if let Some(notebook) = self.unsaved.take()
            && let Err(error) = notebook.save(&self.layout.executed_notebook())
        {
            self.journal.failed(error);
        }
    }

    /// Makes everything that the kernel needs: secrets, a working copy, a Python.
    async fn prepare(&mut self) -> Step<(Prepared, Variables)> {
        let secrets = self.secrets()?;
        let values: Vec<_> = secrets.values().map(|value| value.to_string_lossy()).collect();
        self.journal
            .set_redactor(Redactor::new(values.iter().map(|value| &**value)));
        self.copy_checkout()?;
        let begun = Instant::now();
        self.journal.record(RecordKind::StageBegun { stage: Stage::Env });
        let prepared = self.prepare_environment().await?;
        self.stage_ended(Stage::Env, prepared.detail.clone(), begun);
        Ok((prepared, secrets))
    }

    fn secrets(&self) -> Step<Variables> {
        let mut found = Variables::new();
        for secret in &self.plan.secrets {
            let Some(value) = self.dependencies.secrets.value(&secret.name) else {
                let message = format!("the value of the secret `{}` is not known here", secret.name);
                let missing = Diagnostic::error(Code::SecretMissing, message);
                return Err(config(
                    missing.hint(format!("set {} where blueproof is started", secret.env)),
                ));
            };
            found.insert(secret.env.clone(), value.into());
        }
        Ok(found)
    }

    fn copy_checkout(&self) -> Step<()> {
        let checkout = Place::file(self.spec.checkout.display().to_string());
        let copied = snapshot::copy(&self.spec.checkout, &self.checkout());
        let head = copied.map_err(|error| not_copied(&error, checkout.clone()))?;
        // What was approved is what runs: a folder may have changed since, a commit cannot.
        if matches!(self.spec.head, Head::Snapshot(_)) && head != self.spec.head {
            let changed = Diagnostic::error(
                Code::HeadChanged,
                "the folder has changed since the run was asked for",
            );
            return Err(config(
                changed
                    .at(checkout)
                    .hint("ask for a new run of what is there now"),
            ));
        }
        let home = self.home();
        fs::create_dir_all(&home).map_err(|error| {
            let diagnostic = Diagnostic::error(Code::WorkingCopy, "could not make a home for the notebook");
            let diagnostic = diagnostic
                .at(Place::file(home.display().to_string()))
                .caused_by(&error);
            Halt::Failed(failure(FailureClass::Infrastructure, diagnostic))
        })
    }

    async fn prepare_environment(&mut self) -> Step<Prepared> {
        let (progress, mut told) = mpsc::unbounded_channel();
        let (done, result) = tokio::sync::oneshot::channel();
        let environment = self.dependencies.environment.clone();
        let (spec, plan) = (self.spec.clone(), self.plan.clone());
        std::thread::spawn(move || {
            let preparing = Preparing {
                spec: &spec,
                plan: &plan,
            };
            let mut tell = |message| drop(progress.send(message));
            let _ = done.send(environment.prepare(&preparing, &mut tell));
        });
        tokio::pin!(result);
        let startup_ends = self.startup_ends();
        loop {
            tokio::select! {
                biased;
                Some(message) = told.recv() => {
                    let stage = Stage::Env;
                    self.journal.record(RecordKind::StageProgress { stage, message });
                }
                prepared = &mut result => return match prepared {
                    Ok(prepared) => prepared.map_err(Halt::Failed),
                    Err(_) => Err(Halt::Failed(verdict::environment_lost())),
                },
                _ = self.stops.next() => return Err(Halt::Stopped),
                () = until(startup_ends) => return Err(self.startup_too_long("the environment was not ready")),
            }
        }
    }

    /// Starts the kernel, runs the cells, ends everything that was started, and looks at what came of it.
    async fn execute(&mut self, prepared: &Prepared, secrets: Variables) -> Outcome {
        let begun = Instant::now();
        self.journal.record(RecordKind::StageBegun { stage: Stage::Run });
        let (mut finish, cells) = match self.run_cells(prepared, secrets).await {
            Ok(finished) => finished,
            Err(halt) => return halted(halt),
        };
        self.unsaved = finish.unsaved.take();
        process::sweep(&self.marker, LEFTOVER_GRACE, &mut self.meter);
        self.notice(&finish);
        let verdict = self.judge(&finish);
        if matches!(verdict, Judgement::Passed) {
            self.stage_ended(Stage::Run, format!("{cells} cells"), begun);
        }
        self.collect(verdict, &finish)
    }

    async fn run_cells(&mut self, prepared: &Prepared, secrets: Variables) -> Step<(Finish, usize)> {
        let notebook_path = self.notebook_path()?;
        let mut notebook =
            Notebook::read(&notebook_path).map_err(|error| unreadable(&self.plan.notebook, &error))?;
        notebook.inject(&self.plan.parameters);
        let executed = self.layout.executed_notebook();
        notebook.save(&executed).map_err(|error| halt_disk(&error))?;
        let cells = notebook.code_cells().len();
        let runtime = Runtime::create(&self.layout.work()).map_err(|error| halt_disk(&error))?;
        let started = Started {
            marker: self.marker.clone(),
            sockets: Some(runtime.folder().to_owned()),
        };
        started.save(self.layout).map_err(|error| halt_disk(&error))?;
        let variables = self.variables(&prepared.python, &runtime, secrets);
        let (mut kernel, mut channels) = self.start(prepared, &runtime, &notebook_path, &variables).await?;
        self.journal.record(RecordKind::KernelReady {
            pid: kernel.child.id(),
            cells: u32::try_from(cells).unwrap_or(u32::MAX),
        });
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
            stops: &mut self.stops,
            timeouts: &self.spec.timeouts,
            graces: self.dependencies.graces,
            shell_install: self.plan.shell_install,
            save_to: &executed,
            requests: HashMap::new(),
        };
        let finish = executor.run().await;
        kernel
            .end(Some(&mut channels), self.dependencies.graces.terminate)
            .await;
        self.meter.keep_child(&kernel.child);
        Ok((finish, cells))
    }

    async fn start(
        &mut self,
        prepared: &Prepared,
        runtime: &Runtime,
        notebook: &Path,
        variables: &Variables,
    ) -> Step<(Kernel, Channels)> {
        let log = self.layout.kernel_log();
        let starting = Starting {
            python: &prepared.python,
            launcher: &self.dependencies.launcher,
            runtime,
            folder: notebook.parent().unwrap_or(notebook),
            variables,
            log: &log,
        };
        let not_started = |error: &StartError| Halt::Failed(verdict::start_failure(error, &log));
        let mut kernel = Kernel::spawn(&starting).map_err(|error| not_started(&error))?;
        let startup_ends = self.startup_ends();
        let halt = tokio::select! {
            connected = kernel.connect(runtime) => match connected {
                Ok(channels) => return Ok((kernel, channels)),
                Err(error) => not_started(&error),
            },
            _ = self.stops.next() => Halt::Stopped,
            () = until(startup_ends) => self.startup_too_long("the kernel had not answered"),
        };
        kernel.end(None, self.dependencies.graces.terminate).await;
        Err(halt)
    }

    fn variables(&self, python: &Path, runtime: &Runtime, secrets: Variables) -> Variables {
        let threads = self.spec.granted.cpu.threads();
        let mut variables = kernel_variables(
            std::env::vars_os(),
            python,
            &self.home(),
            &runtime.temporary(),
            threads,
        );
        let given = self.dependencies.variables.iter();
        variables.extend(given.map(|(name, value)| (name.clone(), value.into())));
        variables.extend(secrets);
        variables.insert(MARKER.into(), self.marker.clone().into());
        variables
    }

    fn redact_kernel_log(&self) -> std::io::Result<()> {
        let path = self.layout.kernel_log();
        if !path.exists() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        fs::write(path, self.journal.redact(&text))
    }

    /// Records what failed without stopping its cell.
    fn notice(&mut self, finish: &Finish) {
        for diagnostic in verdict::silent_failures(finish) {
            let diagnostic = self.redacted(diagnostic);
            self.journal.record(RecordKind::Noticed { diagnostic });
        }
    }

    fn judge(&self, finish: &Finish) -> Judgement {
        if finish.is_stopped {
            return Judgement::Stopped;
        }
        let Some((cell, run)) = &finish.last else {
            return Judgement::Passed;
        };
        if run.over == Some(Over::Ended(Why::Stop)) {
            return Judgement::Stopped;
        }
        let facts = verdict::Facts {
            cell,
            run,
            finish,
            plan: &self.plan,
            spec: &self.spec,
            memory_peak: self.meter.memory_peak_bytes().map(Bytes),
            kernel_log: &self.layout.kernel_log(),
        };
        let mut failure = verdict::failure(&facts);
        failure.diagnostic = self.redacted(failure.diagnostic);
        Judgement::Failed(Box::new(failure))
    }

    fn redacted(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        let redact = |text: &mut String| *text = self.journal.redact(text);
        redact(&mut diagnostic.message);
        diagnostic.causes.iter_mut().for_each(redact);
        diagnostic.hints.iter_mut().for_each(redact);
        diagnostic
    }

    fn collect(&mut self, verdict: Judgement, finish: &Finish) -> Outcome {
        let begun = Instant::now();
        let has_run = matches!(verdict, Judgement::Passed);
        if has_run {
            self.journal.record(RecordKind::StageBegun {
                stage: Stage::Collect,
            });
        }
        let folder = self
            .checkout()
            .join(self.plan.notebook.parent().unwrap_or(Path::new("")));
        let conclusion = self.dependencies.observer.conclude(&Collect {
            plan: &self.plan,
            folder: &folder,
            artifacts: &self.layout.artifacts(),
        });
        let verdict = match conclusion.failure {
            Some(failure) if has_run => Judgement::Failed(failure),
            Some(_) | None => verdict,
        };
        if matches!(verdict, Judgement::Passed) {
            self.stage_ended(Stage::Collect, conclusion.detail, begun);
        }
        Outcome {
            verdict,
            usage: Some(Usage {
                duration: signed(finish.took),
                cpu_granted: self.spec.granted.cpu,
                cpu_time: self.meter.cpu().map(signed),
                memory_peak: self.meter.memory_peak_bytes().map(Bytes),
            }),
            metrics: conclusion.metrics,
        }
    }

    fn stage_ended(&mut self, stage: Stage, detail: String, begun: Instant) {
        let took = signed(begun.elapsed());
        self.journal
            .record(RecordKind::StageEnded { stage, detail, took });
    }

    fn notebook_path(&self) -> Step<PathBuf> {
        let is_inside = self
            .plan
            .notebook
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if is_inside {
            return Ok(self.checkout().join(&self.plan.notebook));
        }
        let diagnostic = Diagnostic::error(Code::FileMissing, "the notebook's path leaves the checkout")
            .at(Place::file(self.plan.notebook.display().to_string()));
        Err(config(diagnostic))
    }

    fn startup_ends(&self) -> Option<Instant> {
        let limit = Duration::try_from(self.spec.timeouts.startup?).unwrap_or_default();
        self.begun.checked_add(limit)
    }

    fn startup_too_long(&self, what: &str) -> Halt {
        let limit = self.spec.timeouts.startup.unwrap_or_default();
        let message = format!("{what} within {limit:#} (timeouts.startup)");
        let diagnostic = Diagnostic::error(Code::StartupTimeout, message)
            .hint("allow more under spec.timeouts.startup; a second start finds the packages in the cache");
        Halt::Failed(failure(FailureClass::Timeout(Limit::Startup), diagnostic))
    }

    fn checkout(&self) -> PathBuf {
        self.layout.work().join("checkout")
    }

    fn home(&self) -> PathBuf {
        self.layout.work().join("home")
    }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

fn not_copied(error: &SnapshotError, checkout: Place) -> Halt {
    let diagnostic = Diagnostic::error(Code::WorkingCopy, "could not copy the checkout")
        .at(checkout)
        .caused_by(error);
    let class = if verdict::is_disk_full(error.io()) {
        FailureClass::Infrastructure
    } else {
        FailureClass::Config
    };
    Halt::Failed(failure(class, diagnostic))
}

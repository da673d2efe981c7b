//! What an attempt makes before its kernel can start: secrets, a working copy, a Python.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use blueproof_core::{
    attempt::{AttemptStage, RecordKind},
    domain::{FailureClass, Head, Source},
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use tokio::sync::mpsc;

use super::Attempt;
use crate::{
    agent::{
        Prepared, Preparing,
        halt::{Halt, Step, config, failure, halt_disk},
    },
    disk,
    environment::{Patience, Unprepared},
    executor::until,
    kernel::Variables,
    snapshot::{self, SnapshotError},
    source,
    text::Redactor,
    verdict,
};

/// How long a commit may take to be fetched, where the startup may take longer.
const FETCH_WITHIN: Duration = Duration::from_secs(600);

impl Attempt<'_> {
    /// Makes everything that the kernel needs: secrets, a working copy, a Python.
    pub(super) async fn prepare(&mut self) -> Step<(Prepared, Variables)> {
        self.refuse_beyond_sandbox()?;
        let secrets = self.secrets()?;
        let values: Vec<_> = secrets.values().map(|value| value.to_string_lossy()).collect();
        self.journal
            .set_redactor(Redactor::new(values.iter().map(|value| &**value)));
        let folder = self.source_folder().await?;
        self.copy_checkout(&folder)?;
        let begun = Instant::now();
        self.journal.record(RecordKind::StageBegun {
            stage: AttemptStage::Env,
        });
        self.has_own_environment = self.needs_own_environment()?;
        let prepared = self.prepare_environment().await?;
        self.environment_took = Some(begun.elapsed());
        let environment = prepared.environment.clone();
        self.journal.record(RecordKind::EnvironmentReady { environment });
        self.stage_ended(AttemptStage::Env, prepared.detail.clone(), begun);
        Ok((prepared, secrets))
    }

    fn secrets(&self) -> Step<Variables> {
        let mut found = Variables::new();
        for secret in &self.plan.secrets {
            let value = self.dependencies.secrets.value(&secret.name);
            if let Some(refused) = secret.refused(value.as_deref()) {
                return Err(config(refused));
            }
            found.insert(secret.env.clone(), value.unwrap_or_default().into());
        }
        Ok(found)
    }

    /// Returns the folder whose content is to be run. A commit is fetched.
    async fn source_folder(&mut self) -> Step<PathBuf> {
        let git = match (&self.spec.source, &self.spec.head) {
            (Source::Folder(folder), Head::Snapshot(_)) => return Ok(folder.clone()),
            (Source::Folder(folder), Head::Commit(_)) => return Err(config(not_a_commit(folder))),
            (Source::Git(git), _) => git.clone(),
        };
        if !self.spec.source.may_be_of(&self.spec.head) {
            let message = format!("{} was approved, and not {}", self.spec.head, git.commit);
            return Err(config(Diagnostic::error(Code::HeadChanged, message)));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (to, is_told) = (self.fetched(), Arc::clone(&stop));
        let startup_ends = self.startup_ends();
        let gives_up = Instant::now() + FETCH_WITHIN;
        let deadline = startup_ends.map_or(gives_up, |ends| ends.min(gives_up));
        let (done, result) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let patience = Patience {
                stop: &is_told,
                deadline: Some(deadline),
            };
            let _ = done.send(source::fetch(&git, &to, patience));
        });
        tokio::pin!(result);
        let fetched = tokio::select! {
            biased;
            _ = self.stops.next() => {
                stop.store(true, Ordering::Relaxed);
                // Until git is gone, which it is at once.
                let _ = result.await;
                return Err(Halt::Stopped);
            }
            fetched = &mut result => fetched,
        };
        match fetched {
            Ok(Ok(folder)) => Ok(folder),
            Ok(Err(Unprepared::Failed(failure))) => Err(Halt::Failed(failure)),
            Ok(Err(Unprepared::Stopped)) => Err(Halt::Stopped),
            Ok(Err(Unprepared::OutOfTime)) if startup_ends == Some(deadline) => {
                Err(self.startup_too_long("the commit was not fetched"))
            }
            Ok(Err(Unprepared::OutOfTime)) | Err(_) => Err(fetch_too_long()),
        }
    }

    /// Returns where a commit is fetched to. Of that nothing is left once the notebook has its copy.
    fn fetched(&self) -> PathBuf {
        self.work.join("source")
    }

    fn copy_checkout(&self, folder: &Path) -> Step<()> {
        let checkout = SourceLocation::file(self.spec.source.to_string());
        let copied = snapshot::copy(folder, &self.checkout(), &self.plan.left_out);
        let head = copied.map_err(|error| not_copied(&error, checkout.clone()))?;
        match fs::remove_dir_all(self.fetched()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(halt_disk(&error)),
            Ok(()) | Err(_) => {}
        }
        // What was approved is what runs: a folder may have changed since, what git fetched as a commit cannot.
        if matches!(self.spec.head, Head::Snapshot(_)) && head != self.spec.head {
            let changed = Diagnostic::error(
                Code::HeadChanged,
                "the folder has changed since the run was asked for",
            );
            return Err(config(
                changed
                    .at(checkout)
                    .hint("ask for a new run of what is there now")
                    .hint("a log that another program writes into the folder, such as `tee`, changes it: let it write elsewhere"),
            ));
        }
        let home = self.home();
        fs::create_dir_all(&home).map_err(|error| {
            let diagnostic = Diagnostic::error(Code::WorkingCopy, "could not make a home for the notebook");
            let diagnostic = diagnostic
                .at(SourceLocation::file(home.display().to_string()))
                .caused_by(&error);
            Halt::Failed(failure(FailureClass::Infrastructure, diagnostic))
        })
    }

    async fn prepare_environment(&mut self) -> Step<Prepared> {
        if let Some(lock) = &self.plan.environment.lock {
            self.inside(lock)?;
        }
        let (progress, mut told) = mpsc::unbounded_channel();
        let (done, result) = tokio::sync::oneshot::channel();
        let environment = self.dependencies.environment.clone();
        let (spec, plan, checkout) = (self.spec.clone(), self.plan.clone(), self.checkout());
        let own = self.has_own_environment.then(|| self.work.join("env"));
        std::thread::spawn(move || {
            let preparing = Preparing {
                spec: &spec,
                plan: &plan,
                checkout: &checkout,
                own: own.as_deref(),
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
                    let stage = AttemptStage::Env;
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
}

/// Returns what is wrong with a folder in place of a commit: nothing tells which files a commit has but git.
fn not_a_commit(folder: &Path) -> Diagnostic {
    let message = "a commit was approved, and the run names a folder, which may hold anything";
    Diagnostic::error(Code::HeadChanged, message)
        .at(SourceLocation::file(folder.display().to_string()))
        .hint("ask for the run of a commit with `git` as its source")
}

fn fetch_too_long() -> Halt {
    let minutes = FETCH_WITHIN.as_secs() / 60;
    let message = format!("the commit was not fetched within {minutes} minutes");
    let diagnostic = Diagnostic::error(Code::SourceNotFetched, message);
    Halt::Failed(failure(FailureClass::Infrastructure, diagnostic))
}

fn not_copied(error: &SnapshotError, checkout: SourceLocation) -> Halt {
    let diagnostic = Diagnostic::error(Code::WorkingCopy, "could not copy the checkout")
        .at(checkout)
        .caused_by(error);
    let class = if disk::is_disk_full(error.io()) {
        FailureClass::Infrastructure
    } else {
        FailureClass::Config
    };
    Halt::Failed(failure(class, diagnostic))
}

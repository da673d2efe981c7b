//! What an attempt makes before its kernel can start: secrets, a working copy, a Python.

use std::{fs, time::Instant};

use blueproof_core::{
    attempt::{RecordKind, Stage},
    domain::{FailureClass, Head},
};
use blueproof_diagnostic::{Code, Diagnostic, Place};
use tokio::sync::mpsc;

use super::Attempt;
use crate::{
    agent::{
        Prepared, Preparing,
        halt::{Halt, Step, config, failure},
    },
    executor::until,
    kernel::Variables,
    snapshot::{self, SnapshotError},
    text::Redactor,
    verdict,
};

impl Attempt<'_> {
    /// Makes everything that the kernel needs: secrets, a working copy, a Python.
    pub(super) async fn prepare(&mut self) -> Step<(Prepared, Variables)> {
        let secrets = self.secrets()?;
        let values: Vec<_> = secrets.values().map(|value| value.to_string_lossy()).collect();
        self.journal
            .set_redactor(Redactor::new(values.iter().map(|value| &**value)));
        self.copy_checkout()?;
        let begun = Instant::now();
        self.journal.record(RecordKind::StageBegun { stage: Stage::Env });
        self.has_own_environment = self.needs_own_environment()?;
        let prepared = self.prepare_environment().await?;
        self.environment_took = Some(begun.elapsed());
        let environment = prepared.environment.clone();
        self.journal.record(RecordKind::EnvironmentReady { environment });
        self.stage_ended(Stage::Env, prepared.detail.clone(), begun);
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

    fn copy_checkout(&self) -> Step<()> {
        let checkout = Place::file(self.spec.checkout.display().to_string());
        let copied = snapshot::copy(&self.spec.checkout, &self.checkout(), &self.plan.left_out);
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
                    .hint("ask for a new run of what is there now")
                    .hint("a log that another program writes into the folder, such as `tee`, changes it: let it write elsewhere"),
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

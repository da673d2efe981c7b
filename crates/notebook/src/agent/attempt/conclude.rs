//! What is made of an attempt whose cells have run: notices, the verdict, the outcome.

use std::{fs, path::Path, time::Instant};

use blueproof_core::{
    attempt::{AttemptStage, KeptFile, RecordKind},
    domain::{Bytes, Failure, FailureClass, Outcome, Usage, Verdict as Judgement},
};
use blueproof_diagnostic::{Code, Diagnostic};

use super::{Attempt, asked, secrets, signed};
use crate::{
    agent::Collect,
    executor::{Finish, Over, Why},
    lint::parameters::without_effect,
    verdict,
};

impl Attempt<'_> {
    /// Records what failed without stopping its cell.
    pub(super) fn notice(&mut self, finish: &Finish) {
        let in_silence = verdict::silent_failures(finish);
        for diagnostic in in_silence.into_iter().chain(verdict::parting(finish)) {
            let diagnostic = self.redacted(diagnostic);
            self.journal.record(RecordKind::Noticed { diagnostic });
        }
        // What stopped the notebook is the verdict itself.
        let went_on = verdict::limit_notice(self.limits_hit).filter(|_| finish.last.is_none());
        if let Some(diagnostic) = went_on {
            self.journal.record(RecordKind::Noticed { diagnostic });
        }
    }

    pub(super) fn judge(&self, finish: &Finish) -> Judgement {
        if finish.is_stopped {
            return Judgement::Stopped;
        }
        let Some((cell, run)) = &finish.last else {
            return if finish.accounts_for_every_cell() {
                Judgement::Passed
            } else {
                Judgement::Failed(Box::new(verdict::unaccounted(finish)))
            };
        };
        if run.over == Some(Over::Ended(Why::Stop)) {
            return Judgement::Stopped;
        }
        let facts = verdict::Facts {
            cell,
            run,
            finish,
            spec: &self.spec,
            memory_peak: self.meter.memory_peak_bytes().map(Bytes),
            limits_hit: self.limits_hit,
            kernel_log: &self.layout.kernel_log(),
            home: &self.home(),
        };
        let mut failure = verdict::failure(&facts);
        failure.diagnostic = self.redacted(failure.diagnostic);
        let source = failure.cell.as_mut().and_then(|cell| cell.source.as_mut());
        if let Some(source) = source {
            *source = self.journal.redact(source);
        }
        if let Some(cell) = failure.cell.as_mut() {
            cell.file = self.plan.notebook.to_str().map(str::to_owned);
            cell.file_line = self.lines.line(cell.cell, cell.line.unwrap_or(1));
        }
        Judgement::Failed(Box::new(failure))
    }

    /// Lays a failure at the machine's door where one of its devices was at fault. What passed in spite of it has passed.
    pub(super) fn blame_devices(&mut self, verdict: Judgement) -> Judgement {
        let Some(fault) = self.gpu_fault.take() else {
            return verdict;
        };
        let Judgement::Failed(failure) = verdict else {
            self.journal.record(RecordKind::Noticed { diagnostic: *fault });
            return verdict;
        };
        Judgement::Failed(Box::new(Failure {
            class: FailureClass::Infrastructure,
            diagnostic: fault.because(format!("the notebook: {}", failure.diagnostic.message)),
            cell: failure.cell,
        }))
    }

    fn redacted(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        let redact = |text: &mut String| *text = self.journal.redact(text);
        redact(&mut diagnostic.message);
        diagnostic.causes.iter_mut().for_each(redact);
        diagnostic.hints.iter_mut().for_each(redact);
        diagnostic
    }

    /// Removes what is named by a secret: a name stands wherever a file is listed. Returns the others, and what is said of it.
    fn without_secret_names(&self, files: Vec<KeptFile>) -> (Vec<KeptFile>, Vec<Diagnostic>) {
        let is_secret = |file: &KeptFile| self.journal.redactor().is_known_in(&file.path.to_string_lossy());
        let (named, kept): (Vec<_>, Vec<_>) = files.into_iter().partition(is_secret);
        let told = named.iter().map(|file| {
            let _ = fs::remove_file(self.layout.artifacts().join(&file.path));
            let name = self.journal.redact(&file.path.to_string_lossy());
            let message =
                format!("the name of the artifact `{name}` holds the value of a secret: it is not kept");
            Diagnostic::warning(Code::ArtifactRefused, message).hint("name files by what is in them")
        });
        let told = told.collect();
        (kept, told)
    }

    /// Returns what was used, all of it in one span: from the kernel's start until now, when nothing of it is left.
    fn usage(&self) -> Usage {
        Usage {
            duration: signed(
                self.kernel_began
                    .map_or_else(Default::default, |began| began.elapsed()),
            ),
            cpu_granted: self.spec.granted.cpu,
            cpu_time: self.meter.cpu().map(signed),
            memory_peak: self.meter.memory_peak_bytes().map(Bytes),
            gpu: self.gpu_used,
        }
    }

    pub(super) fn collect(&mut self, verdict: Judgement) -> Outcome {
        let begun = Instant::now();
        let usage = self.usage();
        let has_run = matches!(verdict, Judgement::Passed);
        if has_run {
            self.journal.record(RecordKind::StageBegun {
                stage: AttemptStage::Collect,
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
        if let Some(found) = conclusion.expectations.filter(|_| has_run) {
            self.journal.record(RecordKind::ExpectationsChecked { found });
        }
        for diagnostic in conclusion.notices {
            self.journal.record(RecordKind::Noticed { diagnostic });
        }
        let (kept, named) = self.without_secret_names(conclusion.artifacts);
        self.artifacts = kept;
        let verdict = match conclusion.failure {
            Some(failure) if has_run => Judgement::Failed(failure),
            Some(_) | None => verdict,
        };
        let has_collected = match &verdict {
            Judgement::Passed => true,
            // What was found is no failure of looking for it.
            Judgement::Failed(failure) => failure.class == FailureClass::Expectation,
            Judgement::Stopped => false,
        };
        if has_collected {
            self.stage_ended(AttemptStage::Collect, conclusion.detail, begun);
        }
        let mut notices = self.notices(&usage);
        notices.extend(named);
        Outcome {
            verdict,
            usage: Some(usage),
            metrics: conclusion.metrics,
            notices,
        }
    }

    /// Returns what is to be said of an attempt beside its verdict, whatever that is.
    fn notices(&self, usage: &Usage) -> Vec<Diagnostic> {
        let mut notices =
            asked::not_enforced(&self.plan, &self.spec, usage, self.traces.confinement.unlimited());
        notices.extend(self.without_network());
        notices.extend(without_effect(&self.unread));
        notices.extend(asked::without_effect_by(&self.overridden));
        notices.extend(secrets::too_short(
            &self.plan.secrets,
            &*self.dependencies.secrets,
        ));
        notices.extend(secrets::shown(self.journal.tokens()));
        notices.extend(secrets::in_files(
            self.journal.redactor(),
            &self.layout.artifacts(),
            &self.artifacts,
        ));
        notices
    }
}

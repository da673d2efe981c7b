//! From a run that has ended to its report: what the scheduler knows, and what the agent has left in its folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use blueproof_core::{
    attempt::{AttemptLayout, LogReader, Record, RecordKind, run_folder},
    diagnostic::Diagnostic,
    domain::{Bytes, FailureClass, Head, RunRequest, Verdict},
    ports::{CallError, Reporter},
    view::{AttemptView, RunView},
};
use serde::de::DeserializeOwned;
use walkdir::WalkDir;

use super::{
    ArtifactReport, EarlierAttempt, ExpectationReport, ExpectationResult, Report, StageReport, cells, write,
};
use crate::plan::{Network, Plan};

/// What whoever reads or waits must know where a blueprint limits its network.
pub const UNFENCED: &str =
    "the blueprint limits its network (spec.network); on this machine that is not enforced";

/// Writes the report of each run into the run's folder.
#[derive(Debug, Clone)]
pub struct FolderReporter {
    runs: PathBuf,
}

impl FolderReporter {
    /// Returns a reporter for the folder of all runs.
    pub fn new(runs: PathBuf) -> Self {
        Self { runs }
    }

    /// Writes the report; blocks. A run that never had an attempt has nothing to show beyond its own words.
    fn write(&self, view: &RunView, request: &RunRequest) -> Result<(), Box<Diagnostic>> {
        let Some(attempt) = view.attempts.last() else {
            return Ok(());
        };
        let layout = AttemptLayout::of(attempt.id, &self.runs);
        let report = assemble(view, attempt, request, &layout);
        write(&report, &run_folder(view.id, &self.runs)).map(drop)
    }
}

#[async_trait]
impl Reporter for FolderReporter {
    async fn report(&self, view: &RunView, request: &RunRequest) -> Result<(), CallError> {
        let (reporter, view, request) = (self.clone(), view.clone(), request.clone());
        let written = tokio::task::spawn_blocking(move || reporter.write(&view, &request)).await;
        written
            .expect("a report does not panic")
            .map_err(|problem| CallError::later(*problem))
    }
}

/// Returns all that is known. What the agent could not leave behind any more is left out.
fn assemble(view: &RunView, attempt: &AttemptView, request: &RunRequest, layout: &AttemptLayout) -> Report {
    let (log, _) = LogReader::open(layout.log()).read_from(0).unwrap_or_default();
    let outcome = attempt.outcome.as_ref();
    let verdict = outcome.map_or(Verdict::Stopped, |outcome| outcome.verdict.clone());
    let plan = serde_json::from_value::<Plan>(request.job.work.clone()).ok();
    let executed = fs::read_to_string(layout.executed_notebook()).unwrap_or_default();
    let ended_at = attempt.ended_at.unwrap_or(attempt.reserved_at);
    Report {
        attempt: attempt.id,
        earlier: view
            .attempts
            .iter()
            .filter(|earlier| earlier.id != attempt.id)
            .filter_map(earlier)
            .collect(),
        blueprint: view.subject.blueprint.clone(),
        profile: view.subject.profile.clone(),
        head: Some(view.subject.head.clone()).filter(|head| matches!(head, Head::Commit(_))),
        notebook: plan
            .as_ref()
            .map(|plan| plan.notebook.clone())
            .unwrap_or_default(),
        began_at: attempt.reserved_at,
        took: ended_at.duration_since(attempt.reserved_at),
        notices: log.iter().filter_map(notice).collect(),
        stages: stages(view, attempt, &log),
        cells: cells(&executed, &log).unwrap_or_default(),
        metrics: outcome.map(|outcome| outcome.metrics.clone()).unwrap_or_default(),
        expectations: plan
            .as_ref()
            .map(|plan| expectations(plan, &verdict, layout))
            .unwrap_or_default(),
        usage: outcome.and_then(|outcome| outcome.usage.clone()),
        environment: read(&layout.environment()),
        artifacts: artifacts(&layout.artifacts()),
        reproduce: vec![reproduce(view, request, plan.as_ref())],
        caveats: plan.as_ref().map(caveats).unwrap_or_default(),
        verdict,
    }
}

fn earlier(attempt: &AttemptView) -> Option<EarlierAttempt> {
    let verdict = attempt.outcome.as_ref()?.verdict.clone();
    Some(EarlierAttempt {
        attempt: attempt.id,
        verdict,
    })
}

fn notice(record: &Record) -> Option<Diagnostic> {
    if let RecordKind::Noticed { diagnostic } = &record.kind {
        Some(diagnostic.clone())
    } else {
        None
    }
}

/// Returns the stages up to the place, which the scheduler knows, and those that the agent went through.
fn stages(view: &RunView, attempt: &AttemptView, log: &[Record]) -> Vec<StageReport> {
    let waited = attempt.reserved_at.duration_since(view.requested_at);
    let mut stages = vec![
        StageReport {
            name: "gate".into(),
            detail: format!("approved by {}", attempt.approved_by),
            took: None,
        },
        StageReport {
            name: "queue".into(),
            detail: format!("queue {}", view.queue),
            took: Some(waited),
        },
        StageReport {
            name: "quota".into(),
            detail: view.resources.to_string(),
            took: None,
        },
    ];
    if let Some(place) = &attempt.place {
        stages.push(StageReport {
            name: "place".into(),
            detail: place.clone(),
            took: None,
        });
    }
    stages.extend(log.iter().filter_map(|record| match &record.kind {
        RecordKind::StageEnded { stage, detail, took } => Some(StageReport {
            name: stage.as_str().into(),
            detail: detail.clone(),
            took: Some(*took),
        }),
        RecordKind::Begun { .. }
        | RecordKind::StageBegun { .. }
        | RecordKind::StageProgress { .. }
        | RecordKind::KernelReady { .. }
        | RecordKind::CellBegun { .. }
        | RecordKind::Text { .. }
        | RecordKind::Display { .. }
        | RecordKind::Truncated { .. }
        | RecordKind::Metric { .. }
        | RecordKind::CellEnded { .. }
        | RecordKind::Noticed { .. }
        | RecordKind::Finished { .. } => None,
    }));
    stages
}

fn expectations(plan: &Plan, verdict: &Verdict, layout: &AttemptLayout) -> Vec<ExpectationReport> {
    let looked_at = match verdict {
        Verdict::Passed => true,
        Verdict::Failed(failure) => failure.class == FailureClass::Expectation,
        Verdict::Stopped => false,
    };
    let unmet: Vec<Option<Diagnostic>> = read(&layout.expectations())
        .filter(|_| looked_at)
        .unwrap_or_default();
    let result = |at: usize| match unmet.get(at) {
        Some(None) => ExpectationResult::Met,
        Some(Some(diagnostic)) => ExpectationResult::Unmet(diagnostic.clone()),
        None => ExpectationResult::Unchecked,
    };
    let expectations = plan.expectations.iter().enumerate();
    expectations
        .map(|(at, expectation)| ExpectationReport {
            text: expectation.to_string(),
            result: result(at),
        })
        .collect()
}

fn caveats(plan: &Plan) -> Vec<String> {
    match plan.network {
        Network::Any => Vec::new(),
        Network::None | Network::Hosts(_) => vec![UNFENCED.into()],
    }
}

fn artifacts(folder: &Path) -> Vec<ArtifactReport> {
    let files = WalkDir::new(folder)
        .sort_by_file_name()
        .into_iter()
        .filter_map(Result::ok);
    let files = files.filter(|entry| entry.file_type().is_file());
    files
        .filter_map(|entry| {
            let path = entry.path().strip_prefix(folder).ok()?.to_path_buf();
            Some(ArtifactReport {
                path,
                size: Bytes(entry.metadata().ok()?.len()),
            })
        })
        .collect()
}

/// Returns the command line that asks for the same run, as it can be pasted into a shell.
fn reproduce(view: &RunView, request: &RunRequest, plan: Option<&Plan>) -> String {
    let mut command = format!(
        "blueproof run {}",
        quoted(&request.job.checkout.display().to_string())
    );
    if let Some(profile) = &view.subject.profile {
        command.push_str(&format!(" --profile {profile}"));
    }
    for (name, value) in plan.iter().flat_map(|plan| &plan.parameters) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        command.push_str(&format!(" -p {}", quoted(&format!("{name}={text}"))));
    }
    command
}

/// Returns a word as a shell takes it for itself.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_take_it_apart() {
        assert_eq!(quoted("examples/nano-lm"), "examples/nano-lm");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("$(rm)"), "'$(rm)'");
        assert_eq!(quoted(""), "''");
    }
}

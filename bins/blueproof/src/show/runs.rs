//! Runs as rows of a table.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use blueproof_core::{
    domain::{BlueprintName, Ending, Outcome, Repository, RunState},
    pending::PendingReason,
    ports::{AttemptOutput, OutputName, ReportKind},
    view::{FailingCall, RunView},
};
use blueproof_diagnostic::Diagnostic;
use blueproof_notebook::report::{self, Comparison};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    explanation,
    text::{none, number, took},
};
use crate::output::{self, Cell, Table};

/// How many metrics a row tells.
const METRICS: usize = 2;

/// Room for Kueue's longest word, or for a shorter one with what is missing of two resources.
const WIDEST_REASON: usize = 48;

/// Which columns there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Columns {
    Usual,
    Wide,
}

/// A run as programs are told of it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed<'a> {
    #[serde(flatten)]
    run: &'a RunView,
    #[serde(flatten)]
    kept: Option<RunArtifacts>,
}

/// What is kept of a run that has ended.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunArtifacts {
    /// Where its report is, for people; beside it lie `report.json` and `junit.xml`.
    report_file: Option<PathBuf>,
    /// What whoever goes by the verdict must know, and what else its agent noticed.
    #[schemars(with = "Vec<serde_json::Value>")]
    notices: Vec<Diagnostic>,
    /// What is different from the attempt of the same blueprint that had passed last; null where none had.
    #[schemars(with = "Option<serde_json::Value>")]
    comparison: Option<Comparison>,
}

impl RunArtifacts {
    /// Reads what is kept of a run. `passed` is the run of its last pass.
    pub(crate) async fn of(run: &RunView, passed: Option<&RunView>, output: &Arc<dyn AttemptOutput>) -> Self {
        let report = output.file(&OutputName::Report(run.id, ReportKind::Html)).await;
        Self {
            report_file: report.ok().flatten().and_then(|report| report.location),
            notices: report::notices(run, output).await,
            comparison: match passed {
                Some(passed) => Comparison::of(run, passed, output).await,
                None => None,
            },
        }
    }

    /// Returns where the report is.
    pub(crate) fn report_file(&self) -> Option<&Path> {
        self.report_file.as_deref()
    }

    /// Returns what is different from the attempt that passed last.
    pub(crate) fn comparison(&self) -> Option<&Comparison> {
        self.comparison.as_ref()
    }
}

impl<'a> Listed<'a> {
    /// Returns a run, of which nothing that is kept is told.
    pub(crate) fn of(run: &'a RunView) -> Self {
        Self { run, kept: None }
    }

    /// Adds what is kept of it.
    pub(crate) fn with(self, kept: Option<RunArtifacts>) -> Self {
        Self { kept, ..self }
    }
}

/// Returns a table of runs, `among` which they are told apart.
pub(crate) fn table(views: &[RunView], among: &[RunView], now: Timestamp, columns: Columns) -> Table {
    let mut table = match columns {
        Columns::Usual => Table::new(["RUN", "BLUEPRINT", "STATE", "ASKED", "TOOK", "DETAIL"]),
        Columns::Wide => Table::new([
            "RUN",
            "BLUEPRINT",
            "PROFILE",
            "HEAD",
            "STATE",
            "ATTEMPTS",
            "ASKED",
            "TOOK",
            "BY",
            "QUEUE",
            "RESOURCES",
            "PLACE",
            "REASON",
            "DETAIL",
        ]),
    };
    let shared = shared_names(among);
    for view in views {
        let pending = view.waits();
        let name = name(view, &shared);
        match columns {
            Columns::Usual => table.row(usual(view, name, pending, now)),
            Columns::Wide => table.row(wide(view, name, pending, now)),
        }
    }
    table
}

/// Returns the names of blueprints that are several's, of different folders or repositories.
fn shared_names(views: &[RunView]) -> BTreeSet<&BlueprintName> {
    let mut projects: BTreeMap<&BlueprintName, &Repository> = BTreeMap::new();
    let mut shared = BTreeSet::new();
    for RunView { subject, .. } in views {
        let project = projects.entry(&subject.blueprint).or_insert(&subject.repository);
        if **project != subject.repository {
            shared.insert(&subject.blueprint);
        }
    }
    shared
}

/// Returns what a run's blueprint is called, and where it lies if that is not enough to tell it from another.
fn name(view: &RunView, shared: &BTreeSet<&BlueprintName>) -> String {
    let name = &view.subject.blueprint;
    if !shared.contains(name) {
        return name.to_string();
    }
    format!("{name} ({})", output::line(&view.subject.repository.to_string()))
}

fn usual(view: &RunView, name: String, pending: Option<&PendingReason>, now: Timestamp) -> [Cell; 6] {
    [
        view.id.to_string().into(),
        name.into(),
        output::state(view),
        output::ago(view.requested_at, now).into(),
        took(view.attempts.last(), now).into(),
        detail(view, pending, now).into(),
    ]
}

fn wide(view: &RunView, name: String, pending: Option<&PendingReason>, now: Timestamp) -> [Cell; 14] {
    let profile = view.subject.profile.as_ref();
    let place = view
        .attempts
        .last()
        .and_then(|attempt| attempt.place_in_words(view.resources));
    [
        view.id.to_string().into(),
        name.into(),
        profile.map_or_else(none, ToString::to_string).into(),
        view.subject.head.short().into(),
        output::state(view),
        view.attempts.len().to_string().into(),
        output::ago(view.requested_at, now).into(),
        took(view.attempts.last(), now).into(),
        output::line(&view.requested_by.to_string()).into(),
        view.queue.to_string().into(),
        view.asked().to_string().into(),
        place.map_or_else(none, |place| output::line(&place)).into(),
        evicted_or(view, pending).into(),
        detail(view, pending, now).into(),
    ]
}

/// Returns in Kueue's word why a run is being stopped, or why it waits.
fn evicted_or(view: &RunView, pending: Option<&PendingReason>) -> String {
    match view.being_evicted() {
        Some((_, eviction)) => eviction.reason.as_str().into(),
        None => pending.map_or_else(none, reason),
    }
}

/// Returns why a run waits, in Kueue's word, and how much is missing.
fn reason(pending: &PendingReason) -> String {
    let shortfall = pending.shortfall();
    if shortfall.is_empty() {
        return pending.as_str().into();
    }
    let brief = format!("{} ({})", pending.as_str(), output::line(&shortfall));
    output::shorten(&brief, WIDEST_REASON)
}

/// Returns what there is to say of a run beyond its state, in one line: why it waits or failed, or what it measured.
fn detail(view: &RunView, pending: Option<&PendingReason>, now: Timestamp) -> String {
    if let Some((_, eviction)) = view.being_evicted() {
        return format!("is being stopped {eviction}, and waits again then");
    }
    let failing = view.failing_calls.first().map(|call| failing(call, now));
    match (failing, pending) {
        (Some(failing), _) if !matches!(view.state, RunState::Ended(_)) => return failing,
        (_, Some(pending)) => return explanation::why(pending, now),
        (Some(_) | None, None) => {}
    }
    match view.state {
        RunState::Ended(Ending::Passed) => passed(view),
        RunState::Ended(
            Ending::Failed
            | Ending::InfrastructureFailed
            | Ending::TimedOut
            | Ending::Cancelled
            | Ending::Refused
            | Ending::Superseded,
        ) => {
            let failure = view.failure.as_ref();
            failure.map_or_else(String::new, |failure| output::joined(&failure.diagnostic))
        }
        RunState::AwaitingApproval
        | RunState::Queued
        | RunState::Reserved
        | RunState::Starting
        | RunState::Running => String::new(),
    }
}

/// Returns which call fails for a run, with the code under which it is described.
fn failing(call: &FailingCall, now: Timestamp) -> String {
    let told = call.told(&output::clock(call.again_at, now));
    output::line(&format!("{}: {told}", call.last.code))
}

/// Returns what a run measured that passed, and first whether it had failed before.
fn passed(view: &RunView) -> String {
    let late = view.passed_late().map(|late| output::line(&late));
    let measured = last_outcome(view).map(measured);
    let parts = late.into_iter().chain(measured).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" · ")
}

/// Returns how the last attempt that is over ended.
fn last_outcome(view: &RunView) -> Option<&Outcome> {
    view.attempts
        .iter()
        .rev()
        .find_map(|attempt| attempt.outcome.as_ref())
}

fn measured(outcome: &Outcome) -> String {
    let metrics = outcome.metrics.iter().take(METRICS);
    let texts: Vec<String> = metrics
        .map(|(name, metric)| format!("{} {}", output::line(name), number(metric.last)))
        .collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests;

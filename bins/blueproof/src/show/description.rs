//! All about one run, for a person.

use std::fmt::Write as _;

use anstyle::Style;
use blueproof_core::{
    domain::{Bytes, Ending, Failure, GpuUse, Head, MetricResult, Outcome, RunState, Usage, Verdict},
    estimate::Estimate,
    view::{AttemptView, ReportView, RunView},
};
use blueproof_diagnostic::Diagnostic;
use blueproof_notebook::report::{ExpectationResult, Report};
use jiff::Timestamp;

use super::{
    estimate, explanation, render,
    text::{blame, cpu_seconds, duration, none, number, sparkline, took},
};
use crate::output::{self, Cell, Table, Width};

const BOLD: Style = Style::new().bold();

/// How wide the curve of a metric is.
const CURVE: usize = 24;

/// A file that is kept of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptFile {
    /// Its path below the run's folder.
    pub(crate) path: String,
    /// How large it is.
    pub(crate) size: Bytes,
}

/// What is kept of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptFiles {
    /// The run's folder.
    pub(crate) folder: String,
    /// Its files.
    pub(crate) files: Vec<KeptFile>,
    /// How many more there are.
    pub(crate) more: usize,
}

/// Returns all about a run.
pub(crate) fn describe(
    view: &RunView,
    kept: &KeptFiles,
    report: Option<&Report>,
    now: Timestamp,
    width: Width,
) -> String {
    let outlook = view.outlook.as_deref();
    let expected = outlook.and_then(|outlook| outlook.estimate.as_ref());
    let mut text = summary(view, expected, kept, now).render_rows(&[11, 0], Width::Unlimited);
    if let Some(pending) = view.waits() {
        let _ = write!(
            text,
            "\n{BOLD}Waits{BOLD:#}\n  why    {}\n  until  {}\n",
            explanation::why(pending, now),
            explanation::until(pending, now)
        );
        if let Some(command) = explanation::approved_by(view) {
            let _ = writeln!(text, "  by     {command}");
        }
    }
    for trouble in &view.failing_calls {
        let _ = write!(
            text,
            "\n{BOLD}Fails{BOLD:#}: {}\n",
            output::line(&trouble.told(&output::clock(trouble.again_at, now)))
        );
        add_diagnostic(&mut text, &trouble.last);
    }
    if let Some(failure) = &view.failure {
        let title = title(
            "Failure",
            view,
            view.attempts.last().filter(|last| failed_by(last, failure)),
        );
        let _ = write!(text, "\n{BOLD}{title}{BOLD:#}: {}\n", blame(failure.class));
        add_failure(&mut text, failure);
    }
    if !view.attempts.is_empty() {
        section(&mut text, "Attempts", &attempts(view, now), width);
        for attempt in &view.attempts {
            if let Some(eviction) = &attempt.eviction {
                let _ = writeln!(text, "  {} was evicted {eviction}", attempt.id);
            }
        }
    }
    let over = view
        .attempts
        .iter()
        .rev()
        .find(|attempt| attempt.outcome.is_some());
    if let Some(outcome) = over.and_then(|over| over.outcome.as_ref()) {
        add_outcome(&mut text, outcome, |what| title(what, view, over), width);
    }
    if let Some(report) = report {
        let expectations = title("Expectations", view, view.attempt_asked_for());
        add_asked(&mut text, report, &expectations, width);
    }
    add_files(&mut text, kept);
    text
}

/// Returns a title that names the attempt where the run did not end with it: it waits, goes on, or was over without one.
fn title(what: &str, view: &RunView, of: Option<&AttemptView>) -> String {
    let is_over = matches!(view.state, RunState::Ended(_));
    let ended_with = view.attempt_asked_for().filter(|_| is_over);
    match of.filter(|attempt| attempt.outcome.is_some() && ended_with != Some(attempt)) {
        Some(attempt) => format!("{what} of {}", attempt.id),
        None => what.to_owned(),
    }
}

fn failed_by(attempt: &AttemptView, failure: &Failure) -> bool {
    let verdict = attempt.outcome.as_ref().map(|outcome| &outcome.verdict);
    matches!(verdict, Some(Verdict::Failed(by)) if **by == *failure)
}

/// Adds what the run was given and what is expected of it.
fn add_asked(text: &mut String, report: &Report, title: &str, width: Width) {
    let mut parameters = Table::new(["PARAMETER", "VALUE"]);
    for (name, value) in &report.parameters {
        parameters.row([output::line(name).into(), output::line(&value.to_string()).into()]);
    }
    if !report.parameters.is_empty() {
        section(text, "Parameters", &parameters, width);
    }
    let mut expectations = Table::new(["EXPECTED", "HOLDS", "FOUND"]);
    for expectation in &report.expectations {
        let (holds, found) = found(&expectation.result);
        let expected = output::line(&expectation.text);
        expectations.row([expected.into(), holds.into(), output::line(&found).into()]);
    }
    if !report.expectations.is_empty() {
        section(text, title, &expectations, width);
    }
}

fn found(result: &ExpectationResult) -> (&'static str, String) {
    match result {
        ExpectationResult::Met { actual } => ("yes", actual.clone().unwrap_or_default()),
        ExpectationResult::Unmet(diagnostic) => ("no", diagnostic.message.clone()),
        ExpectationResult::Unchecked => ("-", "not looked at".into()),
        ExpectationResult::NotLookedAt(why) => ("-", why.clone()),
    }
}

fn summary(view: &RunView, expected: Option<&Estimate>, kept: &KeptFiles, now: Timestamp) -> Table {
    let subject = &view.subject;
    let mut table = Table::new([]);
    let mut row = |name: &'static str, value: Cell| table.row([name.into(), value]);
    row("Run", view.id.to_string().into());
    row("State", output::state(view));
    let profile = subject.profile.as_ref();
    let profile = profile.map_or_else(String::new, |profile| format!(", profile {profile}"));
    row("Blueprint", format!("{}{profile}", subject.blueprint).into());
    row("Head", head(&subject.head).into());
    let pull_request = subject
        .pull_request
        .map_or_else(String::new, |number| format!(", pull request {number}"));
    row(
        "Project",
        format!("{}{pull_request}", output::line(&subject.repository.to_string())).into(),
    );
    let by = output::line(&view.requested_by.to_string());
    row(
        "Asked",
        format!("{} by {by}", time(view.requested_at, now)).into(),
    );
    if let Some(ended) = view.ended_at {
        row("Ended", time(ended, now).into());
    }
    if let Some(starts) = expected.and_then(|expected| estimate::starts(expected, now)) {
        row("Starts", starts.into());
    }
    if let Some(ends) = expected.and_then(|expected| estimate::ends(expected, now)) {
        row("Ends", ends.into());
    }
    let priority = view.priority.0;
    row("Queue", format!("{}, priority {priority}", view.queue).into());
    row("Resources", view.asked().to_string().into());
    row("Report", report(&view.report, kept).into());
    table
}

/// Returns a head whole, as git and `blueproof approve` take it.
fn head(head: &Head) -> String {
    match head {
        Head::Commit(_) => head.to_string(),
        Head::Snapshot(_) => format!("{head}, the folder's content"),
    }
}

fn time(at: Timestamp, now: Timestamp) -> String {
    format!("{} ({})", output::ago(at, now), output::local(at))
}

fn report(report: &ReportView, kept: &KeptFiles) -> String {
    match report {
        ReportView::NotDue => "written when the run has ended".into(),
        ReportView::Due => "being written".into(),
        ReportView::Written if kept.files.is_empty() => {
            format!("gone, with all of {}", output::line(&kept.folder))
        }
        ReportView::Written => "written".into(),
        ReportView::GivenUp(why) => format!("given up: {}", output::line(&why.message)),
    }
}

fn add_failure(text: &mut String, failure: &Failure) {
    if let Some(place) = &failure.cell {
        let line = place
            .line
            .map_or_else(String::new, |line| format!(", line {line}"));
        let source = place.source.as_deref().map(output::line);
        let source = source.map_or_else(String::new, |source| format!(": {}", source.trim()));
        let _ = writeln!(text, "  in cell {}{line}{source}", place.cell);
    }
    add_diagnostic(text, &failure.diagnostic);
}

fn add_diagnostic(text: &mut String, diagnostic: &Diagnostic) {
    for line in render(diagnostic).lines() {
        let _ = writeln!(text, "  {line}");
    }
}

fn attempts(view: &RunView, now: Timestamp) -> Table {
    let mut table = Table::new(["ATTEMPT", "ENDED", "APPROVED BY", "RESERVED", "TOOK", "PLACE"]);
    for attempt in &view.attempts {
        let place = attempt.place_in_words(view.resources);
        table.row([
            attempt.id.to_string().into(),
            ending(attempt).into(),
            output::line(&attempt.approved_by.to_string()).into(),
            output::ago(attempt.reserved_at, now).into(),
            took(Some(attempt), now).into(),
            place.map_or_else(none, |place| output::line(&place)).into(),
        ]);
    }
    table
}

fn ending(attempt: &AttemptView) -> String {
    match attempt.outcome.as_ref().map(|outcome| &outcome.verdict) {
        Some(Verdict::Passed) => Ending::Passed.to_string(),
        Some(Verdict::Failed(failure)) => Ending::of(failure).to_string(),
        Some(Verdict::Stopped) if attempt.eviction.is_some() => "evicted".into(),
        Some(Verdict::Stopped) => "stopped".into(),
        None if attempt.ended_at.is_some() => "without a word".into(),
        None => "not yet".into(),
    }
}

fn add_outcome(text: &mut String, outcome: &Outcome, title: impl Fn(&str) -> String, width: Width) {
    if !outcome.metrics.is_empty() {
        let mut table = Table::new(["METRIC", "LAST", "VALUES", "CURVE"]);
        for (name, metric) in &outcome.metrics {
            table.row([
                output::line(name).into(),
                number(metric.last).into(),
                metric.count.to_string().into(),
                sparkline(&course(metric), CURVE).into(),
            ]);
        }
        section(text, &title("Metrics"), &table, width);
    }
    if let Some(usage) = &outcome.usage {
        let _ = write!(text, "\n{BOLD}{}{BOLD:#}\n  {}\n", title("Usage"), used(usage));
    }
}

/// Returns the values of a metric as far as they are kept. The last one is among them where it is not finite, too.
fn course(metric: &MetricResult) -> Vec<f64> {
    let last = metric.last.is_none().then_some(f64::NAN);
    metric.trace.iter().copied().chain(last).collect()
}

/// Returns what was used, in words. What could not be read is not told.
pub(crate) fn used(usage: &Usage) -> String {
    let mut parts = vec![format!(
        "{} from the kernel's start to its end",
        duration(usage.duration)
    )];
    if let Some(time) = usage.cpu_time {
        parts.push(format!("{} of {} cpu", cpu_seconds(time), usage.cpu_granted));
    }
    if let Some(peak) = usage.memory_peak {
        parts.push(format!("{} peak", peak.rounded()));
    }
    parts.extend(usage.gpu.as_ref().map(gpu_used));
    parts.join(", ")
}

/// Returns what was made of devices, in words. What could not be read is not told.
fn gpu_used(gpu: &GpuUse) -> String {
    let mut text = format!("{} gpu", gpu.devices);
    if let Some(ratio) = gpu.busy_ratio() {
        text.push_str(&format!(" {:.0} % busy", ratio * 100.0));
    }
    if let Some(peak) = gpu.peak_memory {
        text.push_str(&format!(", {} gpu memory peak", peak.rounded()));
    }
    if let Some(joules) = gpu.joules {
        text.push_str(&format!(", {joules:.0} J"));
    }
    text
}

fn section(text: &mut String, title: &str, table: &Table, width: Width) {
    let width = match width {
        Width::Columns(columns) => Width::Columns(columns.saturating_sub(2)),
        Width::Unlimited => Width::Unlimited,
    };
    let _ = write!(text, "\n{BOLD}{title}{BOLD:#}\n");
    for line in table.render(width).lines() {
        let _ = writeln!(text, "  {line}");
    }
}

fn add_files(text: &mut String, kept: &KeptFiles) {
    if kept.files.is_empty() {
        return;
    }
    let _ = write!(text, "\n{BOLD}Files{BOLD:#} in {}\n", output::line(&kept.folder));
    let mut table = Table::new([]);
    for file in &kept.files {
        table.row([
            output::line(&file.path).into(),
            file.size.rounded().to_string().into(),
        ]);
    }
    let widths = table.widths();
    for line in table.render_rows(&widths, Width::Unlimited).lines() {
        let _ = writeln!(text, "  {line}");
    }
    if kept.more > 0 {
        let _ = writeln!(text, "  and {} more", kept.more);
    }
}

#[cfg(test)]
mod tests;

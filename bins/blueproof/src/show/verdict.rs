//! How a run ended, in a few lines.

use anstyle::{AnsiColor, Style};
use blueproof_core::{
    domain::{CellPlace, Ending, Failure, FailureClass, GpuUse, Outcome, RunState, TimeLimit},
    view::{AttemptView, RunView},
};
use blueproof_diagnostic::Diagnostic;
use jiff::{SignedDuration, Timestamp};

use super::{diagnostic, text};
use crate::output;

/// A shorter wait than that is none.
const WORTH_TELLING: SignedDuration = SignedDuration::from_secs(1);

/// Returns the verdict as people read it, colour included: one line, and what went wrong.
pub(crate) fn render(run: &RunView) -> String {
    let (word, style) = word(run.state);
    let mut text = format!(
        "{style}{word}{style:#} {} {}{}\n",
        run.subject.blueprint,
        run.id,
        facts(run)
    );
    if let Some(failure) = run.failure_asked_for() {
        text.push_str(&diagnostic::render(&failure.diagnostic));
        if let Some(cell) = &failure.cell {
            text.push_str(&in_cell(cell));
        }
    }
    for notice in notices(run) {
        text.push_str(&diagnostic::render(notice));
    }
    text
}

/// Returns what whoever goes by the verdict must know, such as what was asked for and not done.
fn notices(run: &RunView) -> &[Diagnostic] {
    let attempt = run.attempt_asked_for();
    let outcome = attempt.and_then(|attempt| attempt.outcome.as_ref());
    outcome.map_or(&[], |outcome| &outcome.notices)
}

/// Returns a failure's class in words, such as `the notebook failed`.
pub(crate) fn class(failure: &Failure) -> &'static str {
    match failure.class {
        FailureClass::Notebook => "notebook failed",
        FailureClass::Workload => "what it started failed",
        FailureClass::Expectation => "not as expected",
        FailureClass::Timeout(TimeLimit::Queue) => "waited too long",
        FailureClass::Timeout(TimeLimit::Startup) => "started too slowly",
        FailureClass::Timeout(TimeLimit::Cell) => "a cell took too long",
        FailureClass::Timeout(TimeLimit::Run) => "took too long",
        FailureClass::Timeout(TimeLimit::Execution) => "had quota too long",
        FailureClass::Infrastructure => "infrastructure failed",
        FailureClass::Config => "cannot run as it is written",
    }
}

fn word(state: RunState) -> (&'static str, Style) {
    let red = AnsiColor::Red.on_default().bold();
    let yellow = AnsiColor::Yellow.on_default().bold();
    match state {
        RunState::Ended(Ending::Passed) => ("PASS", AnsiColor::Green.on_default().bold()),
        RunState::Ended(Ending::Failed) => ("FAIL", red),
        RunState::Ended(Ending::InfrastructureFailed) => ("INFRASTRUCTURE", red),
        RunState::Ended(Ending::TimedOut) => ("TIMEOUT", red),
        RunState::Ended(Ending::Cancelled) => ("CANCELLED", yellow),
        RunState::Ended(Ending::Refused) => ("REFUSED", red),
        RunState::Ended(Ending::Superseded) => ("SUPERSEDED", yellow),
        RunState::AwaitingApproval
        | RunState::Queued
        | RunState::Reserved
        | RunState::Starting
        | RunState::Running => ("PENDING", yellow),
    }
}

/// Returns what is worth knowing beside the verdict: that it is a late one, time, class, metrics, use.
fn facts(run: &RunView) -> String {
    let mut facts = String::new();
    if let Some(late) = run.passed_late() {
        facts.push_str(&format!(" {} ·", output::line(&late)));
    }
    if let Some(ended_at) = run.ended_at {
        facts.push_str(&times(run, ended_at));
    }
    if let Some(failure) = run.failure_asked_for() {
        facts.push_str(&format!(" · {}", class(failure)));
        let attempts = attempts_asked_for(run);
        if attempts > 1 {
            facts.push_str(&format!(" · the last of {attempts} attempts"));
        }
    }
    if let Some(outcome) = run
        .attempt_asked_for()
        .and_then(|attempt| attempt.outcome.as_ref())
    {
        outcome_facts(outcome, &mut facts);
    }
    facts
}

/// Returns how many attempts came of the last request.
fn attempts_asked_for(run: &RunView) -> usize {
    let of_request = |attempt: &&AttemptView| attempt.reserved_at >= run.asked_at();
    run.attempts.iter().filter(of_request).count()
}

/// Returns how long the last attempt took, as everywhere, and for how long the run had waited before it.
fn times(run: &RunView, ended_at: Timestamp) -> String {
    let Some(attempt) = run.attempt_asked_for() else {
        let waited = ended_at.duration_since(run.asked_at());
        return format!(" after {}", text::duration(waited));
    };
    let took = format!(" in {}", text::duration(attempt.took(ended_at)));
    let waited = run.waited_for(attempt);
    if waited < WORTH_TELLING {
        return took;
    }
    format!("{took} after {}", text::duration(waited))
}

fn outcome_facts(outcome: &Outcome, facts: &mut String) {
    for (name, metric) in &outcome.metrics {
        match metric.last {
            Some(last) => facts.push_str(&format!(" · {name} {}", text::figure(last))),
            None => facts.push_str(&format!(" · {name} not a number")),
        }
    }
    let Some(usage) = &outcome.usage else { return };
    if let Some(cpu) = usage.cpu_time {
        facts.push_str(&format!(" · {}", text::cpu_seconds(cpu)));
    }
    if let Some(peak) = usage.memory_peak {
        facts.push_str(&format!(" · {} peak", peak.rounded()));
    }
    if let Some(ratio) = usage.gpu.as_ref().and_then(GpuUse::busy_ratio) {
        facts.push_str(&format!(" · gpu {:.0} % busy", ratio * 100.0));
    }
}

fn in_cell(cell: &CellPlace) -> String {
    let dim = AnsiColor::Blue.on_default().bold();
    let line = cell.line.map(|line| format!(", line {line}")).unwrap_or_default();
    let source = cell
        .source
        .as_deref()
        .map(|source| format!(": {}", output::line(source.trim())))
        .unwrap_or_default();
    format!("   {dim}={dim:#} in cell {}{line}{source}\n", cell.cell)
}

//! Who or what is to blame when a notebook did not pass, and why: as much as is certain, and never more.

mod death;
mod hints;
mod host;
mod limits;
mod parting;
mod place;
mod raised;
mod silent;
mod traceback;
mod workload;

use std::path::Path;

use blueproof_core::{
    attempt::AttemptSpec,
    domain::{Bytes, CellPlace, Failure, FailureClass, TimeLimit},
};
use blueproof_diagnostic::{Code, Diagnostic};

pub(crate) use host::{environment_lost, start_failure};
pub(crate) use limits::notice as limit_notice;
pub(crate) use parting::parting;
pub(crate) use silent::silent_failures;

use crate::{
    exception::printed,
    executor::{Cell, CellRun, Finish, Over, Why},
    process::LimitsHit,
};

/// What is known when a cell has stopped the notebook.
pub(crate) struct Facts<'a> {
    /// The cell.
    pub(crate) cell: &'a Cell,
    /// How it ended.
    pub(crate) run: &'a CellRun,
    /// What came before it.
    pub(crate) finish: &'a Finish,
    /// What was granted.
    pub(crate) spec: &'a AttemptSpec,
    /// The most memory that was seen.
    pub(crate) memory_peak: Option<Bytes>,
    /// Which limits were hit.
    pub(crate) limits_hit: LimitsHit,
    /// Where all is that the kernel's processes wrote.
    pub(crate) kernel_log: &'a Path,
    /// The folder that was the notebook's home.
    pub(crate) home: &'a Path,
}

/// Says why the notebook did not pass.
pub(crate) fn failure(facts: &Facts<'_>) -> Failure {
    if let Some(failure) = limits::killed(facts) {
        return failure;
    }
    let mut failure = match facts.run.over {
        Some(Over::Died(end)) => death::kernel_ended(facts, end),
        Some(Over::Exited) => exited(facts),
        Some(Over::Lost) => death::kernel_lost(facts),
        Some(Over::Unreadable) => unreadable(facts),
        Some(Over::Ended(Why::Limit(limit))) => too_long(facts, limit),
        // Whoever asked for the stop is told that it was stopped; nothing failed.
        Some(Over::Ended(Why::Stop)) | None => raised::failure(facts),
    };
    failure.diagnostic.hints.extend(limits::hints(facts));
    failure.diagnostic.hints.extend(silent::hints(facts.finish));
    failure
}

/// Says that cells were neither run to their end nor stopped by anything: nothing of the kind is a pass.
pub(crate) fn unaccounted(finish: &Finish) -> Failure {
    let message = format!(
        "of {} cells, {} have ended as they should",
        finish.cells,
        finish.ended_well()
    );
    let diagnostic = Diagnostic::error(Code::CellsUnaccounted, message)
        .hint("this is a defect of blueproof: please report it, with the run's folder");
    Failure::outside_cells(FailureClass::Infrastructure, diagnostic)
}

fn unreadable(facts: &Facts<'_>) -> Failure {
    let message = "the kernel sent a message that cannot be read: how the cell went is not known";
    let mut diagnostic = Diagnostic::error(Code::MessageUnreadable, message);
    let why = facts.run.error.as_ref().and_then(serde_json::Value::as_str);
    diagnostic.causes.extend(why.map(str::to_owned));
    let diagnostic =
        diagnostic.hint("look for what the cell prints or shows that is nested very deeply, or is not JSON");
    in_cell(facts, FailureClass::Notebook, diagnostic, None)
}

fn exited(facts: &Facts<'_>) -> Failure {
    let call = ["do_shutdown", "exit", "quit"].into_iter().find_map(|name| {
        let line = facts
            .cell
            .source
            .lines()
            .position(|line| line.contains(&format!("{name}(")))?;
        Some((name, u32::try_from(line + 1).ok()?))
    });
    let message = match call {
        Some((name, _)) => format!("the cell ended its kernel by `{name}()`"),
        None => "the cell told its kernel to end, as `exit()` and `quit()` do".to_owned(),
    };
    let diagnostic = Diagnostic::error(Code::CellExited, message)
        .hint("end a cell early with a condition: a kernel that ends leaves every later cell out");
    in_cell(
        facts,
        FailureClass::Notebook,
        diagnostic,
        call.map(|(_, line)| line),
    )
}

fn too_long(facts: &Facts<'_>, limit: TimeLimit) -> Failure {
    let (code, key, allowed) = match limit {
        TimeLimit::Cell => (Code::CellTimeout, "cell", facts.spec.timeouts.cell),
        TimeLimit::Run => (Code::RunTimeout, "run", facts.spec.timeouts.run),
        TimeLimit::Startup => (Code::StartupTimeout, "startup", facts.spec.timeouts.startup),
        TimeLimit::Queue => (Code::StartupTimeout, "queue", facts.spec.timeouts.queue),
        TimeLimit::Execution => (Code::ExecutionTimeout, "execution", facts.spec.timeouts.execution),
    };
    let subject = match limit {
        TimeLimit::Cell => "the cell was",
        TimeLimit::Run | TimeLimit::Startup | TimeLimit::Queue | TimeLimit::Execution => "the cells were",
    };
    let allowed = allowed.unwrap_or_default();
    let message = format!("{subject} not done within {allowed:#} (timeouts.{key})");
    let mut diagnostic = Diagnostic::error(code, message);
    if let Some(last) = printed::last_line(tail(facts)) {
        diagnostic = diagnostic.because(format!("the last that it printed: {last}"));
    }
    if facts.run.is_killed {
        diagnostic = diagnostic.because("it did not end when it was interrupted, and its kernel was killed");
    }
    let diagnostic = diagnostic.hint(format!(
        "allow more under spec.timeouts.{key}, or do less under a profile"
    ));
    let line = raised::line_of_interrupt(facts);
    in_cell(facts, FailureClass::Timeout(limit), diagnostic, line)
}

/// Returns the last text that the cell printed.
fn tail<'a>(facts: &Facts<'a>) -> &'a str {
    facts.finish.tails.last().map_or("", |(_, text)| text)
}

fn in_cell(facts: &Facts<'_>, class: FailureClass, diagnostic: Diagnostic, line: Option<u32>) -> Failure {
    let source = line.and_then(|line| facts.cell.source.lines().nth(line as usize - 1));
    Failure {
        class,
        diagnostic,
        cell: Some(CellPlace {
            cell: facts.cell.position,
            line,
            source: source.map(|text| text.trim().to_owned()),
            file: None,
            file_line: None,
        }),
    }
}

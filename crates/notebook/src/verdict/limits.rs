//! Failures at the limits of the attempt's cgroup: what was granted was used up, and nobody else is to blame.

use blueproof_core::domain::{Bytes, Failure, FailureClass};
use blueproof_diagnostic::{Code, Diagnostic};

use super::{Facts, in_cell};
use crate::{
    executor::Over,
    process::{End, LimitsHit},
};

const SIGKILL: i32 = 9;

/// Returns the failure of a cell whose kernel was killed at the limit of memory, or of what it may write.
pub(super) fn killed(facts: &Facts<'_>) -> Option<Failure> {
    let hit = facts.limits_hit;
    let of_memory = || Some(diagnostic("the kernel was killed in this cell", hit.memory?));
    let diagnostic = hit.disk.map(disk).or_else(of_memory)?;
    match facts.run.over {
        Some(Over::Died(End::Killed(SIGKILL)) | Over::Lost) => {}
        Some(_) | None => return None,
    }
    Some(in_cell(facts, FailureClass::Notebook, diagnostic, None))
}

fn disk(limit: Bytes) -> Diagnostic {
    let message = format!(
        "the notebook was ended in this cell: its files took more than the {limit} that they may take"
    );
    Diagnostic::error(Code::DiskLimit, message)
        .hint("write less, or remove what is no longer needed while the notebook runs")
}

/// Returns the failure of a kernel that was killed at the limit of memory before it had answered.
pub(super) fn killed_at_start(limit: Bytes) -> Failure {
    let diagnostic = diagnostic("the kernel was killed before it answered", limit);
    Failure::outside_cells(FailureClass::Config, diagnostic)
}

fn diagnostic(what: &str, limit: Bytes) -> Diagnostic {
    let message =
        format!("{what}: more than the {limit} of memory that were granted (driver.memory) were asked for");
    let diagnostic = Diagnostic::error(Code::OutOfMemory, message);
    diagnostic.hint("ask for more under spec.driver.memory, or hold less at once: smaller batches, less data under a profile")
}

/// Returns hints for a failure that a limit may have led to.
pub(super) fn hints(facts: &Facts<'_>) -> Vec<String> {
    let hit = facts.limits_hit;
    let all = [hit.memory.map(memory), hit.processes.map(processes)];
    all.into_iter().flatten().collect()
}

/// Returns what is to be said of a limit at which something was killed without stopping its cell.
pub(crate) fn notice(hit: LimitsHit) -> Option<Diagnostic> {
    let message = format!("{}, and its cell went on", memory(hit.memory?));
    Some(Diagnostic::warning(Code::OutOfMemory, message))
}

fn memory(limit: Bytes) -> String {
    format!("a process was killed at the {limit} of memory that were granted (spec.driver.memory)")
}

fn processes(limit: u64) -> String {
    format!("the limit of {limit} processes and threads was hit: start fewer of them at once")
}

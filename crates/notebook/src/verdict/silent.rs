//! What failed without stopping its cell. It may explain what fails later.

use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};

use super::workload;
use crate::{
    exception::{printed, uncaught},
    executor::{Finish, Silent, SilentKind},
};

const AT_MOST: usize = 20;

/// Returns what failed in silence, each once, in order.
pub(crate) fn silent_failures(finish: &Finish) -> Vec<Diagnostic> {
    let stopped_in = finish.last.as_ref().map(|(cell, _)| cell.position);
    let is_known = |cell: u32, silent: &Silent| stopped_in == Some(cell) && has_stopped(finish, silent);
    let unknown = finish
        .silent
        .iter()
        .filter(|(cell, silent)| !is_known(*cell, silent));
    let programs = unknown.filter(|(cell, silent)| !is_printed(finish, *cell, silent));
    let programs = programs.map(|(cell, silent)| {
        let own = silent.said.as_deref().and_then(printed::last_error_or_line);
        let tail = finish.tails.iter().find(|(position, _)| position == cell);
        let why = own.or_else(|| tail.and_then(|(_, text)| printed::last_error(text)));
        (*cell, workload::process(silent), why)
    });
    let printed = finish.tails.iter().flat_map(|(cell, text)| {
        let found = uncaught(text).into_iter();
        found.map(move |(message, said)| (*cell, message, said))
    });
    let mut all = Vec::new();
    for (cell, message, why) in programs.chain(printed).take(AT_MOST) {
        let ending = if stopped_in == Some(cell) {
            ""
        } else {
            ", and its cell went on"
        };
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let diagnostic = Diagnostic::warning(Code::FailedInSilence, format!("{message}{ending}{why}"))
            .at(SourceLocation::file(format!("cell {cell}")));
        if !all.contains(&diagnostic) {
            all.push(diagnostic);
        }
    }
    all
}

/// Returns whether Python itself has told of a worker's exception.
fn is_printed(finish: &Finish, cell: u32, silent: &Silent) -> bool {
    let said = format!("Process {}:", silent.command);
    let tails = finish.tails.iter().filter(|(position, _)| *position == cell);
    silent.what == SilentKind::Worker && tails.into_iter().any(|(_, text)| text.contains(&said))
}

/// Returns whether the program's failure is the one that stopped the notebook.
fn has_stopped(finish: &Finish, silent: &Silent) -> bool {
    let chain = finish.last.iter().flat_map(|(_, run)| &run.aftermath.chain);
    if silent.what == SilentKind::Worker {
        return chain.into_iter().any(workload::says_other_process);
    }
    let mut processes = chain.filter_map(|error| error.process.as_ref());
    processes.any(|process| process.status == silent.status && process.command == silent.command)
}

/// Returns the same as hints for a failure.
pub(crate) fn hints(finish: &Finish) -> Vec<String> {
    let failures = silent_failures(finish).into_iter().take(3);
    let hint = |failure: Diagnostic| {
        let place = failure.place.map(|place| place.file).unwrap_or_default();
        format!("earlier, in {place}: {}", failure.message)
    };
    failures.map(hint).collect()
}

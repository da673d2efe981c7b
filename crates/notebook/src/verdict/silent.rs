//! What failed without stopping its cell. It may explain what fails later.

use blueproof_diagnostic::{Code, Diagnostic, Place};

use super::{printed, workload};
use crate::{
    executor::{Finish, Silent, SilentKind},
    text::shown,
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
        let found = in_text(text).into_iter();
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
            .at(Place::file(format!("cell {cell}")));
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

/// Returns whether Python tells in a text of an exception that nobody catches.
pub(crate) fn tells_of_failure(text: &str) -> bool {
    !in_text(text).is_empty()
}

/// Finds the words by which Python tells of exceptions that nobody catches.
fn in_text(text: &str) -> Vec<(String, Option<String>)> {
    let plain = shown(text);
    let lines: Vec<&str> = plain.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(what) = announced(line) else { continue };
        found.push((what, error_after(&lines[at + 1..])));
    }
    found
}

fn announced(line: &str) -> Option<String> {
    if let Some(thread) = line.strip_prefix("Exception in thread ") {
        let name = thread.trim_end_matches(':');
        return Some(format!("the thread {name} ended with an exception"));
    }
    if line.starts_with("Task exception was never retrieved") {
        return Some(workload::UNASKED_TASK.into());
    }
    if line.starts_with("Future exception was never retrieved") {
        return Some(workload::UNASKED_FUTURE.into());
    }
    if line.starts_with("Exception ignored in") {
        return Some("an exception was ignored by Python itself".into());
    }
    let process = line.strip_prefix("Process ")?.strip_suffix(':')?;
    let is_name = !process.is_empty() && !process.contains(' ');
    is_name.then(|| format!("the child process {process} ended with an exception"))
}

/// Returns the line that ends the traceback at the beginning of `lines`.
fn error_after(lines: &[&str]) -> Option<String> {
    let mut is_inside = false;
    for line in lines {
        if line.starts_with("Traceback (most recent call last)") {
            is_inside = true;
        } else if is_inside && !line.starts_with(' ') && !line.trim().is_empty() {
            return Some((*line).to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pythons_own_words_are_known() {
        let text = "step 1\nException in thread Thread-5 (work):\nTraceback (most recent call last):\n  File \"x\"\n    \
                    f()\nValueError: bad\nstep 2\nProcess Process-1:\nTraceback (most recent call last):\nKeyError: 'a'\n";
        let found = in_text(text);
        let expected = [
            (
                "the thread Thread-5 (work) ended with an exception".to_owned(),
                Some("ValueError: bad".to_owned()),
            ),
            (
                "the child process Process-1 ended with an exception".to_owned(),
                Some("KeyError: 'a'".to_owned()),
            ),
        ];
        assert_eq!(found, expected);
    }
}

//! The verdict on an exception that left a cell.

use blueproof_core::domain::{Failure, FailureClass};
use blueproof_diagnostic::{Code, Diagnostic};
use serde_json::Value;

use super::{Facts, hints, in_cell, place::line_in_source, traceback, workload};
use crate::exception::{Exception, Relation, printed};

/// Returns the failure that the exception is.
pub(crate) fn failure(facts: &Facts<'_>) -> Failure {
    let chain = chain(facts);
    let line = line_of(facts, &chain);
    let mut failure = match workload::find(facts, &chain) {
        Some(found) => {
            let mut diagnostic = Diagnostic::error(Code::WorkloadFailed, found.line);
            let noticed = found.noticed.filter(|line| *line != diagnostic.message);
            diagnostic
                .causes
                .extend(noticed.map(|line| format!("the notebook noticed: {line}")));
            in_cell(facts, FailureClass::Workload, diagnostic, line)
        }
        None => {
            let message = answered(facts).unwrap_or_else(|| causal_line(&chain));
            let mut diagnostic = Diagnostic::error(code(&chain), message);
            diagnostic.causes = causes(&chain);
            in_cell(facts, FailureClass::Notebook, diagnostic, line)
        }
    };
    let own = chain.iter().rev().find_map(own_place);
    failure.diagnostic.causes.splice(0..0, own);
    failure.diagnostic.hints = hints::exception(facts, &chain, &failure.diagnostic.message);
    failure
}

/// Returns what the kernel answered where that tells of no exception, as `aborted` does.
fn answered(facts: &Facts<'_>) -> Option<String> {
    let error = facts.run.error.as_ref()?;
    let says = |key: &str| error[key].as_str().is_some_and(|text| !text.is_empty());
    if says("ename") || says("evalue") || !facts.run.aftermath.chain.is_empty() {
        return None;
    }
    let status = &error["status"];
    if status.is_null() {
        return Some("the kernel said of an error, and not which".to_owned());
    }
    let status = status.as_str().map_or_else(|| status.to_string(), str::to_owned);
    let status: String = status.chars().take(100).collect();
    Some(format!(
        "the kernel did not run the cell to its end: it answered `{status}`, and told of no exception"
    ))
}

/// Returns the line of the cell that ran when it was interrupted, where the kernel could still say so.
pub(crate) fn line_of_interrupt(facts: &Facts<'_>) -> Option<u32> {
    facts.run.error.as_ref()?;
    line_of(facts, &chain(facts))
}

/// Returns the exception that left the cell, then what it came from. There is always one.
fn chain(facts: &Facts<'_>) -> Vec<Exception> {
    let text = |key: &str| {
        let error = facts.run.error.as_ref();
        error
            .and_then(|error| error.get(key))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let published = text("ename");
    let told = &facts.run.aftermath.chain;
    // The probe tells of the last exception that the kernel saw; it counts only if it is the one that was published.
    match told.first() {
        Some(head) if head.name == published || head.raises.as_ref() == Some(&published) => told.clone(),
        Some(_) | None => vec![Exception {
            bases: vec![published.clone()],
            name: published,
            message: text("evalue"),
            ..Exception::default()
        }],
    }
}

/// Returns the line of the cell: where the root was raised if the head was raised from it, else where the head was.
fn line_of(facts: &Facts<'_>, chain: &[Exception]) -> Option<u32> {
    let from_causes = chain
        .iter()
        .skip(1)
        .take_while(|error| error.relation == Relation::Cause);
    let candidates: Vec<&Exception> = chain.iter().take(1).chain(from_causes).collect();
    let found = candidates
        .into_iter()
        .rev()
        .find_map(|error| line_of_exception(facts, error));
    found.or_else(|| {
        let lines = facts.run.error.as_ref()?.get("traceback")?.as_array()?;
        let lines: Vec<String> = lines
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        let line = traceback::last_line_in_cell(&lines, facts.run.count?)?;
        line_in_source(&facts.cell.source, line, None)
    })
}

fn line_of_exception(facts: &Facts<'_>, error: &Exception) -> Option<u32> {
    let source = &facts.cell.source;
    if let Some(place) = &error.syntax
        && (place.count == facts.run.count || place.count.is_none())
        && error.frames.iter().all(|frame| frame.count.is_none())
    {
        return line_in_source(source, place.line?, Some(&place.text));
    }
    let here = error.frames.iter().rev().find(|frame| {
        frame.count.is_some() && frame.count == facts.run.count || frame.file == "<timed exec>"
    })?;
    line_in_source(source, here.line, here.text.as_deref())
}

/// Says where an exception was in a file of the checkout: the innermost such place, where no cell was further in.
fn own_place(error: &Exception) -> Option<String> {
    let syntax = error.syntax.as_ref().filter(|place| place.own);
    if let Some(place) = syntax {
        let file = place.file.as_deref().unwrap_or_default();
        return Some(place_in(file, place.line?, None, &place.text));
    }
    let frame = error
        .frames
        .iter()
        .rev()
        .find(|frame| frame.own || frame.count.is_some())?;
    let text = frame.text.as_deref().unwrap_or_default();
    frame
        .own
        .then(|| place_in(&frame.file, frame.line, Some(&frame.function), text))
}

fn place_in(file: &str, line: u32, function: Option<&str>, text: &str) -> String {
    let function = function.filter(|name| !name.starts_with('<'));
    let function = function.map(|name| format!(", in {name}")).unwrap_or_default();
    format!(
        "in {file}, line {line}{function}: {}",
        printed::shortened(text.trim())
    )
}

fn code(chain: &[Exception]) -> Code {
    let head = &chain[0];
    let any = |class: &str| chain.iter().any(|error| error.is(class));
    if head.is("SystemExit") {
        Code::CellExited
    } else if head.is("SyntaxError") && head.frames.iter().all(|frame| frame.count.is_none()) {
        Code::CellSyntax
    } else if head.is("ModuleNotFoundError") {
        Code::ModuleMissing
    } else if head.is("StdinNotImplementedError") {
        Code::InputRefused
    } else if any("MemoryError") || any("OutOfMemoryError") {
        Code::OutOfMemory
    } else {
        Code::CellRaised
    }
}

/// Returns the head, and what it came from at the root, on one line.
fn causal_line(chain: &[Exception]) -> String {
    let head = &chain[0];
    let mut line = head.line();
    if let Some(member) = head.group.first() {
        line = format!("{line}: {}", deepest(member).line());
    }
    match chain.split_first().and_then(|(_, rest)| rest.last()) {
        Some(root) => match root.relation {
            Relation::Context => format!("{line} (while handling {})", root.line()),
            Relation::Head | Relation::Cause | Relation::Member => format!("{line} (from {})", root.line()),
        },
        None => line,
    }
}

fn deepest(error: &Exception) -> &Exception {
    error.group.first().map_or(error, deepest)
}

fn causes(chain: &[Exception]) -> Vec<String> {
    let head = &chain[0];
    let members = head
        .group
        .iter()
        .map(|member| format!("in the group: {}", deepest(member).line()));
    let rest = head.more_lines().into_iter().take(5);
    let values = chain.iter().flat_map(|error| &error.values);
    let values = values.map(|value| format!("where {}", printed::shortened(value)));
    values
        .chain(rest)
        .chain(members)
        .chain(chain.iter().skip(1).map(Exception::line))
        .collect()
}

//! What is read by those who want to know more: the failure as a terminal shows it, what else to know, and how to see it oneself.

use std::fmt::Write as _;

use blueproof_core::{domain::Head, ports::RunStatus, view::RunView};

use super::CheckContext;
use crate::markdown::{Document, fence};

/// The most characters of one diagnostic.
const DIAGNOSTIC_AT_MOST: usize = 12_000;
/// The most notices that are shown.
const NOTICES: usize = 10;
/// The most characters of one notice.
const NOTICE_AT_MOST: usize = 2_000;

/// Returns the text below the summary.
pub(super) fn of(status: &RunStatus, context: CheckContext<'_>) -> String {
    let view = &status.view;
    let mut document = Document::default();
    document.push(&failure(view));
    document.push(&failing_calls(view));
    for block in notices(view) {
        document.push(&block);
    }
    document.push(&reproduce(view, context));
    document.finish()
}

fn failure(view: &RunView) -> String {
    let Some(failure) = view.failure_asked_for() else {
        return String::new();
    };
    let mut told = format!("{:#}", failure.diagnostic);
    if let Some(place) = &failure.cell {
        let line = place
            .line
            .map_or_else(String::new, |line| format!(", line {line}"));
        write!(told, "\n\ncell {}{line}", place.cell).expect("a string takes all");
        if let Some(source) = &place.source {
            write!(told, ":\n{source}").expect("a string takes all");
        }
    }
    format!("**What failed**\n\n{}", fence(&told, DIAGNOSTIC_AT_MOST))
}

fn failing_calls(view: &RunView) -> String {
    let calls = view.failing_calls.iter();
    let told: Vec<String> = calls
        .map(|call| call.told(&super::figures::minute(call.again_at)))
        .collect();
    if told.is_empty() {
        return String::new();
    }
    format!(
        "**What is tried again**\n\n{}",
        fence(&told.join("\n"), DIAGNOSTIC_AT_MOST)
    )
}

fn notices(view: &RunView) -> Vec<String> {
    let outcome = view
        .attempt_asked_for()
        .and_then(|attempt| attempt.outcome.as_ref());
    let notices = outcome.map_or(&[][..], |outcome| &outcome.notices);
    let shown = notices.iter().take(NOTICES);
    let mut blocks: Vec<String> = shown
        .map(|notice| fence(&format!("{notice:#}"), NOTICE_AT_MOST))
        .collect();
    if !blocks.is_empty() {
        blocks.insert(0, "**What else to know**".to_owned());
    }
    if let Some(more @ 1..) = notices.len().checked_sub(NOTICES) {
        blocks.push(format!("… and {more} more."));
    }
    blocks
}

/// Says how to run the same on one's own machine.
fn reproduce(view: &RunView, context: CheckContext<'_>) -> String {
    let subject = &view.subject;
    let (Some(number), Head::Commit(commit)) = (subject.pull_request, &subject.head) else {
        return String::new();
    };
    let fetch = match context.repository {
        Some(name) => format!("git fetch https://github.com/{name} pull/{number}/head"),
        None => format!("git fetch origin pull/{number}/head"),
    };
    let profile = subject.profile.as_ref();
    let profile = profile.map_or_else(String::new, |profile| format!(" --profile {profile}"));
    let commands = format!(
        "{fetch}\ngit checkout {commit}\nblueproof run {}{profile}",
        subject.blueprint
    );
    format!("**Reproduce**\n\n{}", fence(&commands, DIAGNOSTIC_AT_MOST))
}

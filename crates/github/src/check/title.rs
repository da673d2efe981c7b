//! The one line of a check run that is seen without opening it.

use blueproof_core::{
    domain::{Ending, Failure, FailureClass, RunState},
    estimate::When,
    pending::PendingReason,
    view::{AttemptView, OutlookView, RunView},
};

use super::{CheckSettings, figures};
use crate::{api::CheckOutput, markdown};

/// Returns the title.
pub(super) fn of(view: &RunView, settings: &CheckSettings) -> String {
    let is_simulated = view
        .attempt_asked_for()
        .is_some_and(|attempt| settings.is_simulated(attempt));
    let mark = if is_simulated { " (simulated)" } else { "" };
    let title = match view.state {
        RunState::AwaitingApproval => awaiting(view, settings),
        RunState::Queued => queued(view),
        RunState::Reserved | RunState::Starting | RunState::Running => in_progress(view),
        RunState::Ended(ending) => ended(view, ending),
    };
    let title = markdown::plain(&title, CheckOutput::TITLE_AT_MOST - mark.len());
    title + mark
}

fn awaiting(view: &RunView, settings: &CheckSettings) -> String {
    let role = &settings.approver_role;
    match view.waits() {
        Some(PendingReason::AwaitingApproval {
            lapsed: Some(lapsed), ..
        }) => {
            format!("Waits for a new approval: {lapsed}")
        }
        Some(reason @ PendingReason::Held(_)) => format!("Held: {reason}"),
        Some(reason @ PendingReason::WaitingForIsolation(_)) => format!("Waits: {reason}"),
        Some(_) | None => format!("Waits for approval of this commit by {role}"),
    }
}

fn queued(view: &RunView) -> String {
    let Some(outlook) = &view.outlook else {
        return "Queued".to_owned();
    };
    match &outlook.reason {
        Some(reason @ PendingReason::Held(_)) => format!("Held: {reason}"),
        Some(PendingReason::BackingOff(back_off)) => {
            format!("Failed and {}", back_off.told(&figures::minute(back_off.until)))
        }
        Some(reason) if outlook.position.is_none() => format!("Queued: {reason}"),
        Some(_) | None => format!("Queued{}{}", position(outlook), estimate(outlook)),
    }
}

fn position(outlook: &OutlookView) -> String {
    let Some(position) = &outlook.position else {
        return String::new();
    };
    format!(
        " at {} of {} in {}",
        position.position, position.waiting, position.cluster_queue
    )
}

fn estimate(outlook: &OutlookView) -> String {
    let start = outlook
        .estimate
        .as_ref()
        .and_then(|estimate| estimate.start.as_ref());
    start.map_or_else(String::new, |start| format!(", starts {}", when(start)))
}

/// Says when something is likely to happen.
pub(super) fn when(when: &When) -> String {
    match when {
        When::Likely { p50, p90: _ } => format!("about {}", figures::minute(*p50)),
        When::AtLatest { at } => format!("by {} at the latest", figures::minute(*at)),
    }
}

fn in_progress(view: &RunView) -> String {
    if let Some((_, eviction)) = view.being_evicted() {
        return format!("Evicted {eviction}");
    }
    let attempt = view.attempt_asked_for();
    let nth = attempt.filter(|attempt| attempt.id.number > 1);
    let nth = nth.map_or_else(String::new, |attempt| format!(", attempt {}", attempt.id.number));
    match view.state {
        RunState::Running => {
            let since = attempt.and_then(|attempt| attempt.started_at);
            let since = since.map_or_else(String::new, |at| format!(" since {}", figures::minute(at)));
            format!("Running{since}{nth}")
        }
        RunState::Starting => format!("Starting environment and kernel{nth}"),
        RunState::Reserved | RunState::AwaitingApproval | RunState::Queued | RunState::Ended(_) => {
            match attempt.and_then(|attempt| attempt.pending.as_ref()) {
                Some(pending) => format!("Admitted{nth}, waits for a place: {}", pending.message),
                None => format!("Admitted{nth}, a place is being made"),
            }
        }
    }
}

fn ended(view: &RunView, ending: Ending) -> String {
    let attempt = view.attempt_asked_for();
    let after = attempt
        .and_then(ran_for)
        .map_or_else(String::new, |span| format!(" after {span}"));
    let failure = view.failure_asked_for();
    let message = failure.map_or_else(String::new, |failure| format!(": {}", failure.diagnostic.message));
    let cell = failure.map_or_else(String::new, in_cell);
    match ending {
        Ending::Passed => {
            let span = attempt
                .and_then(ran_for)
                .map_or_else(String::new, |span| format!(" in {span}"));
            let late = view
                .passed_late()
                .map_or_else(String::new, |late| format!(", {late}"));
            format!("Passed{span}{late}")
        }
        Ending::Failed => format!("Failed{cell}{after}{message}"),
        Ending::InfrastructureFailed => format!("Infrastructure failed, not the blueprint{after}{message}"),
        Ending::TimedOut => format!("Timed out{cell}{after}{message}"),
        Ending::Cancelled => format!("Cancelled{after}{message}"),
        Ending::Superseded => "Cancelled: the pull request has another head now".to_owned(),
        Ending::Refused => format!("Refused{message}"),
    }
}

/// Returns for how long an attempt ran, where it started and is over.
pub(super) fn ran_for(attempt: &AttemptView) -> Option<String> {
    figures::span(attempt.started_at?, attempt.ended_at?)
}

fn in_cell(failure: &Failure) -> String {
    failure
        .cell
        .as_ref()
        .map_or_else(String::new, |place| format!(" in cell {}", place.cell))
}

/// Returns what failed and where, in a few words: `workload failed in cell 11`.
pub(super) fn failed_where(failure: &Failure) -> String {
    format!("{}{}", class(failure.class), in_cell(failure))
}

/// Returns who or what is at fault, in a few words.
pub(super) fn class(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Notebook => "notebook failed",
        FailureClass::Workload => "workload failed",
        FailureClass::Expectation => "expectation not met",
        FailureClass::Timeout(_) => "time limit reached",
        FailureClass::Infrastructure => "infrastructure failed",
        FailureClass::Config => "could not be started",
    }
}

//! Colours of the words that say how a run stands. Nothing else is coloured in a table.

use anstyle::{AnsiColor, Style};
use blueproof_core::{
    domain::{Ending, RunState},
    view::RunView,
};

use super::Cell;

/// Returns the state of a run as a cell of a table.
pub(crate) fn state(run: &RunView) -> Cell {
    Cell::styled(run.state_in_words(), style(run.state))
}

fn style(state: RunState) -> Style {
    match state {
        RunState::AwaitingApproval | RunState::Queued => AnsiColor::Yellow.on_default(),
        RunState::Reserved | RunState::Starting | RunState::Running => AnsiColor::Cyan.on_default(),
        RunState::Ended(Ending::Passed) => AnsiColor::Green.on_default(),
        RunState::Ended(
            Ending::Failed | Ending::InfrastructureFailed | Ending::TimedOut | Ending::Refused,
        ) => AnsiColor::Red.on_default(),
        RunState::Ended(Ending::Cancelled | Ending::Superseded) => Style::new().dimmed(),
    }
}

//! Runs that were asked for before.

use blueproof_core::{
    domain::{Ending, RunRequest, RunState},
    ports::Command,
    view::RunView,
};

use crate::key;

/// Returns the command that has a run tried again whose content is the pull request's head once more; `None` where it stands as it
/// should.
pub(super) fn again(view: &RunView, request: &RunRequest) -> Option<Command> {
    if view.state != RunState::Ended(Ending::Superseded) {
        return None;
    }
    let ended_at = view.ended_at?.to_string();
    Some(Command::Retry {
        key: key::of(["again", &view.id.to_string(), &ended_at]),
        run: view.id,
        by: request.requested_by.clone(),
    })
}

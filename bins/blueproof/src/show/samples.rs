//! Runs in every kind of state, for tests of how they are shown.

mod story;

use blueproof_core::{
    event::Call,
    policy::Policy,
    ports::Retry,
    scheduler::Scheduler,
    view::{RunView, Trouble},
};
use blueproof_diagnostic::{Code, Diagnostic};

pub(crate) use story::at;

/// Returns a scheduler that was told the story.
pub(crate) fn scheduler() -> Scheduler {
    let mut scheduler = Scheduler::new(Policy::local(Default::default()));
    for (at, event) in story::story() {
        scheduler.handle(at, event);
    }
    scheduler
}

/// Returns all runs of the story, the newest first.
pub(crate) fn views() -> Vec<RunView> {
    let mut views: Vec<RunView> = scheduler().runs().collect();
    views.reverse();
    views
}

/// Returns a call that failed so often, the last time for this, and is made again.
pub(crate) fn trouble(call: Call, times: u32, why: &str) -> Trouble {
    let last = Diagnostic::error(Code::DevicesTaken, why).hint("see who has them");
    Trouble {
        call,
        times,
        last: Box::new(last),
        retry: Retry::Later,
        again_at: at(61),
    }
}

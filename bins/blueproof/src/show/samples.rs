//! Runs in every kind of state, for tests of how they are shown.

mod story;

use blueproof_core::{policy::Policy, scheduler::Scheduler, view::RunView};

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

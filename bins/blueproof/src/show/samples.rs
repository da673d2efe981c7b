//! Runs in every kind of state, for tests of how they are shown.

mod story;

use blueproof_core::{
    domain::RunId,
    event::Call,
    policy::Policy,
    ports::Retry,
    scheduler::{Effort, Scheduler},
    view::{FailingCall, RunView},
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;

pub(crate) use story::at;

/// Returns a scheduler that was told the story.
pub(crate) fn scheduler() -> Scheduler {
    let mut scheduler = Scheduler::new(Policy::local(Default::default()));
    for (at, event) in story::story() {
        scheduler.handle(at, event);
    }
    scheduler
}

/// Returns a run as its row has it at a time.
pub(crate) fn row(scheduler: &Scheduler, run: RunId, now: Timestamp) -> RunView {
    let outlook = scheduler.outlooks(now, &[run].into(), Effort::ALL).remove(&run);
    RunView {
        outlook: outlook.map(Box::new),
        ..scheduler.view(run).expect("a run of the story")
    }
}

/// Returns all runs of the story, the newest first.
pub(crate) fn views() -> Vec<RunView> {
    let scheduler = scheduler();
    let mut views: Vec<RunView> = scheduler
        .runs()
        .map(|run| row(&scheduler, run.id, at(60)))
        .collect();
    views.reverse();
    views
}

/// Returns a call that failed so often, the last time for this, and is made again.
pub(crate) fn trouble(call: Call, times: u32, why: &str) -> FailingCall {
    let last = Diagnostic::error(Code::DevicesTaken, why).hint("see who has them");
    FailingCall {
        call,
        times,
        last: Box::new(last),
        retry: Retry::Later,
        again_at: at(61),
    }
}

//! From a log to the state that it leads to. It decides nothing.

use jiff::Timestamp;

use super::{Changed, Scheduler, Snapshot, SnapshotError, timers::Timer};
use crate::{fact::Fact, policy::Policy};

/// A scheduler that hears again what was decided once.
///
/// ```
/// use blueproof_core::{policy::Policy, event::Event, fact::Fact, scheduler::Replay};
///
/// let mut replay = Replay::new();
/// let policy = Box::new(Policy::local(Default::default()));
/// replay.apply(jiff::Timestamp::UNIX_EPOCH, &Fact::Input(Event::Configured { policy }));
/// assert_eq!(replay.finish().decided(), 0);
/// ```
#[derive(Debug)]
pub struct Replay {
    scheduler: Scheduler,
}

impl Replay {
    /// Returns one that has heard of nothing yet.
    pub fn new() -> Self {
        let scheduler = Scheduler::new(Policy::local(Default::default()));
        Self { scheduler }
    }

    /// Returns one that has heard of everything up to the fact after which a snapshot was made.
    ///
    /// # Errors
    /// When the snapshot contradicts itself.
    pub fn from_snapshot(snapshot: Snapshot) -> Result<Self, SnapshotError> {
        Scheduler::from_snapshot(snapshot).map(|scheduler| Self { scheduler })
    }

    /// Applies a fact that was logged then. The rules of this version have no say in it.
    pub fn apply(&mut self, at: Timestamp, fact: &Fact) {
        let scheduler = &mut self.scheduler;
        scheduler.now = scheduler.now.max(at);
        match fact {
            Fact::Input(input) => {
                scheduler.apply_input(input);
            }
            Fact::Decision(decision) => scheduler.apply_decision(decision),
        }
        let tried_again = scheduler.queue.advance(scheduler.now);
        scheduler.touched.extend(tried_again);
        scheduler.due.clear();
        scheduler.settle();
    }

    /// Returns the state so far. What waits for quota is not tried before [`Self::finish`].
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Returns what changed since this was last asked.
    pub fn take_changed(&mut self) -> Changed {
        self.scheduler.take_changed()
    }

    /// Returns a scheduler that goes on from here; [`Scheduler::outstanding`] has what a crash may have cut off.
    ///
    /// What waits for quota is tried on a copy. Where the rules of this version would decide something, they do so with the
    /// next input, which is due at once.
    pub fn finish(mut self) -> Scheduler {
        let scheduler = &mut self.scheduler;
        let mut tried = scheduler.queue.clone();
        let is_settled = tried.try_all(scheduler.now);
        if is_settled {
            scheduler.queue = tried;
        }
        scheduler.set_timers();
        if !is_settled {
            scheduler.timers.set(Timer::TryAgain, scheduler.now);
        }
        scheduler.changed = Changed::default();
        self.scheduler
    }
}

impl Default for Replay {
    fn default() -> Self {
        Self::new()
    }
}

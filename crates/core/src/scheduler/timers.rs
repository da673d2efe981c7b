//! What the scheduler waits for, by time.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::{
    domain::{AttemptId, RunId},
    event::Call,
};

/// Something that is due at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The run has waited for quota as long as it may.
    QueueTimeout(RunId),
    /// The run may be tried again.
    BackOff(RunId),
    /// The attempt should have ended by itself.
    Overdue(AttemptId),
    /// The run's attempts have had quota for as long as they may.
    ExecutionTime(AttemptId),
    /// The attempt was interrupted, and has had its time to end by itself.
    Grace(AttemptId),
    /// Somebody may be evicted again who was safe until now.
    Protection,
    /// A failed call may be made again.
    Call(Call),
}

/// At most one time for each timer, and the earliest of all at hand.
#[derive(Debug, Default)]
pub(super) struct Timers {
    at: BTreeMap<Timer, Timestamp>,
    order: BTreeSet<(Timestamp, Timer)>,
}

impl Timers {
    /// Sets a timer, in place of its earlier time.
    pub(super) fn set(&mut self, timer: Timer, at: Timestamp) {
        self.cancel(timer);
        self.at.insert(timer, at);
        self.order.insert((at, timer));
    }

    /// Takes a timer away; one that is not set is no mistake.
    pub(super) fn cancel(&mut self, timer: Timer) {
        if let Some(at) = self.at.remove(&timer) {
            self.order.remove(&(at, timer));
        }
    }

    /// Returns when the timer is due.
    pub(super) fn get(&self, timer: Timer) -> Option<Timestamp> {
        self.at.get(&timer).copied()
    }

    /// Returns the earliest time of all.
    pub(super) fn earliest(&self) -> Option<Timestamp> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes the earliest timer, if it is due.
    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<Timer> {
        let (at, timer) = *self.order.first()?;
        if at > now {
            return None;
        }
        self.cancel(timer);
        Some(timer)
    }
}

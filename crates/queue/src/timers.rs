//! What is due when.
//!
//! Nothing here looks at a clock: [`Timers::pop_due`] is told what time it is.
//!
//! ```
//! use blueproof_queue::timers::Timers;
//! use jiff::Timestamp;
//!
//! let at = |second| Timestamp::from_second(second).expect("a small number");
//! let mut timers = Timers::default();
//! timers.set("back-off", at(60));
//! timers.set("timeout", at(30));
//! assert_eq!(timers.earliest(), Some(at(30)));
//! assert_eq!(timers.pop_due(at(59)), Some("timeout"));
//! assert_eq!(timers.pop_due(at(59)), None);
//! ```

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

/// At most one time for each timer, and the earliest of all at hand.
#[derive(Debug, Clone)]
pub struct Timers<T> {
    at: BTreeMap<T, Timestamp>,
    order: BTreeSet<(Timestamp, T)>,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self {
            at: BTreeMap::new(),
            order: BTreeSet::new(),
        }
    }
}

impl<T: Copy + Ord> Timers<T> {
    /// Sets a timer, in place of its earlier time.
    pub fn set(&mut self, timer: T, at: Timestamp) {
        self.cancel(timer);
        self.at.insert(timer, at);
        self.order.insert((at, timer));
    }

    /// Sets a timer, or takes it away where it has no time.
    pub fn set_or_cancel(&mut self, timer: T, at: Option<Timestamp>) {
        match at {
            Some(at) => self.set(timer, at),
            None => self.cancel(timer),
        }
    }

    /// Takes a timer away; one that is not set is no mistake.
    pub fn cancel(&mut self, timer: T) {
        if let Some(at) = self.at.remove(&timer) {
            self.order.remove(&(at, timer));
        }
    }

    /// Moves every time by a span, which may be negative.
    pub fn move_by(&mut self, by: SignedDuration) {
        for at in self.at.values_mut() {
            *at = at.saturating_add(by).expect("a time span");
        }
        self.order = self.at.iter().map(|(timer, at)| (*at, *timer)).collect();
    }

    /// Returns each timer that is set, and when it is due.
    pub fn iter(&self) -> impl Iterator<Item = (T, Timestamp)> {
        self.at.iter().map(|(timer, at)| (*timer, *at))
    }

    /// Returns when the timer is due.
    pub fn get(&self, timer: T) -> Option<Timestamp> {
        self.at.get(&timer).copied()
    }

    /// Returns the earliest time of all.
    pub fn earliest(&self) -> Option<Timestamp> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes the earliest timer, if it is due.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<T> {
        let (at, timer) = *self.order.first()?;
        if at > now {
            return None;
        }
        self.cancel(timer);
        Some(timer)
    }
}

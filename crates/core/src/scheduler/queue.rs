//! Which attempt is next, and whether there is room for it.
//!
//! Order and quota are decided here and nowhere else. The rest of the scheduler knows only this module's few
//! functions; the rules behind them may become as rich as Kueue's without it noticing. Today: one queue, higher
//! priority first, then first come first served, and nobody overtakes the one in front (Kueue's StrictFIFO).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::{AttemptId, Priority, Resources, RunId};

/// Waiting attempts and promised quota.
#[derive(Debug)]
pub(super) struct Queue {
    quota: Resources,
    promised: BTreeMap<AttemptId, Resources>,
    promised_sum: Resources,
    waiting: BTreeSet<Place>,
    places: BTreeMap<RunId, (Place, Resources)>,
}

/// An attempt's place among those that wait: the least is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    priority: Reverse<Priority>,
    since: Timestamp,
    attempt: AttemptId,
}

/// Why an attempt still waits for quota.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shortfall {
    /// What it asks for.
    pub asked: Resources,
    /// What is not promised to anyone now.
    pub free: Resources,
    /// All that the queue may promise.
    pub quota: Resources,
    /// How many wait before it.
    pub ahead: usize,
    /// The nearest of those before it.
    pub after: Option<RunId>,
}

impl Queue {
    pub(super) fn new(quota: Resources) -> Self {
        Self {
            quota,
            promised: BTreeMap::new(),
            promised_sum: Resources::default(),
            waiting: BTreeSet::new(),
            places: BTreeMap::new(),
        }
    }

    /// Changes how much may be promised. What is already promised stays promised.
    pub(super) fn set_quota(&mut self, quota: Resources) {
        self.quota = quota;
    }

    /// Returns whether an ask could ever be admitted, everything else gone.
    pub(super) fn can_ever_fit(&self, asked: Resources) -> bool {
        asked.fits(self.quota)
    }

    /// Returns all that may be promised.
    pub(super) fn quota(&self) -> Resources {
        self.quota
    }

    /// Puts an attempt into the queue.
    pub(super) fn submit(
        &mut self,
        attempt: AttemptId,
        priority: Priority,
        since: Timestamp,
        asked: Resources,
    ) {
        self.withdraw(attempt.run);
        let place = Place {
            priority: Reverse(priority),
            since,
            attempt,
        };
        self.waiting.insert(place);
        self.places.insert(attempt.run, (place, asked));
    }

    /// Takes a run's waiting attempt out of the queue; one that does not wait is no mistake.
    pub(super) fn withdraw(&mut self, run: RunId) {
        if let Some((place, _)) = self.places.remove(&run) {
            self.waiting.remove(&place);
        }
    }

    /// Promises quota to the next attempt, if it fits, and returns it.
    pub(super) fn admit(&mut self) -> Option<AttemptId> {
        let place = *self.waiting.first()?;
        let (_, asked) = self.places[&place.attempt.run];
        let promised = self
            .promised_sum
            .checked_add(asked)
            .filter(|sum| sum.fits(self.quota))?;
        self.withdraw(place.attempt.run);
        self.promised_sum = promised;
        self.promised.insert(place.attempt, asked);
        Some(place.attempt)
    }

    /// Takes back what was promised to an attempt; one without a promise is no mistake.
    pub(super) fn release(&mut self, attempt: AttemptId) {
        let Some(asked) = self.promised.remove(&attempt) else {
            return;
        };
        self.promised_sum = self
            .promised_sum
            .checked_sub(asked)
            .expect("the sum holds each of its parts");
    }

    /// Returns why the run's attempt still waits, or `None` when it does not wait here.
    pub(super) fn shortfall(&self, run: RunId) -> Option<Shortfall> {
        let (place, asked) = self.places.get(&run)?;
        let before = self.waiting.range(..place);
        Some(Shortfall {
            asked: *asked,
            free: self.quota.saturating_sub(self.promised_sum),
            quota: self.quota,
            after: before.clone().next_back().map(|place| place.attempt.run),
            ahead: before.count(),
        })
    }

    /// Returns what keeps the run's attempt waiting, in a few words, or `None` when it does not wait here.
    ///
    /// Unlike a shortfall it does not count those before it, and so costs the same however many they are.
    pub(super) fn obstacle(&self, run: RunId) -> Option<String> {
        let (place, asked) = self.places.get(&run)?;
        let free = self.quota.saturating_sub(self.promised_sum);
        let needs = format!("asks for {asked}; free are {free}");
        Some(match self.waiting.range(..place).next_back() {
            Some(before) => format!("{needs}; {} is before it in the queue", before.attempt.run),
            None => needs,
        })
    }

    /// Returns what was promised to an attempt.
    pub(super) fn promised(&self, attempt: AttemptId) -> Option<Resources> {
        self.promised.get(&attempt).copied()
    }

    /// Returns every attempt that holds a promise.
    pub(super) fn holders(&self) -> impl Iterator<Item = AttemptId> {
        self.promised.keys().copied()
    }

    /// Returns whether the run's attempt waits here.
    pub(super) fn holds_waiting(&self, run: RunId) -> bool {
        self.places.contains_key(&run)
    }

    /// Panics when the queue contradicts itself.
    pub(super) fn check(&self) {
        let sum = self
            .promised
            .values()
            .try_fold(Resources::default(), |sum, asked| sum.checked_add(*asked));
        assert_eq!(sum, Some(self.promised_sum), "the sum of the promises is kept");
        assert_eq!(
            self.waiting.len(),
            self.places.len(),
            "each waiting attempt has one place"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Cpus;

    fn cpus(cores: u32) -> Resources {
        Resources {
            cpu: Cpus::cores(cores),
            ..Resources::default()
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("small")
    }

    #[test]
    fn the_order_is_by_priority_then_by_time_then_by_id() {
        let mut queue = Queue::new(cpus(9));
        queue.submit(RunId(1).attempt(1), Priority(0), at(5), cpus(1));
        queue.submit(RunId(2).attempt(1), Priority(0), at(3), cpus(1));
        queue.submit(RunId(3).attempt(1), Priority(9), at(7), cpus(1));
        queue.submit(RunId(4).attempt(1), Priority(0), at(3), cpus(1));
        let order: Vec<_> = std::iter::from_fn(|| queue.admit())
            .map(|attempt| attempt.run.0)
            .collect();
        assert_eq!(order, [3, 2, 4, 1]);
        queue.check();
    }

    #[test]
    fn nobody_overtakes_the_one_in_front() {
        let mut queue = Queue::new(cpus(2));
        queue.submit(RunId(1).attempt(1), Priority(0), at(1), cpus(1));
        queue.submit(RunId(2).attempt(1), Priority(0), at(2), cpus(2));
        queue.submit(RunId(3).attempt(1), Priority(0), at(3), cpus(1));
        assert_eq!(queue.admit(), Some(RunId(1).attempt(1)));
        assert_eq!(queue.admit(), None);
        let shortfall = queue.shortfall(RunId(3)).expect("it waits");
        assert_eq!(
            (shortfall.ahead, shortfall.after, shortfall.free),
            (1, Some(RunId(2)), cpus(1))
        );
        assert_eq!(
            queue.obstacle(RunId(3)).as_deref(),
            Some("asks for 1 cpu, 0 memory; free are 1 cpu, 0 memory; r-2 is before it in the queue")
        );
        queue.release(RunId(1).attempt(1));
        assert_eq!(queue.admit(), Some(RunId(2).attempt(1)));
        queue.check();
    }

    #[test]
    fn releasing_twice_gives_nothing_back_twice() {
        let mut queue = Queue::new(cpus(1));
        queue.submit(RunId(1).attempt(1), Priority(0), at(1), cpus(1));
        let attempt = queue.admit().expect("it fits");
        queue.release(attempt);
        queue.release(attempt);
        queue.check();
        assert_eq!(queue.promised(attempt), None);
    }
}

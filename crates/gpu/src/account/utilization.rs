//! For which time each reading of how busy a device was stands.

use std::collections::VecDeque;

use blueproof_core::gpu::{BusySample, Figure, Reading, Readings, Sample};
use jiff::Timestamp;

use super::amounts::millionths;

/// What drivers call a moment lasts between a sixth of a second and a second; half a second is for their being late.
/// Samples that are farther apart have a gap between them.
const LONGEST_PERIOD: i64 = 1_500_000;

/// A driver's clock may be ahead of ours by so much. What is told of a later time is not believed.
const AHEAD_AT_MOST: i64 = 1_000_000;

/// Monitors tell nothing new so soon after they told something: who asks then is told the same once more.
const MONITORED_APART: i64 = 100_000;

/// How busy a device was from one microsecond to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BusyInterval {
    pub(super) from: i64,
    pub(super) until: i64,
    /// Until when it was charged already.
    pub(super) charged: i64,
    /// In millionths.
    pub(super) utilization: u64,
    /// Whether it is a momentary value, and not the mean of its time.
    pub(super) is_coarse: bool,
}

/// When a snapshot was taken, in microseconds, and how long a momentary value may stand for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) at: i64,
    /// When the reading ended.
    pub(super) ended: i64,
    /// How often devices are meant to be read.
    pub(super) every: i64,
}

/// How busy a device was, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct UtilizationSeries {
    /// Until when readings were taken in.
    until: Option<i64>,
    /// How long the driver's own periods were of late.
    period: Option<i64>,
    intervals: VecDeque<BusyInterval>,
}

impl Moment {
    /// Returns since when a value stands that was read now, where the one before was read at a time.
    pub(super) fn stands_since(self, before: i64) -> i64 {
        // One snapshot may be late, but that is all: a gap of an hour is not filled with a moment's value.
        if self.at - before > 2 * self.every {
            self.at - self.every
        } else {
            before
        }
    }
}

impl UtilizationSeries {
    /// Takes in how busy the device was, where it was read before at a time.
    pub(super) fn read(&mut self, sample: &Sample, moment: Moment, read_at: Option<i64>) {
        match &sample.busy {
            Reading::Value(samples) => self.read_ring(samples, moment),
            // What it remembers may yet be read.
            Reading::Failed(_) => {}
            Reading::Unsupported => self.read_gauges(&sample.readings, moment, read_at),
        }
    }

    /// Returns what is known of the time until now, and was not returned before; what reaches beyond is cut.
    pub(super) fn next(&mut self, now: i64) -> Option<BusyInterval> {
        let first = self.intervals.front_mut()?;
        if first.charged >= now {
            return None;
        }
        let interval = *first;
        if interval.until <= now {
            self.intervals.pop_front();
        } else {
            first.charged = now;
        }
        Some(interval)
    }

    /// Moves the times by so much.
    pub(super) fn move_by(&mut self, by: i64) {
        self.until = self.until.map(|until| until + by);
        for interval in &mut self.intervals {
            interval.from += by;
            interval.until += by;
            interval.charged += by;
        }
    }

    /// Returns until when all is known that will be.
    pub(super) fn settled(&self) -> Option<i64> {
        self.intervals
            .front()
            .map(|interval| interval.charged)
            .or(self.until)
    }

    /// Takes in the driver's own samples, each of which tells of the time since the one before.
    fn read_ring(&mut self, samples: &[BusySample], moment: Moment) {
        if self.until.is_none() && samples.is_empty() {
            // It remembers nothing, so what it tells next began later.
            self.until = Some(moment.at);
        }
        for (place, sample) in samples.iter().enumerate() {
            let at = micros(sample.at);
            let is_new = self.until.is_none_or(|until| until < at);
            if !is_new || at > moment.ended.saturating_add(AHEAD_AT_MOST) {
                continue;
            }
            let next = samples.get(place + 1).map(|next| micros(next.at) - at);
            let from = self.since(at, next);
            if let (Some(from), Some(utilization)) = (from, millionths(sample.utilization)) {
                self.push(from, at, utilization, false);
            }
            self.until = Some(at);
        }
    }

    /// Returns when the period began that ended at a time. After a gap it is taken to be as long as the next, or the last
    /// that was known; where none is known, nobody can say.
    fn since(&mut self, at: i64, next: Option<i64>) -> Option<i64> {
        let near = |period: &i64| (1..=LONGEST_PERIOD).contains(period);
        if let Some(period) = self.until.map(|until| at - until).filter(near) {
            self.period = Some(period);
            return Some(at - period);
        }
        let period = next.filter(near).or(self.period)?;
        Some(at - period)
    }

    /// Takes in values that stand for the time since the snapshot before. A momentary one that failed leaves a gap; the
    /// monitors' mean, which is repeated when it is asked for too soon, is of all the time since the last that was new.
    fn read_gauges(&mut self, readings: &Readings, moment: Moment, read_at: Option<i64>) {
        let monitored = readings.value(Figure::EngineActive).and_then(millionths);
        match (readings.get(Figure::Utilization), monitored) {
            (Reading::Value(utilization), _) => {
                let since = read_at.map(|at| moment.stands_since(at));
                if let (Some(since), Some(utilization)) = (since, millionths(utilization)) {
                    self.push(since, moment.at, utilization, true);
                }
            }
            (Reading::Failed(_), _) => {}
            (Reading::Unsupported, Some(utilization)) => {
                if let Some(until) = self.until {
                    if moment.at - until < MONITORED_APART {
                        return;
                    }
                    self.push(moment.stands_since(until), moment.at, utilization, false);
                }
            }
            (Reading::Unsupported, None) => {
                let waits = |until| moment.at - until <= 2 * moment.every;
                if self.until.is_some_and(waits) {
                    return;
                }
            }
        }
        self.until = self.until.max(Some(moment.at));
    }

    fn push(&mut self, from: i64, until: i64, utilization: u64, is_coarse: bool) {
        let from = from.max(self.until.unwrap_or(i64::MIN));
        if from < until {
            self.intervals.push_back(BusyInterval {
                from,
                until,
                charged: from,
                utilization,
                is_coarse,
            });
        }
    }
}

/// Returns a time in microseconds.
pub(super) fn micros(at: Timestamp) -> i64 {
    at.as_microsecond()
}

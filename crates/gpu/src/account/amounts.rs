//! Sums of device time and energy, and how they are divided without losing any.
//!
//! Time is in picoseconds: a microsecond, in which drivers tell the time, times a millionth, in which utilization is kept.
//! So a busy sample that is cut in two at an edge is cut without a remainder. Energy is in microjoules.

use std::{iter::Sum, ops::AddAssign};

use serde::{Deserialize, Serialize};

/// All of the time, in millionths.
pub(super) const WHOLE: u64 = 1_000_000;

/// What a device did, or a holder's share of it.
///
/// Two of these are equal where every sum is, to the last picosecond and microjoule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts {
    pub(super) allocated: u128,
    pub(super) busy: u128,
    pub(super) busy_seen: u128,
    pub(super) energy: u128,
    pub(super) energy_seen: u128,
    pub(super) memory_seen: u128,
}

/// Which share of the allocated time was seen, between 0 and 1. What was not seen is in no sum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    /// How busy the devices were.
    pub busy: f64,
    /// What they drew.
    pub energy: f64,
    /// How full their memory was.
    pub memory: f64,
}

impl Amounts {
    /// Returns for how long devices were there for it, in GPU-seconds: of a shared device each holder has an equal share.
    pub fn allocated_seconds(&self) -> f64 {
        seconds(self.allocated)
    }

    /// Returns how busy they were, in GPU-seconds, of what was seen. `None` where nothing was.
    pub fn busy_seconds(&self) -> Option<f64> {
        (self.busy_seen > 0 || self.busy > 0).then(|| seconds(self.busy))
    }

    /// Returns of how much of the allocated time it was seen how busy they were, in GPU-seconds.
    pub fn seen_seconds(&self) -> f64 {
        seconds(self.busy_seen)
    }

    /// Returns what they drew, in joules, of what was seen. `None` where nothing was.
    pub fn joules(&self) -> Option<f64> {
        (self.energy_seen > 0 || self.energy > 0).then(|| self.energy as f64 / 1e6)
    }

    /// Returns how much of it was seen; `None` of no time at all.
    pub fn coverage(&self) -> Option<Coverage> {
        // Shares of a shared device are rounded, each by less than a picosecond.
        let of = |seen: u128| (seen as f64 / self.allocated as f64).min(1.0);
        (self.allocated > 0).then(|| Coverage {
            busy: of(self.busy_seen),
            energy: of(self.energy_seen),
            memory: of(self.memory_seen),
        })
    }

    /// Returns the `place`th of `among` equal shares; all of them together are this.
    pub(super) fn share(self, place: usize, among: usize) -> Self {
        let of = |whole| share(whole, place, among);
        Self {
            allocated: of(self.allocated),
            busy: of(self.busy),
            busy_seen: of(self.busy_seen),
            energy: of(self.energy),
            energy_seen: of(self.energy_seen),
            memory_seen: of(self.memory_seen),
        }
    }
}

impl AddAssign for Amounts {
    fn add_assign(&mut self, other: Self) {
        self.allocated += other.allocated;
        self.busy += other.busy;
        self.busy_seen += other.busy_seen;
        self.energy += other.energy;
        self.energy_seen += other.energy_seen;
        self.memory_seen += other.memory_seen;
    }
}

impl Sum for Amounts {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), |mut sum, amounts| {
            sum += amounts;
            sum
        })
    }
}

/// Returns a stretch of time in picoseconds; there are none of negative length.
pub(super) fn picos(micros: i64) -> u128 {
    u128::from(micros.max(0).unsigned_abs()) * u128::from(WHOLE)
}

/// Returns the `place`th of `among` equal shares.
pub(super) fn share(whole: u128, place: usize, among: usize) -> u128 {
    let until = |shares: usize| whole * shares as u128 / among as u128;
    until(place + 1) - until(place)
}

/// Divides by weight, without remainder. `None` where all weights are zero, and there is something to divide.
pub(super) fn divided(whole: u128, weights: &[u128]) -> Option<Vec<u128>> {
    let sum: u128 = weights.iter().sum();
    if sum == 0 {
        return (whole == 0).then(|| vec![0; weights.len()]);
    }
    let mut weight = 0;
    let mut before = 0;
    let shares = weights.iter().map(|of| {
        weight += of;
        let until = whole * weight / sum;
        until - std::mem::replace(&mut before, until)
    });
    Some(shares.collect())
}

/// Returns a share between 0 and 1 in millionths; `None` where it is no number.
pub(super) fn millionths(share: f64) -> Option<u64> {
    // After the clamp it fits.
    (!share.is_nan()).then(|| (share.clamp(0.0, 1.0) * WHOLE as f64).round() as u64)
}

/// Returns what a counter shows, in microjoules; `None` where no counter can show that.
pub(super) fn microjoules(joules: f64) -> Option<u128> {
    // A kilowatt for thirty years. Times all microseconds of the calendar it can still be counted.
    const MOST: f64 = 1e12;
    (0.0..=MOST)
        .contains(&joules)
        .then(|| (joules * 1e6).round() as u128)
}

fn seconds(picos: u128) -> f64 {
    picos as f64 / 1e12
}

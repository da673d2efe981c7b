//! How long the next one of a kind may take.
//!
//! Of `n` that took x₁ ≤ … ≤ xₙ, and one more of their kind, each of the n + 1 places that it may take among them is
//! equally likely, whatever the distribution (Hahn and Meeker, "Statistical Intervals", chapter 5). So the next one stays below xₖ with probability k / (n + 1),
//! which for few is far from the share of those that did. Between two of them the line is drawn straight, as in Beran and
//! Hall, "Interpolated nonparametric prediction intervals" (J. R. Statist. Soc. B 55, 1993).
//!
//! The last place, beyond the longest, has no end; with less than nine the p90 lies there. Its shape is supposed to be
//! exponential, with a mean that is as uncertain as the few longest leave it: of the k = ⌈n/2⌉ longest, with u the one
//! before them, or 0, and S the sum of all xᵢ − u among them and once more xₙ − u,
//!
//! > P(X > xₙ + t | X > xₙ) = (1 + t / S)⁻ᵏ
//!
//! is exact where what lies beyond u is exponential (the ratio of an exponential to a gamma variable is Pareto). What
//! varies less, as most notebooks do, is estimated too late there and not too early. With one earlier attempt the p90 is
//! nine times what it took.

use std::collections::VecDeque;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// How many of the latest are remembered: enough for a p90, and few enough to follow a blueprint that changes.
const REMEMBERED: usize = 100;

/// How long the latest of a kind took.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "VecDeque<SignedDuration>", into = "VecDeque<SignedDuration>")]
pub(crate) struct Sample {
    by_age: VecDeque<SignedDuration>,
    by_length: Vec<SignedDuration>,
}

impl From<VecDeque<SignedDuration>> for Sample {
    fn from(by_age: VecDeque<SignedDuration>) -> Self {
        let mut by_length = Vec::from_iter(by_age.iter().copied());
        by_length.sort_unstable();
        Self { by_age, by_length }
    }
}

impl From<Sample> for VecDeque<SignedDuration> {
    fn from(sample: Sample) -> Self {
        sample.by_age
    }
}

impl Sample {
    /// Adds one, and forgets the oldest when there are enough.
    pub(crate) fn add(&mut self, took: SignedDuration) {
        if self.by_age.len() == REMEMBERED
            && let Some(oldest) = self.by_age.pop_front()
        {
            let at = self.by_length.partition_point(|known| *known < oldest);
            self.by_length.remove(at);
        }
        let at = self.by_length.partition_point(|known| *known <= took);
        self.by_length.insert(at, took);
        self.by_age.push_back(took);
    }

    /// Takes out the latest that took so long; one that is forgotten is no mistake.
    pub(crate) fn remove(&mut self, took: SignedDuration) {
        if let Some(at) = self.by_age.iter().rposition(|known| *known == took) {
            self.by_age.remove(at);
            let at = self.by_length.partition_point(|known| *known < took);
            self.by_length.remove(at);
        }
    }

    /// Returns how many there are.
    pub(crate) fn count(&self) -> usize {
        self.by_length.len()
    }

    /// Returns how long the longest took.
    pub(crate) fn longest(&self) -> Option<SignedDuration> {
        self.by_length.last().copied()
    }

    /// Returns what the next one stays below with a probability of `p`, between 0 and 1, when it has already taken as long
    /// as `elapsed`; `None` when there are none to go by.
    pub(crate) fn quantile(&self, p: f64, elapsed: SignedDuration) -> Option<SignedDuration> {
        let longest = self.longest()?;
        if elapsed >= longest {
            return Some(elapsed + self.excess(1.0 - p, elapsed - longest));
        }
        let places = self.count() as f64 + 1.0;
        let passed = self.place_of(elapsed);
        Some(self.at(passed + p * (places - passed), longest))
    }

    /// Returns how many places have been passed by one that takes so long, which is less than the longest.
    fn place_of(&self, elapsed: SignedDuration) -> f64 {
        let shorter = self.by_length.partition_point(|known| *known <= elapsed);
        let Some(before) = shorter.checked_sub(1) else {
            return 0.0;
        };
        let (low, high) = (self.by_length[before], self.by_length[shorter]);
        shorter as f64 + (elapsed - low).as_secs_f64() / (high - low).as_secs_f64()
    }

    /// Returns how long one takes that passes so many places. None is supposed to be shorter than the shortest.
    fn at(&self, places: f64, longest: SignedDuration) -> SignedDuration {
        let passed = places as usize;
        if passed >= self.count() {
            let left = self.count() as f64 + 1.0 - places;
            return longest + self.excess(left, SignedDuration::ZERO);
        }
        let high = self.by_length[passed];
        let low = passed
            .checked_sub(1)
            .map_or(high, |before| self.by_length[before]);
        low + (high - low).mul_f64(places.fract())
    }

    /// Returns by how much one exceeds, with a probability of `survives`, what it has already taken, which is the longest
    /// and so much `beyond`.
    fn excess(&self, survives: f64, beyond: SignedDuration) -> SignedDuration {
        let count = self.count();
        let upper = count.div_ceil(2);
        let (below, longest) = self.by_length.split_at(count - upper);
        let base = below.last().copied().unwrap_or_default();
        let once_more = longest.last().copied();
        let spread: SignedDuration = longest
            .iter()
            .copied()
            .chain(once_more)
            .map(|took| took - base)
            .sum();
        (spread + beyond).mul_f64(survives.powf(-1.0 / upper as f64) - 1.0)
    }
}

#[cfg(test)]
mod tests;

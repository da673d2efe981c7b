//! How long things took, by how many of them took at most so long.

use jiff::SignedDuration;

/// Times that were seen, by bounds that are fixed.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    bounds: &'static [f64],
    /// How many times there were up to each bound and above the one before; the last is above all bounds.
    counts: Vec<u64>,
    sum: SignedDuration,
}

impl Histogram {
    /// Returns one that has seen nothing.
    pub fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len() + 1],
            sum: SignedDuration::ZERO,
        }
    }

    /// Returns one that has seen so many times up to each bound and above the one before; `None` where there are other
    /// bounds.
    pub(super) fn from_counts(bounds: &'static [f64], counts: Vec<u64>, sum: SignedDuration) -> Option<Self> {
        (counts.len() == bounds.len() + 1).then_some(Self { bounds, counts, sum })
    }

    pub(super) fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Counts a time. One below zero is taken as none.
    pub fn observe(&mut self, took: SignedDuration) {
        let took = took.max(SignedDuration::ZERO);
        let seconds = took.as_secs_f64();
        let at = self.bounds.partition_point(|bound| *bound < seconds);
        self.counts[at] += 1;
        self.sum = self.sum.saturating_add(took);
    }

    /// Returns each bound, and how many times were at most that; the last one is infinite.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        }))
    }

    /// Returns how many times there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns all times together.
    pub fn sum(&self) -> SignedDuration {
        self.sum
    }
}

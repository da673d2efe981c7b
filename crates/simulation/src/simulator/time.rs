//! The time of the course, as the queues have it.

use jiff::{SignedDuration, Timestamp};

use super::Simulator;

impl Simulator<'_> {
    /// Returns the time that an instant has for the queues.
    pub(super) fn timestamp(&self, instant: SignedDuration) -> Timestamp {
        let at = self.scenario.instants.get(&instant).copied().unwrap_or(instant);
        Timestamp::UNIX_EPOCH
            .saturating_add(at)
            .expect("a span without calendar units")
    }
}

/// Returns the instant that is of a time of the queues.
pub(super) fn since_begin(at: Timestamp) -> SignedDuration {
    at.duration_since(Timestamp::UNIX_EPOCH)
}

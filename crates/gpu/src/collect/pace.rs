//! Whether the machine's clock was set.

use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

/// Reads the machine's clock.
pub(super) type Wall = Box<dyn FnMut() -> Timestamp + Send>;

/// Two clocks that are read one after the other, on a machine that has much to do, differ by less.
const NOTICED_FROM: SignedDuration = SignedDuration::from_secs(1);

/// Holds the machine's clock, which people and NTP set, against one that only goes on.
pub(super) struct Pace {
    wall: Wall,
    before: Option<(Timestamp, Instant)>,
}

impl Pace {
    pub(super) fn of(wall: Wall) -> Self {
        Self { wall, before: None }
    }

    /// Returns by how much the clock was set, forwards or back, since this was asked last.
    pub(super) fn set_by(&mut self) -> Option<SignedDuration> {
        let now = ((self.wall)(), Instant::now());
        let before = self.before.replace(now)?;
        let went_on = SignedDuration::try_from(now.1 - before.1).unwrap_or(SignedDuration::MAX);
        let by = now.0.duration_since(before.0).saturating_sub(went_on);
        (by.abs() >= NOTICED_FROM).then_some(by)
    }
}

//! How long to wait before what failed is tried again.

use std::time::{Duration, Instant};

/// How long it is tried before nobody tries any more: long enough for a person to make room on a disk.
const TRIED_FOR: Duration = Duration::from_secs(15 * 60);

/// How long it waits between two tries at most; less at first.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// How long to wait before something that fails is tried again, and for how long that has gone on.
#[derive(Debug, Default)]
pub struct Pauses {
    /// When the first of the tries failed that failed one after the other.
    since: Option<Instant>,
    pause: Duration,
}

impl Pauses {
    /// Returns how long to wait after a try that has failed; `None` when it was tried for a quarter of an hour.
    pub fn after(&mut self, began: Instant, failed: Instant) -> Option<Duration> {
        // What went well for longer than that had nothing to do with the failures before.
        let is_new = failed.duration_since(began) > LONGEST_PAUSE;
        if is_new || self.since.is_none() {
            *self = Self {
                since: Some(failed),
                pause: Duration::from_secs(1),
            };
        } else {
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
        let tried_for = failed.duration_since(self.since?);
        (tried_for < TRIED_FOR).then_some(self.pause)
    }

    /// Returns whether any try has failed.
    pub fn has_failed(&self) -> bool {
        self.since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_tried_ever_more_rarely_and_not_for_ever() {
        let mut pauses = Pauses::default();
        let (first, mut waited) = (Instant::now(), Vec::new());
        let mut now = first;
        while let Some(pause) = pauses.after(now, now) {
            waited.push(pause.as_secs());
            now += pause;
        }
        assert_eq!(waited[..6], [1, 2, 4, 8, 15, 15]);
        let tried_for = now - first;
        assert!(
            tried_for >= TRIED_FOR && tried_for < TRIED_FOR + LONGEST_PAUSE,
            "{tried_for:?}"
        );
    }

    #[test]
    fn what_fails_after_it_went_well_is_tried_for_as_long_again() {
        let mut pauses = Pauses::default();
        let mut now = Instant::now();
        while let Some(pause) = pauses.after(now, now) {
            now += pause;
        }
        let went_well_until = now + LONGEST_PAUSE * 2;
        assert_eq!(pauses.after(now, went_well_until), Some(Duration::from_secs(1)));
    }
}

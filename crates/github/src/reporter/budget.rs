//! How much may still be written to GitHub before it is too much.
//!
//! GitHub lets an App write 80 times a minute and 500 times an hour before it refuses
//! (<https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api>, secondary limits). What must be said takes what it
//! needs; what only progresses stops at half of it.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

/// The spans that are looked at, each with how much of progress may be written within it.
const LIMITS: [(SignedDuration, usize); 2] = [
    (SignedDuration::from_mins(1), 40),
    (SignedDuration::from_hours(1), 250),
];

/// What was written of late.
#[derive(Debug, Default)]
pub(super) struct WriteBudget {
    /// When, the oldest first. Only so many of them as matter.
    written: VecDeque<Timestamp>,
}

impl WriteBudget {
    /// Notes that something is written.
    pub(super) fn note(&mut self, now: Timestamp) {
        let most = LIMITS.iter().map(|(_, most)| *most).max().unwrap_or_default();
        self.written.push_back(now);
        while self.written.len() > most {
            self.written.pop_front();
        }
    }

    /// Returns until when progress has to wait; `None` where it may be written now.
    pub(super) fn waits_until(&self, now: Timestamp) -> Option<Timestamp> {
        let until = LIMITS.iter().filter_map(|(span, most)| {
            let first = self.written.len().checked_sub(*most)?;
            let free_at = self.written[first].saturating_add(*span).expect("a time span");
            (now < free_at).then_some(free_at)
        });
        until.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn so_much_is_written_in_a_minute_and_in_an_hour_and_no_more() {
        let (mut budget, mut written, mut in_first_minute) = (WriteBudget::default(), 0, 0);
        for second in 0..3600 {
            if budget.waits_until(at(second)).is_none() {
                budget.note(at(second));
                written += 1;
                in_first_minute += usize::from(second < 60);
            }
        }
        assert_eq!((in_first_minute, written), (40, 250));
        assert_eq!(budget.waits_until(at(3600)), None, "the first is an hour old");
    }

    #[test]
    fn what_had_to_be_written_counts_too() {
        let mut budget = WriteBudget::default();
        for _ in 0..5000 {
            budget.note(at(10));
        }
        assert_eq!(budget.waits_until(at(10)), Some(at(3610)));
    }
}

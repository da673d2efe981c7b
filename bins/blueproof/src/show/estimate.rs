//! When a run is likely to start and to end, in words.

use blueproof_core::estimate::{Basis, Estimate, When};
use jiff::Timestamp;

use super::text::duration;
use crate::output::{ago, clock};

/// Why nothing is said of how long a run takes.
const NO_HISTORY: &str = "no estimate: fewer than 3 finished runs of this blueprint with these parameters";

/// Returns when it is likely to start; `None` when it has, or nothing is known.
pub(crate) fn starts(estimate: &Estimate, now: Timestamp) -> Option<String> {
    Some(when(estimate.start?, now))
}

/// Returns when it is likely to end, and what tells that.
pub(crate) fn ends(estimate: &Estimate, now: Timestamp) -> Option<String> {
    if let Some(late) = late(estimate) {
        return Some(late);
    }
    match (estimate.end, estimate.from) {
        (None, Basis::Limits) => Some(format!("{NO_HISTORY}, and no limit of time")),
        (None, Basis::Blueprint { .. }) => None,
        (Some(When::AtLatest { at }), Basis::Limits) => Some(format!(
            "at {} at the latest, by its limits of time; {NO_HISTORY}",
            clock(at, now)
        )),
        (Some(end @ When::AtLatest { .. }), from @ Basis::Blueprint { .. }) => {
            Some(format!("{}; it takes as long as{}", when(end, now), like(from)))
        }
        (Some(end @ When::Likely { .. }), from) => Some(format!("{}{}", when(end, now), from_runs(from))),
    }
}

/// Returns what comes next, its start or its end, in a few words.
pub(crate) fn next(estimate: &Estimate, now: Timestamp) -> Option<String> {
    if let Some(late) = late(estimate) {
        return Some(late);
    }
    let starts = estimate.start.map(|start| ("starts", start));
    let (verb, when) = starts.or(estimate.end.map(|end| ("ends", end)))?;
    Some(match when {
        When::Likely { p50, p90 } => {
            format!("{verb} about {} (p90 {})", clock(p50, now), clock(p90, now))
        }
        When::AtLatest { at } => format!("{verb} at {} at the latest", clock(at, now)),
    })
}

/// Says that it takes longer than any that is known. What is left then only grows, and is no estimate that helps anybody.
fn late(estimate: &Estimate) -> Option<String> {
    let longest = duration(estimate.longer_than?);
    Some(match estimate.from {
        Basis::Blueprint { runs } => {
            format!("longer than usual: the longest of {runs} earlier runs took {longest}")
        }
        Basis::Limits => format!("past its limits of time, {longest}"),
    })
}

fn when(when: When, now: Timestamp) -> String {
    match when {
        When::Likely { p50, p90 } => format!(
            "about {}, {} (p90 {})",
            clock(p50, now),
            ago(p50, now),
            clock(p90, now)
        ),
        When::AtLatest { at } => format!(
            "at {} at the latest, by the limits of time of runs before it, of which some have no history",
            clock(at, now)
        ),
    }
}

fn like(basis: Basis) -> String {
    match basis {
        Basis::Blueprint { runs } => format!(" its {runs} earlier runs"),
        Basis::Limits => " its limits of time let it".into(),
    }
}

fn from_runs(basis: Basis) -> String {
    match basis {
        Basis::Blueprint { runs } => format!(", from {runs} earlier runs"),
        Basis::Limits => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn after(minutes: i64) -> Timestamp {
        now() + SignedDuration::from_mins(minutes)
    }

    fn now() -> Timestamp {
        "2026-09-21T13:53:00Z".parse().expect("a time")
    }

    #[test]
    fn one_that_takes_longer_than_all_before_it_is_said_to_and_has_no_end_that_slides() {
        let late = Estimate {
            start: None,
            end: Some(When::Likely {
                p50: after(1),
                p90: after(9),
            }),
            from: Basis::Blueprint { runs: 4 },
            longer_than: Some(SignedDuration::from_secs(252)),
        };
        let says = Some("longer than usual: the longest of 4 earlier runs took 4m12s".to_owned());
        assert_eq!((ends(&late, now()), next(&late, now())), (says.clone(), says));
        let past_limits = Estimate {
            end: None,
            from: Basis::Limits,
            ..late
        };
        let says = Some("past its limits of time, 4m12s".to_owned());
        assert_eq!(
            (ends(&past_limits, now()), next(&past_limits, now())),
            (says.clone(), says)
        );
    }

    #[test]
    fn a_start_and_an_end_are_told_with_their_p90_and_what_tells_them() {
        let likely = |p50, p90| {
            let (p50, p90) = (after(p50), after(p90));
            Some(When::Likely { p50, p90 })
        };
        let mut estimate = Estimate {
            start: likely(12, 27),
            end: likely(28, 47),
            from: Basis::Blueprint { runs: 23 },
            longer_than: None,
        };
        let told = |estimate: &Estimate| {
            (
                starts(estimate, now()),
                ends(estimate, now()),
                next(estimate, now()),
            )
        };
        assert_eq!(
            told(&estimate),
            (
                Some("about 14:05, in 12m (p90 14:20)".into()),
                Some("about 14:21, in 28m (p90 14:40), from 23 earlier runs".into()),
                Some("starts about 14:05 (p90 14:20)".into())
            )
        );
        estimate.start = None;
        assert_eq!(
            told(&estimate),
            (
                None,
                Some("about 14:21, in 28m (p90 14:40), from 23 earlier runs".into()),
                Some("ends about 14:21 (p90 14:40)".into())
            )
        );
        (estimate.end, estimate.from) = (Some(When::AtLatest { at: after(60) }), Basis::Limits);
        assert_eq!(
            told(&estimate),
            (
                None,
                Some(format!(
                    "at 14:53 at the latest, by its limits of time; {NO_HISTORY}"
                )),
                Some("ends at 14:53 at the latest".into())
            )
        );
        (estimate.start, estimate.end) = (likely(12, 27), None);
        assert_eq!(
            ends(&estimate, now()),
            Some(format!("{NO_HISTORY}, and no limit of time"))
        );
    }

    #[test]
    fn a_bound_from_the_limits_of_others_is_not_said_to_be_from_a_run_without_history() {
        let known = Estimate {
            start: Some(When::AtLatest { at: after(50) }),
            from: Basis::Blueprint { runs: 9 },
            end: Some(When::AtLatest { at: after(60) }),
            longer_than: None,
        };
        let before = "by the limits of time of runs before it, of which some have no history";
        assert_eq!(
            (starts(&known, now()), ends(&known, now())),
            (
                Some(format!("at 14:43 at the latest, {before}")),
                Some(format!(
                    "at 14:53 at the latest, {before}; it takes as long as its 9 earlier runs"
                ))
            )
        );
    }
}

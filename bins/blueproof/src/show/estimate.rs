//! When a run is likely to start and to end, in words.

use blueproof_core::estimate::{Basis, Estimate, When};
use jiff::Timestamp;

use crate::output::{ago, clock};

/// Returns when it is likely to start; `None` when it has, or nothing is known.
pub(crate) fn starts(estimate: &Estimate, now: Timestamp) -> Option<String> {
    Some(when(estimate.start?, now))
}

/// Returns when it is likely to end, and what tells that.
pub(crate) fn ends(estimate: &Estimate, now: Timestamp) -> Option<String> {
    let Some(end) = estimate.end else {
        let unknown = "unknown: there is no history, and no limit of time";
        return (estimate.from == Basis::Limits).then(|| unknown.to_owned());
    };
    let from = match end {
        When::Likely { .. } => from(estimate.from),
        When::AtLatest { .. } => String::new(),
    };
    Some(format!("{}{from}", when(end, now)))
}

/// Returns what comes next, its start or its end, in a few words.
pub(crate) fn next(estimate: &Estimate, now: Timestamp) -> Option<String> {
    let starts = estimate.start.map(|start| ("starts", start));
    let (verb, when) = starts.or(estimate.end.map(|end| ("ends", end)))?;
    Some(match when {
        When::Likely { p50, p90 } => {
            format!("{verb} about {} (p90 {})", clock(p50, now), clock(p90, now))
        }
        When::AtLatest { at } => format!("{verb} at {} at the latest", clock(at, now)),
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
            "at {} at the latest, by limits of time: there is no history",
            clock(at, now)
        ),
    }
}

fn from(basis: Basis) -> String {
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
    fn a_start_and_an_end_are_told_with_their_p90_and_what_tells_them() {
        let likely = |p50, p90| {
            let (p50, p90) = (after(p50), after(p90));
            Some(When::Likely { p50, p90 })
        };
        let mut estimate = Estimate {
            start: likely(12, 27),
            end: likely(28, 47),
            from: Basis::Blueprint { runs: 23 },
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
                Some("at 14:53 at the latest, by limits of time: there is no history".into()),
                Some("ends at 14:53 at the latest".into())
            )
        );
        (estimate.start, estimate.end) = (likely(12, 27), None);
        assert_eq!(
            ends(&estimate, now()),
            Some("unknown: there is no history, and no limit of time".into())
        );
    }
}

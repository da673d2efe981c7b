//! Times as people say them.

use jiff::{RoundMode, SignedDuration, Timestamp, TimestampRound, Unit, tz::TimeZone};

/// Returns how long ago something was, as `3m ago`: the largest unit only. What is yet to come is `in 3m`.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    let since = now.duration_since(at);
    if since < SignedDuration::ZERO {
        return format!("in {}", coarse(since.abs()));
    }
    format!("{} ago", coarse(since))
}

fn coarse(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match (seconds, minutes, hours, days) {
        (..60, ..) => format!("{seconds}s"),
        (_, ..60, ..) => format!("{minutes}m"),
        (.., ..48, _) => format!("{hours}h"),
        (.., ..730) => format!("{days}d"),
        _ => format!("{}y", days / 365),
    }
}

/// Returns a point in time with its zone, to the second.
pub(crate) fn absolute(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns a point in time to the second as whoever reads has it, with how far their zone is from UTC.
pub(crate) fn local(at: Timestamp) -> String {
    local_in(&zone(), at)
}

fn local_in(zone: &TimeZone, at: Timestamp) -> String {
    let at = at.to_zoned(zone.clone());
    match at.offset().is_zero() {
        true => absolute(at.timestamp()),
        false => at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
    }
}

/// Returns a point in time near `now` as a clock on the wall shows it, never earlier than it is: with its day where that is
/// another one, and to the second where it is less than ten minutes away.
pub(crate) fn clock(at: Timestamp, now: Timestamp) -> String {
    clock_in(&zone(), at, now)
}

/// Returns the zone of whoever reads.
fn zone() -> TimeZone {
    // What tests compare is the same in every zone.
    if cfg!(test) {
        TimeZone::UTC
    } else {
        TimeZone::system()
    }
}

fn clock_in(zone: &TimeZone, at: Timestamp, now: Timestamp) -> String {
    let away = at.duration_since(now).abs();
    let (unit, time) = if away < SignedDuration::from_mins(10) {
        (Unit::Second, "%H:%M:%S")
    } else {
        (Unit::Minute, "%H:%M")
    };
    let ceil = TimestampRound::new().smallest(unit).mode(RoundMode::Ceil);
    let at = at.round(ceil).unwrap_or(at).to_zoned(zone.clone());
    if at.date() == now.to_zoned(zone.clone()).date() {
        return at.strftime(time).to_string();
    }
    format!("{} {}", at.date(), at.strftime(time))
}

#[cfg(test)]
mod tests {
    use jiff::tz;

    use super::*;

    #[test]
    fn times_are_told_in_their_largest_unit() {
        let now = Timestamp::from_second(100_000_000).expect("a time");
        for (seconds, text) in [
            (0, "0s ago"),
            (59, "59s ago"),
            (60, "1m ago"),
            (3599, "59m ago"),
            (3600, "1h ago"),
            (47 * 3600, "47h ago"),
            (48 * 3600, "2d ago"),
            (729 * 86400, "729d ago"),
            (730 * 86400, "2y ago"),
            (-90, "in 1m"),
        ] {
            assert_eq!(ago(now - SignedDuration::from_secs(seconds), now), text);
        }
    }

    #[test]
    fn a_clock_is_as_exact_as_what_it_shows_is_near_and_never_early() {
        let now: Timestamp = "2026-09-21T13:50:00.4Z".parse().expect("a time");
        for (at, text) in [
            ("2026-09-21T13:52:07.2Z", "13:52:08"),
            ("2026-09-21T14:05:00Z", "14:05"),
            ("2026-09-21T14:04:01Z", "14:05"),
            ("2026-09-22T01:00:00Z", "2026-09-22 01:00"),
        ] {
            let at = at.parse().expect("a time");
            assert_eq!(clock_in(&TimeZone::UTC, at, now), text);
        }
    }

    #[test]
    fn a_whole_time_is_told_in_the_zone_of_whoever_reads() {
        let at: Timestamp = "2026-09-21T22:15:07.4Z".parse().expect("a time");
        for (hours, text) in [
            (0, "2026-09-21T22:15:07Z"),
            (2, "2026-09-22T00:15:07+02:00"),
            (-5, "2026-09-21T17:15:07-05:00"),
        ] {
            assert_eq!(local_in(&TimeZone::fixed(tz::offset(hours)), at), text);
        }
    }

    #[test]
    fn a_zone_is_found_by_the_name_that_the_system_has_it_under() {
        use std::io::Write as _;

        let (name, here) = ("Asia/Tokyo", "/usr/share/zoneinfo/Asia/Tokyo");
        if !std::path::Path::new(here).exists() {
            // Not by a macro, whose words the test harness keeps to itself where a test passes.
            let _ = writeln!(std::io::stderr(), "NOT TESTED: time zones, without {here}");
            return;
        }
        let zone = TimeZone::get(name).expect("the system has it");
        let now: Timestamp = "2026-09-21T13:50:00Z".parse().expect("a time");
        assert_eq!(clock_in(&zone, now, now), "22:50:00");
    }

    #[test]
    fn a_clock_shows_the_time_and_the_day_of_whoever_reads() {
        let now: Timestamp = "2026-09-21T21:30:00Z".parse().expect("a time");
        let zone = TimeZone::fixed(tz::offset(2));
        for (at, text) in [
            ("2026-09-21T21:45:00Z", "23:45"),
            ("2026-09-21T22:15:00Z", "2026-09-22 00:15"),
        ] {
            assert_eq!(clock_in(&zone, at.parse().expect("a time"), now), text);
        }
    }
}

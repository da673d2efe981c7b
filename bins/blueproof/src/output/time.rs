//! Times as people say them.

use jiff::{SignedDuration, Timestamp};

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

#[cfg(test)]
mod tests {
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
}

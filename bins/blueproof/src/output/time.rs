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

/// Returns a duration as `1m32s`: milliseconds below a second, tenths below ten.
pub(crate) fn duration(duration: SignedDuration) -> String {
    let duration = duration.max(SignedDuration::ZERO);
    let (seconds, millis) = (duration.as_secs(), duration.subsec_millis());
    if seconds == 0 {
        return format!("{millis}ms");
    }
    if seconds < 10 {
        return format!("{seconds}.{}s", millis / 100);
    }
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest:02}s"),
        _ => format!("{hours}h{minutes:02}m{rest:02}s"),
    }
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

    #[test]
    fn durations_are_as_exact_as_they_are_short() {
        for (millis, text) in [
            (-5, "0ms"),
            (0, "0ms"),
            (21, "21ms"),
            (999, "999ms"),
            (1_300, "1.3s"),
            (9_999, "9.9s"),
            (10_000, "10s"),
            (92_000, "1m32s"),
            (3_600_000, "1h00m00s"),
            (3_723_000, "1h02m03s"),
        ] {
            assert_eq!(duration(SignedDuration::from_millis(millis)), text);
        }
    }
}

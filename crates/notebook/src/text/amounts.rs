//! Counts and lengths of time as people read them, the same in a terminal and on a page.

use jiff::SignedDuration;

/// Returns a count with its noun: `1 cell`, `2 cells`.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Returns a length of time as people say it, rounded: `21 ms`, `1.4 s`, `1m32s`, `2h05m`.
pub fn duration(span: SignedDuration) -> String {
    let millis = span.as_millis().max(0);
    let (tenths, seconds, minutes) = (
        (millis + 50) / 100,
        (millis + 500) / 1000,
        (millis + 30_000) / 60_000,
    );
    // What is rounded up to the next unit is said in it: there are no 60.0 s.
    if millis < 1000 {
        format!("{millis} ms")
    } else if tenths < 600 {
        format!("{}.{} s", tenths / 10, tenths % 10)
    } else if seconds < 3600 {
        format!("{}m{:02}s", seconds / 60, seconds % 60)
    } else {
        format!("{}h{:02}m", minutes / 60, minutes % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        let told = [0, 1, 2].map(|count| counted(count, "mistake"));
        assert_eq!(told, ["0 mistakes", "1 mistake", "2 mistakes"]);
    }

    #[test]
    fn durations_are_said_as_people_say_them() {
        for (millis, text) in [
            (0, "0 ms"),
            (-5, "0 ms"),
            (999, "999 ms"),
            (1360, "1.4 s"),
            (59_949, "59.9 s"),
            (59_950, "1m00s"),
            (92_499, "1m32s"),
            (3_599_500, "1h00m"),
            (7_529_000, "2h05m"),
        ] {
            assert_eq!(duration(SignedDuration::from_millis(millis)), text);
        }
    }
}

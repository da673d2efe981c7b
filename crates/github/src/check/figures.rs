//! Amounts, times and series as people read them in a check run.

use jiff::{SignedDuration, Timestamp};

/// Returns a length of time, rounded: `1.4 s`, `9m12s`, `2h05m`; `None` where a clock went back in between.
pub(super) fn span(from: Timestamp, until: Timestamp) -> Option<String> {
    let span = until.duration_since(from);
    (span >= SignedDuration::ZERO).then(|| duration(span))
}

/// Returns a length of time, rounded: `1.4 s`, `9m12s`, `2h05m`.
pub(super) fn duration(span: SignedDuration) -> String {
    let millis = span.as_millis().max(0);
    // What is rounded up to the next unit is said in it: there are no 60.0 s.
    let (tenths, seconds, minutes) = (
        (millis + 50) / 100,
        (millis + 500) / 1000,
        (millis + 30_000) / 60_000,
    );
    if tenths < 600 {
        format!("{}.{} s", tenths / 10, tenths % 10)
    } else if seconds < 3600 {
        format!("{}m{:02}s", seconds / 60, seconds % 60)
    } else {
        format!("{}h{:02}m", minutes / 60, minutes % 60)
    }
}

/// Returns a time to the minute: `2026-11-25 14:05 UTC`.
pub(super) fn minute(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// Returns a share in percent; one that is not quite all is not shown as all.
pub(super) fn percent(share: f64) -> Option<String> {
    match share {
        _ if !share.is_finite() => None,
        _ if (0.995..1.0).contains(&share) => Some(">99 %".to_owned()),
        _ => Some(format!("{:.0} %", share * 100.0)),
    }
}

/// Returns a number in few characters: `0.352`, `1.2e-7`, `98123`.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e7).contains(&size) {
        return format!("{value:.2e}");
    }
    let decimals = match size {
        _ if size >= 1000.0 => 0,
        _ if size >= 10.0 => 2,
        _ => 4,
    };
    let fixed = format!("{value:.decimals$}");
    match fixed.contains('.') {
        true => fixed.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => fixed,
    }
}

/// Returns by how much a number differs from an earlier one, with its sign: `+0.53 (+38 %)`; `None` where that is no number.
pub(super) fn difference(then: f64, now: f64) -> Option<String> {
    let by = now - then;
    if !by.is_finite() {
        return None;
    }
    if by == 0.0 {
        return Some("same".to_owned());
    }
    let sign = if by > 0.0 { "+" } else { "" };
    let percent = by / then.abs() * 100.0;
    let percent = match percent.is_finite() && percent.abs() < 1e6 {
        true => format!(" ({percent:+.0} %)"),
        false => String::new(),
    };
    Some(format!("{sign}{}{percent}", number(by)))
}

/// The most values of a sparkline.
const SPARKS: usize = 24;

/// Returns a series as a line of blocks; `None` where fewer than two of its values are numbers. A longer one shows values at even distances,
/// the first and the last among them.
pub(super) fn sparkline(series: &[f64]) -> Option<String> {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let values: Vec<f64> = series.iter().copied().filter(|value| value.is_finite()).collect();
    if values.len() < 2 {
        return None;
    }
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let n_shown = values.len().min(SPARKS);
    let shown = (0..n_shown).map(|nth| values[nth * (values.len() - 1) / (n_shown - 1)]);
    let block = |value: f64| {
        // Halves, because the difference of two finite values need not be finite.
        let share = (value / 2.0 - least / 2.0) / (most / 2.0 - least / 2.0).max(f64::MIN_POSITIVE);
        BLOCKS[(share * 7.0).round().clamp(0.0, 7.0) as usize]
    };
    Some(shown.map(block).collect())
}

/// Returns how much of GPUs so many seconds of one are.
pub(super) fn gpu_minutes(seconds: f64) -> Option<String> {
    seconds
        .is_finite()
        .then(|| format!("{:.1} GPU-min", seconds / 60.0))
}

/// Returns a table; empty where it has no rows.
pub(super) fn table(header: &[String], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let rule = vec!["---".to_owned(); header.len()];
    let lines = [line(header), line(&rule)]
        .into_iter()
        .chain(rows.iter().map(|row| line(row)));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_numbers_are_short() {
        for (millis, text) in [
            (21, "0.0 s"),
            (59_949, "59.9 s"),
            (59_950, "1m00s"),
            (552_000, "9m12s"),
            (7_529_000, "2h05m"),
        ] {
            assert_eq!(duration(SignedDuration::from_millis(millis)), text);
        }
        for (value, text) in [
            (0.3524, "0.3524"),
            (98_123.4, "98123"),
            (1.234e-7, "1.23e-7"),
            (0.0, "0"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(percent(0.999).as_deref(), Some(">99 %"));
        assert_eq!(percent(f64::NAN), None);
    }

    #[test]
    fn a_difference_has_its_sign_and_none_is_invented() {
        for (then, now, expected) in [
            (1.41, 1.94, Some("+0.53 (+38 %)")),
            (2.0, 1.0, Some("-1 (-50 %)")),
            (0.0, 1.0, Some("+1")),
            (1.0, 1.0, Some("same")),
            (f64::MAX, f64::MIN, None),
        ] {
            assert_eq!(difference(then, now).as_deref(), expected);
        }
    }

    #[test]
    fn a_series_is_drawn_whatever_its_values() {
        for (series, expected) in [
            (&[1.0, 2.0, 3.0][..], Some("▁▅█")),
            (&[1.0, 1.0], Some("▁▁")),
            (&[f64::MAX, f64::MIN, 0.0], Some("█▁▅")),
            (&[1.0, f64::NAN], None),
            (&[], None),
        ] {
            assert_eq!(sparkline(series).as_deref(), expected, "{series:?}");
        }
        let long: Vec<f64> = (0..1000).map(f64::from).collect();
        let line = sparkline(&long).expect("there are values");
        assert_eq!(
            (line.chars().count(), line.starts_with('▁'), line.ends_with('█')),
            (SPARKS, true, true)
        );
    }
}

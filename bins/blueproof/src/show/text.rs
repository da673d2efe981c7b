//! Small texts: durations, figures and sparklines.

pub(crate) use blueproof_notebook::text::duration;
use jiff::SignedDuration;

/// Returns a count with its noun: `1 mistake`, `2 mistakes`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

/// Returns seconds as people say them beside others: `0s`, `45.5s`, `16m40s`, `3h53m`, `2d04h`.
pub(crate) fn span(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 if seconds < 59.95 => {
            let tenths = format!("{seconds:.1}");
            format!("{}s", tenths.strip_suffix(".0").unwrap_or(&tenths))
        }
        0..3600 => format!("{}m{:02}s", whole / 60, whole % 60),
        3600..172_800 => format!("{}h{:02}m", whole / 3600, whole / 60 % 60),
        _ => format!("{}d{:02}h", whole / 86_400, whole / 3600 % 24),
    }
}

/// Returns processor time as `1.2 cpu-s`.
pub(crate) fn cpu_seconds(time: SignedDuration) -> String {
    format!("{:.1} cpu-s", time.as_secs_f64())
}

/// Returns a number with at most four decimals, and none where it is very large: `0.2215`, `1234.5`, `1396724`.
pub(crate) fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "not a number".into();
    }
    if value.abs() >= 1e6 {
        return format!("{value:.0}");
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns values as `width` blocks, the lowest one lowest; fewer values, fewer blocks. One that is not finite is a cross.
pub(crate) fn sparkline(values: &[f64], width: usize) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let count = values.len().min(width);
    let pick = |at: usize| {
        values[if count < 2 {
            0
        } else {
            at * (values.len() - 1) / (count - 1)
        }]
    };
    let block = |value: f64| match high - low {
        _ if !value.is_finite() => '×',
        span if span > 0.0 => BLOCKS[((value - low) / span * 7.0).round() as usize],
        _ => BLOCKS[0],
    };
    (0..count).map(pick).map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_as_exact_as_people_compare_them() {
        for (seconds, text) in [
            (0.0, "0s"),
            (0.04, "0s"),
            (45.46, "45.5s"),
            (59.97, "1m00s"),
            (1000.0, "16m40s"),
            (13_998.0, "3h53m"),
            (49_200.0, "13h40m"),
            (187_300.0, "2d04h"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }

    #[test]
    fn figures_are_as_long_as_they_tell_something() {
        for (value, text) in [
            (0.22151, "0.2215"),
            (12.5, "12.5"),
            (1234.5, "1234.5"),
            (1_396_724.4, "1396724"),
            (3.0, "3"),
            (-0.5, "-0.5"),
            (0.0, "0"),
            (f64::NAN, "not a number"),
        ] {
            assert_eq!(figure(value), text);
        }
    }

    #[test]
    fn a_sparkline_shows_first_and_last() {
        assert_eq!(sparkline(&[], 8), "");
        assert_eq!(sparkline(&[1.0], 8), "▁");
        assert_eq!(sparkline(&[2.0, 2.0], 8), "▁▁");
        assert_eq!(
            sparkline(&[8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0], 3),
            "█▅▁"
        );
    }
}

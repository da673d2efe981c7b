//! Small texts: durations, figures, sparklines, and what several pages say in the same words.

use blueproof_core::{
    domain::{FailureClass, TimeLimit},
    view::AttemptView,
};
pub(crate) use blueproof_notebook::text::{counted, duration};
use jiff::{SignedDuration, Timestamp};
use unicode_width::UnicodeWidthStr;

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

/// Returns a number with four decimals, or as many as its first four digits take, and none where it is very large: `0.2215`,
/// `1234.5`, `0.001234`, `3e-5`, `1396724`.
pub(crate) fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "not a number".into();
    }
    let plain = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    let decimals = match value.abs() {
        // There is no zero below zero.
        0.0 => return "0".into(),
        1e15.. | ..1e-3 => {
            let text = format!("{value:.3e}");
            let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
            return format!("{}e{power}", plain(digits));
        }
        1e6.. => 0,
        0.1.. => 4,
        0.01.. => 5,
        _ => 6,
    };
    plain(&format!("{value:.decimals$}"))
}

/// Breaks a line between words where it is longer than `columns`, the further lines `indent` to the right.
pub(crate) fn wrapped(line: &str, columns: usize, indent: usize) -> String {
    if line.width() <= columns {
        return line.to_owned();
    }
    let (mut text, mut used) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        if used > indent && used + word.trim_end().width() > columns {
            text.truncate(text.trim_end().len());
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            used = indent;
        }
        text.push_str(word);
        used += word.width();
    }
    text
}

/// Returns how long an attempt took, or has taken.
pub(crate) fn took(attempt: Option<&AttemptView>, now: Timestamp) -> String {
    attempt.map_or_else(none, |attempt| duration(attempt.took(now)))
}

/// Returns a metric's value to four digits; `None` is no finite number.
pub(crate) fn number(value: Option<f64>) -> String {
    let Some(value) = value else {
        return "not a number".into();
    };
    let size = value.abs();
    if value == 0.0 || (1e-3..1e6).contains(&size) {
        let digits = if size >= 1000.0 {
            0
        } else if size >= 1.0 {
            2
        } else {
            4
        };
        return format!("{value:.digits$}");
    }
    format!("{value:.3e}")
}

/// Returns what stands where there is nothing.
pub(crate) fn none() -> String {
    "-".into()
}

/// Returns who or what is to blame, in words.
pub(crate) fn blame(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Notebook => "the notebook failed",
        FailureClass::Workload => "what the notebook started failed",
        FailureClass::Expectation => "the notebook ran, and what is expected does not hold",
        FailureClass::Timeout(TimeLimit::Queue) => "it waited for quota longer than it may",
        FailureClass::Timeout(TimeLimit::Startup) => "environment and kernel took longer than they may",
        FailureClass::Timeout(TimeLimit::Cell) => "one cell took longer than it may",
        FailureClass::Timeout(TimeLimit::Run) => "all cells together took longer than they may",
        FailureClass::Timeout(TimeLimit::Execution) => "it had quota longer than it may",
        FailureClass::Infrastructure => "the infrastructure failed; a retry elsewhere may go better",
        FailureClass::Config => "it could not be started as it is written",
    }
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
            (-0.0, "0"),
            (0.012_344, "0.01234"),
            (0.001_234_4, "0.001234"),
            (3e-5, "3e-5"),
            (-1e-5, "-1e-5"),
            (1.234_56e-7, "1.235e-7"),
            (1e6, "1000000"),
            (2e300, "2e300"),
            (f64::NAN, "not a number"),
        ] {
            assert_eq!(figure(value), text);
        }
    }

    #[test]
    fn numbers_have_the_digits_that_count() {
        for (value, text) in [
            (Some(0.352), "0.3520"),
            (Some(-12.3456), "-12.35"),
            (Some(31_250.4), "31250"),
            (Some(0.0), "0.0000"),
            (Some(1.5e-7), "1.500e-7"),
            (Some(2.0e9), "2.000e9"),
            (None, "not a number"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_long_line_is_broken_between_its_words() {
        let line = "  start   ✓ own run of ada · 1 cpu, 1Mi memory of 2 cpu, 24Gi memory · here  1.0 s";
        assert_eq!(wrapped(line, 100, 12), line);
        let text = wrapped(line, 40, 12);
        assert_eq!(
            text,
            "  start   ✓ own run of ada · 1 cpu, 1Mi\n            memory of 2 cpu, 24Gi memory\n            · here  1.0 s"
        );
        let long = "x".repeat(60);
        assert!(
            wrapped(&format!("  a ✓ {long}"), 40, 12).contains(&long),
            "nothing is lost"
        );
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

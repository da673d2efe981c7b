//! Figures and their tables: what is printed, and what is kept as JSON.

use std::fmt;

use serde::Serialize;

/// How wide a table is.
const WIDTH: usize = 80;
const VALUE: usize = 11;
const RATIO: usize = 7;
const LIMIT: usize = 15;

/// One table.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Table {
    /// What is measured.
    pub(super) title: String,
    /// What stands in the columns of values.
    pub(super) columns: Vec<String>,
    /// The figures.
    pub(super) rows: Vec<Row>,
    /// What one should know who reads it.
    pub(super) notes: Vec<String>,
}

/// One line of a table.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    name: String,
    values: Vec<Option<Quantity>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<Limit>,
}

/// A number with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Quantity {
    value: f64,
    unit: Unit,
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Unit {
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// How often in a second.
    PerSecond,
}

/// The most or the least that a figure may be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Limit {
    of: Limited,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Option<f64>,
    holds: bool,
}

/// What a limit is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Limited {
    Ratio,
    Bytes,
    Seconds,
}

impl Quantity {
    pub(super) fn seconds(value: f64) -> Self {
        let unit = Unit::Seconds;
        Self { value, unit }
    }

    /// Returns how many times another one of its kind it is.
    pub(super) fn ratio(self, other: Self) -> f64 {
        self.value / other.value
    }

    pub(super) fn bytes(value: u64) -> Self {
        let (value, unit) = (value as f64, Unit::Bytes);
        Self { value, unit }
    }

    /// As `bytes`, where it is an average.
    pub(super) fn of_bytes(value: f64) -> Self {
        let unit = Unit::Bytes;
        Self { value, unit }
    }

    pub(super) fn per_second(value: f64) -> Self {
        let unit = Unit::PerSecond;
        Self { value, unit }
    }
}

impl Row {
    /// Names figures; `None` is one that cannot be read here.
    pub(super) fn of(name: impl Into<String>, values: Vec<Option<Quantity>>) -> Self {
        Self {
            name: name.into(),
            values,
            ratio: None,
            limit: None,
        }
    }

    /// Adds how two of the figures compare.
    pub(super) fn ratio(mut self, ratio: f64) -> Self {
        self.ratio = Some(ratio);
        self
    }

    /// Limits the ratio.
    pub(super) fn ratio_at_most(mut self, at_most: f64) -> Self {
        self.limit = self.ratio.map(|ratio| Limit {
            of: Limited::Ratio,
            at_most: Some(at_most),
            at_least: None,
            holds: ratio <= at_most,
        });
        self
    }

    /// Limits the ratio from below.
    pub(super) fn ratio_at_least(mut self, at_least: f64) -> Self {
        self.limit = self.ratio.map(|ratio| Limit {
            of: Limited::Ratio,
            at_most: None,
            at_least: Some(at_least),
            holds: ratio >= at_least,
        });
        self
    }

    /// Limits the first figure, which is of memory.
    pub(super) fn bytes_at_most(self, at_most: u64) -> Self {
        self.first_at_most(Limited::Bytes, at_most as f64)
    }

    /// Limits the first figure, which is of time.
    pub(super) fn seconds_at_most(self, at_most: f64) -> Self {
        self.first_at_most(Limited::Seconds, at_most)
    }

    fn first_at_most(mut self, of: Limited, at_most: f64) -> Self {
        let measured = self.values.first().copied().flatten();
        self.limit = measured.map(|measured| Limit {
            of,
            at_most: Some(at_most),
            at_least: None,
            holds: measured.value <= at_most,
        });
        self
    }

    /// Returns whether the figures are within their limit, if they have one.
    pub(super) fn is_within(&self) -> bool {
        self.limit.is_none_or(|limit| limit.holds)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = WIDTH - VALUE * self.columns.len() - RATIO - LIMIT;
        write!(f, "{:<name$}", self.title)?;
        for column in &self.columns {
            write!(f, "{column:>VALUE$}")?;
        }
        writeln!(f, "{:>RATIO$}  limit", "ratio")?;
        for row in &self.rows {
            write!(f, "  {:<1$}", row.name, name - 2)?;
            for value in &row.values {
                let value = value.map_or("-".into(), |value| value.to_string());
                write!(f, "{value:>VALUE$}")?;
            }
            let blank = VALUE * (self.columns.len() - row.values.len());
            let decimals = |ratio: f64| if ratio < 100.0 { 2 } else { 0 };
            let ratio = row.ratio.map(|ratio| format!("{ratio:.0$}", decimals(ratio)));
            let ratio = ratio.unwrap_or_default();
            let limit = row.limit.map(|limit| limit.to_string()).unwrap_or_default();
            let line = format!("{:blank$}{ratio:>RATIO$}  {limit}", "");
            writeln!(f, "{}", line.trim_end())?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  {note}"))
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value;
        match self.unit {
            Unit::Seconds if value >= 1.0 => write!(f, "{value:.2} s"),
            Unit::Seconds if value >= 1e-3 => write!(f, "{:.1} ms", value * 1e3),
            Unit::Seconds if value >= 1e-5 => write!(f, "{:.0} us", value * 1e6),
            Unit::Seconds => write!(f, "{:.0} ns", value * 1e9),
            Unit::Bytes if value < 1024.0 => write!(f, "{value:.0} B"),
            Unit::Bytes => write!(f, "{:.1} MiB", value / 1024.0 / 1024.0),
            Unit::PerSecond => write!(f, "{}/s", grouped(value)),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, bound) = match (self.at_most, self.at_least) {
            (_, Some(at_least)) => (">= ", at_least),
            (at_most, None) => ("", at_most.unwrap_or_default()),
        };
        match self.of {
            Limited::Ratio => write!(f, "{sign}{bound}")?,
            Limited::Bytes => write!(f, "{sign}{} MiB", bound / 1024.0 / 1024.0)?,
            Limited::Seconds => write!(f, "{sign}{}", Quantity::seconds(bound))?,
        }
        f.write_str(if self.holds { " holds" } else { " BROKEN" })
    }
}

/// Writes a number as 1,234,567.
pub(super) fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns the middle one, or `None` of none.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len().is_multiple_of(2) {
        return Some((values.get(half.checked_sub(1)?)? + values.get(half)?) / 2.0);
    }
    values.get(half).copied()
}

/// Returns the figure below which so many of a hundred are, of sorted ones.
pub(super) fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_eighty_columns_and_names_each_limit() {
        let table = Table {
            title: "run".into(),
            columns: vec!["blueproof".into(), "papermill".into()],
            rows: vec![
                Row::of(
                    "whole process",
                    vec![Some(Quantity::seconds(1.5)), Some(Quantity::seconds(3.0))],
                )
                .ratio(0.5)
                .ratio_at_most(0.8),
                Row::of("agent, peak", vec![Some(Quantity::bytes(65 << 20)), None]).bytes_at_most(64 << 20),
                Row::of("small", vec![Some(Quantity::seconds(0.000_012))]).seconds_at_most(0.05),
                Row::of("faster", vec![Some(Quantity::of_bytes(180.0))])
                    .ratio(12.0)
                    .ratio_at_least(10.0),
            ],
            notes: vec!["a note".into()],
        };
        let expected = "
run                                   blueproof  papermill  ratio  limit
  whole process                          1.50 s     3.00 s   0.50  0.8 holds
  agent, peak                          65.0 MiB          -         64 MiB BROKEN
  small                                   12 us                    50.0 ms holds
  faster                                  180 B             12.00  >= 10 holds
  a note
";
        assert_eq!(format!("\n{table}"), expected);
        assert!(expected.lines().all(|line| line.len() <= WIDTH));
        let within: Vec<_> = table.rows.iter().map(Row::is_within).collect();
        assert_eq!(within, [true, false, true, true]);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        assert_eq!(median(vec![9.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(vec![9.0, 1.0, 3.0, 4.0]), Some(3.5));
        assert_eq!(median(vec![]), None);
    }

    #[test]
    fn large_numbers_are_grouped() {
        let written: Vec<_> = [7.0, 999.0, 1000.0, 1_234_567.0].map(grouped).into();
        assert_eq!(written, ["7", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_percentile_is_one_of_the_figures() {
        let figures: Vec<_> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&figures, 50), Some(100.0));
        assert_eq!(percentile(&figures, 99), Some(198.0));
        assert_eq!(percentile(&figures, 100), Some(200.0));
        assert_eq!(percentile(&[7.0], 99), Some(7.0));
        assert_eq!(percentile(&[], 50), None);
    }
}

//! A figure over time, as steps: it stays as it is until the next step.
//!
//! Everything that a scenario says of a figure follows from its steps: the value at an instant, the mean over a
//! sampling period, and the integral that a counter shows. So a test can work out by hand what it should read.

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// What a figure is from each second on; without any step, the card does not have the figure.
///
/// Before its first step a figure already has that step's value. In a scenario it is a list of `[second, value]`, or
/// one number for a figure that never changes.
///
/// ```
/// use fake_nvml::Steps;
///
/// let written: Steps = serde_json::from_str("[[0, 20], [10, 100]]").unwrap();
/// assert_eq!(written, Steps::of([(0.0, 20.0), (10.0, 100.0)]));
/// assert_eq!(serde_json::from_str::<Steps>("20").unwrap(), Steps::constant(20.0));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Steps(Vec<(f64, f64)>);

impl Steps {
    /// Makes a figure of its steps, in any order. Seconds and values are finite numbers.
    pub fn of(steps: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut steps: Vec<_> = steps.into_iter().collect();
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self(steps)
    }

    /// Makes a figure that never changes.
    pub fn constant(value: f64) -> Self {
        Self(vec![(0.0, value)])
    }

    /// Makes the figure that a card does not have.
    pub fn unsupported() -> Self {
        Self::default()
    }

    /// Says whether a card has the figure.
    pub fn is_supported(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns the value at a second; `None` if the card does not have the figure.
    pub fn at(&self, second: f64) -> Option<f64> {
        let begun = self.0.partition_point(|step| step.0 <= second);
        self.0.get(begun.saturating_sub(1)).map(|step| step.1)
    }

    /// Returns the sum of value times seconds between two seconds, exact for whole numbers.
    pub fn integral(&self, from: f64, to: f64) -> Option<f64> {
        self.integral_of(from, to, |value| value)
    }

    /// Returns the integral of what `weight` makes of the values.
    pub(crate) fn integral_of(&self, from: f64, to: f64, weight: impl Fn(f64) -> f64) -> Option<f64> {
        self.0.first()?;
        Some(
            self.pieces(from, to)
                .map(|(seconds, value)| seconds * weight(value))
                .sum(),
        )
    }

    /// Returns the mean between two seconds; the value itself where no time lies between them.
    pub fn mean(&self, from: f64, to: f64) -> Option<f64> {
        if to <= from {
            return self.at(to);
        }
        Some(self.integral(from, to)? / (to - from))
    }

    /// Returns the greatest value between two seconds, both included.
    pub fn max(&self, from: f64, to: f64) -> Option<f64> {
        let within = self
            .0
            .iter()
            .filter(|step| step.0 > from && step.0 <= to)
            .map(|step| step.1);
        Some(within.fold(self.at(from)?, f64::max))
    }

    /// Cuts a time into pieces of one value each: how long, and which value.
    fn pieces(&self, from: f64, to: f64) -> impl Iterator<Item = (f64, f64)> {
        let ends = self.0.iter().skip(1).map(|step| step.0).chain([f64::INFINITY]);
        let begins = [f64::NEG_INFINITY]
            .into_iter()
            .chain(self.0.iter().skip(1).map(|step| step.0));
        begins
            .zip(ends)
            .zip(&self.0)
            .filter_map(move |((begin, end), step)| {
                let seconds = end.min(to) - begin.max(from);
                (seconds > 0.0).then_some((seconds, step.1))
            })
    }
}

impl<'de> Deserialize<'de> for Steps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrSteps)
    }
}

/// Reads either way of writing a figure.
struct NumberOrSteps;

impl<'de> Visitor<'de> for NumberOrSteps {
    type Value = Steps;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a list of [second, value]")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Steps, E> {
        Ok(Steps::constant(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Steps, E> {
        self.visit_f64(value as f64)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Steps, E> {
        self.visit_f64(value as f64)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Steps, A::Error> {
        let mut steps = Vec::new();
        while let Some(step) = list.next_element()? {
            steps.push(step);
        }
        Ok(Steps::of(steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_keeps_its_value_until_the_next_step() {
        let steps = Steps::of([(10.0, 5.0), (2.0, 3.0)]);
        let rows = [
            ("before the first", 0.0, 3.0),
            ("on a step", 2.0, 3.0),
            ("between", 9.9, 3.0),
            ("on the last", 10.0, 5.0),
            ("after the last", 99.0, 5.0),
        ];
        for (why, second, value) in rows {
            assert_eq!(steps.at(second), Some(value), "{why}");
        }
        assert_eq!(Steps::unsupported().at(1.0), None);
    }

    #[test]
    fn an_integral_is_the_sum_of_the_pieces_between_two_seconds() {
        let steps = Steps::of([(1.0, 10.0), (3.0, 20.0), (4.0, 0.0)]);
        let rows = [
            ("all of it", 0.0, 10.0, 50.0),
            ("within one step", 1.5, 2.5, 10.0),
            ("over an edge", 2.0, 3.5, 20.0),
            ("no time", 2.0, 2.0, 0.0),
            ("backwards", 3.0, 2.0, 0.0),
        ];
        for (why, from, to, sum) in rows {
            assert_eq!(steps.integral(from, to), Some(sum), "{why}");
        }
        assert_eq!(Steps::unsupported().integral(0.0, 1.0), None);
    }

    #[test]
    fn a_mean_and_a_peak_look_only_between_their_seconds() {
        let steps = Steps::of([(0.0, 10.0), (1.0, 90.0), (2.0, 20.0)]);
        assert_eq!(steps.mean(0.5, 1.5), Some(50.0));
        assert_eq!(steps.mean(1.0, 1.0), Some(90.0));
        assert_eq!(steps.max(0.0, 0.5), Some(10.0));
        assert_eq!(steps.max(0.0, 3.0), Some(90.0));
        assert_eq!(steps.max(2.0, 3.0), Some(20.0));
    }

    #[test]
    fn a_figure_can_be_written_as_one_number_or_as_steps_and_as_nothing_else() {
        assert_eq!(
            serde_json::from_str::<Steps>("-1").unwrap(),
            Steps::constant(-1.0)
        );
        assert_eq!(
            serde_json::from_str::<Steps>("0.5").unwrap(),
            Steps::constant(0.5)
        );
        let error = serde_json::from_str::<Steps>("\"much\"").unwrap_err().to_string();
        assert!(
            error.contains("a number, or a list of [second, value]"),
            "{error}"
        );
    }
}

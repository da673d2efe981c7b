//! How many tests passed and failed, read from what the test harness prints.

use std::ops::Add;

/// A count of tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Those that passed.
    pub passed: u64,
    /// Those that did not.
    pub failed: u64,
    /// Those that were left out because they are marked so.
    pub ignored: u64,
}

impl Tally {
    /// Adds what a line of output says, if it is the line that ends the tests of one program.
    pub(super) fn read(&mut self, line: &str) {
        if let Some(tally) = Self::of_line(line) {
            *self = *self + tally;
        }
    }

    /// Returns the tally of a step that failed: at least one, though no test says so.
    pub(super) fn with_a_failure(self) -> Self {
        Self {
            failed: self.failed.max(1),
            ..self
        }
    }

    fn of_line(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let count = |name: &str| {
            let mut parts = counts.split("; ").filter_map(|part| part.split_once(' '));
            parts.find(|(_, what)| *what == name)?.0.parse().ok()
        };
        Some(Self {
            passed: count("passed")?,
            failed: count("failed")?,
            ignored: count("ignored")?,
        })
    }
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            ignored: self.ignored + other.ignored,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_all_test_programs_are_added_up() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 7 passed; 2 failed; 0 ignored; 0 measured; 5 filtered out; finished in 1.20s",
        ] {
            tally.read(line);
        }
        let expected = Tally {
            passed: 19,
            failed: 2,
            ignored: 1,
        };
        assert_eq!(tally, expected);
    }

    #[test]
    fn what_a_test_itself_prints_is_not_counted() {
        let mut tally = Tally::default();
        for line in [
            "the notebook said: test result: ok. 12 passed; 0 failed; 1 ignored",
            "test result: ok",
            "test result: ok. many passed; 0 failed; 0 ignored",
            "",
        ] {
            tally.read(line);
        }
        assert_eq!(tally, Tally::default());
    }
}

//! Ids that people type: `r-41` is a run, `r-41.2` its second attempt.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The request to test a blueprint at a commit under a profile; written `r-41`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("pattern" = r"^r-[0-9]{1,19}$")))]
#[serde(try_from = "String", into = "String")]
pub struct RunId(pub u64);

impl RunId {
    /// Returns the id of the run's `number`th attempt, counted from one.
    pub fn attempt(self, number: u32) -> AttemptId {
        AttemptId { run: self, number }
    }
}

/// One execution of a run; written `r-41.2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("pattern" = r"^r-[0-9]{1,19}\.[1-9][0-9]{0,8}$")))]
#[serde(try_from = "String", into = "String")]
pub struct AttemptId {
    /// The run that is executed.
    pub run: RunId,
    /// Which of the run's attempts this is, counted from one.
    pub number: u32,
}

/// A text that is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct ParseIdError {
    text: String,
    expected: &'static str,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r-{}", self.0)
    }
}

impl FromStr for RunId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_prefix("r-").and_then(decimal);
        number.map(RunId).ok_or_else(|| ParseIdError {
            text: text.into(),
            expected: "a run id such as r-41",
        })
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.run, self.number)
    }
}

impl FromStr for AttemptId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (run, number) = text.split_once('.')?;
            let number = u32::try_from(decimal(number)?).ok()?;
            (number > 0).then_some(run.parse::<RunId>().ok()?.attempt(number))
        };
        parse().ok_or_else(|| ParseIdError {
            text: text.into(),
            expected: "an attempt id such as r-41.2",
        })
    }
}

/// Reads digits only: `u64::from_str` would take `+41` too.
fn decimal(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for RunId {
    type Error = ParseIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<AttemptId> for String {
    fn from(id: AttemptId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for AttemptId {
    type Error = ParseIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_what_they_print() {
        let attempt = RunId(41).attempt(2);
        assert_eq!(attempt.to_string(), "r-41.2");
        assert_eq!("r-41.2".parse(), Ok(attempt));
        assert_eq!("r-41".parse(), Ok(RunId(41)));
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for text in [
            "",
            "41",
            "r-",
            "r-+4",
            "r--4",
            "r-4x",
            "R-4",
            "r-99999999999999999999",
        ] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
        for text in ["r-4", "r-4.", "r-4.0", "r-4.-1", "r-4.1.1"] {
            assert!(text.parse::<AttemptId>().is_err(), "{text}");
        }
    }
}

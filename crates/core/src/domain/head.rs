//! Exactly which bytes a run tests.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The content that a run tests, named so that it cannot change afterwards.
///
/// What comes from a pull request is a commit. What comes from somebody's own working folder has no commit
/// that tells what is in it, so it is named by a digest of its files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("pattern" = r"^([0-9a-f]{40}|snapshot:[0-9a-f]{64})$")))]
#[serde(try_from = "String", into = "String")]
pub enum Head {
    /// A git commit: 40 lower-case hexadecimal digits.
    Commit(String),
    /// The SHA-256 of a folder's files: 64 lower-case hexadecimal digits.
    Snapshot(String),
}

/// A text that names no content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither a 40-digit commit nor `snapshot:` with 64 digits")]
pub struct ParseHeadError(String);

impl Head {
    /// Returns the first seven digits, as git shows them.
    pub fn short(&self) -> &str {
        match self {
            Head::Commit(digits) | Head::Snapshot(digits) => &digits[..7],
        }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Head::Commit(digits) => f.write_str(digits),
            Head::Snapshot(digits) => write!(f, "snapshot:{digits}"),
        }
    }
}

impl FromStr for Head {
    type Err = ParseHeadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hex = |digits: &str, length| {
            digits.len() == length && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        match text.strip_prefix("snapshot:") {
            Some(digits) if hex(digits, 64) => Ok(Head::Snapshot(digits.into())),
            None if hex(text, 40) => Ok(Head::Commit(text.into())),
            Some(_) | None => Err(ParseHeadError(text.into())),
        }
    }
}

impl TryFrom<String> for Head {
    type Error = ParseHeadError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Head> for String {
    fn from(head: Head) -> Self {
        head.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A4 of the list of attacks: seven digits can be ground out to be another commit's.
    #[test]
    fn a_commit_that_is_shortened_names_no_content() {
        let whole = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(whole.parse(), Ok(Head::Commit(whole.into())));
        for digits in [
            &whole[..7],
            &whole[..39],
            &whole.to_uppercase(),
            &format!("{whole}8"),
        ] {
            assert_eq!(digits.parse::<Head>(), Err(ParseHeadError(digits.into())));
        }
    }
}

//! Commits, as GitHub names them.

use std::{fmt, str::FromStr};

use blueproof_core::domain::Head;
use serde::{Deserialize, Serialize};

/// A commit: 40 lower-case hexadecimal digits, all of them. Of the heads that blueproof knows it is the only kind that GitHub names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommitSha(String);

/// A text that names no commit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no commit: 40 lower-case hexadecimal digits")]
pub struct ParseCommitShaError(String);

impl CommitSha {
    /// Returns the digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns it as the rest of blueproof knows it.
    pub fn to_head(&self) -> Head {
        Head::Commit(self.0.clone())
    }
}

impl FromStr for CommitSha {
    type Err = ParseCommitShaError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(Head::Commit(digits)) => Ok(Self(digits)),
            Ok(Head::Snapshot(_)) | Err(_) => Err(ParseCommitShaError(text.into())),
        }
    }
}

impl TryFrom<String> for CommitSha {
    type Error = ParseCommitShaError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<CommitSha> for String {
    fn from(commit: CommitSha) -> Self {
        commit.0
    }
}

impl fmt::Display for CommitSha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

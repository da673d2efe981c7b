//! The label that binds a job to one commit.
//!
//! A workflow can compute it without asking anybody, from `github.event.pull_request.head.sha`. So a job that carries it
//! can only be taken by a runner that was made for this commit, and no runner is made for one that is not approved.

use std::{fmt, str::FromStr};

use blueproof_core::domain::Head;
use serde::{Deserialize, Serialize};

/// What the label begins with.
const PREFIX: &str = "blueproof-";

/// `blueproof-` and the 40 hexadecimal digits of a commit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UniqueLabel(String);

/// A text that is no such label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a label that binds a job to a commit is `blueproof-` and the commit's 40 hexadecimal digits")]
pub struct ParseLabelError;

impl UniqueLabel {
    /// Returns the label of a commit.
    ///
    /// # Errors
    ///
    /// It has no 40 digits of lower case.
    pub fn of(commit: &str) -> Result<Self, ParseLabelError> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match commit.len() == 40 && commit.bytes().all(is_digit) {
            true => Ok(Self(format!("{PREFIX}{commit}"))),
            false => Err(ParseLabelError),
        }
    }

    /// Returns the one such label among those of a job. A job with several could be taken by a runner of either, so it has none.
    pub fn among<'a>(labels: impl IntoIterator<Item = &'a String>) -> Option<Self> {
        let mut found = labels.into_iter().filter_map(|label| label.parse().ok());
        let first = found.next()?;
        found.all(|other| other == first).then_some(first)
    }

    /// Returns it as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the commit's digits.
    pub fn commit(&self) -> &str {
        &self.0[PREFIX.len()..]
    }

    /// Returns the commit that it names.
    pub fn head(&self) -> Head {
        Head::Commit(self.commit().to_owned())
    }
}

impl FromStr for UniqueLabel {
    type Err = ParseLabelError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // GitHub compares labels without regard to case, and may give one back in another.
        let lower = text.to_ascii_lowercase();
        Self::of(lower.strip_prefix(PREFIX).ok_or(ParseLabelError)?)
    }
}

impl TryFrom<String> for UniqueLabel {
    type Error = ParseLabelError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<UniqueLabel> for String {
    fn from(label: UniqueLabel) -> Self {
        label.0
    }
}

impl fmt::Display for UniqueLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "1111111111111111111111111111111111111111";

    #[test]
    fn a_label_names_one_whole_commit() {
        let label = UniqueLabel::of(COMMIT).expect("a commit");
        assert_eq!(label.head(), Head::Commit(COMMIT.into()));
        assert_eq!(format!("BLUEPROOF-{COMMIT}").parse(), Ok(label));
        for wrong in ["blueproof-1111111", "gpu-1", "blueproof-", COMMIT] {
            assert_eq!(wrong.parse::<UniqueLabel>(), Err(ParseLabelError), "{wrong}");
        }
    }

    #[test]
    fn a_job_with_labels_of_two_commits_is_bound_to_neither() {
        let (one, two) = (
            format!("blueproof-{COMMIT}"),
            format!("blueproof-{}", "2".repeat(40)),
        );
        let other = "self-hosted".to_owned();
        assert!(UniqueLabel::among([&other, &one]).is_some());
        assert!(UniqueLabel::among([&one, &one]).is_some());
        assert_eq!(UniqueLabel::among([&one, &two]), None);
        assert_eq!(UniqueLabel::among([&other]), None);
    }
}

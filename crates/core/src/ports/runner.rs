//! Runners of GitHub Actions.

use std::{fmt, str::FromStr};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::CallError;
use crate::event::StopMode;

/// The most characters of a runner's name: GitHub takes no longer one.
const MOST_OF_NAME: usize = 64;

/// Starts and removes runners of GitHub Actions, each for one job.
///
/// A call hands something over and returns at once; what becomes of it is [news](Self::news). Every call may be repeated, after a
/// crash as well, and none of them decides whether something is tried again. Calls about one runner come in order, each after the
/// one before has returned.
#[async_trait]
pub trait RunnerProvider: Send + Sync {
    /// Returns the news of runners from now on, until it is dropped. Several may listen; each is told everything. Nothing is told
    /// of a runner before a call names it, and news may be late and come twice.
    fn news(&self) -> mpsc::Receiver<RunnerNews>;

    /// Starts a runner. Told is [`Running`](RunnerState::Running), and then how it ended. One that was started once is never
    /// started again, not after a crash either: its configuration is good for one registration.
    async fn start(&self, runner: &Runner) -> Result<(), CallError>;

    /// Has it told how a started runner stands, and each change from then on: what a provider knew is lost with its process. Of
    /// one whose traces are lost it is told that it is [`Lost`](RunnerState::Lost); one that was never started is an error.
    async fn observe(&self, name: &RunnerName) -> Result<(), CallError>;

    /// Asks a runner to end. One that is over, or never was, is a success.
    async fn stop(&self, name: &RunnerName, how: StopMode) -> Result<(), CallError>;

    /// Removes a runner with all that it started and wrote, by force where it still runs. Told is
    /// [`Removed`](RunnerState::Removed), also of one that never was. That GitHub forgets it, too, is not done here.
    async fn remove(&self, name: &RunnerName) -> Result<(), CallError>;
}

/// All that is needed to start a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runner {
    /// Its name, also at GitHub. No other runner of the provider ever has it.
    pub name: RunnerName,
    /// With what it registers itself.
    pub config: JitConfig,
}

/// The name of a runner: 1 to 64 letters, digits, `-`, `_` and `.`, the first a letter or a digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunnerName(String);

/// A text that is no name of a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a runner's name has 1 to {MOST_OF_NAME} letters, digits, `-`, `_` and `.`, the first a letter or digit"
)]
pub struct ParseRunnerNameError;

/// GitHub's just-in-time configuration of one runner, encoded: a secret that is good for one registration. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct JitConfig(String);

/// Something that is told of a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerNews {
    /// Of which one.
    pub runner: RunnerName,
    /// How it stands.
    pub state: RunnerState,
}

/// How a runner stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerState {
    /// Its program runs.
    Running,
    /// Its program has ended well: its job is done, however the job ended, or it was asked to end.
    Completed,
    /// Its program has failed, and why. Whether it had a job GitHub knows.
    Failed {
        /// In words.
        message: String,
    },
    /// Nothing more is to be learnt of it.
    Lost {
        /// How, in words.
        message: String,
    },
    /// Nothing of it is left.
    Removed,
    /// It could not be removed, which may be tried again.
    NotRemoved {
        /// Why.
        error: CallError,
    },
}

impl RunnerName {
    /// Returns the name as text. It is the name of a file, too.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RunnerName {
    type Err = ParseRunnerNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let begins_well = text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric());
        if !begins_well || text.len() > MOST_OF_NAME || !text.bytes().all(is_usual) {
            return Err(ParseRunnerNameError);
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for RunnerName {
    type Error = ParseRunnerNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<RunnerName> for String {
    fn from(name: RunnerName) -> Self {
        name.0
    }
}

impl fmt::Display for RunnerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl JitConfig {
    /// Takes GitHub's `encoded_jit_config`.
    pub fn new(encoded: String) -> Self {
        Self(encoded)
    }

    /// Returns it as the runner's program takes it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for JitConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JitConfig(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_file_and_no_option() {
        let longest = "r".repeat(MOST_OF_NAME);
        for name in ["r-41.2", "oracle-vm-gpu-a10-1_x", "7", &longest] {
            assert_eq!(name.parse::<RunnerName>().expect("it is one").as_str(), name);
        }
        let too_long = "r".repeat(MOST_OF_NAME + 1);
        for name in [
            "", ".", "..", "-x", "_x", "a/b", "a b", "a\n", "ä", "a\0", &too_long,
        ] {
            assert_eq!(name.parse::<RunnerName>(), Err(ParseRunnerNameError), "{name:?}");
        }
    }

    #[test]
    fn a_configuration_is_not_shown() {
        let runner = Runner {
            name: "r-1".parse().expect("a name"),
            config: JitConfig::new("c2VjcmV0".into()),
        };
        assert!(!format!("{runner:?}").contains("c2VjcmV0"));
    }
}

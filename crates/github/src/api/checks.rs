//! Check runs, as they are sent.
//!
//! Limits of GitHub's, which whoever makes one keeps: see [`CheckOutput`].
//!
//! Source: <https://docs.github.com/en/rest/checks/runs>.

use std::{fmt, str::FromStr};

use jiff::Timestamp;

/// The number of a check run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckRunId(pub u64);

/// All that a check run shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOutput {
    /// What it is called: what branch protection requires.
    pub name: String,
    /// By what it is found again; of a run, its id.
    pub external_id: String,
    /// Our own page about it.
    pub details_url: Option<String>,
    /// How it stands.
    pub state: CheckRunState,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// One line, at most [`CheckOutput::TITLE_AT_MOST`] characters.
    pub title: String,
    /// Markdown, at most [`CheckOutput::TEXT_AT_MOST`] characters.
    pub summary: String,
    /// Markdown below it, as long at most; empty is none.
    pub text: String,
    /// What is said of lines, at most [`CheckOutput::ANNOTATIONS_AT_MOST`]. An update adds them to those that are there.
    pub annotations: Vec<Annotation>,
    /// Its buttons, at most [`CheckOutput::ACTIONS_AT_MOST`].
    pub actions: Vec<CheckAction>,
}

impl CheckOutput {
    /// The most characters of a title. GitHub takes more, and cuts it off.
    pub const TITLE_AT_MOST: usize = 100;
    /// The most characters of a summary, and of a text.
    pub const TEXT_AT_MOST: usize = 65_535;
    /// The most annotations of a request.
    pub const ANNOTATIONS_AT_MOST: usize = 50;
    /// The most buttons.
    pub const ACTIONS_AT_MOST: usize = 3;
}

/// How a check run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckRunState {
    /// It waits.
    Queued,
    /// It runs.
    InProgress,
    /// It is over, or waits for somebody.
    Completed {
        /// How.
        conclusion: CheckConclusion,
        /// Since when.
        at: Timestamp,
    },
}

/// How a check run stands, without how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckStatus {
    /// It waits.
    Queued,
    /// It runs.
    InProgress,
    /// It is over, or waits for somebody.
    Completed,
}

/// How a check run ended. `stale` is GitHub's alone to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckConclusion {
    /// It passed.
    Success,
    /// It did not.
    Failure,
    /// It says neither.
    Neutral,
    /// It was ended.
    Cancelled,
    /// Its time was over.
    TimedOut,
    /// It waits for somebody's word.
    ActionRequired,
    /// It concerns nobody here.
    Skipped,
}

/// Something said of lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// The file, relative to the root.
    pub path: String,
    /// The first line, counted from one.
    pub start_line: u32,
    /// The last line.
    pub end_line: u32,
    /// What is said.
    pub message: String,
    /// In a few words.
    pub title: String,
}

/// A button of a check run, by what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckAction {
    /// Approves the head.
    Approve,
    /// Tries it again.
    Retry,
    /// Ends it.
    Cancel,
}

/// A text that is the identifier of no button of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no check run of ours has such a button")]
pub struct ParseActionError;

/// A check run that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingCheckRun {
    /// Its number.
    pub id: CheckRunId,
    /// What it is called.
    pub name: String,
    /// What we called it.
    pub external_id: String,
    /// How many annotations it has (`output.annotations_count`): those of an update are added to them.
    pub n_annotations: u32,
}

impl CheckAction {
    /// Every button.
    pub const ALL: [Self; 3] = [Self::Approve, Self::Retry, Self::Cancel];

    /// Returns by what it is told that it was pressed: at most 20 characters.
    pub fn identifier(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Retry => "retry",
            Self::Cancel => "cancel",
        }
    }

    /// Returns what stands on it: at most 20 characters.
    pub fn label(self) -> &'static str {
        match self {
            Self::Approve => "Run on GPU",
            Self::Retry => "Re-run",
            Self::Cancel => "Cancel",
        }
    }

    /// Returns what is said beside it: at most 40 characters.
    pub fn description(self) -> &'static str {
        match self {
            Self::Approve => "Approve this commit, and no later one",
            Self::Retry => "Try the same commit once more",
            Self::Cancel => "End the run; it counts as cancelled",
        }
    }
}

impl FromStr for CheckAction {
    type Err = ParseActionError;

    fn from_str(identifier: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL
            .into_iter()
            .find(|action| action.identifier() == identifier);
        named.ok_or(ParseActionError)
    }
}

impl CheckRunState {
    /// Returns how it stands, without how it ended.
    pub fn status(self) -> CheckStatus {
        match self {
            Self::Queued => CheckStatus::Queued,
            Self::InProgress => CheckStatus::InProgress,
            Self::Completed { .. } => CheckStatus::Completed,
        }
    }
}

impl fmt::Display for CheckStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        })
    }
}

impl fmt::Display for CheckConclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Neutral => "neutral",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::ActionRequired => "action_required",
            Self::Skipped => "skipped",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buttons_fit_and_are_known_again() {
        for action in CheckAction::ALL {
            assert_eq!(action.identifier().parse(), Ok(action));
            let of = (
                action.identifier().len(),
                action.label().len(),
                action.description().len(),
            );
            assert!(of.0 <= 20 && of.1 <= 20 && of.2 <= 40, "{action:?}");
        }
        assert_eq!("delete-everything".parse::<CheckAction>(), Err(ParseActionError));
    }
}

//! How people name a run: `r-41`, `41`, or `last` for the newest.

use std::{fmt, str::FromStr};

use blueproof_core::{
    diagnostic::{Code, Diagnostic},
    domain::{AttemptId, RunId},
    ports::Store,
    view::RunView,
};

use crate::exit::Problem;

/// A run as somebody names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunSelector {
    Id(RunId),
    /// The newest run.
    Last,
}

/// A text that names no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SelectorError {
    #[error("`{0}` is an attempt; its run is {run}", run = .0.run)]
    Attempt(AttemptId),
    #[error("runs are named like r-41 or 41, and `last` is the newest")]
    Unknown,
}

impl RunSelector {
    /// Returns the run that is meant, as it stands in the store.
    pub(crate) async fn resolve(&self, store: &dyn Store) -> Result<RunView, Problem> {
        let newest = store.runs(1).await?.pop();
        let found = match self {
            RunSelector::Last => newest.clone(),
            RunSelector::Id(id) => store.run(*id).await?,
        };
        found.ok_or_else(|| Problem::usage(self.unknown(newest.as_ref())))
    }

    /// Returns what is said when the run is not known; `newest` is the newest that is.
    pub(crate) fn unknown(&self, newest: Option<&RunView>) -> Diagnostic {
        let Some(newest) = newest else {
            return Diagnostic::error(Code::NoSuchRun, "there are no runs yet")
                .hint("`blueproof run BLUEPRINT` makes the first")
                .hint("runs of another store are found with `--store FILE`");
        };
        Diagnostic::error(Code::NoSuchRun, format!("there is no run {self}")).hint(format!(
            "the newest is {}, of {}; `blueproof get runs` lists those that are there",
            newest.id, newest.subject.blueprint
        ))
    }
}

impl FromStr for RunSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "last" {
            return Ok(RunSelector::Last);
        }
        let with_prefix = format!("r-{text}");
        if let Ok(id) = text.parse().or_else(|_| with_prefix.parse()) {
            return Ok(RunSelector::Id(id));
        }
        match text.parse::<AttemptId>().or_else(|_| with_prefix.parse()) {
            Ok(attempt) => Err(SelectorError::Attempt(attempt)),
            Err(_) => Err(SelectorError::Unknown),
        }
    }
}

impl fmt::Display for RunSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunSelector::Id(id) => id.fmt(f),
            RunSelector::Last => f.write_str("last"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_named_as_people_type_them() {
        let run = Ok(RunSelector::Id(RunId(41)));
        for (text, selector) in [
            ("r-41", run.clone()),
            ("41", run),
            ("last", Ok(RunSelector::Last)),
            ("r-41.2", Err(SelectorError::Attempt(RunId(41).attempt(2)))),
            ("41.2", Err(SelectorError::Attempt(RunId(41).attempt(2)))),
            ("", Err(SelectorError::Unknown)),
            ("r-", Err(SelectorError::Unknown)),
            ("-1", Err(SelectorError::Unknown)),
            ("r-r-1", Err(SelectorError::Unknown)),
            ("LAST", Err(SelectorError::Unknown)),
        ] {
            assert_eq!(text.parse(), selector, "{text}");
        }
    }
}

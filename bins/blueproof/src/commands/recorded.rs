//! A log that was recorded: that of the store, or of a file.

mod log;

use std::path::Path;

use blueproof_core::ports::LoggedFact;
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};

use crate::{
    config::ConfigFlags,
    exit::Problem,
    reading::{self, Reading, block_on},
    show::pace::Pace,
};

/// Hands on all facts of a log, or of the store where none is named, the oldest first.
pub(super) fn facts(
    log: Option<&Path>,
    flags: &ConfigFlags,
    mut take: impl FnMut(&LoggedFact),
) -> Result<(), Problem> {
    let mut pace = Pace::new("events read");
    let mut take = |fact: &LoggedFact| {
        pace.add(1);
        take(fact);
    };
    if let Some(path) = log {
        return log::read(path, take);
    }
    block_on(async {
        let Some(store) = Reading::open(flags)?.store else {
            return Ok(());
        };
        reading::facts(&store, |facts| {
            facts.iter().for_each(&mut take);
            Ok(())
        })
        .await
    })
}

/// Returns what is to be said of a log in which nobody asked for anything.
pub(super) fn nothing_to_replay(log: Option<&Path>) -> Problem {
    let nothing = Diagnostic::error(
        Code::LogUnreadable,
        "nothing to replay: no run ever asked for quota",
    );
    Problem::usage(match log {
        Some(path) => nothing.at(SourceLocation::file(path.display().to_string())),
        None => nothing.hint("`blueproof run BLUEPRINT` makes the first run"),
    })
}

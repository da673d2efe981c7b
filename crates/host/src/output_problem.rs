//! Which problem with output an answer tells of, as a word in a header: programs go by that, and people by the text.

use blueproof_core::ports::OutputError;
#[cfg(feature = "client")]
use blueproof_core::{
    domain::AttemptId,
    ports::{OutputName, RecordPosition},
};

/// The header.
pub(crate) const OUTPUT_PROBLEM: &str = "blueproof-output-problem";

const MISSING: &str = "missing";
const REMOVED: &str = "removed";
const DISTURBED: &str = "disturbed";
const POSITION: &str = "position";
const NO_FILE: &str = "no-file";

/// What was asked for, and there is a problem with.
#[cfg(feature = "client")]
pub(crate) enum Asked<'a> {
    Records(AttemptId, &'a RecordPosition),
    Artifacts(AttemptId),
    File(&'a OutputName),
    Run,
}

/// Returns the word for a problem; `None` for one that nobody goes by.
#[cfg(feature = "api")]
pub(crate) fn word(error: &OutputError) -> Option<String> {
    let word = match error {
        OutputError::Missing(_) => MISSING,
        OutputError::Removed(_) => REMOVED,
        OutputError::Disturbed { at, .. } => return Some(format!("{DISTURBED} {at}")),
        OutputError::Position { .. } => POSITION,
        OutputError::NoFile(_) => NO_FILE,
        OutputError::TooLarge { .. }
        | OutputError::Log { .. }
        | OutputError::File { .. }
        | OutputError::Artifacts { .. }
        | OutputError::NotAnswered(_)
        | OutputError::Run { .. } => return None,
    };
    Some(word.into())
}

/// Returns the problem that a word stands for, with what was asked for.
#[cfg(feature = "client")]
pub(crate) fn problem(word: &str, asked: &Asked<'_>) -> Option<OutputError> {
    match (word, asked) {
        (MISSING, Asked::Records(attempt, _) | Asked::Artifacts(attempt)) => {
            Some(OutputError::Missing(*attempt))
        }
        (REMOVED, Asked::Records(attempt, _)) => Some(OutputError::Removed(*attempt)),
        (POSITION, Asked::Records(attempt, position)) => Some(OutputError::Position {
            attempt: *attempt,
            position: (*position).clone(),
        }),
        (NO_FILE, Asked::File(name)) => Some(OutputError::NoFile((*name).clone())),
        (word, Asked::Records(attempt, _)) => Some(OutputError::Disturbed {
            attempt: *attempt,
            at: word.strip_prefix(DISTURBED)?.trim().parse().ok()?,
        }),
        _ => None,
    }
}

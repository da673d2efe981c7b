//! Why output could not be had.

use std::io;

use blueproof_diagnostic::{Code, Diagnostic};

use super::{OutputName, RecordPosition};
use crate::{
    domain::{AttemptId, RunId},
    ports::CallError,
};

/// Output that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// Nothing is kept of the attempt.
    #[error("nothing is kept of {0}: it has not begun, or what was kept was removed")]
    Missing(AttemptId),
    /// What there was is not there any more.
    #[error("what was kept of {0} was removed")]
    Removed(AttemptId),
    /// The records do not go on as their agent wrote them.
    #[error(
        "the log of {attempt} was changed: what stands at byte {at} was not written there by the attempt's agent"
    )]
    Disturbed {
        /// The attempt.
        attempt: AttemptId,
        /// Where the agent's records end.
        at: u64,
    },
    /// A position that no backend of this kind has given.
    #[error("`{position}` is no position in the records of {attempt}", position = .position.0)]
    Position {
        /// The attempt.
        attempt: AttemptId,
        /// The position.
        position: RecordPosition,
    },
    /// There is no such file, or what is there is no regular file.
    #[error("there is no {0}")]
    NoFile(OutputName),
    /// A file has more bytes than may be read.
    #[error("{name} has more than {limit} bytes")]
    TooLarge {
        /// The file.
        name: OutputName,
        /// How many may be read.
        limit: u64,
    },
    /// The records of an attempt could not be read.
    #[error("could not read the log of {attempt}")]
    Log {
        /// The attempt.
        attempt: AttemptId,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file could not be read or written.
    #[error("could not {doing} {name}")]
    File {
        /// What was to be done with it.
        doing: &'static str,
        /// The file.
        name: OutputName,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What is kept of an attempt could not be listed.
    #[error("could not list the artifacts of {attempt}")]
    Artifacts {
        /// The attempt.
        attempt: AttemptId,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What keeps it could not be asked, or could not answer.
    #[error("{}", .0.message)]
    NotAnswered(Box<Diagnostic>),
    /// What is kept of a run could not be listed, measured or removed.
    #[error("could not {doing} what is kept of {run}")]
    Run {
        /// What was to be done with it.
        doing: &'static str,
        /// The run.
        run: RunId,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl OutputError {
    /// Returns whether nothing is there, or not yet.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Missing(_) | Self::Removed(_) | Self::NoFile(_) => true,
            Self::Disturbed { .. }
            | Self::Position { .. }
            | Self::TooLarge { .. }
            | Self::Log { .. }
            | Self::File { .. }
            | Self::Artifacts { .. }
            | Self::NotAnswered(_)
            | Self::Run { .. } => false,
        }
    }

    /// Returns it as what a person is told.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let code = match self {
            Self::NotAnswered(diagnostic) => return (**diagnostic).clone(),
            Self::Missing(_) | Self::Removed(_) | Self::NoFile(_) => Code::FileMissing,
            Self::Disturbed { .. } => Code::AttemptTampered,
            Self::Position { .. } => Code::Usage,
            Self::TooLarge { .. }
            | Self::Log { .. }
            | Self::File { .. }
            | Self::Artifacts { .. }
            | Self::Run { .. } => Code::AttemptFolder,
        };
        let diagnostic = Diagnostic::error(code, self.to_string());
        match std::error::Error::source(self) {
            Some(source) => diagnostic.caused_by(source),
            None => diagnostic,
        }
    }
}

impl From<OutputError> for CallError {
    fn from(error: OutputError) -> Self {
        CallError::later(error.to_diagnostic())
    }
}

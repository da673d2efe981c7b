//! Calls to ports that did not succeed: they are news like any other.

use blueproof_diagnostic::Diagnostic;
use serde::{Deserialize, Serialize};

/// A call to a port that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{}", .diagnostic.message)]
pub struct CallError {
    /// What went wrong.
    pub diagnostic: Box<Diagnostic>,
    /// Whether it may go better another time.
    pub retry: Retry,
}

/// Whether a call that failed may go better another time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Retry {
    /// It may.
    Later,
    /// It will once somebody else has ended: nothing is wrong.
    WhenFree,
    /// It will once something outside answers, or says otherwise: it is tried until then.
    WhenAvailable,
    /// It will not, as things stand.
    Never,
}

impl CallError {
    /// Returns an error of something that may go better later.
    pub fn later(diagnostic: Diagnostic) -> Self {
        Self {
            diagnostic: Box::new(diagnostic),
            retry: Retry::Later,
        }
    }

    /// Returns an error of something that others have, and will give back.
    pub fn when_free(diagnostic: Diagnostic) -> Self {
        Self {
            diagnostic: Box::new(diagnostic),
            retry: Retry::WhenFree,
        }
    }

    /// Returns an error of something that somebody outside has to answer first, however long that takes.
    pub fn when_available(diagnostic: Diagnostic) -> Self {
        Self {
            diagnostic: Box::new(diagnostic),
            retry: Retry::WhenAvailable,
        }
    }

    /// Returns an error of something that fails every time.
    pub fn never(diagnostic: Diagnostic) -> Self {
        Self {
            diagnostic: Box::new(diagnostic),
            retry: Retry::Never,
        }
    }
}

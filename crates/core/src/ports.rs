//! What the engine needs of the world.
//!
//! Each port has few methods, in our words; the promises are in the comments, and one contract test suite per port
//! (feature `testing`) holds every backend to them, fakes included.

mod callback;
mod clock;
mod cluster;
mod command;
mod gpu;
mod leadership;
mod output;
mod reporter;
mod store;

use blueproof_diagnostic::Diagnostic;
use serde::{Deserialize, Serialize};

pub use callback::CallbackReporter;
pub use clock::{Clock, SystemClock};
pub use cluster::{AttemptNews, ClusterDriver, Inventory, NEWS_AT_MOST, News};
pub use command::{Answer, Command, CommandId, LeftCommand, StoredCommand};
pub use gpu::{Blindness, EventQueue, GpuEvents, GpuMeter, GpuProbe, GpuUsed, ProbeError};
pub use leadership::{Leadership, Term};
pub use output::{
    ArtifactName, AttemptOutput, OutputError, OutputFile, OutputName, RecordChanges, RecordFollower,
    RecordPosition, Records, RemovableOutput, ReportKind, ReportOutput, RunFiles, whole,
};
pub use reporter::{Interest, Reporter, RunStatus};
pub use store::{Batch, LoggedFact, SNAPSHOTS_KEPT, Seq, Store, StoreClient, StoreError, Version};

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

    /// Returns an error of something that fails every time.
    pub fn never(diagnostic: Diagnostic) -> Self {
        Self {
            diagnostic: Box::new(diagnostic),
            retry: Retry::Never,
        }
    }
}

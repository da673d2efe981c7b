//! Where a run is in the pipeline. It is in exactly one of these states at any time.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::domain::{Failure, FailureClass};

/// Where a run is in the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum RunState {
    /// Nobody entitled has approved this head yet.
    AwaitingApproval,
    /// It waits for quota, or for the time of its next attempt.
    Queued,
    /// Quota is promised to its attempt; a place is being made.
    Reserved,
    /// Its attempt has a place and is being started.
    Starting,
    /// Its attempt runs.
    Running,
    /// It is over.
    Ended(Ending),
}

/// How a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    /// The notebook passed, and so did everything that it started and everything that is expected.
    Passed,
    /// The notebook, its workload or an expectation failed.
    Failed,
    /// Something failed that only a retry elsewhere could mend, and no retry is left.
    InfrastructureFailed,
    /// A limit of time was reached.
    TimedOut,
    /// Somebody stopped it.
    Cancelled,
    /// It can never run: the gate, the queue or its own configuration forbids it.
    Refused,
    /// The pull request moved on to another head.
    Superseded,
}

impl Ending {
    /// Returns the ending that a failure leads to when nothing is tried again.
    pub fn of(failure: &Failure) -> Self {
        match failure.class {
            FailureClass::Notebook | FailureClass::Workload | FailureClass::Expectation => Ending::Failed,
            FailureClass::Timeout(_) => Ending::TimedOut,
            FailureClass::Infrastructure => Ending::InfrastructureFailed,
            FailureClass::Config => Ending::Refused,
        }
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RunState::AwaitingApproval => "awaiting approval",
            RunState::Queued => "queued",
            RunState::Reserved => "reserved",
            RunState::Starting => "starting",
            RunState::Running => "running",
            RunState::Ended(ending) => return ending.fmt(f),
        })
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Ending::Passed => "passed",
            Ending::Failed => "failed",
            Ending::InfrastructureFailed => "infrastructure failed",
            Ending::TimedOut => "timed out",
            Ending::Cancelled => "cancelled",
            Ending::Refused => "refused",
            Ending::Superseded => "superseded",
        })
    }
}

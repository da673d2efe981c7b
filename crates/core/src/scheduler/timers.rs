//! What the scheduler waits for, by time.

use serde::{Deserialize, Serialize};

use crate::{
    domain::{AttemptId, RunId},
    event::Call,
};

/// Something that is due at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Timer {
    /// The run has waited for quota as long as it may.
    QueueTimeout(RunId),
    /// The attempt should have ended by itself.
    Overdue(AttemptId),
    /// The run's attempts have had quota for as long as they may.
    ExecutionTime(AttemptId),
    /// The attempt was interrupted, and has had its time to end by itself.
    Grace(AttemptId),
    /// Somebody may be evicted again who was safe until now, or another goes first.
    TryAgain,
    /// Somebody's back-off is over.
    BackOff,
    /// An approval expires.
    ApprovalExpiry,
    /// A failed call may be made again.
    Call(Call),
}

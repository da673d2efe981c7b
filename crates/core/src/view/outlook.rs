//! How a run waits and when it is likely to go on, as it was last worked out.
//!
//! It depends on everybody else in the queues, so it changes without the run: it has a time of its own, and whoever shows it
//! can say how old it is. It is no fact: it follows from the log and the rules, and is worked out again after a restart.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    estimate::{Estimate, LikelyDuration},
    pending::{PendingReason, RunRemedy},
};

/// How a run stands among the others, at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutlookView {
    /// When this was worked out.
    pub as_of: Timestamp,
    /// Why it waits; absent when it does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<PendingReason>,
    /// Where it is in its ClusterQueue; absent when it is in none, or was not worked out yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<QueuePosition>,
    /// What would get it admitted, each by itself, as tried on a copy of the queues; empty where nothing helps, or where so
    /// many wait that it is not tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unblocked_by: Vec<RunRemedy>,
    /// When it is likely to start and to end; absent when nothing is known, or was not worked out yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// How long it is likely to have its quota once it is approved; absent when it does not wait for that, or nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<LikelyDuration>,
}

/// Where a run is in its ClusterQueue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueuePosition {
    /// The ClusterQueue.
    pub cluster_queue: String,
    /// Its place, counted from one; one that backs off is not counted.
    pub position: usize,
    /// How many wait there.
    pub waiting: usize,
}

impl OutlookView {
    /// Returns how long ago it was worked out.
    pub fn age(&self, now: Timestamp) -> SignedDuration {
        now.duration_since(self.as_of)
    }
}

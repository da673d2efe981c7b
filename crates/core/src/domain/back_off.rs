//! How a run backs off before it is tried again.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How a run that failed is tried again by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BackOff {
    /// When it may be tried again.
    pub until: Timestamp,
    /// How often it was requeued for failures of this kind, this time included: Kueue's `requeueState.count`.
    pub requeues: u32,
    /// How often it may be.
    pub at_most: u32,
}

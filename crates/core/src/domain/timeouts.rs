//! The limits of time. They are different things: waiting for quota never burns a cell's clock.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// How long each part of a run may take. `None` is without limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Timeouts {
    /// From the approval until quota is reserved.
    pub queue: Option<SignedDuration>,
    /// From the start of an attempt until its first cell runs: environment and kernel.
    pub startup: Option<SignedDuration>,
    /// For any one cell.
    pub cell: Option<SignedDuration>,
    /// For all cells of an attempt together.
    pub run: Option<SignedDuration>,
    /// With quota, from when it is reserved until it is given back, all attempts together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<SignedDuration>,
}

impl Timeouts {
    /// Returns how long a whole attempt may take, from its start.
    pub fn attempt(&self) -> Option<SignedDuration> {
        Some(self.startup?.saturating_add(self.run?))
    }
}

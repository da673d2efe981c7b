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
    /// The longest limit that a run may have: ten years. Sums of such limits are still times.
    pub const LONGEST: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);

    /// Returns whether no limit is longer than one may be, or negative.
    pub fn are_valid(&self) -> bool {
        let all = [self.queue, self.startup, self.cell, self.run, self.execution];
        let mut given = all.into_iter().flatten();
        given.all(|limit| (SignedDuration::ZERO..=Self::LONGEST).contains(&limit))
    }

    /// Returns how long a whole attempt may take, from its start.
    pub fn attempt(&self) -> Option<SignedDuration> {
        let (startup, run) = (self.startup?.min(Self::LONGEST), self.run?.min(Self::LONGEST));
        Some(startup + run)
    }
}

//! Why a job was never admitted.

use std::fmt;

use blueproof_core::pending::InactiveQueue;
use blueproof_queue::{Obstacle, WaitReason};
use serde::Serialize;

/// That a job was never admitted, and why it was not at last: when it gave up, or at the end.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unadmitted {
    /// The job, by its number.
    pub job: usize,
    /// Kueue's word.
    pub reason: WaitReason,
    /// Why its queue admits nobody, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inactive: Option<InactiveQueue>,
    /// What was missing, flavor by flavor.
    pub obstacles: Vec<Obstacle>,
}

impl fmt::Display for Unadmitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reason)?;
        if let Some(inactive) = &self.inactive {
            return write!(f, ": {inactive}");
        }
        let obstacles: Vec<String> = self.obstacles.iter().map(ToString::to_string).collect();
        match &obstacles[..] {
            [] => f.write_str(": others go first"),
            obstacles => write!(f, ": {}", obstacles.join("; ")),
        }
    }
}

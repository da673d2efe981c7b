//! What other queues would have changed.

use std::fmt;

use blueproof_core::simulation::Starved;
use serde::Serialize;

use super::comparison::{Comparison, seconds};
use crate::output::line;

/// More of those who starve than this are for programs.
const MOST_STARVING: usize = 10;

/// What other queues would have changed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    #[serde(flatten)]
    pub(crate) comparison: Comparison,
    /// Whether the recorded queues, replayed, admitted who was recorded, when they were.
    pub(crate) same_order: bool,
    /// Who would have waited too long under the policy, the longest wait first.
    pub(crate) starving: Vec<Starved>,
    /// The LocalQueues that runs asked in and that the policy does not have.
    pub(crate) without_queue: Vec<String>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.comparison)?;
        let order = if self.same_order {
            "replayed with the recorded queues, everybody is admitted when they were"
        } else {
            "replayed with the recorded queues, not everybody is admitted when they were: \
             the log is of another version"
        };
        writeln!(f, "{order}")?;
        for queue in &self.without_queue {
            writeln!(
                f,
                "the policy has no LocalQueue {}: who asks in it waits for ever",
                line(queue)
            )?;
        }
        for starved in self.starving.iter().take(MOST_STARVING) {
            let (name, wait) = (line(&starved.job), seconds(starved.wait_seconds));
            let how = if starved.admitted {
                "waits"
            } else {
                "is never admitted, in"
            };
            writeln!(f, "{name} {how} {wait}s")?;
        }
        let more = self.starving.len().saturating_sub(MOST_STARVING);
        if more > 0 {
            writeln!(f, "and {more} more starve: `-o json` lists them")?;
        }
        Ok(())
    }
}

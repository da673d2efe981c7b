//! What other queues would have changed.

use std::fmt;

use blueproof_simulation::Starved;
use serde::Serialize;

use super::{comparison::Comparison, text::span};
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
    /// What is to be said of each policy.
    pub(crate) policies: Vec<PolicyRemarks>,
}

/// What is to be said of a policy.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyRemarks {
    /// What it is called.
    pub(crate) name: String,
    /// Who would have waited too long under it, the longest wait first.
    pub(crate) starving: Vec<Starved>,
    /// The LocalQueues that runs asked in and that it does not have.
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
        self.policies.iter().try_for_each(|policy| policy.fmt(f))
    }
}

impl fmt::Display for PolicyRemarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = line(&self.name);
        for queue in &self.without_queue {
            writeln!(
                f,
                "{policy} has no LocalQueue {}: who asks in it waits for ever",
                line(queue)
            )?;
        }
        let waits = self.starving.iter().filter(|starved| starved.admitted);
        let n_waiting = waits.clone().count();
        for starved in waits.take(MOST_STARVING) {
            writeln!(
                f,
                "{policy}: {} waits {}",
                line(&starved.job),
                span(starved.wait_seconds)
            )?;
        }
        if n_waiting > MOST_STARVING {
            let more = n_waiting - MOST_STARVING;
            writeln!(f, "{policy}: {more} more starve: `-o json` lists them")?;
        }
        Ok(())
    }
}

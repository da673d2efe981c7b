//! What came of a scenario: who had quota when, and why they lost it.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_queue::{EvictionReason, Quantity};
use jiff::SignedDuration;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Unadmitted;
use crate::retry::Reason;

/// All that happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct History {
    /// What happened, in its order.
    pub events: Vec<HistoryEvent>,
    /// What became of each job, in the order of the scenario.
    pub job_records: Vec<JobRecord>,
    /// How much of each resource there was, from each time on.
    pub capacity: Vec<(SignedDuration, BTreeMap<String, Quantity>)>,
    /// How far the weighted shares of the queues lay apart, from each time on.
    pub share_gaps: Vec<(SignedDuration, f64)>,
    /// What was idle of each resource on nodes that were well, from each time on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub idle: Vec<(SignedDuration, BTreeMap<String, Idle>)>,
    /// Who was never admitted, and why; it follows from the rest.
    #[serde(skip)]
    pub unadmitted: Vec<Unadmitted>,
    /// When the last thing happened, or when the scenario ends.
    pub end: SignedDuration,
    /// Whether it was cut short because the rules went round for ever.
    pub cut_short: bool,
    /// The ClusterQueues whose jobs evicted each other by turns without time passing, if that is why.
    #[serde(skip)]
    pub by_turns: BTreeSet<String>,
}

/// What no pod has of a resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Idle {
    /// How much it is.
    pub amount: Quantity,
    /// How much of it is of no use to a pod drawn at random from those that ask for it.
    pub fragmented: f64,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryEvent {
    /// When.
    pub at: SignedDuration,
    /// What.
    #[serde(flatten)]
    pub what: EventKind,
}

/// Something that happened; jobs are named by their numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum EventKind {
    /// A job asks for quota.
    Arrived {
        /// Who.
        job: usize,
    },
    /// A job has quota, and runs.
    Admitted {
        /// Who.
        job: usize,
    },
    /// A job is told to give its quota back.
    Evicted {
        /// Who.
        job: usize,
        /// Why.
        cause: EvictionCause,
    },
    /// No nodes have room for all pods of a job.
    Pending {
        /// Whose.
        job: usize,
    },
    /// All pods of a job run that were pending, or that it was reset with.
    Running {
        /// Whose.
        job: usize,
    },
    /// A pod fails.
    PodFailed {
        /// Whose.
        job: usize,
        /// With which exit code.
        exit_code: i32,
    },
    /// A job is deleted to be created again, and keeps its quota.
    Reset {
        /// Who.
        job: usize,
        /// Why.
        reason: Reason,
    },
    /// A job is given up.
    Failed {
        /// Who.
        job: usize,
        /// Why.
        reason: Reason,
    },
    /// A job that was evicted waits again.
    Requeued {
        /// Who.
        job: usize,
    },
    /// A job is done.
    Done {
        /// Who.
        job: usize,
    },
    /// A job goes away without having got quota.
    GaveUp {
        /// Who.
        job: usize,
    },
    /// A job that had quota for as long as it may is gone.
    Deactivated {
        /// Who.
        job: usize,
    },
    /// A remark of the scenario's.
    Remark {
        /// What it says.
        text: String,
    },
    /// Other queues hold.
    QuotaChanged,
    /// A node fails.
    NodeFailed {
        /// Which.
        node: String,
    },
    /// A node is well again.
    NodeRecovered {
        /// Which.
        node: String,
    },
    /// The lending limit of the slack queue is another.
    LendingLimit {
        /// The flavor.
        flavor: String,
        /// The resource.
        resource: String,
        /// The limit; `None` is that there is none.
        limit: Option<Quantity>,
    },
}

/// What became of a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct JobRecord {
    /// When it came.
    pub arrived: Option<SignedDuration>,
    /// When it had quota.
    pub periods: Vec<AdmittedPeriod>,
    /// When it was done.
    pub done: Option<SignedDuration>,
    /// When it was given up, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<(SignedDuration, Reason)>,
    /// When it went away without having got quota.
    pub gave_up: Option<SignedDuration>,
    /// When it had had quota for as long as it may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deactivated: Option<SignedDuration>,
}

/// A time for which a job had quota.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdmittedPeriod {
    /// Since when.
    pub since: SignedDuration,
    /// Until when; `None` is beyond the end.
    pub until: Option<SignedDuration>,
    /// What it had.
    pub held: BTreeMap<String, Quantity>,
    /// Of which pods it had fewer than it asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fewer: Option<Fewer>,
    /// How often it was deleted to be created again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resets: Vec<Reset>,
    /// When it was told to go, and why.
    pub evicted: Option<(SignedDuration, EvictionCause)>,
}

/// That a pod set got fewer pods than it asked for, which its `minCount` allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fewer {
    /// Of which pod set.
    pub pod_set: String,
    /// How many it got.
    pub pods: u32,
    /// How many it asked for.
    pub of: u32,
}

/// A job is deleted to be created again. What it did before is lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reset {
    /// When.
    pub at: SignedDuration,
    /// Why.
    pub reason: Reason,
    /// When its pods ran again.
    pub again: Option<SignedDuration>,
}

/// Why a job has to go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "camelCase")]
pub enum EvictionCause {
    /// For another.
    Preempted {
        /// For whom.
        by: usize,
        /// By which rule.
        reason: EvictionReason,
        /// Whether that one had been evicted for this one.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        reversal: bool,
    },
    /// Its queue is to be drained.
    Drained,
    /// It had quota for as long as it may.
    MaximumExecutionTimeExceeded,
}

impl History {
    /// Returns a digest that two histories share only when all is the same in them.
    ///
    /// # Panics
    /// Never: it is plain data.
    pub fn digest(&self) -> String {
        let json = serde_json::to_vec(self).expect("plain data has a form in JSON");
        let bytes = Sha256::digest(json);
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns who was admitted, in order, as often as they were.
    pub fn admissions(&self) -> impl Iterator<Item = (SignedDuration, usize)> {
        self.events.iter().filter_map(|moment| match moment.what {
            EventKind::Admitted { job } => Some((moment.at, job)),
            EventKind::Arrived { .. }
            | EventKind::Evicted { .. }
            | EventKind::Pending { .. }
            | EventKind::Running { .. }
            | EventKind::PodFailed { .. }
            | EventKind::Reset { .. }
            | EventKind::Failed { .. }
            | EventKind::Requeued { .. }
            | EventKind::Done { .. }
            | EventKind::GaveUp { .. }
            | EventKind::Deactivated { .. }
            | EventKind::Remark { .. }
            | EventKind::QuotaChanged
            | EventKind::NodeFailed { .. }
            | EventKind::NodeRecovered { .. }
            | EventKind::LendingLimit { .. } => None,
        })
    }
}

impl JobRecord {
    /// Returns how long it waited for its first quota; `None` when it got none.
    pub fn wait(&self) -> Option<SignedDuration> {
        Some(self.periods.first()?.since - self.arrived?)
    }

    /// Returns how long it took from its arrival until it was done.
    pub fn completion(&self) -> Option<SignedDuration> {
        Some(self.done? - self.arrived?)
    }

    /// Returns how long of a stay, in a history that ends then, came to nothing.
    pub fn lost(&self, period: &AdmittedPeriod, end: SignedDuration) -> SignedDuration {
        let until = period.until.unwrap_or(end);
        let is_last = self.periods.last().is_some_and(|last| last == period);
        if is_last && self.done.is_some() || period.evicted.is_none() && self.failed.is_none() {
            let again = period.resets.last().map(|reset| reset.again.unwrap_or(until));
            return again.map_or(SignedDuration::ZERO, |again| again - period.since);
        }
        until - period.since
    }
}

impl AdmittedPeriod {
    /// Returns how long it lasted, in a history that ends then.
    pub fn span(&self, end: SignedDuration) -> SignedDuration {
        self.until.unwrap_or(end) - self.since
    }
}

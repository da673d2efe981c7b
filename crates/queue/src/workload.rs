//! What waits in a queue or holds its quota: so many pods of some kinds, all of them or none.

use std::{collections::BTreeMap, fmt};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Quantity, objects::Toleration};

/// The resource that counts pods; a queue that covers it counts them whether or not a pod set asks.
pub(super) const PODS: &str = "pods";

/// Names a workload. Where all else is equal, the lesser one goes first, and is evicted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadId(pub u64);

impl fmt::Display for WorkloadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workload {}", self.0)
    }
}

/// What asks for quota.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Its name.
    pub id: WorkloadId,
    /// The ClusterQueue that it waits in.
    pub cluster_queue: String,
    /// The LocalQueue that it came through.
    pub local_queue: String,
    /// Its user in the LocalQueue, where usage counts; `None` is that the LocalQueue is one user.
    pub user: Option<String>,
    /// The higher, the earlier.
    pub priority: i32,
    /// Since when it waits, by which equals are ordered: its creation, also after an eviction.
    pub queued_at: Timestamp,
    /// How often it was evicted before.
    pub evictions: u32,
    /// For whom it was evicted last.
    pub evicted_by: Option<WorkloadId>,
    /// What it consists of.
    pub pod_sets: Vec<PodSet>,
}

impl Workload {
    /// Returns a workload of priority zero that was never evicted, before it is known in which queue it is.
    pub fn new(id: WorkloadId, queued_at: Timestamp, pod_sets: Vec<PodSet>) -> Self {
        Self {
            id,
            cluster_queue: String::new(),
            local_queue: String::new(),
            user: None,
            priority: 0,
            queued_at,
            evictions: 0,
            evicted_by: None,
            pod_sets,
        }
    }
}

/// How long a workload may have quota, over all of its admissions: Kueue's `maximumExecutionTimeSeconds`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionTime {
    limit: Option<SignedDuration>,
    past: SignedDuration,
}

impl ExecutionTime {
    /// Returns the time of a workload that had no quota yet; `None` is without limit.
    pub fn new(limit: Option<SignedDuration>) -> Self {
        Self {
            limit,
            past: SignedDuration::ZERO,
        }
    }

    /// Counts an admission that is over. As in Kueue, seconds that were begun do not count.
    pub fn spend(&mut self, span: SignedDuration) {
        self.past = self
            .past
            .saturating_add(SignedDuration::from_secs(span.as_secs()));
    }

    /// Returns when an admission that began then has to end; `None` is never.
    pub fn ends_at(&self, since: Timestamp) -> Option<Timestamp> {
        let left = self.limit?.saturating_sub(self.past).max(SignedDuration::ZERO);
        since.checked_add(left).ok()
    }
}

/// Pods of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PodSet {
    /// Its name within the workload.
    pub name: String,
    /// How many pods.
    pub count: u32,
    /// The least that will do; `None` is all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_count: Option<u32>,
    /// What one pod asks for, in Kueue's units.
    #[serde(default)]
    pub requests: BTreeMap<String, Quantity>,
    /// The labels that its nodes must have, as far as the flavor speaks of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// The taints that it tolerates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
}

/// Quota given to a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// To whom.
    pub workload: WorkloadId,
    /// What each pod set got, in their order.
    pub pod_sets: Vec<PodSetAssignment>,
}

/// Quota given to a pod set: Kueue's `podSetAssignments`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PodSetAssignment {
    /// The pod set's name within the workload.
    pub name: String,
    /// For how many pods.
    pub count: u32,
    /// Of which flavor, by resource.
    pub flavors: BTreeMap<String, String>,
    /// How much of each resource, for all pods of the set together.
    pub resource_usage: BTreeMap<String, Quantity>,
}

impl PodSet {
    /// Returns what one pod of the set counts for; `pods` counts pods.
    pub(super) fn per_pod(&self, resource: &str) -> Option<Quantity> {
        if resource == PODS {
            return Some(Quantity(1));
        }
        self.requests.get(resource).copied()
    }

    /// Returns what the set has when so many of its pods get quota of these flavors.
    pub fn assigned(&self, count: u32, flavors: BTreeMap<String, String>) -> PodSetAssignment {
        let usage = flavors.keys().filter_map(|resource| {
            let per_pod = self.per_pod(resource)?;
            Some((resource.clone(), per_pod.times(count)))
        });
        PodSetAssignment {
            name: self.name.clone(),
            count,
            resource_usage: usage.collect(),
            flavors,
        }
    }
}

/// A workload that loses its quota to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preempted {
    /// The workload that loses it.
    pub workload: WorkloadId,
    /// Why it may be taken.
    pub reason: PreemptionReason,
    /// For whom.
    pub by: WorkloadId,
    /// Whether that one was itself evicted for this one when it was evicted last.
    pub reversal: bool,
}

/// Why a workload may be evicted for another: Kueue's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PreemptionReason {
    /// It is of the same queue, and of less priority or newer.
    InClusterQueue,
    /// It uses what belongs to the other's queue, or to a cohort nearer to that queue.
    InCohortReclamation,
    /// Its queue has more than its fair share.
    InCohortFairSharing,
    /// It is of less priority, in another queue, and the other's queue borrows too.
    InCohortReclaimWhileBorrowing,
}

impl PreemptionReason {
    /// Returns Kueue's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InClusterQueue => "InClusterQueue",
            Self::InCohortReclamation => "InCohortReclamation",
            Self::InCohortFairSharing => "InCohortFairSharing",
            Self::InCohortReclaimWhileBorrowing => "InCohortReclaimWhileBorrowing",
        }
    }
}

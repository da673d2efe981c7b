//! The case format: queues, who runs, who waits, and what Kueue makes of it.
//!
//! A case file says at its head what its keys mean. A line of JSON for the oracle has the same keys.

mod entry;
mod flavor;
pub(crate) mod known;
mod ordered;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use entry::{Entry, FlavorChoice, PodSetEntry};
pub(crate) use flavor::{Flavor, Operator, Taint, Toleration};
pub(crate) use ordered::Ordered;

use crate::retry::RetryCase;

/// A whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    version: Value,
    origin: Value,
    sources: Value,
    reasons: Value,
    pub(crate) fixtures: BTreeMap<String, Setup>,
    pub(crate) cycle_fixtures: BTreeMap<String, Setup>,
    pub(crate) availability: Vec<Availability>,
    pub(crate) shares: Vec<Shares>,
    pub(crate) classical_targets: Vec<Targets>,
    pub(crate) hierarchical_targets: Vec<Targets>,
    pub(crate) fair_targets: Vec<Targets>,
    pub(crate) cycles: Vec<CycleCase>,
    pub(crate) fair_cycles: Vec<CycleCase>,
    pub(crate) partial_admission: Vec<PartialAdmission>,
    pub(crate) scripts: Vec<Script>,
    pub(crate) linger_scripts: Vec<Script>,
    pub(crate) retry_machine: Vec<RetryCase>,
}

/// Queues and cohorts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Setup {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) flavors: BTreeMap<String, Flavor>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) cohorts: BTreeMap<String, Cohort>,
    pub(crate) queues: BTreeMap<String, Queue>,
}

/// A cohort.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Cohort {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) weight: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) groups: Vec<Group>,
}

/// Flavors in order, and how much there is of each.
pub(crate) type Group = Ordered<BTreeMap<String, Quota>>;

/// An amount, or `[nominal, borrowing limit, lending limit]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Quota {
    Nominal(f64),
    Limits(Vec<Option<f64>>),
}

/// A queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Queue {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cohort: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) weight: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) strategy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) within: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reclaim: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bwc: Option<Bwc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fungibility: Option<Fungibility>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) groups: Vec<Group>,
    /// The LocalQueues in front of it and their weights; where there are any, usage decides who goes first.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) users: BTreeMap<String, f64>,
}

/// borrowWithinCohort.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bwc {
    pub(crate) policy: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max: Option<i32>,
}

/// flavorFungibility.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub(crate) struct Fungibility {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) when_can_borrow: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) when_can_preempt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preference: Option<String>,
}

/// Amounts by queue and by `flavor/resource`.
pub(crate) type ByQueue<T> = BTreeMap<String, BTreeMap<String, T>>;

/// Quota arithmetic.
#[derive(Debug, Deserialize)]
pub(crate) struct Availability {
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) setup: Setup,
    #[serde(default)]
    pub(crate) usage: ByQueue<f64>,
    #[serde(default)]
    pub(crate) available: ByQueue<f64>,
    #[serde(default)]
    pub(crate) potential: ByQueue<f64>,
}

/// Dominant resource shares.
#[derive(Debug, Deserialize)]
pub(crate) struct Shares {
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) setup: Setup,
    #[serde(default)]
    pub(crate) usage: ByQueue<f64>,
    #[serde(default)]
    pub(crate) request: ByQueue<f64>,
    pub(crate) share: BTreeMap<String, Share>,
    pub(crate) dominant: Option<String>,
}

/// A share, rounded up, or `max`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Share {
    Number(u64),
    Word(String),
}

/// Who would be evicted for one workload whose flavor is chosen.
#[derive(Debug, Deserialize)]
pub(crate) struct Targets {
    pub(crate) id: String,
    pub(crate) fixture: Option<String>,
    #[serde(flatten)]
    pub(crate) setup: Setup,
    #[serde(default)]
    pub(crate) strategies: Vec<String>,
    #[serde(default)]
    pub(crate) running: BTreeMap<String, Vec<Entry>>,
    pub(crate) incoming: Entry,
    #[serde(default)]
    pub(crate) preempt: BTreeMap<String, String>,
}

/// One scheduling cycle.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct CycleCase {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fixture: Option<String>,
    /// In a file, the section says it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) fair: bool,
    #[serde(flatten)]
    pub(crate) setup: Setup,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) strategies: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) running: BTreeMap<String, Vec<Entry>>,
    #[serde(default)]
    pub(crate) pending: BTreeMap<String, Vec<Entry>>,
    #[serde(flatten)]
    pub(crate) outcome: CycleOutcome,
}

/// What a cycle decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CycleOutcome {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) admit: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) preempt: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) wait: BTreeMap<String, String>,
    #[serde(flatten)]
    pub(crate) sets: SetsOutcome,
}

/// What those of several pod sets got, who were admitted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SetsOutcome {
    /// How many pods of each set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) counts: BTreeMap<String, Vec<u32>>,
    /// On which flavor each resource of each set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) set_flavors: BTreeMap<String, Vec<BTreeMap<String, String>>>,
}

/// One cycle in which fewer pods may do.
#[derive(Debug, Deserialize)]
pub(crate) struct PartialAdmission {
    pub(crate) id: String,
    pub(crate) queue: Queue,
    #[serde(default)]
    pub(crate) running: Vec<Entry>,
    pub(crate) pending: PartialPending,
    #[serde(default)]
    pub(crate) admit_counts: Vec<u32>,
    #[serde(default)]
    pub(crate) then_counts: Vec<u32>,
    #[serde(default)]
    pub(crate) preempt: BTreeMap<String, String>,
}

/// A workload of several pod sets, each `[pods, per-pod request, minimum pods]`.
#[derive(Debug, Deserialize)]
pub(crate) struct PartialPending {
    pub(crate) n: String,
    #[serde(default)]
    pub(crate) p: i32,
    pub(crate) resource: String,
    pub(crate) sets: Vec<Vec<f64>>,
}

/// Several steps, after each of which cycles run until nothing changes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Script {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) fair: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) strategies: Vec<String>,
    #[serde(flatten)]
    pub(crate) setup: Setup,
    pub(crate) steps: Vec<Step>,
    /// Whether the oracle wakes those who wait also where Kueue forgets to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) wakes: bool,
}

/// Something happens, and then holds what holds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Step {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) submit: Vec<Entry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) finish: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) gone: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) set_lending: Option<SetLending>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) set_quota: Option<SetQuota>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) set_stop: Option<SetStop>,
    /// It names a LocalQueue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) set_local_stop: Option<SetStop>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) set_queue: Option<SetQueue>,
    #[serde(flatten)]
    pub(crate) outcome: StepOutcome,
}

/// A lending limit changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetLending {
    pub(crate) queue: String,
    pub(crate) fr: String,
    pub(crate) limit: Option<f64>,
}

/// A nominal quota changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetQuota {
    pub(crate) queue: String,
    pub(crate) fr: String,
    pub(crate) nominal: f64,
}

/// A stopPolicy changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetStop {
    pub(crate) queue: String,
    pub(crate) policy: String,
}

/// A queue is made, changed or removed. Its stopPolicy and its LocalQueues stay.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetQueue {
    pub(crate) queue: String,
    pub(crate) to: Option<Queue>,
}

/// What holds after a step. What a file does not say is not asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StepOutcome {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) running: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waiting: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) leaving: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preempted: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) admitted: Option<BTreeMap<String, BTreeMap<String, String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shares: Option<BTreeMap<String, Share>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) available: Option<ByQueue<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) running_count: Option<BTreeMap<String, usize>>,
    #[serde(flatten)]
    pub(crate) sets: SetsOutcome,
}

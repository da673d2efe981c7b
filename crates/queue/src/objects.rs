//! What an admin configures: Kueue's ClusterQueue, Cohort and ResourceFlavor, as far as the embedded queue goes by them.
//!
//! The words, defaults and limits are those of `kueue.x-k8s.io/v1beta2`. They are read from YAML
//! in [`super::manifest`], not here.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::Quantity;

/// Everything that the queues go by.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Objects {
    /// The flavors that queues may name.
    pub flavors: BTreeMap<String, ResourceFlavor>,
    /// The cohorts. One that is only named, by a queue or as a parent, has no quota of its own.
    pub cohorts: BTreeMap<String, Cohort>,
    /// The queues with quota.
    pub cluster_queues: BTreeMap<String, ClusterQueue>,
    /// The queues that people name, each in front of one with quota.
    pub local_queues: BTreeMap<String, LocalQueue>,
    /// The priorities that people name.
    pub priority_classes: BTreeMap<String, i32>,
    /// Which workloads may preempt which inside a cohort; `None` is by priority and borrowing alone.
    pub fair_sharing: Option<FairSharing>,
    /// How what users of one ClusterQueue had lately is counted; `None` is that it counts nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission_fair_sharing: Option<AdmissionFairSharing>,
    /// How those are tried again that did not start or whose machine failed; `None` is as the policy says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeuing: Option<Requeuing>,
}

impl Objects {
    /// Returns them with every admission embedded: what these rules would decide in place of a cluster.
    pub fn with_embedded_admission(mut self) -> Self {
        for queue in self.cluster_queues.values_mut() {
            queue.admission = Admission::Embedded;
        }
        self
    }
}

/// A kind of node, told from others by its labels and taints.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResourceFlavor {
    /// The labels that its nodes have.
    pub node_labels: BTreeMap<String, String>,
    /// The taints that its nodes have.
    pub node_taints: Vec<Taint>,
    /// What is tolerated of them for every workload.
    pub tolerations: Vec<Toleration>,
}

/// Keeps workloads off a node that do not tolerate it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value; may be empty.
    pub value: String,
    /// What it does.
    pub effect: TaintEffect,
}

/// What a taint does to a workload that does not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TaintEffect {
    /// It is not put there.
    NoSchedule,
    /// It is put elsewhere when that is possible; the queue heeds no such taint.
    PreferNoSchedule,
    /// It is not put there, and does not stay there.
    NoExecute,
}

/// A taint of nodes that a workload tolerates.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// The taint's key; `None` is any.
    pub key: Option<String>,
    /// The taint's value; `None` is any.
    pub value: Option<String>,
    /// The taint's effect; `None` is any.
    pub effect: Option<TaintEffect>,
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key)?;
        if !self.value.is_empty() {
            write!(f, "={}", self.value)?;
        }
        write!(f, ":{:?}", self.effect)
    }
}

impl Toleration {
    /// Returns whether a workload with this tolerates the taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && self.key.as_ref().is_none_or(|key| *key == taint.key)
            && self.value.as_ref().is_none_or(|value| *value == taint.value)
    }
}

/// A group of queues and cohorts that lend to each other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Cohort {
    /// The cohort that it is part of.
    pub parent: Option<String>,
    /// Quota of its own, for the queues and cohorts in it.
    pub resource_groups: Vec<ResourceGroup>,
    /// Its weight among its siblings.
    pub weight: Weight,
}

/// A queue with its quota.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterQueue {
    /// The cohort that it is part of; without one it neither borrows nor lends.
    pub cohort: Option<String>,
    /// What it has, by flavor.
    pub resource_groups: Vec<ResourceGroup>,
    /// Which workload is tried when the head of the queue does not fit.
    pub queueing_strategy: QueueingStrategy,
    /// Whom its workloads may evict.
    pub preemption: Preemption,
    /// When the next flavor is tried.
    pub flavor_fungibility: FlavorFungibility,
    /// Its weight among its siblings.
    pub weight: Weight,
    /// Whether it admits at all.
    pub stop_policy: StopPolicy,
    /// Whether the users with the least recent usage go first.
    #[serde(default)]
    pub admission_mode: AdmissionMode,
    /// What decides which of its workloads are admitted.
    #[serde(default, skip_serializing_if = "Admission::is_embedded")]
    pub admission: Admission,
    /// The cluster that its workloads run on, where there are several; `None` is the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
}

/// What decides which workloads of a ClusterQueue are admitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Admission {
    /// These rules.
    #[default]
    Embedded,
    /// The cluster that the workloads run on, such as the Kueue there. It reports its decisions.
    External,
}

impl Admission {
    fn is_embedded(&self) -> bool {
        *self == Self::Embedded
    }
}

/// A queue that people name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LocalQueue {
    /// The ClusterQueue that it is in front of; empty is none.
    pub cluster_queue: String,
    /// Whether it lets anybody through.
    pub stop_policy: StopPolicy,
    /// Its weight among those in front of the same ClusterQueue, where usage counts. One of zero goes last.
    #[serde(default)]
    pub weight: Weight,
    /// Which users of the LocalQueue are distinguished, where usage counts.
    #[serde(default)]
    pub users: LocalQueueUsers,
    /// Its namespace in a cluster, where it says another than `default`; here there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name in that namespace, where it is known by another here: it is not the only one of its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_name: Option<String>,
}

/// Where LocalQueues are put in a cluster that is told of no namespace.
pub const DEFAULT_NAMESPACE: &str = "default";

impl LocalQueue {
    /// Returns the namespace and the name by which a cluster has it; `known_as` is what it is known by here.
    pub fn in_cluster<'a>(&'a self, known_as: &'a str) -> (&'a str, &'a str) {
        let namespace = self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        (namespace, self.own_name.as_deref().unwrap_or(known_as))
    }
}

/// Which users of a LocalQueue are distinguished by their usage. To Kueue, a LocalQueue is one user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LocalQueueUsers {
    /// That of all.
    #[default]
    LocalQueue,
    /// That of each author.
    Author,
    /// That of each repository or folder.
    Repository,
}

impl LocalQueueUsers {
    /// Returns the user of a workload; `None` is that the LocalQueue is one user.
    pub fn tell_apart<T>(self, author: impl FnOnce() -> T, repository: impl FnOnce() -> T) -> Option<T> {
        match self {
            Self::LocalQueue => None,
            Self::Author => Some(author()),
            Self::Repository => Some(repository()),
        }
    }
}

/// Resources that come together, in one of several flavors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResourceGroup {
    /// The flavors, the first to be tried first.
    pub flavors: Vec<FlavorQuotas>,
}

impl ResourceGroup {
    /// Returns the resources that the group is about.
    pub fn covered_resources(&self) -> BTreeSet<&str> {
        let flavors = self.flavors.iter();
        flavors
            .flat_map(|flavor| flavor.resources.keys())
            .map(String::as_str)
            .collect()
    }
}

/// How much there is of a flavor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FlavorQuotas {
    /// The flavor's name.
    pub name: String,
    /// How much of each resource.
    pub resources: BTreeMap<String, Quota>,
}

/// How much of one resource, in one flavor, a queue or cohort has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Quota {
    /// Its own.
    pub nominal: Quantity,
    /// How much more it may use of others'; `None` is as much as they lend.
    pub borrowing_limit: Option<Quantity>,
    /// How much of its own it lends to others; `None` is all that it does not use.
    pub lending_limit: Option<Quantity>,
}

/// Which workload is tried when the head of the queue does not fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum QueueingStrategy {
    /// None: no workload is admitted before the head of the queue.
    StrictFIFO,
    /// The next workload that fits.
    #[default]
    BestEffortFIFO,
}

/// Whom a queue's workloads may evict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Preemption {
    /// Workloads of the same queue.
    pub within_cluster_queue: WithinClusterQueue,
    /// Workloads of other queues in the cohort that borrow.
    pub reclaim_within_cohort: ReclaimWithinCohort,
    /// Whether to evict others even while borrowing; not with fair sharing.
    pub borrow_within_cohort: Option<BorrowWithinCohort>,
}

/// Whom of its own queue a workload may evict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WithinClusterQueue {
    /// None.
    #[default]
    Never,
    /// Those of lower priority.
    LowerPriority,
    /// Those, and those of equal priority that came later.
    LowerOrNewerEqualPriority,
}

/// Whom of the other queues in the cohort a workload may evict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReclaimWithinCohort {
    /// None.
    #[default]
    Never,
    /// Those of lower priority.
    LowerPriority,
    /// Anybody.
    Any,
}

/// Whom a workload may evict while its own queue borrows: those of lower priority.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BorrowWithinCohort {
    /// The highest priority that may be evicted so; `None` is any that is lower.
    pub max_priority_threshold: Option<i32>,
}

/// When the next flavor is tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FlavorFungibility {
    /// When a flavor fits by borrowing.
    pub when_can_borrow: WhenCanBorrow,
    /// When a flavor fits by evicting.
    pub when_can_preempt: WhenCanPreempt,
    /// Which of the two is better, once all were tried.
    pub preference: FlavorPreference,
}

/// Whether a flavor that fits by borrowing ends the search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WhenCanBorrow {
    /// It does.
    #[default]
    MayStopSearch,
    /// It does not.
    TryNextFlavor,
}

/// Whether a flavor that fits by evicting ends the search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WhenCanPreempt {
    /// It does.
    MayStopSearch,
    /// It does not.
    #[default]
    TryNextFlavor,
}

/// Which of two flavors is better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FlavorPreference {
    /// The one that evicts less, whatever it borrows.
    #[default]
    BorrowingOverPreemption,
    /// The one that borrows less, whomever it evicts.
    PreemptionOverBorrowing,
}

/// Whether a queue admits at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum StopPolicy {
    /// It does.
    #[default]
    None,
    /// It does not; what runs may end.
    Hold,
    /// It does not, and what runs is evicted.
    HoldAndDrain,
}

/// Whether the users with the least recent usage go first in a ClusterQueue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AdmissionMode {
    /// What anybody had does not count.
    #[default]
    NoAdmissionFairSharing,
    /// The LocalQueue with the least usage goes first, whatever the priorities.
    UsageBasedAdmissionFairSharing,
}

/// How much more than its siblings a queue or cohort may borrow. Zero is least: any borrowing is too much.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Weight(pub f64);

impl Default for Weight {
    fn default() -> Self {
        Self(1.0)
    }
}

/// The rules by which a workload may evict others for a fair share, in the order in which they are tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FairSharing {
    /// The first rule.
    pub first: FairRule,
    /// What is tried when the first is not enough.
    pub then: Option<FairRule>,
}

impl Default for FairSharing {
    fn default() -> Self {
        Self {
            first: FairRule::LessThanOrEqualToFinalShare,
            then: Some(FairRule::LessThanInitialShare),
        }
    }
}

/// When a workload may evict one of another queue: its own share with it is then …
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FairRule {
    /// … at most the other's share after the loss.
    LessThanOrEqualToFinalShare,
    /// … less than the other's share before the loss.
    LessThanInitialShare,
}

/// How what a LocalQueue had lately is counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AdmissionFairSharing {
    /// After this time what was had counts half; with zero it never counts.
    pub usage_half_life_time: SignedDuration,
    /// An admitted workload adds this time to its user's usage at once, so that one user does not get all that is free before any
    /// time has passed.
    pub usage_sampling_interval: SignedDuration,
    /// How much a unit of a resource counts; one that is not named counts one. Units are Kubernetes': a core, a byte, a
    /// GPU.
    pub resource_weights: BTreeMap<String, f64>,
}

/// The longest pause where none is set: as in Kueue, half of what Go's durations hold.
const LONGEST_SECONDS: i64 = i64::MAX / 2 / 1_000_000_000;

/// How a workload is tried again that did not start or whose machine failed: Kueue's `waitForPodsReady.requeuingStrategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Requeuing {
    /// As how old it waits again.
    pub timestamp: RequeuingTimestamp,
    /// How often at most; `None` is for ever.
    pub backoff_limit_count: Option<u32>,
    /// The first pause, in seconds; each further one is twice as long.
    pub backoff_base_seconds: u32,
    /// The longest pause, in seconds; zero is 146 years.
    pub backoff_max_seconds: u32,
}

impl Default for Requeuing {
    fn default() -> Self {
        Self {
            timestamp: RequeuingTimestamp::default(),
            backoff_limit_count: None,
            backoff_base_seconds: 60,
            backoff_max_seconds: 3600,
        }
    }
}

impl Requeuing {
    /// Returns how long to pause before the so many-th requeue: `backoffBaseSeconds` times 2 to the n - 1, at most
    /// `backoffMaxSeconds`, but for the first, which is as it is. Kueue adds up to a ten-thousandth at random; this does
    /// not, so that the same events give the same times.
    pub fn pause_before(&self, requeue: u32) -> SignedDuration {
        let base = i64::from(self.backoff_base_seconds);
        let most = match self.backoff_max_seconds {
            _ if requeue <= 1 => base,
            0 => LONGEST_SECONDS,
            most => most.into(),
        };
        let doublings = requeue.saturating_sub(1).min(33);
        SignedDuration::from_secs(base.saturating_mul(1 << doublings).min(most))
    }
}

/// As how old a workload waits that is tried again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RequeuingTimestamp {
    /// As of when it had to go.
    #[default]
    Eviction,
    /// As old as it was.
    Creation,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As Kueue goes from one pause to the next.
        #[test]
        fn each_pause_is_twice_the_one_before_and_no_longer_than_the_longest(
            backoff_base_seconds in 0..=i32::MAX.unsigned_abs(),
            backoff_max_seconds in 1..=i32::MAX.unsigned_abs(),
        ) {
            let requeuing = Requeuing { backoff_base_seconds, backoff_max_seconds, ..Requeuing::default() };
            let most = SignedDuration::from_secs(backoff_max_seconds.into());
            let mut pause = SignedDuration::from_secs(backoff_base_seconds.into());
            for requeue in 1..70 {
                prop_assert_eq!(requeuing.pause_before(requeue), pause);
                pause = (pause * 2).min(most);
            }
        }
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses = |base, most| {
            let requeuing = Requeuing {
                backoff_base_seconds: base,
                backoff_max_seconds: most,
                ..Requeuing::default()
            };
            [1, 2, 3, 7, 8, u32::MAX].map(|retries| requeuing.pause_before(retries).as_secs())
        };
        assert_eq!(pauses(60, 3600), [60, 120, 240, 3600, 3600, 3600]);
        assert_eq!(pauses(60, 30), [60, 30, 30, 30, 30, 30]);
        assert_eq!(pauses(0, 3600), [0; 6]);
        assert_eq!(pauses(1, 0), [1, 2, 4, 64, 128, LONGEST_SECONDS]);
    }
}

//! The placement scores of one cluster: how much CPU, memory, GPU and TPU it has free, each from -100 to 100.
//!
//! Open Cluster Management (OCM) chooses among clusters by the `AddOnPlacementScore` that an addon writes for each of
//! them. This module computes what stands in that object, from nodes and pods that the caller has listed. It has no
//! client of a cluster and no clock, and it writes nothing.
//!
//! Formulas and names are those of the addon in
//! `open-cluster-management-io/addon-contrib:resource-usage-collect-addon/pkg/addon/agent/{agent,calculate}.go` at
//! f5844b9; the normalisation is `NewScoreNormalizer` in
//! `open-cluster-management-io/sdk-go:pkg/apis/cluster/v1alpha1/score.go`.
//!
//! - **Free** on a node is what is allocatable there, less what the pods bound to it request.
//! - **Node scope** (`gpuNodeAvailable`) is what is free on the best node, never less than nothing.
//! - **Cluster scope** (`gpuClusterAvailable`) is what is free on all nodes that count.
//! - **The score** of a value `v` between a least and a most is -100 up to the least, 100 above the most, and
//!   `200 * (v - least) / (most - least) - 100` between them, cut off towards zero.
//!
//! Amounts are in the units of [`Quantity`]: cpu in thousandths of a core, memory in bytes, everything else in ones.
//! They are exact and keep to the ends of their range; only the last step of a score is in floating point.
//!
//! # The two modes
//!
//! The addon has known defects. [`Mode::Compat`] has them too, so that its numbers can be reproduced and compared.
//! [`Mode::Correct`] mends them:
//!
//! | # | defect | `Compat` | `Correct` |
//! |---|---|---|---|
//! | 1 | memory is not divided by 1024² | its ceiling is 1 MiB: with more than that free, 100 | the ceiling is in bytes |
//! | 2 | Placement reads a score that is absent or expired as 0 | 0, as Placement does | the worst for the weight, see [`Mode::weighted`] |
//! | 3 | `validUntil` is not set | `None` | three periods after the time given |
//! | 4 | the ceilings are fixed: 100 cores, 1 TiB, 20 GPUs, 20 TPUs | so | by [`Rules::ceilings`], for instance [`Ceilings::of_fleet`] |
//! | 5 | init containers are compared with the sum over all pods of the node so far, sidecars too | so; the order of the pods matters | pod by pod, by the rule of Kubernetes |
//! | 6 | only cordoned nodes are left out | so | nodes that are not ready, or tainted without a toleration in [`Rules::tolerations`], are left out too |
//! | 7 | only `nvidia.com/gpu` is a GPU | so | by [`Rules::gpu_names`]: MIG devices and AMD's are there from the start |
//! | 8 | the error of the node scope is lost | its scores are 0 then | it is returned, and nothing is published, see [`Mode::combine`] |
//! | 9 | the object in the cache is changed in place | not reproduced: a score is a new value | a new value |
//! | 10 | nodes times pods are gone through eight times | not reproduced: the values are the same | each pod is looked at once |
//! | 11 | the README asks for `gpuAvailable`, which does not exist | counts as 0, as in Placement | refused, see [`UnknownScore`] |
//! | 12 | it may write nodes and pods | [`Mode::permissions`] are the addon's | nodes and pods are only read |
//! | 13 | free GPUs in pieces score like free GPUs on one node | no figure | [`GpuBlocks`] beside the scores |
//!
//! Where the addon's numbers are off for a reason that is not in that list, `Correct` differs as well:
//!
//! | what | `Compat` | `Correct` |
//! |---|---|---|
//! | a pod that is being deleted | counts for nothing | counts until it is gone: it holds its GPUs, and the scheduler knows |
//! | a node whose pods ask for more than is allocatable | is taken off what other nodes have free | has nothing free |
//! | pods that ask for what their node does not list | are taken off what other nodes have free | change nothing |
//!
//! The addon sums in floating point, `Compat` exactly. Of 20,000 random clusters with whole cores the addon's own code
//! gave the numbers of `Compat` for every one. With tenths of a core, its sums of CPU can be off by the last bit, and
//! where the exact score is a whole number, it can then be one off: so it was in 107 of another 20,000.
//!
//! # Left out
//!
//! Claims of Dynamic Resource Allocation and GPU memory count in neither mode. A caller who knows them can list their
//! devices as allocatable under a name of their own, let pods request it, and put it into [`Rules::gpu_names`].
//! Requests for a pod as a whole (`spec.resources`) are not known here either, nor what a container was given when it was
//! resized in place (`allocatedResources`): its requests count.
//!
//! # Example
//!
//! ```
//! use blueproof_gpu::placement::{
//!     Ceilings, ConditionStatus, Container, ListingTime, Mode, ObservedNode, Pod, PodPhase, ResourceList, Rules, ScoreName,
//!     read_quantity,
//! };
//! use jiff::{SignedDuration, Timestamp};
//!
//! let gpus = |text| -> Result<ResourceList, blueproof_diagnostic::amount::ParseAmountError> {
//!     Ok([("nvidia.com/gpu".to_owned(), read_quantity("nvidia.com/gpu", text)?)].into())
//! };
//! let node = |name: &str, allocatable| ObservedNode {
//!     name: name.to_owned(),
//!     allocatable,
//!     unschedulable: false,
//!     ready: ConditionStatus::True,
//!     taints: vec![],
//! };
//! let nodes = [node("node1", gpus("6")?), node("node2", gpus("8")?)];
//! let pods = [Pod {
//!     node_name: Some("node2".to_owned()),
//!     phase: PodPhase::Running,
//!     containers: vec![Container { requests: gpus("2")? }],
//!     ..Pod::default()
//! }];
//! let taken = ListingTime { at: Timestamp::UNIX_EPOCH, every: SignedDuration::from_mins(1) };
//!
//! let published = Mode::Correct(Rules::new(Ceilings::ADDON)).score(&nodes, &pods, taken);
//!
//! let cluster: ScoreName = "gpuClusterAvailable".parse()?;
//! assert_eq!(published.scores[&cluster], 20); // 12 are free: 200 * 12 / 20 - 100
//! let blocks = published.blocks.expect("a correct score has them");
//! assert_eq!(blocks.fragmentation(), Some(0.5)); // at most 6 of the 12 are on one node
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod amounts;
mod compat;
mod correct;
mod names;
mod normalise;
mod observed;
mod permissions;
mod reading;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use blueproof_queue::Quantity;
use jiff::{SignedDuration, Timestamp};

pub use amounts::{ResourceList, read_quantity};
pub use correct::{GpuBlocks, Rules};
pub use names::{GpuName, PerResource, Resource, Scope, ScoreName, UnknownScore};
pub use normalise::{Bounds, Ceilings};
pub use observed::{ConditionStatus, Container, InitContainer, ObservedNode, Pod, PodPhase, RestartPolicy};
pub use permissions::{Permission, Side};
pub use reading::Prioritizer;

/// The name of the object that the scores are written to, in the namespace of the cluster on the hub.
pub const SCORE_OBJECT: &str = "resource-usage-score";

/// For how many periods a score is good: two may be missed before it expires.
const GOOD_FOR_PERIODS: i32 = 3;

/// Which numbers are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// Those of the addon, with its defects.
    Compat,
    /// The right ones.
    Correct(Rules),
}

/// When a score is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListingTime {
    /// The time at which nodes and pods were listed.
    pub at: Timestamp,
    /// How often that is done.
    pub every: SignedDuration,
}

/// What is free in one cluster, before it is made a score; in the units of [`Quantity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Available {
    /// On the best node, resource by resource; never less than nothing.
    pub node: PerResource<Quantity>,
    /// On all nodes that count. In [`Mode::Compat`] it may be less than nothing.
    pub cluster: PerResource<Quantity>,
}

/// What an `AddOnPlacementScore` says of one cluster in its status, and figures beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementScores {
    /// The eight scores, from -100 to 100, in the order in which the addon publishes them.
    pub scores: BTreeMap<ScoreName, i32>,
    /// Until when they are good; `None` is for ever.
    pub valid_until: Option<Timestamp>,
    /// In what pieces GPUs are free; `None` in [`Mode::Compat`]. This is not part of the object.
    pub blocks: Option<GpuBlocks>,
}

impl Mode {
    /// Returns the scores of a cluster with these nodes and pods.
    ///
    /// Pods on other nodes, and those that are bound to none, change nothing. Each pod is looked at once.
    pub fn score<'a>(
        &self,
        nodes: &[ObservedNode],
        pods: impl IntoIterator<Item = &'a Pod>,
        taken: ListingTime,
    ) -> PlacementScores {
        let available = self.available(nodes, pods);
        let node = self.normalise(Scope::Node, available.node);
        let cluster = self.normalise(Scope::Cluster, available.cluster);
        PlacementScores {
            scores: named(node, cluster),
            valid_until: self.valid_until(taken),
            blocks: self.blocks(&available),
        }
    }

    /// Returns what is free on these nodes with these pods.
    pub fn available<'a>(
        &self,
        nodes: &[ObservedNode],
        pods: impl IntoIterator<Item = &'a Pod>,
    ) -> Available {
        match self {
            Self::Compat => compat::available(nodes, pods),
            Self::Correct(rules) => rules.available(nodes, pods),
        }
    }

    /// Returns the scores, from -100 to 100, of what is free in a scope.
    pub fn normalise(&self, scope: Scope, free: PerResource<Quantity>) -> PerResource<i32> {
        PerResource::from_fn(|resource| {
            let bounds = match self {
                Self::Compat => compat::bounds(resource),
                Self::Correct(rules) => rules.ceilings.bounds(scope, resource),
            };
            bounds.normalise(free.get(resource))
        })
    }

    /// Returns the eight scores from those of the two scopes, either of which may have failed.
    ///
    /// # Errors
    ///
    /// Returns the error of the cluster scope; in [`Mode::Correct`] that of the node scope too, and first. In
    /// [`Mode::Compat`] that one is lost, and the scores of the node scope are 0, which is what half a ceiling free
    /// would be.
    pub fn combine<E>(
        &self,
        node: Result<PerResource<i32>, E>,
        cluster: Result<PerResource<i32>, E>,
    ) -> Result<BTreeMap<ScoreName, i32>, E> {
        let node = match self {
            Self::Compat => node.unwrap_or_default(),
            Self::Correct(_) => node?,
        };
        Ok(named(node, cluster?))
    }

    fn valid_until(&self, taken: ListingTime) -> Option<Timestamp> {
        match self {
            Self::Compat => None,
            Self::Correct(_) => {
                let good_for = taken.every.saturating_mul(GOOD_FOR_PERIODS);
                Some(taken.at.saturating_add(good_for).expect("a time span"))
            }
        }
    }

    fn blocks(&self, available: &Available) -> Option<GpuBlocks> {
        match self {
            Self::Compat => None,
            Self::Correct(_) => Some(GpuBlocks {
                free: available.cluster.gpu,
                largest: available.node.gpu,
            }),
        }
    }
}

fn named(node: PerResource<i32>, cluster: PerResource<i32>) -> BTreeMap<ScoreName, i32> {
    let value = |name: ScoreName| match name.scope {
        Scope::Node => node.get(name.resource),
        Scope::Cluster => cluster.get(name.resource),
    };
    ScoreName::ALL
        .into_iter()
        .map(|name| (name, value(name)))
        .collect()
}

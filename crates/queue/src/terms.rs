//! A ClusterQueue's terms, and what a workload's shape comes to under them: names looked up once, not at each try.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    Quantity,
    objects::{ClusterQueue, FlavorFungibility, Preemption, ResourceFlavor, TaintEffect},
    quotas::FlavorResource,
    workload::{PODS, PodSet},
};

/// A ClusterQueue's terms.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    pub(super) groups: Vec<Group>,
    pub(super) preemption: Preemption,
    pub(super) fungibility: FlavorFungibility,
}

/// A resource group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// The resources that it covers.
    pub(super) resources: Vec<String>,
    pub(super) flavors: Vec<GroupFlavor>,
}

/// A flavor of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupFlavor {
    pub(super) name: String,
    /// For each resource of the group.
    pub(super) places: Vec<FlavorResource>,
}

/// What a workload requests, under a queue's terms.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) sets: Vec<SetShape>,
}

/// What a pod set requests.
#[derive(Debug, Clone)]
pub(super) struct SetShape {
    pub(super) count: u32,
    pub(super) min_count: u32,
    pub(super) requests: Vec<GroupRequest>,
    /// The requested resources that the queue does not cover.
    pub(super) uncovered: Vec<String>,
}

/// What a pod set requests of a resource group.
#[derive(Debug, Clone)]
pub(super) struct GroupRequest {
    pub(super) group: usize,
    /// Each resource, by its place in the group, for one pod.
    pub(super) per_pod: Vec<(usize, Quantity)>,
    /// Why it may not be of a flavor; for each flavor of the group.
    pub(super) mismatches: Vec<Option<Mismatch>>,
}

/// Why a pod set may not be of a flavor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Mismatch {
    /// The flavor has a taint that the pod set does not tolerate.
    Taint {
        /// The taint, as `key=value:effect`.
        taint: String,
    },
    /// The flavor's nodes do not have a label that the pod set needs.
    NodeSelector {
        /// The label's key.
        key: String,
        /// The value that the pod set needs.
        value: String,
    },
}

impl Terms {
    /// Works out a queue's terms; `place` tells where a flavor's resource is in the tree.
    pub(super) fn new(queue: &ClusterQueue, mut place: impl FnMut(&str, &str) -> FlavorResource) -> Self {
        let groups = queue.resource_groups.iter().map(|group| {
            let resources: Vec<String> = group.covered_resources().into_iter().map(str::to_owned).collect();
            let flavors = group.flavors.iter().map(|flavor| GroupFlavor {
                name: flavor.name.clone(),
                places: resources
                    .iter()
                    .map(|resource| place(&flavor.name, resource))
                    .collect(),
            });
            Group {
                flavors: flavors.collect(),
                resources: resources.clone(),
            }
        });
        Self {
            groups: groups.collect(),
            preemption: queue.preemption,
            fungibility: queue.flavor_fungibility,
        }
    }

    /// Returns what the pod sets come to under these terms.
    pub(super) fn shape(&self, pod_sets: &[PodSet], flavors: &BTreeMap<String, ResourceFlavor>) -> Shape {
        let sets = pod_sets.iter().map(|set| self.set_shape(set, flavors));
        Shape { sets: sets.collect() }
    }

    /// Returns what all pods of a shape request.
    pub(super) fn asked<'a>(&'a self, shape: &'a Shape) -> impl Iterator<Item = (&'a str, Quantity)> {
        let requests = shape.sets.iter().flat_map(|set| {
            let requests = set.requests.iter();
            requests.map(move |request| (request, set.count))
        });
        requests.flat_map(|(request, count)| {
            let resources = &self.groups[request.group].resources;
            let per_pod = request.per_pod.iter();
            per_pod.map(move |(place, amount)| (resources[*place].as_str(), amount.times(count)))
        })
    }

    fn set_shape(&self, set: &PodSet, flavors: &BTreeMap<String, ResourceFlavor>) -> SetShape {
        let mut requests = set.requests.clone();
        if self.covers(PODS) {
            requests.insert(PODS.into(), Quantity(1));
        }
        let mut by_group: Vec<GroupRequest> = Vec::new();
        let mut uncovered = Vec::new();
        for (resource, amount) in requests {
            let Some((group, place)) = self.find(&resource) else {
                if amount != Quantity::ZERO {
                    uncovered.push(resource);
                }
                continue;
            };
            if let Some(known) = by_group.iter_mut().find(|known| known.group == group) {
                known.per_pod.push((place, amount));
                continue;
            }
            by_group.push(GroupRequest {
                group,
                per_pod: vec![(place, amount)],
                mismatches: self.mismatches(group, set, flavors),
            });
        }
        SetShape {
            count: set.count,
            min_count: set.min_count.unwrap_or(set.count).min(set.count),
            requests: by_group,
            uncovered,
        }
    }

    /// Returns whether the groups are of the same resources and the same flavors, in the same order.
    pub(super) fn has_flavors_of(&self, other: &Self) -> bool {
        let same = |(ours, theirs): (&Group, &Group)| {
            let names = ours.flavors.iter().map(|flavor| &flavor.name);
            ours.resources == theirs.resources && names.eq(theirs.flavors.iter().map(|flavor| &flavor.name))
        };
        self.groups.len() == other.groups.len() && self.groups.iter().zip(&other.groups).all(same)
    }

    fn covers(&self, resource: &str) -> bool {
        self.find(resource).is_some()
    }

    fn find(&self, resource: &str) -> Option<(usize, usize)> {
        self.groups.iter().enumerate().find_map(|(number, group)| {
            let place = group.resources.iter().position(|covered| covered == resource)?;
            Some((number, place))
        })
    }

    fn mismatches(
        &self,
        group: usize,
        set: &PodSet,
        flavors: &BTreeMap<String, ResourceFlavor>,
    ) -> Vec<Option<Mismatch>> {
        let names = self.groups[group].flavors.iter().map(|flavor| &flavor.name);
        names.map(|name| mismatch(set, flavors.get(name)?)).collect()
    }
}

/// Returns why the pod set may not be of the flavor; labels that the flavor does not speak of do not matter.
pub fn mismatch(set: &PodSet, flavor: &ResourceFlavor) -> Option<Mismatch> {
    let untolerated = flavor.node_taints.iter().find(|taint| {
        let mut tolerations = set.tolerations.iter().chain(&flavor.tolerations);
        taint.effect != TaintEffect::PreferNoSchedule
            && !tolerations.any(|toleration| toleration.tolerates(taint))
    });
    if let Some(taint) = untolerated {
        return Some(Mismatch::Taint {
            taint: taint.to_string(),
        });
    }
    let (key, value) = set
        .node_selector
        .iter()
        .find(|(key, value)| flavor.node_labels.get(*key).is_some_and(|label| label != *value))?;
    Some(Mismatch::NodeSelector {
        key: key.clone(),
        value: value.clone(),
    })
}

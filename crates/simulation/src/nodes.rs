//! Where pods are, as far as it matters whom a failed node hits.
//!
//! A pod goes to the fullest node that has room for it, so that whole nodes stay free. Where no node is of a flavor that
//! a pod may be of, it is not simulated where it is, and no failure hits it.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_queue::{
    PodSetAssignment, Quantity,
    objects::{ClusterQueue, ResourceFlavor},
    slack::{self, Schedulability},
};

use super::{Job, SimulatedNode, fragmentation::Shapes, history::Idle};

/// The nodes, and who is on them.
#[derive(Debug)]
pub(super) struct Nodes {
    nodes: Vec<Place>,
}

#[derive(Debug)]
struct Place {
    node: SimulatedNode,
    free: BTreeMap<String, Quantity>,
    /// What each job has there.
    jobs: BTreeMap<usize, Vec<BTreeMap<String, Quantity>>>,
    failed: bool,
    /// What is idle on it, until something changes.
    idle: Option<BTreeMap<String, Idle>>,
}

impl Nodes {
    pub(super) fn new(nodes: &[SimulatedNode]) -> Self {
        let nodes = nodes.iter().map(|node| Place {
            node: node.clone(),
            free: node.capacity.clone(),
            jobs: BTreeMap::new(),
            failed: false,
            idle: None,
        });
        Self {
            nodes: nodes.collect(),
        }
    }

    /// Puts all pods of a job on nodes, or none, and returns whether there is room.
    pub(super) fn put(&mut self, job: usize, asked: &Job, assigned: &[PodSetAssignment]) -> bool {
        for (set, given) in asked.pod_sets.iter().zip(assigned) {
            let flavors: BTreeSet<&String> = given.flavors.values().collect();
            if !self
                .nodes
                .iter()
                .any(|place| flavors.contains(&place.node.flavor))
            {
                continue;
            }
            for _ in 0..given.count {
                let fitting = self.nodes.iter_mut().filter(|place| {
                    !place.failed && flavors.contains(&place.node.flavor) && place.has_room(&set.requests)
                });
                // Of equals, the first by name.
                let fullest =
                    fitting.min_by_key(|place| (place.left(&set.requests), place.node.name.clone()));
                let Some(place) = fullest else {
                    self.clear(job);
                    return false;
                };
                place.take(job, &set.requests);
            }
        }
        true
    }

    /// Returns the nodes that a job has pods on.
    pub(super) fn of(&self, job: usize) -> impl Iterator<Item = &str> {
        let places = self
            .nodes
            .iter()
            .filter(move |place| place.jobs.contains_key(&job));
        places.map(|place| place.node.name.as_str())
    }

    /// Returns the nodes that have failed.
    pub(super) fn failed(&self) -> impl Iterator<Item = &str> {
        let places = self.nodes.iter().filter(|place| place.failed);
        places.map(|place| place.node.name.as_str())
    }

    /// Takes the pods of a job away.
    pub(super) fn clear(&mut self, job: usize) {
        for place in &mut self.nodes {
            for requests in place.jobs.remove(&job).unwrap_or_default() {
                place.change_free(&requests, Quantity::plus);
            }
        }
    }

    /// Notes that a node failed, and returns who is on it.
    pub(super) fn fail(&mut self, name: &str) -> Vec<usize> {
        let hit = self.nodes.iter_mut().find(|place| place.node.name == name);
        let Some(place) = hit else { return Vec::new() };
        place.failed = true;
        place.idle = None;
        place.jobs.keys().copied().collect()
    }

    pub(super) fn recover(&mut self, name: &str) {
        for place in self.nodes.iter_mut().filter(|place| place.node.name == name) {
            place.failed = false;
            place.idle = None;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns what is idle of each resource on all nodes that are well.
    pub(super) fn idle(&mut self, shapes: &Shapes) -> BTreeMap<String, Idle> {
        let mut sums: BTreeMap<String, Idle> = BTreeMap::new();
        for place in self.nodes.iter_mut().filter(|place| !place.failed) {
            for (resource, idle) in place.idle(shapes) {
                let sum = sums.entry(resource.clone()).or_default();
                sum.amount = sum.amount.plus(idle.amount);
                sum.fragmented += idle.fragmented;
            }
        }
        sums
    }

    /// Notes that pods look different from now on.
    pub(super) fn forget_idle(&mut self) {
        for place in &mut self.nodes {
            place.idle = None;
        }
    }

    /// Limits what a slack queue lends to what the failed nodes leave of its own.
    pub(super) fn limit_lending(&self, slack: &mut ClusterQueue, flavors: &BTreeMap<String, ResourceFlavor>) {
        let nodes: Vec<_> = self.nodes.iter().map(|place| place.told(flavors)).collect();
        for limit in slack::lending_limits(slack, flavors, &nodes) {
            let quotas = slack
                .resource_groups
                .iter_mut()
                .flat_map(|group| &mut group.flavors);
            for flavor in quotas.filter(|flavor| flavor.name == limit.flavor) {
                if let Some(quota) = flavor.resources.get_mut(&limit.resource) {
                    quota.lending_limit = limit.limit;
                }
            }
        }
    }
}

impl Place {
    /// Returns the node as it is told to the slack queue: by the labels of its flavor.
    fn told(&self, flavors: &BTreeMap<String, ResourceFlavor>) -> slack::NodeCapacity {
        let flavor = flavors.get(&self.node.flavor);
        slack::NodeCapacity {
            labels: flavor
                .map(|flavor| flavor.node_labels.clone())
                .unwrap_or_default(),
            capacity: self.node.capacity.clone(),
            schedulability: if self.failed {
                Schedulability::Unschedulable
            } else {
                Schedulability::Schedulable
            },
            taints: BTreeMap::new(),
        }
    }

    fn idle(&mut self, shapes: &Shapes) -> &BTreeMap<String, Idle> {
        let (flavor, free) = (&self.node.flavor, &self.free);
        self.idle.get_or_insert_with(|| shapes.idle(flavor, free))
    }

    fn has_room(&self, requests: &BTreeMap<String, Quantity>) -> bool {
        requests
            .iter()
            .all(|(resource, amount)| self.free.get(resource).is_none_or(|free| amount <= free))
    }

    /// Returns what it has left of what is asked for. The last by name counts first: `nvidia.com/gpu`, then memory and cpu.
    fn left(&self, requests: &BTreeMap<String, Quantity>) -> Vec<Option<Quantity>> {
        let resources = requests.keys().rev();
        resources
            .map(|resource| self.free.get(resource).copied())
            .collect()
    }

    fn take(&mut self, job: usize, requests: &BTreeMap<String, Quantity>) {
        self.change_free(requests, Quantity::minus);
        self.jobs.entry(job).or_default().push(requests.clone());
    }

    fn change_free(
        &mut self,
        requests: &BTreeMap<String, Quantity>,
        change: impl Fn(Quantity, Quantity) -> Quantity,
    ) {
        self.idle = None;
        for (resource, amount) in requests {
            if let Some(free) = self.free.get_mut(resource) {
                *free = change(*free, *amount);
            }
        }
    }
}

//! Where pods are, as far as it matters whom a failed node hits.
//!
//! Quota alone decides who runs. A pod goes to the fullest node that has room for it, so that whole nodes stay free; one
//! for which no node has room is nowhere, and no failure hits it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Job, Node};
use crate::queue::{
    Admission, Quantity,
    objects::{ClusterQueue, Quota},
};

/// The nodes, and who is on them.
#[derive(Debug)]
pub(super) struct Nodes {
    nodes: Vec<Place>,
}

#[derive(Debug)]
struct Place {
    node: Node,
    free: BTreeMap<String, Quantity>,
    /// What each job has there.
    jobs: BTreeMap<usize, Vec<BTreeMap<String, Quantity>>>,
    failed: bool,
}

impl Nodes {
    pub(super) fn new(nodes: &[Node]) -> Self {
        let nodes = nodes.iter().map(|node| Place {
            node: node.clone(),
            free: node.capacity.clone(),
            jobs: BTreeMap::new(),
            failed: false,
        });
        Self {
            nodes: nodes.collect(),
        }
    }

    /// Puts the pods of a job on nodes.
    pub(super) fn put(&mut self, job: usize, asked: &Job, admission: &Admission) {
        for (set, given) in asked.pod_sets.iter().zip(&admission.pod_sets) {
            let flavors: BTreeSet<&String> = given.flavors.values().collect();
            for _ in 0..given.count {
                let fitting = self.nodes.iter_mut().filter(|place| {
                    !place.failed && flavors.contains(&place.node.flavor) && place.has_room(&set.requests)
                });
                // Of equals, the first by name.
                let fullest =
                    fitting.min_by_key(|place| (place.left(&set.requests), place.node.name.clone()));
                if let Some(place) = fullest {
                    place.take(job, &set.requests);
                }
            }
        }
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
        place.jobs.keys().copied().collect()
    }

    pub(super) fn recover(&mut self, name: &str) {
        for place in self.nodes.iter_mut().filter(|place| place.node.name == name) {
            place.failed = false;
        }
    }

    /// Limits what a slack queue lends to what the failed nodes leave of its own: MLBatch's rule, which looks at the first
    /// flavor of the first group.
    pub(super) fn limit_lending(&self, slack: &mut ClusterQueue) {
        let group = slack.resource_groups.first_mut();
        let Some(flavor) = group.and_then(|group| group.flavors.first_mut()) else {
            return;
        };
        for (resource, quota) in &mut flavor.resources {
            let lost = self.lost(&flavor.name, resource);
            if lost > Quantity::ZERO {
                let left = quota.nominal.minus(lost).or_zero();
                let limit = quota.lending_limit.map_or(left, |limit| limit.min(left));
                *quota = Quota {
                    lending_limit: Some(limit),
                    ..*quota
                };
            }
        }
    }

    fn lost(&self, flavor: &str, resource: &str) -> Quantity {
        let failed = self
            .nodes
            .iter()
            .filter(|place| place.failed && place.node.flavor == flavor);
        let amounts = failed.filter_map(|place| place.node.capacity.get(resource));
        amounts.fold(Quantity::ZERO, |sum, amount| sum.plus(*amount))
    }
}

impl Place {
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
        for (resource, amount) in requests {
            if let Some(free) = self.free.get_mut(resource) {
                *free = change(*free, *amount);
            }
        }
    }
}

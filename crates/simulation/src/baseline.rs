//! Plainer queues for the same jobs, beside which a policy is measured.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_queue::objects::{
    ClusterQueue, FlavorQuotas, LocalQueue, Objects, Preemption, QueueingStrategy, ResourceGroup,
};

use super::{Change, Job, Scenario};

/// The name of the one queue that has everything.
const POOL: &str = "pool";

/// Plainer queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Baseline {
    /// One queue with all the quota: first come, first served, whatever the priority, and nobody overtakes.
    Fifo,
    /// One queue with all the quota, by priority: whoever fits may overtake, and nobody is evicted.
    BestEffort,
    /// The queues as they are, but nobody is evicted for another.
    NoPreemption,
}

impl Baseline {
    /// Returns the same jobs and changes under the plainer queues.
    pub fn applied_to(self, scenario: &Scenario) -> Scenario {
        let mut plain = scenario.clone();
        plain.objects = self.objects(&scenario.objects);
        for (_, change) in &mut plain.changes {
            if let Change::Quota(objects) = change {
                **objects = self.objects(objects);
            }
        }
        if self == Self::Fifo {
            plain.jobs = plain.jobs.into_iter().map(without_priority).collect();
        }
        plain
    }

    fn objects(self, objects: &Objects) -> Objects {
        match self {
            Self::Fifo => pool(objects, QueueingStrategy::StrictFIFO),
            Self::BestEffort => pool(objects, QueueingStrategy::BestEffortFIFO),
            Self::NoPreemption => without_preemption(objects),
        }
    }
}

fn without_priority(job: Job) -> Job {
    Job { priority: 0, ..job }
}

fn without_preemption(objects: &Objects) -> Objects {
    let mut plain = objects.clone();
    for queue in plain.cluster_queues.values_mut() {
        queue.preemption = Preemption::default();
    }
    plain
}

fn pool(objects: &Objects, queueing_strategy: QueueingStrategy) -> Objects {
    let queue = ClusterQueue {
        resource_groups: pooled_groups(objects),
        queueing_strategy,
        ..ClusterQueue::default()
    };
    let local = |(name, local): (&String, &LocalQueue)| {
        let local = LocalQueue {
            cluster_queue: POOL.into(),
            stop_policy: local.stop_policy,
            ..LocalQueue::default()
        };
        (name.clone(), local)
    };
    Objects {
        flavors: objects.flavors.clone(),
        cluster_queues: BTreeMap::from([(POOL.into(), queue)]),
        local_queues: objects.local_queues.iter().map(local).collect(),
        priority_classes: objects.priority_classes.clone(),
        ..Objects::default()
    }
}

/// Returns the quota of all queues and cohorts as that of one: groups with a resource or a flavor in common are one.
fn pooled_groups(objects: &Objects) -> Vec<ResourceGroup> {
    let queues = objects
        .cluster_queues
        .values()
        .flat_map(|queue| &queue.resource_groups);
    let cohorts = objects
        .cohorts
        .values()
        .flat_map(|cohort| &cohort.resource_groups);
    let mut pooled: Vec<ResourceGroup> = Vec::new();
    for group in queues.chain(cohorts) {
        let (related, others): (Vec<_>, Vec<_>) =
            pooled.into_iter().partition(|other| is_related(other, group));
        pooled = others;
        pooled.push(merged(related.iter().chain([group])));
    }
    pooled
}

fn is_related(one: &ResourceGroup, other: &ResourceGroup) -> bool {
    let flavors = |group: &ResourceGroup| -> BTreeSet<String> {
        group.flavors.iter().map(|f| f.name.clone()).collect()
    };
    !one.covered_resources().is_disjoint(&other.covered_resources())
        || !flavors(one).is_disjoint(&flavors(other))
}

fn merged<'a>(groups: impl Iterator<Item = &'a ResourceGroup> + Clone) -> ResourceGroup {
    let resources: BTreeSet<&str> = groups
        .clone()
        .flat_map(ResourceGroup::covered_resources)
        .collect();
    let mut flavors: Vec<FlavorQuotas> = Vec::new();
    for flavor in groups.flat_map(|group| &group.flavors) {
        let known = flavors.iter().position(|known| known.name == flavor.name);
        let place = known.unwrap_or_else(|| {
            let none = resources
                .iter()
                .map(|resource| ((*resource).to_owned(), Default::default()));
            flavors.push(FlavorQuotas {
                name: flavor.name.clone(),
                resources: none.collect(),
            });
            flavors.len() - 1
        });
        for (resource, quota) in &flavor.resources {
            let sum = flavors[place].resources.entry(resource.clone()).or_default();
            sum.nominal = sum.nominal.plus(quota.nominal);
        }
    }
    ResourceGroup { flavors }
}

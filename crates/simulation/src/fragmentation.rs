//! How much of what stands idle is of no use, as FGD measures it (Weng et al., USENIX ATC 2023).
//!
//! Draw a pod of the workload at random: where it cannot go, all that is idle is of no use to it. The mean over all pods
//! that ask for a resource is what is fragmented of it. FGD also counts a device of which too little is left for a pod
//! that takes a part of one; here a device is one pod's or nobody's, so there are none.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_queue::{
    PodSet, Quantity, mismatch,
    objects::{ClusterQueue, Objects},
};

use super::{Job, history::Idle};

/// The pods of a workload by what they look like, and how many look so.
#[derive(Debug, Default)]
pub(super) struct Shapes(BTreeMap<Shape, u64>);

/// What matters of a pod for where it can go.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    requests: BTreeMap<String, Quantity>,
    /// The flavors whose nodes it may be put on.
    flavors: BTreeSet<String>,
}

impl Shapes {
    /// Returns the shapes of all the jobs' pods, under these queues.
    pub(super) fn of(jobs: &[Job], objects: &Objects) -> Self {
        let mut shapes = Self::default();
        for job in jobs {
            let queue = objects.local_queues.get(&job.queue);
            let queue = queue.and_then(|local| objects.cluster_queues.get(&local.cluster_queue));
            for set in &job.pod_sets {
                let shape = Shape {
                    requests: set.requests.clone(),
                    flavors: queue
                        .map(|queue| flavors(set, queue, objects))
                        .unwrap_or_default(),
                };
                *shapes.0.entry(shape).or_default() += u64::from(set.count);
            }
        }
        shapes
    }

    /// Returns what is idle on a node of this flavor, and what of it is fragmented.
    pub(super) fn idle(&self, flavor: &str, free: &BTreeMap<String, Quantity>) -> BTreeMap<String, Idle> {
        let hosts = |shape: &Shape| {
            let fits = |(resource, amount): (&String, &Quantity)| {
                free.get(resource).is_none_or(|free| amount <= free)
            };
            shape.flavors.contains(flavor) && shape.requests.iter().all(fits)
        };
        let shapes: Vec<_> = self
            .0
            .iter()
            .map(|(shape, count)| (shape, *count, hosts(shape)))
            .collect();
        let of = |(resource, amount): (&String, &Quantity)| {
            let asks = |shape: &Shape| {
                shape
                    .requests
                    .get(resource)
                    .is_some_and(|asked| *asked > Quantity::ZERO)
            };
            let asking = || shapes.iter().filter(|(shape, ..)| asks(shape));
            let all: u64 = asking().map(|(_, count, _)| count).sum();
            let turned_away: u64 = asking()
                .filter(|(.., hosted)| !hosted)
                .map(|(_, count, _)| count)
                .sum();
            let idle = Idle {
                amount: *amount,
                fragmented: portion(*amount, turned_away, all),
            };
            (resource.clone(), idle)
        };
        free.iter().map(of).collect()
    }
}

/// Returns the flavors that a queue has and that its pods may be of.
fn flavors(set: &PodSet, queue: &ClusterQueue, objects: &Objects) -> BTreeSet<String> {
    let names = queue
        .resource_groups
        .iter()
        .flat_map(|group| &group.flavors)
        .map(|flavor| &flavor.name);
    let is_open = |name: &&String| {
        objects
            .flavors
            .get(*name)
            .is_some_and(|flavor| mismatch(set, flavor).is_none())
    };
    names.filter(is_open).cloned().collect()
}

/// Returns so many of so many parts of an amount, rounded once.
fn portion(amount: Quantity, part: u64, all: u64) -> f64 {
    if all == 0 {
        return 0.0;
    }
    (i128::from(amount.0) * i128::from(part)) as f64 / all as f64
}

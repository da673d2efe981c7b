//! Small worlds, and workloads that come to them one after the other.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::super::{
    PodSet, Quantity, Queues, Workload, WorkloadId,
    objects::{ClusterQueue, FlavorQuotas, Objects, Quota, ResourceFlavor, ResourceGroup},
};

pub(in super::super) const GPU: &str = "gpu";

pub(in super::super) fn quota(nominal: i64) -> Quota {
    Quota {
        nominal: Quantity(nominal),
        ..Quota::default()
    }
}

pub(in super::super) fn flavor(name: &str, resource: &str, quota: Quota) -> FlavorQuotas {
    FlavorQuotas {
        name: name.into(),
        resources: BTreeMap::from([(resource.into(), quota)]),
    }
}

pub(in super::super) fn group(flavors: Vec<FlavorQuotas>) -> ResourceGroup {
    ResourceGroup { flavors }
}

/// A queue with GPUs of one flavor.
pub(in super::super) fn of(cohort: Option<&str>, quota: Quota) -> ClusterQueue {
    ClusterQueue {
        cohort: cohort.map(str::to_owned),
        resource_groups: vec![group(vec![flavor("h200", GPU, quota)])],
        ..ClusterQueue::default()
    }
}

/// These queues, and the flavors that they name.
pub(in super::super) fn configured<const N: usize>(queues: [(&str, ClusterQueue); N]) -> Objects {
    let cluster_queues = BTreeMap::from(queues.map(|(name, queue)| (name.to_owned(), queue)));
    let groups = cluster_queues.values().flat_map(|queue| &queue.resource_groups);
    let flavors = groups.flat_map(|group| &group.flavors);
    Objects {
        flavors: flavors
            .map(|flavor| (flavor.name.clone(), ResourceFlavor::default()))
            .collect(),
        cluster_queues,
        ..Objects::default()
    }
}

pub(in super::super) fn at(second: u64) -> Timestamp {
    Timestamp::from_second(i64::try_from(second).expect("small")).expect("small")
}

/// A workload of one pod, which is as old as its number is low.
pub(in super::super) fn workload(id: u64, queue: &str, requests: &[(&str, i64)]) -> Workload {
    Workload {
        id: WorkloadId(id),
        cluster_queue: queue.into(),
        local_queue: queue.into(),
        user: None,
        priority: 0,
        queued_at: at(id),
        evictions: 0,
        evicted_by: None,
        pod_sets: vec![pods(1, requests)],
    }
}

pub(in super::super) fn pods(count: u32, requests: &[(&str, i64)]) -> PodSet {
    let requests = requests
        .iter()
        .map(|(resource, amount)| ((*resource).to_owned(), Quantity(*amount)));
    PodSet {
        name: "main".into(),
        count,
        requests: requests.collect(),
        ..PodSet::default()
    }
}

/// As a workload of so many GPUs, but of higher priority.
pub(in super::super) fn urgent(id: u64, queue: &str, gpus: i64) -> Workload {
    Workload {
        priority: 9,
        ..workload(id, queue, &[(GPU, gpus)])
    }
}

/// Queues in which these came one after the other, each decided on before the next. Whoever is told to go stays.
pub(in super::super) fn story(objects: Objects, workloads: &[Workload]) -> Queues {
    let mut queues = Queues::new(objects);
    for workload in workloads {
        submit(&mut queues, workload);
    }
    queues
}

/// Lets one more come, and decides on it.
pub(in super::super) fn submit(queues: &mut Queues, workload: &Workload) {
    queues.submit(workload).expect("the queue is configured");
    for _ in 0..10 {
        queues.cycle(at(1000 + workload.id.0));
    }
}

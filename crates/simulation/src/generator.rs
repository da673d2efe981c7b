//! The load of Kueue's own performance test (`test/performance/scheduler`), so that schedules can be set side by side.

use std::collections::BTreeMap;

use blueproof_queue::{
    PodSet, Quantity,
    objects::{
        ClusterQueue, FlavorQuotas, LocalQueue, Objects, Preemption, Quota, ReclaimWithinCohort,
        ResourceFlavor, ResourceGroup, WithinClusterQueue,
    },
};
use jiff::SignedDuration;

use super::{Arrival, Execution, Job, Scenario};

const COHORTS: usize = 5;
const QUEUES_EACH: usize = 6;
const CPU: &str = "cpu";
const FLAVOR: &str = "default";

/// Jobs of one class, in each queue.
struct Class {
    name: &'static str,
    count: i32,
    every_ms: i32,
    runs_ms: i64,
    cpus: i64,
    priority: i32,
}

const CLASSES: [Class; 3] = [
    Class {
        name: "small",
        count: 350,
        every_ms: 100,
        runs_ms: 200,
        cpus: 1,
        priority: 50,
    },
    Class {
        name: "medium",
        count: 100,
        every_ms: 500,
        runs_ms: 500,
        cpus: 5,
        priority: 100,
    },
    Class {
        name: "large",
        count: 50,
        every_ms: 1200,
        runs_ms: 1000,
        cpus: 20,
        priority: 200,
    },
];

/// Returns Kueue's baseline: 5 cohorts of 6 queues with 500 jobs each. The work alone would take 66 seconds.
pub fn kueue_baseline() -> Scenario {
    let queues = (0..COHORTS).flat_map(|cohort| {
        (0..QUEUES_EACH).map(move |queue| (format!("cohort-{cohort}"), format!("queue-{cohort}-{queue}")))
    });
    let mut scenario = Scenario::default();
    scenario
        .objects
        .flavors
        .insert(FLAVOR.into(), ResourceFlavor::default());
    for (cohort, queue) in queues {
        add_queue(&mut scenario.objects, &queue, cohort);
        scenario
            .jobs
            .extend(CLASSES.iter().flat_map(|class| class.jobs(&queue)));
    }
    scenario
}

fn add_queue(objects: &mut Objects, name: &str, cohort: String) {
    let quota = Quota {
        nominal: Quantity(20_000),
        borrowing_limit: Some(Quantity(100_000)),
        lending_limit: None,
    };
    let flavor = FlavorQuotas {
        name: FLAVOR.into(),
        resources: BTreeMap::from([(CPU.into(), quota)]),
    };
    let queue = ClusterQueue {
        cohort: Some(cohort),
        resource_groups: vec![ResourceGroup {
            flavors: vec![flavor],
        }],
        preemption: Preemption {
            within_cluster_queue: WithinClusterQueue::LowerPriority,
            reclaim_within_cohort: ReclaimWithinCohort::Any,
            borrow_within_cohort: None,
        },
        ..ClusterQueue::default()
    };
    let local = LocalQueue {
        cluster_queue: name.into(),
        ..LocalQueue::default()
    };
    objects.cluster_queues.insert(name.into(), queue);
    objects.local_queues.insert(name.into(), local);
}

impl Class {
    /// Returns its jobs in a queue; the first comes after the first interval, as from Kueue's generator.
    fn jobs(&self, queue: &str) -> impl Iterator<Item = Job> {
        (1..=self.count).map(move |number| Job {
            name: format!("{queue}-{}-{number}", self.name),
            class: self.name.into(),
            queue: queue.into(),
            priority: self.priority,
            pod_sets: vec![PodSet {
                name: "main".into(),
                count: 1,
                requests: BTreeMap::from([(CPU.into(), Quantity(self.cpus * 1000))]),
                ..PodSet::default()
            }],
            arrives: Arrival::At(SignedDuration::from_millis(self.every_ms.into()) * number),
            executions: vec![Execution {
                runs_for: SignedDuration::from_millis(self.runs_ms),
                ..Execution::default()
            }],
            ..Job::default()
        })
    }
}

//! Who has the one evicted for whom it was evicted itself.

use super::*;
use crate::objects::{
    ClusterQueue, Cohort, FairSharing, FlavorQuotas, Preemption, Quota, ReclaimWithinCohort, ResourceFlavor,
    ResourceGroup, Weight,
};

/// A big workload evicts small ones for a fair share, and one of those takes its own back: ping-pong in Kueue's rules.
#[test]
fn one_who_has_the_one_evicted_for_whom_it_was_evicted_is_counted() {
    let mut told = Told::new(ping_pong());
    let small = [(1, 3), (1, 2), (1, 1), (2, 1), (2, 3), (2, 1)];
    for (queue, gpus) in small {
        told.tell(&submit(queue, 0, gpus));
        told.tell(&Happening::Cycle);
    }
    let big = WorkloadId(told.submitted as u64);
    told.tell(&submit(0, 9, 4));
    let evicted = told.tell(&Happening::Cycle).preempted;
    assert!(!evicted.is_empty() && evicted.iter().all(|preempted| !preempted.reversal));
    let evicted: Vec<WorkloadId> = evicted.iter().map(|preempted| preempted.workload).collect();
    evicted.iter().for_each(|id| told.queues.remove(*id));
    assert_eq!(told.tell(&Happening::Cycle).admitted[0].workload, big);
    for id in evicted {
        let (queue, gpus) = small[usize::try_from(id.0).expect("small")];
        if gpus > 1 {
            continue;
        }
        let workload = Workload {
            id,
            evictions: 1,
            evicted_by: Some(big),
            ..workload(told.submitted, (queue, 0), 0, [0, gpus], 1)
        };
        told.queues.submit(&workload).expect("the queue is configured");
    }
    let cycle = told.tell(&Happening::Cycle);
    let reversal = cycle.preempted.iter().find(|preempted| preempted.reversal);
    let reversal = reversal.expect("one takes back what is its queue's own");
    assert_eq!(reversal.workload, big);
}

/// A cohort that may borrow three, in which two queues of no weight own four each, and one of weight owns nothing.
fn ping_pong() -> Objects {
    let quota = |nominal, borrowing_limit: Option<i64>| Quota {
        nominal: Quantity(nominal),
        borrowing_limit: borrowing_limit.map(Quantity),
        lending_limit: None,
    };
    let group = |quota| {
        vec![ResourceGroup {
            flavors: vec![FlavorQuotas {
                name: "a10".into(),
                resources: BTreeMap::from(RESOURCES.map(|resource| (resource.to_owned(), quota))),
            }],
        }]
    };
    let queue = |cohort: &str, nominal, weight| ClusterQueue {
        cohort: Some(cohort.into()),
        resource_groups: group(quota(nominal, None)),
        preemption: Preemption {
            reclaim_within_cohort: ReclaimWithinCohort::Any,
            ..Preemption::default()
        },
        weight: Weight(weight),
        ..ClusterQueue::default()
    };
    let cohort = |parent: Option<&str>, quota| Cohort {
        parent: parent.map(str::to_owned),
        resource_groups: group(quota),
        weight: Weight(1.0),
    };
    Objects {
        flavors: BTreeMap::from([("a10".into(), ResourceFlavor::default())]),
        cohorts: BTreeMap::from([
            ("root".into(), cohort(None, quota(2, None))),
            ("left".into(), cohort(Some("root"), quota(0, Some(3)))),
        ]),
        cluster_queues: BTreeMap::from([
            ("q0".into(), queue("left", 0, 1.0)),
            ("q1".into(), queue("left", 4, 0.0)),
            ("q2".into(), queue("left", 4, 0.0)),
            ("q3".into(), queue("root", 1, 1.0)),
        ]),
        fair_sharing: Some(FairSharing::default()),
        ..Objects::default()
    }
}

fn submit(queue: usize, priority: i32, gpus: i64) -> Happening {
    Happening::Submit {
        queue,
        user: 0,
        priority,
        asks: [0, gpus],
        pods: 1,
        min_pods: None,
    }
}

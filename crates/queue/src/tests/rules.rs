//! Single rules, each in the smallest world that tells it from its neighbours.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use proptest::{collection::vec, prelude::*};

use super::{
    super::{
        Inactive, PodSet, Quantity, Queues, Workload, WorkloadId, WorkloadStatus,
        objects::{
            ClusterQueue, Cohort, FairSharing, FlavorQuotas, Objects, Preemption, Quota, ReclaimWithinCohort,
            ResourceFlavor, Taint, TaintEffect, Toleration, Weight, WithinClusterQueue,
        },
        quotas::{FlavorResource, NodeId, Quotas},
        share::Share,
        terms::mismatch,
    },
    stories::*,
};

fn evicts_own(mut queue: ClusterQueue, whom: WithinClusterQueue) -> ClusterQueue {
    queue.preemption = Preemption {
        within_cluster_queue: whom,
        ..queue.preemption
    };
    queue
}

fn standings<const N: usize>(queues: &Queues, ids: [u64; N]) -> [Option<WorkloadStatus>; N] {
    ids.map(|id| queues.standing(WorkloadId(id)))
}

#[test]
fn what_one_pod_set_gets_is_not_there_for_the_next() {
    let flavors = vec![flavor("a10", GPU, quota(3)), flavor("h200", GPU, quota(2))];
    let queue = ClusterQueue {
        resource_groups: vec![group(flavors)],
        ..ClusterQueue::default()
    };
    let mut queues = Queues::new(configured([("q", queue)]));
    let gang = Workload {
        pod_sets: vec![pods(1, &[(GPU, 2)]), pods(1, &[(GPU, 2)])],
        ..workload(1, "q", &[])
    };
    queues.submit(&gang).expect("the queue is configured");
    let admitted = queues.cycle(at(1)).admitted;
    let flavors = admitted
        .iter()
        .flat_map(|admission| &admission.pod_sets)
        .map(|set| set.flavors[GPU].as_str());
    assert_eq!(flavors.collect::<Vec<_>>(), ["a10", "h200"]);
}

#[test]
fn where_pods_have_quota_each_pod_takes_one_of_it() {
    let mut any = flavor("any", GPU, quota(9));
    any.resources.insert("pods".into(), quota(2));
    let queue = ClusterQueue {
        resource_groups: vec![group(vec![any])],
        ..ClusterQueue::default()
    };
    let of_pods = |id, count| Workload {
        pod_sets: vec![pods(count, &[(GPU, 1)])],
        ..workload(id, "q", &[])
    };
    let queues = story(configured([("q", queue)]), &[of_pods(1, 3), of_pods(2, 2)]);
    let expected = [Some(WorkloadStatus::Inadmissible), Some(WorkloadStatus::Admitted)];
    assert_eq!(standings(&queues, [1, 2]), expected);
}

#[test]
fn a_taint_keeps_out_whoever_does_not_tolerate_it_unless_it_only_asks() {
    let tolerates = |key: &str| Toleration {
        key: Some(key.into()),
        ..Toleration::default()
    };
    for (why, effect, of_pods, of_flavor, fits) in [
        ("nobody tolerates it", TaintEffect::NoSchedule, None, None, false),
        (
            "another one is tolerated",
            TaintEffect::NoSchedule,
            Some("other"),
            None,
            false,
        ),
        (
            "the pods tolerate it",
            TaintEffect::NoSchedule,
            Some("gpu"),
            None,
            true,
        ),
        (
            "the flavor tolerates it",
            TaintEffect::NoExecute,
            None,
            Some("gpu"),
            true,
        ),
        ("it only asks", TaintEffect::PreferNoSchedule, None, None, true),
    ] {
        let flavor = ResourceFlavor {
            node_taints: vec![Taint {
                key: "gpu".into(),
                value: String::new(),
                effect,
            }],
            tolerations: of_flavor.into_iter().map(tolerates).collect(),
            ..ResourceFlavor::default()
        };
        let set = PodSet {
            tolerations: of_pods.into_iter().map(tolerates).collect(),
            ..pods(1, &[(GPU, 1)])
        };
        assert_eq!(mismatch(&set, &flavor).is_none(), fits, "{why}");
    }
}

#[test]
fn one_that_came_at_the_same_time_is_not_newer() {
    let queue = evicts_own(of(None, quota(1)), WithinClusterQueue::LowerOrNewerEqualPriority);
    let objects = configured([("q", queue)]);
    let first_beside_one_since = |second| {
        let other = Workload {
            queued_at: at(second),
            ..workload(2, "q", &[(GPU, 1)])
        };
        let queues = story(objects.clone(), &[workload(1, "q", &[(GPU, 1)]), other]);
        queues.standing(WorkloadId(1))
    };
    assert_eq!(first_beside_one_since(1), Some(WorkloadStatus::Admitted));
    assert_eq!(first_beside_one_since(0), Some(WorkloadStatus::Evicted));
}

#[test]
fn nobody_more_is_evicted_than_it_takes_beside_what_can_be_borrowed() {
    let queue = evicts_own(of(Some("c"), quota(4)), WithinClusterQueue::LowerPriority);
    let objects = configured([("q", queue), ("lends", of(Some("c"), quota(1)))]);
    let asks = [1, 2, 3].map(|id| workload(id, "q", &[(GPU, 1)]));
    let mut queues = story(objects, &asks);
    submit(&mut queues, &urgent(4, "q", 3));
    let (stays, goes) = (Some(WorkloadStatus::Admitted), Some(WorkloadStatus::Evicted));
    assert_eq!(standings(&queues, [1, 2, 3]), [stays, stays, goes]);
}

#[test]
fn nothing_is_taken_from_others_for_a_queue_that_has_all_its_own_of_another_resource() {
    let both = |gpus, cpus| {
        let quotas = FlavorQuotas {
            name: "h200".into(),
            resources: BTreeMap::from([(GPU.into(), quota(gpus)), ("cpu".into(), quota(cpus))]),
        };
        ClusterQueue {
            cohort: Some("c".into()),
            resource_groups: vec![group(vec![quotas])],
            preemption: Preemption {
                within_cluster_queue: WithinClusterQueue::LowerPriority,
                reclaim_within_cohort: ReclaimWithinCohort::Any,
                ..Preemption::default()
            },
            ..ClusterQueue::default()
        }
    };
    let asks = [workload(1, "other", &[(GPU, 2)]), workload(2, "q", &[("cpu", 2)])];
    let mut queues = story(configured([("q", both(2, 2)), ("other", both(0, 0))]), &asks);
    let newcomer = Workload {
        priority: 9,
        ..workload(3, "q", &[(GPU, 1), ("cpu", 1)])
    };
    submit(&mut queues, &newcomer);
    assert_eq!(standings(&queues, [1, 2]), [Some(WorkloadStatus::Admitted); 2]);
}

#[test]
fn under_fair_sharing_too_one_is_safe_for_its_minimum_time() {
    let borrower = evicts_own(of(Some("c"), quota(0)), WithinClusterQueue::Never);
    let mut owner = of(Some("c"), quota(2));
    owner.preemption.reclaim_within_cohort = ReclaimWithinCohort::Any;
    let mut objects = configured([("borrower", borrower), ("owner", owner)]);
    objects.fair_sharing = Some(FairSharing::default());
    let evicted_before = Workload {
        evictions: 1,
        ..workload(2, "owner", &[(GPU, 1)])
    };
    for (second, expected) in [(1010, WorkloadStatus::Admitted), (1061, WorkloadStatus::Evicted)] {
        let mut queues = story(objects.clone(), &[workload(1, "borrower", &[(GPU, 2)])]);
        queues.protect_for(Some(SignedDuration::from_secs(60)));
        queues.submit(&evicted_before).expect("the queue is configured");
        queues.cycle(at(second));
        assert_eq!(queues.standing(WorkloadId(1)), Some(expected), "at {second}");
    }
}

#[test]
fn of_resources_that_are_borrowed_alike_the_first_by_name_decides() {
    let both = |amount| {
        let resources = ["cpu", GPU].map(|resource| (resource.to_owned(), quota(amount)));
        let quotas = FlavorQuotas {
            name: "h200".into(),
            resources: resources.into(),
        };
        ClusterQueue {
            cohort: Some("c".into()),
            resource_groups: vec![group(vec![quotas])],
            ..ClusterQueue::default()
        }
    };
    let asks = workload(1, "q", &[("cpu", 1), (GPU, 1)]);
    let queues = story(configured([("q", both(0)), ("lends", both(4))]), &[asks]);
    assert_eq!(queues.dominant_resource("q"), Ok(Some("cpu")));
    assert_eq!(queues.weighted_share("q"), Ok(250.0));
}

#[test]
fn what_nobody_can_lend_any_more_is_no_share() {
    let before = configured([("q", of(Some("c"), quota(0))), ("lends", of(Some("c"), quota(1)))]);
    let mut queues = story(before.clone(), &[workload(1, "q", &[(GPU, 1)])]);
    assert_eq!(queues.weighted_share("q"), Ok(1000.0));
    let mut after = before;
    after
        .cluster_queues
        .insert("lends".into(), of(Some("c"), quota(0)));
    queues.set_objects(after);
    assert_eq!(queues.weighted_share("q"), Ok(0.0));
}

#[test]
fn one_who_had_others_evicted_stays_first_whoever_comes() {
    let queue = evicts_own(of(None, quota(1)), WithinClusterQueue::LowerPriority);
    let asks = [workload(1, "q", &[(GPU, 1)]), urgent(2, "q", 1)];
    let mut queues = story(configured([("q", queue)]), &asks);
    let more_urgent = Workload {
        priority: 10,
        ..urgent(3, "q", 1)
    };
    submit(&mut queues, &more_urgent);
    assert_eq!(queues.waiting("q"), Ok(vec![WorkloadId(2), WorkloadId(3)]));
    assert_eq!(queues.head("q"), Some(WorkloadId(2)));
}

#[test]
fn a_queue_is_there_while_somebody_is_in_it_and_gone_with_its_configuration_else() {
    let objects = configured(["holds", "waits", "empty"].map(|name| (name, of(None, quota(1)))));
    let asks = [
        workload(1, "holds", &[(GPU, 1)]),
        workload(2, "waits", &[(GPU, 2)]),
    ];
    let mut queues = story(objects.clone(), &asks);
    queues.set_objects(Objects {
        cluster_queues: BTreeMap::new(),
        ..objects
    });
    assert_eq!(queues.standing(WorkloadId(1)), Some(WorkloadStatus::Admitted));
    assert_eq!(queues.standing(WorkloadId(2)), Some(WorkloadStatus::Queued));
    for name in ["holds", "waits"] {
        assert_eq!(queues.inactive(name), Ok(Some(&Inactive::Removed)));
    }
    queues.inactive("empty").expect_err("nobody is in it");
}

#[test]
fn a_tree_notices_whatever_is_different_of_it_and_nothing_else() {
    let lends = ClusterQueue {
        cohort: Some("c".into()),
        ..of(None, quota(1))
    };
    let mut objects = configured([
        ("q", of(Some("c"), quota(1))),
        ("lends", lends),
        ("alone", of(None, quota(1))),
    ]);
    objects.cohorts.insert("c".into(), Cohort::default());
    let changes: [fn(&mut Objects); 7] = [
        |objects| objects.fair_sharing = Some(FairSharing::default()),
        |objects| objects.cohorts.get_mut("c").expect("it is there").weight = Weight(2.0),
        |objects| {
            objects
                .cluster_queues
                .get_mut("lends")
                .expect("it is there")
                .weight = Weight(2.0);
        },
        |objects| {
            let flavor = objects.flavors.get_mut("h200").expect("it is there");
            flavor.node_labels.insert("zone".into(), "a".into());
        },
        |objects| {
            objects
                .cluster_queues
                .insert("more".into(), of(Some("c"), quota(0)));
        },
        |objects| {
            let parent = Some("c".into());
            let below = Cohort {
                parent,
                ..Cohort::default()
            };
            objects.cohorts.insert("d".into(), below);
        },
        |objects| {
            let groups = &mut objects.cohorts.get_mut("c").expect("it is there").resource_groups;
            groups.push(group(vec![flavor("h200", "net", quota(1))]));
        },
    ];
    let stuck = story(objects.clone(), &[workload(1, "q", &[(GPU, 3)])]);
    assert_eq!(stuck.standing(WorkloadId(1)), Some(WorkloadStatus::Inadmissible));
    let after = |change: &dyn Fn(&mut Objects)| {
        let mut queues = stuck.clone();
        let mut other = objects.clone();
        change(&mut other);
        queues.set_objects(other);
        queues.standing(WorkloadId(1))
    };
    for (number, change) in changes.iter().enumerate() {
        assert_eq!(after(change), Some(WorkloadStatus::Queued), "change {number}");
    }
    let elsewhere = |objects: &mut Objects| {
        objects.cluster_queues.insert("alone".into(), of(None, quota(9)));
    };
    assert_eq!(after(&elsewhere), Some(WorkloadStatus::Inadmissible));
    assert_eq!(after(&|_| {}), Some(WorkloadStatus::Inadmissible));
}

/// One queue with so many GPUs, of which some are in use.
fn in_use(nominal: i64, used: i64) -> Queues {
    let user = workload(1, "q", &[(GPU, used)]);
    story(configured([("q", of(None, quota(nominal)))]), &[user])
}

/// Quotas of a queue that keeps one of its two for itself, in a cohort that has two more.
fn kept() -> (Quotas, NodeId) {
    let mut quotas = Quotas::new(vec![0]);
    let (cohort, queue) = (quotas.add_node(1.0), quotas.add_node(1.0));
    quotas.set_parent(queue, cohort);
    quotas.add_child_queue(cohort, queue);
    let keeps_one = Quota {
        lending_limit: Some(Quantity(1)),
        ..quota(2)
    };
    quotas.set_quota(cohort, GPUS, quota(2));
    quotas.set_quota(queue, GPUS, keeps_one);
    quotas.settle();
    (quotas, queue)
}

const GPUS: FlavorResource = FlavorResource(0);

#[test]
fn who_asks_for_none_of_what_its_queue_borrows_does_not_borrow_it() {
    let (mut quotas, queue) = kept();
    let borrows =
        |quotas: &Quotas, amount| Share::of(quotas, queue).is_borrowing_on(&[(GPUS, Quantity(amount))]);
    quotas.add(queue, &[(GPUS, Quantity(2))]);
    assert!(!borrows(&quotas, 1));
    quotas.add(queue, &[(GPUS, Quantity(1))]);
    assert!(borrows(&quotas, 1));
    assert!(!borrows(&quotas, 0));
}

proptest! {
    #[test]
    fn what_counted_as_used_for_a_while_leaves_no_trace(used in 0..8_i64, amount in -6..6_i64) {
        let (mut quotas, queue) = kept();
        quotas.add(queue, &[(GPUS, Quantity(used))]);
        let before = quotas.clone();
        let reserved = [(GPUS, Quantity(amount))];
        quotas.add(queue, &reserved);
        quotas.unreserve(queue, &reserved);
        prop_assert_eq!(quotas, before);
    }

    #[test]
    fn as_many_pods_are_admitted_as_there_is_room_for(
        used in 0..8_i64, count in 1..20_u32, least in 1..20_u32, per_pod in 1..4_i64,
    ) {
        let mut queues = in_use(12, used);
        let mut asks = workload(2, "q", &[(GPU, per_pod)]);
        asks.pod_sets[0].count = count;
        asks.pod_sets[0].min_count = Some(least);
        queues.submit(&asks).expect("the queue is configured");
        let admitted = queues.cycle(at(1)).admitted;
        let got: Vec<_> = admitted.iter().flat_map(|admission| &admission.pod_sets).map(|set| set.count).collect();
        let room = u32::try_from((12 - used) / per_pod).expect("small");
        let most = count.min(room);
        let expected = if most >= least.min(count) { vec![most] } else { Vec::new() };
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn those_who_wait_are_listed_as_they_would_be_served(
        asks in vec((0..3_i32, 0..5_u64), 1..8),
    ) {
        let mut queues = Queues::new(configured([("q", of(None, quota(1)))]));
        for (id, (priority, since)) in (0..).zip(&asks) {
            let asks = Workload {
                priority: *priority,
                queued_at: at(*since),
                ..workload(id, "q", &[(GPU, 1)])
            };
            queues.submit(&asks).expect("the queue is configured");
        }
        let listed = queues.waiting("q").expect("the queue is configured");
        for (place, id) in listed.iter().enumerate() {
            prop_assert_eq!(queues.ahead_of(*id), listed[..place].to_vec());
        }
        let mut served = Vec::new();
        while let [admission] = &queues.cycle(at(9)).admitted[..] {
            served.push(admission.workload);
            queues.remove(admission.workload);
        }
        prop_assert_eq!(served, listed);
    }
}

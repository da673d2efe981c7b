//! What those who wait are told, reason by reason, and what is said to help them.

use super::{
    super::{
        PreemptionReason, StopPolicy, WorkloadStatus,
        objects::{
            ClusterQueue, Cohort, Objects, Preemption, QueueingStrategy, Quota, ResourceFlavor, Taint,
            TaintEffect, WithinClusterQueue,
        },
        tests::stories::*,
    },
    *,
};

fn wait(queues: &Queues, id: u64) -> Wait {
    queues.wait(WorkloadId(id)).expect("it waits")
}

fn ends(workloads: &[u64]) -> Remedy {
    Remedy::Ends {
        workloads: workloads.iter().copied().map(WorkloadId).collect(),
        pending: Vec::new(),
    }
}

fn more(amount: i64) -> Remedy {
    Remedy::MoreQuota {
        increases: vec![QuotaIncrease {
            flavor: "h200".into(),
            resource: GPU.into(),
            more: Quantity(amount),
        }],
    }
}

#[test]
fn one_who_has_quota_does_not_wait() {
    let queues = story(
        configured([("q", of(None, quota(1)))]),
        &[workload(1, "q", &[(GPU, 1)])],
    );
    assert_eq!(queues.wait(WorkloadId(1)), None);
    assert_eq!(queues.wait(WorkloadId(2)), None);
}

#[test]
fn a_resource_that_the_queue_has_not_is_named() {
    let asks = workload(1, "q", &[(GPU, 1), ("tpu", 1)]);
    let wait = wait(&story(configured([("q", of(None, quota(1)))]), &[asks]), 1);
    let expected = Obstacle {
        pod_set: 0,
        flavor: None,
        why: ObstacleReason::Uncovered {
            resource: "tpu".into(),
        },
    };
    assert_eq!(wait.reason, WaitReason::NoMatchingFlavor);
    assert_eq!(wait.obstacles, [expected]);
    assert!(!wait.can_ever_fit);
}

#[test]
fn more_than_there_is_waits_for_others_and_more_than_there_could_be_never_fits() {
    let objects = configured([("q", of(None, quota(4)))]);
    let asks = [(1, 3), (2, 2), (3, 5)].map(|(id, gpus)| workload(id, "q", &[(GPU, gpus)]));
    let queues = story(objects, &asks);
    let short = |asked| ObstacleReason::Short {
        resource: GPU.into(),
        asked: Quantity(asked),
        available: Quantity(1),
        most: Quantity(4),
        limit: QuotaLimit::Nominal,
    };
    for (id, asked, reason, can_ever_fit) in [
        (2, 2, WaitReason::WaitingForQuota, true),
        (3, 5, WaitReason::ExceedsMaxQuota, false),
    ] {
        let obstacle = Obstacle {
            pod_set: 0,
            flavor: Some("h200".into()),
            why: short(asked),
        };
        let expected = Wait {
            reason,
            obstacles: vec![obstacle],
            can_ever_fit,
        };
        assert_eq!(wait(&queues, id), expected);
    }
}

/// Returns what keeps the queue `q` from having so many.
fn limit(objects: Objects, used_by_others: i64, asked: i64) -> QuotaLimit {
    let others = workload(1, "other", &[(GPU, used_by_others)]);
    let queues = story(objects, &[others, workload(2, "q", &[(GPU, asked)])]);
    match wait(&queues, 2).obstacles.remove(0).why {
        ObstacleReason::Short { limit, .. } => limit,
        why @ (ObstacleReason::Uncovered { .. } | ObstacleReason::Mismatch { .. }) => panic!("{why:?}"),
    }
}

#[test]
fn the_limit_that_binds_is_told() {
    let of_two = |quota_of_q, quota_of_other| {
        configured([
            ("q", of(Some("c"), quota_of_q)),
            ("other", of(Some("c"), quota_of_other)),
        ])
    };
    let borrows_one = Quota {
        borrowing_limit: Some(Quantity(1)),
        ..quota(2)
    };
    let lends_one = Quota {
        lending_limit: Some(Quantity(1)),
        ..quota(4)
    };
    let borrowing = |of: &str| QuotaLimit::Borrowing { of: of.into() };
    assert_eq!(limit(of_two(borrows_one, quota(4)), 1, 4), borrowing("q"));
    // One may be borrowed and one is left to be borrowed: more of the first alone would not help.
    assert_eq!(limit(of_two(borrows_one, quota(4)), 3, 4), QuotaLimit::Cohort);
    assert_eq!(limit(of_two(borrows_one, quota(4)), 4, 3), QuotaLimit::Cohort);
    assert_eq!(limit(of_two(quota(2), lends_one), 1, 4), QuotaLimit::Lending);
    assert_eq!(limit(of_two(quota(2), lends_one), 3, 4), QuotaLimit::Cohort);
    assert_eq!(limit(of_two(quota(2), quota(4)), 3, 4), QuotaLimit::Cohort);

    let mut objects = of_two(quota(2), quota(4));
    let below = Cohort {
        parent: Some("root".into()),
        resource_groups: vec![group(vec![flavor(
            "h200",
            GPU,
            Quota {
                borrowing_limit: Some(Quantity(0)),
                ..quota(0)
            },
        )])],
        ..Cohort::default()
    };
    objects.cohorts.insert("c".into(), below);
    objects
        .cluster_queues
        .insert("third".into(), of(Some("root"), quota(8)));
    assert_eq!(limit(objects, 4, 3), borrowing("c"));
}

#[test]
fn of_a_groups_flavors_the_least_obstacle_counts_and_of_the_groups_the_worst() {
    let taint = Taint {
        key: "spot".into(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    };
    let gpus = group(vec![flavor("spot", GPU, quota(9)), flavor("h200", GPU, quota(2))]);
    let nets = group(vec![flavor("mlx", "net", quota(3))]);
    let queue = ClusterQueue {
        resource_groups: vec![gpus, nets],
        ..ClusterQueue::default()
    };
    let mut objects = configured([("q", queue)]);
    objects.flavors.insert(
        "spot".into(),
        ResourceFlavor {
            node_taints: vec![taint],
            ..ResourceFlavor::default()
        },
    );
    let reason = |requests: &[(&str, i64)]| {
        let asks = [
            workload(1, "q", &[(GPU, 1), ("net", 1)]),
            workload(2, "q", requests),
        ];
        wait(&story(objects.clone(), &asks), 2).reason
    };
    assert_eq!(reason(&[(GPU, 2)]), WaitReason::WaitingForQuota);
    assert_eq!(reason(&[(GPU, 3)]), WaitReason::ExceedsMaxQuota);
    assert_eq!(reason(&[(GPU, 1), ("net", 3)]), WaitReason::WaitingForQuota);
    assert_eq!(reason(&[(GPU, 1), ("net", 4)]), WaitReason::ExceedsMaxQuota);
}

#[test]
fn a_flavor_whose_nodes_are_for_others_is_told_with_the_cause() {
    let mut objects = configured([("q", of(None, quota(1)))]);
    let labels = BTreeMap::from([("zone".to_owned(), "a".to_owned())]);
    objects.flavors.insert(
        "h200".into(),
        ResourceFlavor {
            node_labels: labels,
            ..ResourceFlavor::default()
        },
    );
    let mut asks = workload(1, "q", &[(GPU, 1)]);
    asks.pod_sets[0].node_selector = BTreeMap::from([("zone".to_owned(), "b".to_owned())]);
    let wait = wait(&story(objects, &[asks]), 1);
    let mismatch = Mismatch::NodeSelector {
        key: "zone".into(),
        value: "b".into(),
    };
    assert_eq!(wait.reason, WaitReason::NoMatchingFlavor);
    assert_eq!(wait.obstacles[0].flavor.as_deref(), Some("h200"));
    assert_eq!(wait.obstacles[0].why, ObstacleReason::Mismatch { mismatch });
}

#[test]
fn a_queue_that_admits_nobody_is_stopped_or_misconfigured() {
    let reason = |change: fn(&mut Objects)| {
        let mut objects = configured([("q", of(Some("c"), quota(1)))]);
        change(&mut objects);
        wait(&story(objects, &[workload(1, "q", &[(GPU, 1)])]), 1).reason
    };
    assert_eq!(
        reason(|objects| {
            let queue = objects.cluster_queues.get_mut("q").expect("it is there");
            queue.stop_policy = StopPolicy::Hold;
        }),
        WaitReason::Suspended
    );
    assert_eq!(
        reason(|objects| objects.flavors.clear()),
        WaitReason::Misconfigured
    );
    assert_eq!(
        reason(|objects| {
            let circle = |parent: &str| Cohort {
                parent: Some(parent.into()),
                ..Cohort::default()
            };
            objects.cohorts = BTreeMap::from([("c".into(), circle("d")), ("d".into(), circle("c"))]);
        }),
        WaitReason::Misconfigured
    );
}

#[test]
fn one_who_is_behind_others_waits_for_its_turn() {
    let mut queues = Queues::new(configured([("q", of(None, quota(1)))]));
    let asks = workload(1, "q", &[(GPU, 1)]);
    queues.submit(&asks).expect("the queue is configured");
    assert_eq!(wait(&queues, 1).reason, WaitReason::PendingEvaluation);
    assert_eq!(queues.unblocked_by(WorkloadId(1)), [Remedy::Time]);
}

#[test]
fn one_who_has_others_evicted_waits_for_them_until_they_have_left() {
    let mut queue = of(None, quota(1));
    queue.preemption = Preemption {
        within_cluster_queue: WithinClusterQueue::LowerPriority,
        ..Preemption::default()
    };
    let asks = [workload(1, "q", &[(GPU, 1)]), urgent(2, "q", 1)];
    let mut queues = story(configured([("q", queue)]), &asks);
    assert_eq!(queues.standing(WorkloadId(1)), Some(WorkloadStatus::Evicted));
    assert_eq!(wait(&queues, 2).reason, WaitReason::WaitingForPreemptedWorkloads);
    submit(&mut queues, &workload(3, "q", &[(GPU, 1)]));
    assert_eq!(wait(&queues, 3).reason, WaitReason::WaitingForQuota);
    queues.requeue(WorkloadId(1));
    assert_eq!(wait(&queues, 2).reason, WaitReason::PendingEvaluation);
}

#[test]
fn of_those_whose_end_would_do_the_one_who_has_run_longest_is_named() {
    let asks = [(1, 1), (2, 2), (3, 2), (4, 2)].map(|(id, gpus)| workload(id, "q", &[(GPU, gpus)]));
    let queues = story(configured([("q", of(None, quota(5)))]), &asks);
    assert_eq!(queues.unblocked_by(WorkloadId(4)), [ends(&[2]), more(2)]);
}

#[test]
fn where_one_is_not_enough_as_few_as_will_do_are_named_and_as_little_quota() {
    let asks = [(1, 1), (2, 1), (3, 1), (4, 1), (5, 3)].map(|(id, gpus)| workload(id, "q", &[(GPU, gpus)]));
    let queues = story(configured([("q", of(None, quota(5)))]), &asks);
    assert_eq!(queues.unblocked_by(WorkloadId(5)), [ends(&[1, 2]), more(2)]);
}

#[test]
fn quota_is_asked_for_those_who_go_first_too() {
    let asks = [(1, 5), (2, 3), (3, 4)].map(|(id, gpus)| workload(id, "q", &[(GPU, gpus)]));
    let mut objects = configured([("q", of(None, quota(5)))]);
    let queue = objects.cluster_queues.get_mut("q").expect("it is there");
    queue.queueing_strategy = QueueingStrategy::StrictFIFO;
    let queues = story(objects, &asks);
    assert_eq!(queues.ahead_of(WorkloadId(3)), [WorkloadId(2)]);
    let in_turn = Remedy::Ends {
        workloads: vec![WorkloadId(1)],
        pending: vec![WorkloadId(2)],
    };
    assert_eq!(queues.unblocked_by(WorkloadId(3)), [in_turn, more(7)]);
}

/// Two queues of one cohort, each with a flavor of its own that the other has none of.
fn spot_and_reserved() -> Objects {
    let queue = |own: &str, other: &str, nominal| ClusterQueue {
        cohort: Some("lab".into()),
        resource_groups: vec![group(vec![
            flavor(own, GPU, quota(nominal)),
            flavor(other, GPU, quota(0)),
        ])],
        ..ClusterQueue::default()
    };
    configured([
        ("blue", queue("spot", "reserved", 3)),
        ("green", queue("reserved", "spot", 2)),
    ])
}

#[test]
fn those_whose_quota_is_of_another_flavor_are_not_named() {
    let ones = |ids: std::ops::RangeInclusive<u64>, queue: &'static str| {
        ids.map(move |id| workload(id, queue, &[(GPU, 1)]))
    };
    let wants_two = workload(6, "green", &[(GPU, 2)]);
    let asks: Vec<_> = ones(1..=3, "blue")
        .chain(ones(4..=5, "green"))
        .chain([wants_two])
        .collect();
    let queues = story(spot_and_reserved(), &asks);
    let unblocks = queues.unblocked_by(WorkloadId(6));
    assert_eq!(unblocks[0], ends(&[1, 2]), "two of spot will do, and run longest");

    let mut objects = spot_and_reserved();
    let green = objects.cluster_queues.get_mut("green").expect("it is there");
    green.resource_groups[0].flavors.truncate(1);
    let unblocks = story(objects, &asks).unblocked_by(WorkloadId(6));
    assert_eq!(unblocks[0], ends(&[4, 5]), "it may have nothing of spot");
}

#[test]
fn one_who_is_third_in_line_waits_for_those_before_it_too() {
    let asks: Vec<_> = (1..=4).map(|id| workload(id, "q", &[(GPU, 2)])).collect();
    let mut objects = configured([("q", of(None, quota(2)))]);
    objects
        .cluster_queues
        .get_mut("q")
        .expect("it is there")
        .queueing_strategy = QueueingStrategy::StrictFIFO;
    let in_turn = Remedy::Ends {
        workloads: vec![WorkloadId(1)],
        pending: vec![WorkloadId(2), WorkloadId(3)],
    };
    assert_eq!(story(objects, &asks).unblocked_by(WorkloadId(4))[0], in_turn);
}

fn strict(nominal: i64) -> Objects {
    let queue = ClusterQueue {
        queueing_strategy: QueueingStrategy::StrictFIFO,
        ..of(None, quota(nominal))
    };
    configured([("q", queue)])
}

#[test]
fn behind_heads_that_never_fit_it_takes_that_they_are_cancelled_or_quota_for_them_too() {
    let cancelled = |ids: &[u64], then: &[u64]| Remedy::Cancelled {
        workloads: ids.iter().copied().map(WorkloadId).collect(),
        then: match then {
            [] => Vec::new(),
            ids => vec![ends(ids)],
        },
    };
    let queues = |asks: &[i64]| {
        let ids = 1..=u64::try_from(asks.len()).expect("few");
        let asks = ids.zip(asks).map(|(id, gpus)| workload(id, "q", &[(GPU, *gpus)]));
        story(strict(2), &asks.collect::<Vec<_>>())
    };
    assert_eq!(
        queues(&[6, 2]).unblocked_by(WorkloadId(2)),
        [cancelled(&[1], &[]), more(6)]
    );
    assert_eq!(
        queues(&[6, 7, 1]).unblocked_by(WorkloadId(3)),
        [cancelled(&[1, 2], &[]), more(12)]
    );
    assert_eq!(
        queues(&[1, 5, 2]).unblocked_by(WorkloadId(3)),
        [cancelled(&[2], &[1]), more(6)]
    );
    assert_eq!(
        queues(&[6, 2]).unblocked_by(WorkloadId(2))[0].to_string(),
        "workload 1, which can never fit, is cancelled"
    );
}

#[test]
fn quota_is_asked_for_those_of_its_cohort_too_who_take_what_it_lends() {
    let queue = |nominal, borrowing| {
        let quota = Quota {
            borrowing_limit: Some(Quantity(borrowing)),
            ..quota(nominal)
        };
        ClusterQueue {
            queueing_strategy: QueueingStrategy::StrictFIFO,
            ..of(Some("lab"), quota)
        }
    };
    let objects = configured([("q0", queue(1, 1)), ("q1", queue(2, 0)), ("q2", queue(1, 2))]);
    let asks = [
        workload(1, "q0", &[(GPU, 1)]),
        workload(2, "q0", &[(GPU, 1)]),
        workload(3, "q0", &[(GPU, 3)]),
        urgent(4, "q0", 3),
        workload(5, "q2", &[(GPU, 3)]),
    ];
    let queues = story(objects, &asks);
    assert_eq!(
        queues.wait(WorkloadId(3)).expect("it waits").reason,
        WaitReason::ExceedsMaxQuota
    );
    assert_eq!(queues.unblocked_by(WorkloadId(3)).last(), Some(&more(7)));
}

#[test]
fn where_nothing_helps_nothing_is_promised() {
    let asks = workload(1, "q", &[("tpu", 1)]);
    let queues = story(configured([("q", of(None, quota(5)))]), &[asks]);
    assert_eq!(queues.unblocked_by(WorkloadId(1)), []);
}

#[test]
fn a_reason_reads_the_same_on_a_terminal_and_in_json() {
    use WaitReason as W;
    for reason in [
        W::PendingEvaluation,
        W::WaitingForPreemptedWorkloads,
        W::WaitingForQuota,
        W::ExceedsMaxQuota,
        W::NoMatchingFlavor,
        W::Suspended,
        W::Misconfigured,
    ] {
        let json = serde_json::to_value(reason).expect("it is a word");
        assert_eq!(json, reason.to_string());
    }
    use PreemptionReason as P;
    for reason in [
        P::InClusterQueue,
        P::InCohortReclamation,
        P::InCohortFairSharing,
        P::InCohortReclaimWhileBorrowing,
    ] {
        let json = serde_json::to_value(reason).expect("it is a word");
        assert_eq!(json, reason.as_str());
    }
}

#[test]
fn a_remedy_that_an_older_version_wrote_is_read() {
    let old = r#"{"kind": "moreQuota", "raises": [{"flavor": "f", "resource": "cpu", "more": 1000}]}"#;
    let read: Remedy = serde_json::from_str(old).expect("the old name is known");
    let written = serde_json::to_value(&read).expect("it is data");
    assert_eq!(written["increases"][0]["flavor"], "f");
}

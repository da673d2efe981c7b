//! What is measured of stories whose waits are known: each number here was worked out by hand.

mod docs;
mod runs;
mod story;
mod turns;

use std::collections::BTreeSet;

use blueproof_core::{
    approval::{Approval, ApprovalTarget},
    domain::{Actor, Bytes, Cpus, GpuUse, Outcome, Placement, Repository, RunId, Usage, Verdict},
    event::{Event, StopMode},
    metrics::{self as m, Family, Page, Value},
    policy::Policy,
    testing::{isolating, outcome, teams},
};
use blueproof_queue::{
    Quantity,
    objects::{FairSharing, StopPolicy, Weight, WithinClusterQueue},
};
use jiff::SignedDuration;
use story::{Story, attempt, cpus, room_that_is_still_left, two_teams};

fn number(page: &Page, family: &'static Family, labels: &[&str]) -> f64 {
    match page.get(family, labels) {
        Some(Value::Number(number)) => *number,
        other => panic!("{} {labels:?}: {other:?}", family.name),
    }
}

/// Returns the bounds at which there are more than at the one before, with how many; and the sum in seconds.
fn times(page: &Page, family: &'static Family, labels: &[&str]) -> (Vec<(f64, u64)>, f64) {
    let Some(Value::Histogram(histogram)) = page.get(family, labels) else {
        panic!("{} {labels:?} is not there", family.name);
    };
    let mut before = 0;
    let steps = histogram
        .buckets()
        .filter(|(_, count)| std::mem::replace(&mut before, *count) != *count);
    (steps.collect(), histogram.sum().as_secs_f64())
}

/// A histogram, its labels, the bounds at which there are more with how many, and the sum in seconds.
type Times<'a> = (&'static Family, &'a [&'a str], &'a [(f64, u64)], f64);

fn assert_times(page: &Page, rows: &[Times<'_>]) {
    for (family, labels, buckets, sum) in rows {
        assert_eq!(
            times(page, family, labels),
            (buckets.to_vec(), *sum),
            "{} {labels:?}",
            family.name
        );
    }
}

#[test]
fn workloads_are_counted_by_queue_and_priority_class() {
    let page = two_teams().page();
    for (family, labels, expected) in [
        (&m::QUOTA_RESERVED_WORKLOADS, &["blue", ""][..], 4.0),
        (&m::QUOTA_RESERVED_WORKLOADS, &["red", ""], 2.0),
        (&m::QUOTA_RESERVED_WORKLOADS, &["red", "urgent"], 1.0),
        (&m::ADMITTED_WORKLOADS, &["blue", ""], 4.0),
        (&m::ADMITTED_WORKLOADS, &["red", "urgent"], 1.0),
        (&m::LOCAL_QUEUE_ADMITTED_WORKLOADS, &["red", "", ""], 2.0),
        (&m::COHORT_SUBTREE_ADMITTED_WORKLOADS, &["everybody", ""], 6.0),
        (
            &m::COHORT_SUBTREE_ADMITTED_WORKLOADS,
            &["everybody", "urgent"],
            1.0,
        ),
        (&m::FINISHED_WORKLOADS, &["blue", ""], 1.0),
        (&m::FINISHED_WORKLOADS, &["red", "urgent"], 1.0),
        (&m::EVICTED_WORKLOADS, &["blue", "Preempted", "", ""], 1.0),
        (&m::EVICTED_WORKLOADS, &["red", "Preempted", "", ""], 1.0),
        (&m::EVICTED_WORKLOADS_ONCE, &["red", "Preempted", "", ""], 1.0),
        (
            &m::LOCAL_QUEUE_EVICTED_WORKLOADS,
            &["blue", "", "Preempted", "", ""],
            1.0,
        ),
        (&m::PREEMPTED_WORKLOADS, &["red", "InCohortReclamation"], 1.0),
        (&m::PREEMPTED_WORKLOADS, &["red", "InClusterQueue"], 1.0),
        (&m::RUNS_TOTAL, &["passed"], 1.0),
        (&m::RUNS_TOTAL, &["failed"], 1.0),
    ] {
        assert_eq!(
            number(&page, family, labels),
            expected,
            "{} {labels:?}",
            family.name
        );
    }
    assert!(
        page.get(&m::FINISHED_WORKLOADS, &["red", ""]).is_none(),
        "an evicted one has not finished"
    );
}

#[test]
fn waits_for_quota_fall_into_kueues_buckets() {
    assert_times(
        &two_teams().page(),
        &[
            // At once, three times; from 50 to 101.
            (
                &m::ADMISSION_WAIT_TIME,
                &["blue", ""],
                &[(1.0, 3), (80.0, 4)],
                51.0,
            ),
            // From 40 to 50, and from 113 to 136.
            (
                &m::ADMISSION_WAIT_TIME,
                &["red", ""],
                &[(10.0, 1), (40.0, 2)],
                33.0,
            ),
            (
                &m::QUOTA_RESERVED_WAIT_TIME,
                &["red", ""],
                &[(10.0, 1), (40.0, 2)],
                33.0,
            ),
            (
                &m::LOCAL_QUEUE_ADMISSION_WAIT_TIME,
                &["red", "", "urgent"],
                &[(5.0, 1)],
                3.0,
            ),
        ],
    );
}

#[test]
fn waits_until_an_attempt_runs_fall_into_kueues_buckets() {
    assert_times(
        &two_teams().page(),
        &[
            // From 10 to 15, 20 to 24, 30 to 34, and 50 to 104.
            (&m::READY_WAIT_TIME, &["blue", ""], &[(5.0, 3), (80.0, 4)], 67.0),
            // 5, 4, 4 and 3 seconds; 50 to 55.
            (
                &m::ADMITTED_UNTIL_READY_WAIT_TIME,
                &["blue", ""],
                &[(5.0, 4)],
                16.0,
            ),
            (
                &m::LOCAL_QUEUE_ADMITTED_UNTIL_READY_WAIT_TIME,
                &["red", "", ""],
                &[(5.0, 1)],
                5.0,
            ),
        ],
    );
}

#[test]
fn evictions_are_timed_by_who_had_to_go() {
    assert_times(
        &two_teams().page(),
        &[
            // From 34 to 40, and from 55 to 110.
            (
                &m::PODS_READY_TO_EVICTED_TIME,
                &["blue", "Preempted", ""],
                &[(10.0, 1)],
                6.0,
            ),
            (
                &m::PODS_READY_TO_EVICTED_TIME,
                &["red", "Preempted", ""],
                &[(80.0, 1)],
                55.0,
            ),
            // From 40 to 50, and from 110 to 113.
            (
                &m::WORKLOAD_EVICTION_LATENCY,
                &["blue", "Preempted"],
                &[(10.0, 1)],
                10.0,
            ),
            (
                &m::WORKLOAD_EVICTION_LATENCY,
                &["red", "Preempted"],
                &[(5.0, 1)],
                3.0,
            ),
        ],
    );
}

#[test]
fn stages_and_runs_are_timed() {
    assert_times(
        &two_teams().page(),
        &[
            (
                &m::STAGE_SECONDS,
                &["queue"],
                &[(1.0, 3), (5.0, 4), (15.0, 5), (60.0, 7)],
                87.0,
            ),
            (&m::STAGE_SECONDS, &["place"], &[(1.0, 4), (5.0, 6)], 8.0),
            (&m::STAGE_SECONDS, &["start"], &[(1.0, 1), (5.0, 6)], 15.0),
            // From 115 to 135, and from 15 to 100.
            (&m::RUN_SECONDS, &["nano-lm", ""], &[(30.0, 1), (120.0, 2)], 105.0),
        ],
    );
}

#[test]
fn gauges_are_as_things_stand() {
    let page = two_teams().page();
    let used = ["everybody", "blue", "any", "cpu"];
    for (family, labels, expected) in [
        (&m::PENDING_WORKLOADS, &["blue", "inadmissible"][..], 1.0),
        (&m::PENDING_WORKLOADS, &["blue", "active"], 0.0),
        (
            &m::LOCAL_QUEUE_PENDING_WORKLOADS,
            &["blue", "", "inadmissible"],
            1.0,
        ),
        (&m::RESERVING_ACTIVE_WORKLOADS, &["blue"], 2.0),
        (&m::ADMITTED_ACTIVE_WORKLOADS, &["red"], 1.0),
        (&m::ADMITTED_ACTIVE_WORKLOADS, &["slack"], 0.0),
        (&m::COHORT_SUBTREE_ADMITTED_ACTIVE_WORKLOADS, &["everybody"], 3.0),
        (&m::CLUSTER_QUEUE_STATUS, &["blue", "active"], 1.0),
        (&m::CLUSTER_QUEUE_STATUS, &["blue", "pending"], 0.0),
        (&m::CLUSTER_QUEUE_INFO, &["blue", "everybody", "everybody"], 1.0),
        (&m::COHORT_INFO, &["everybody", "", "everybody"], 1.0),
        (&m::CLUSTER_QUEUE_NOMINAL_QUOTA, &used, 1.0),
        (&m::CLUSTER_QUEUE_BORROWING_LIMIT, &used, f64::INFINITY),
        (&m::CLUSTER_QUEUE_RESOURCE_RESERVATION, &used, 2.0),
        (&m::CLUSTER_QUEUE_RESOURCE_USAGE, &used, 2.0),
        (&m::CLUSTER_QUEUE_RESOURCE_PENDING, &["blue", "cpu"], 1.0),
        (
            &m::CLUSTER_QUEUE_RESOURCE_PENDING,
            &["blue", "memory"],
            f64::from(1 << 30),
        ),
        (&m::LOCAL_QUEUE_RESOURCE_USAGE, &["red", "", "any", "cpu"], 1.0),
        (&m::COHORT_SUBTREE_QUOTA, &["everybody", "any", "cpu"], 3.0),
        (
            &m::COHORT_SUBTREE_RESOURCE_RESERVATIONS,
            &["everybody", "any", "cpu"],
            3.0,
        ),
        (&m::QUEUE_DEPTH, &["queue"], 1.0),
        (&m::QUEUE_OLDEST_TIMESTAMP, &["queue"], 139.0),
        (&m::QUEUE_DEPTH, &["place"], 1.0),
        (&m::QUEUE_OLDEST_TIMESTAMP, &["place"], 136.0),
        (&m::QUEUE_DEPTH, &["gate"], 0.0),
        (&m::BLUEPRINT_LAST_GREEN, &["nano-lm", ""], 100.0),
    ] {
        assert_eq!(
            number(&page, family, labels),
            expected,
            "{} {labels:?}",
            family.name
        );
    }
    assert!(
        page.get(&m::QUEUE_OLDEST_TIMESTAMP, &["gate"]).is_none(),
        "nobody is there"
    );
    assert!(
        page.get(&m::CLUSTER_QUEUE_WEIGHTED_SHARE, &["blue", "everybody"])
            .is_none(),
        "no fair sharing"
    );
}

#[test]
fn quota_that_others_are_leaving_is_reserved_and_not_yet_used() {
    let mut story = room_that_is_still_left();
    let page = story.page();
    let green = ["everybody", "green", "any", "cpu"];
    for (family, labels, expected) in [
        (&m::RESERVING_ACTIVE_WORKLOADS, &["green"][..], 1.0),
        (&m::ADMITTED_ACTIVE_WORKLOADS, &["green"], 0.0),
        (&m::CLUSTER_QUEUE_RESOURCE_RESERVATION, &green, 1.0),
        (&m::CLUSTER_QUEUE_RESOURCE_USAGE, &green, 0.0),
        (&m::QUOTA_RESERVED_WORKLOADS, &["green", ""], 1.0),
        (&m::QUEUE_DEPTH, &["quota"], 1.0),
        (&m::QUEUE_OLDEST_TIMESTAMP, &["quota"], 100.0),
        (
            &m::LOCAL_QUEUE_RESOURCE_RESERVATION,
            &["green", "", "any", "cpu"],
            1.0,
        ),
        (&m::LOCAL_QUEUE_RESERVING_ACTIVE_WORKLOADS, &["green", ""], 1.0),
    ] {
        assert_eq!(
            number(&page, family, labels),
            expected,
            "{} {labels:?}",
            family.name
        );
    }
    assert!(page.get(&m::ADMITTED_WORKLOADS, &["green", ""]).is_none());

    story.end(110, 115, attempt(1, 1), Verdict::Stopped);

    let page = story.page();
    assert_eq!(
        times(&page, &m::QUOTA_RESERVED_WAIT_TIME, &["green", ""]),
        (vec![(10.0, 1)], 10.0)
    );
    assert_eq!(
        times(&page, &m::ADMISSION_WAIT_TIME, &["green", ""]),
        (vec![(40.0, 1)], 25.0)
    );
    assert_eq!(number(&page, &m::ADMITTED_ACTIVE_WORKLOADS, &["green"]), 1.0);
}

#[test]
fn one_who_loses_quota_before_it_ran_is_evicted_at_once() {
    let mut story = room_that_is_still_left();
    let mut drained = story.scheduler.objects().clone();
    drained
        .cluster_queues
        .get_mut("green")
        .expect("it is there")
        .stop_policy = StopPolicy::HoldAndDrain;
    story.apply(105, drained);

    let page = story.page();
    let stopped = ["green", "ClusterQueueStopped", "", ""];
    assert_eq!(number(&page, &m::EVICTED_WORKLOADS, &stopped), 1.0);
    assert_eq!(number(&page, &m::EVICTED_WORKLOADS_ONCE, &stopped), 1.0);
    let latency = times(
        &page,
        &m::WORKLOAD_EVICTION_LATENCY,
        &["green", "ClusterQueueStopped"],
    );
    assert_eq!(latency, (vec![(1.0, 1)], 0.0));
    assert!(
        page.get(
            &m::PODS_READY_TO_EVICTED_TIME,
            &["green", "ClusterQueueStopped", ""]
        )
        .is_none()
    );
    assert_eq!(
        number(&page, &m::CLUSTER_QUEUE_STATUS, &["green", "pending"]),
        1.0
    );
    assert_eq!(
        number(&page, &m::LOCAL_QUEUE_STATUS, &["green", "", "False"]),
        1.0
    );
    assert_eq!(
        number(&page, &m::PENDING_WORKLOADS, &["green", "inadmissible"]),
        1.0
    );
}

#[test]
fn the_gate_is_a_stage_of_its_own() {
    let mut story = Story::new();
    let maintainer = Actor::Local("grace".into());
    let mut policy = Policy::local(cpus(4));
    policy.gate.approvers.insert(maintainer.clone());
    story.at(0, isolating());
    story.at(
        0,
        Event::Configured {
            policy: Box::new(policy),
        },
    );
    let mut asked = None;
    story.ask_as(10, 1, "local", |request| {
        request.subject.repository = Repository::GitHub(7);
        request.subject.pull_request = Some(12);
        request.requested_by = Actor::GitHub {
            id: 3,
            login: "eve".into(),
        };
        asked = Some(request.subject.clone());
    });
    let page = story.page();
    assert_eq!(number(&page, &m::QUEUE_DEPTH, &["gate"]), 1.0);
    assert_eq!(number(&page, &m::QUEUE_OLDEST_TIMESTAMP, &["gate"]), 10.0);

    let target = ApprovalTarget::of(&asked.expect("it was asked for"));
    let approval = Approval::new(target, "local", maintainer);
    story.at(100, Event::Approved { approval });
    story.start(101, 102, attempt(1, 1));
    story.end(200, 201, attempt(1, 1), Verdict::Passed);

    let page = story.page();
    assert_eq!(
        times(&page, &m::STAGE_SECONDS, &["gate"]),
        (vec![(300.0, 1)], 90.0)
    );
    assert_eq!(times(&page, &m::STAGE_SECONDS, &["queue"]), (vec![(1.0, 1)], 0.0));
    assert!(
        page.get(&m::BLUEPRINT_LAST_GREEN, &["nano-lm", ""]).is_none(),
        "a pull request says nothing of the base"
    );
}

#[test]
fn shares_are_told_where_they_count() {
    let mut story = Story::new();
    let mut objects = teams(2, WithinClusterQueue::Never);
    objects.fair_sharing = Some(FairSharing::default());
    objects.cluster_queues.get_mut("red").expect("it is there").weight = Weight(0.0);
    story.apply(0, objects);
    story.ask(1, 1, "blue", 3);
    story.ask(2, 2, "red", 3);
    let page = story.page();
    // One of six lendable cpus is borrowed: a sixth, in thousandths.
    let share = number(&page, &m::CLUSTER_QUEUE_WEIGHTED_SHARE, &["blue", "everybody"]);
    assert_eq!(share, 1000.0 / 6.0);
    assert!(number(&page, &m::CLUSTER_QUEUE_WEIGHTED_SHARE, &["red", "everybody"]).is_nan());
    assert_eq!(number(&page, &m::COHORT_WEIGHTED_SHARE, &["everybody"]), 0.0);
}

#[test]
fn a_queue_that_is_removed_is_forgotten_once_nobody_holds_it() {
    let mut story = two_teams();
    let mut fewer = story.scheduler.objects().clone();
    fewer.cluster_queues.remove("red");
    fewer.local_queues.remove("red");
    story.apply(150, fewer.clone());
    let page = story.page();
    assert_eq!(
        number(&page, &m::CLUSTER_QUEUE_STATUS, &["red", "terminating"]),
        1.0
    );
    assert_eq!(number(&page, &m::ADMITTED_WORKLOADS, &["red", ""]), 2.0);
    let held = ["", "red", "any", "cpu"];
    assert_eq!(number(&page, &m::CLUSTER_QUEUE_RESOURCE_USAGE, &held), 1.0);
    assert_eq!(number(&page, &m::CLUSTER_QUEUE_RESOURCE_RESERVATION, &held), 1.0);
    assert!(
        page.get(&m::LOCAL_QUEUE_ADMITTED_WORKLOADS, &["red", "", ""])
            .is_none()
    );

    story.at(
        160,
        Event::CancelRequested {
            run: RunId(4),
            by: Actor::Local("ada".into()),
            how: StopMode::Terminate,
            via: None,
        },
    );
    story.at(
        161,
        Event::Reserved {
            attempt: attempt(4, 2),
            place: Placement::default(),
        },
    );
    story.at(
        162,
        Event::Released {
            attempt: attempt(4, 2),
        },
    );
    let page = story.page();
    assert!(!page.render(m::Format::Prometheus).contains("red"));
    assert_eq!(number(&page, &m::ADMITTED_WORKLOADS, &["blue", ""]), 4.0);
    story.apply(170, fewer);
    let page = story.page();
    assert!(!page.render(m::Format::Prometheus).contains("red"));
}

/// What an attempt of 40 s with two devices used, of which 60 GPU-seconds were seen.
fn usage() -> Usage {
    Usage {
        duration: SignedDuration::from_secs(40),
        cpu_granted: Cpus::millis(1500),
        cpu_time: Some(SignedDuration::from_millis(30_500)),
        memory_peak: None,
        gpu: Some(GpuUse {
            devices: 2,
            allocated_seconds: 80.0,
            seen_seconds: 60.0,
            busy_seconds: Some(45.0),
            joules: Some(9000.5),
            peak_utilization: Some(0.75),
            peak_memory: Some(Bytes(3 << 30)),
        }),
    }
}

#[test]
fn a_limit_is_told_and_what_attempts_used_too() {
    let mut story = Story::new();
    let mut objects = teams(1, WithinClusterQueue::Never);
    let blue = objects.cluster_queues.get_mut("blue").expect("it is there");
    let quota = blue.resource_groups[0].flavors[0]
        .resources
        .get_mut("cpu")
        .expect("it is there");
    (quota.borrowing_limit, quota.lending_limit) = (Some(Quantity(500)), Some(Quantity::ZERO));
    story.apply(0, objects);
    story.ask(1, 1, "blue", 1);
    story.start(2, 3, attempt(1, 1));
    let outcome = Box::new(Outcome {
        usage: Some(usage()),
        ..outcome(Verdict::Passed)
    });
    story.at(
        50,
        Event::Finished {
            attempt: attempt(1, 1),
            outcome,
            ended_at: None,
        },
    );
    let page = story.page();
    let labels = ["everybody", "blue", "any", "cpu"];
    assert_eq!(number(&page, &m::CLUSTER_QUEUE_BORROWING_LIMIT, &labels), 0.5);
    assert_eq!(number(&page, &m::CLUSTER_QUEUE_LENDING_LIMIT, &labels), 0.0);
    assert_eq!(
        number(&page, &m::COHORT_SUBTREE_QUOTA, &["everybody", "any", "cpu"]),
        2.0
    );
    assert_eq!(number(&page, &m::RUN_CPU_SECONDS, &["nano-lm", ""]), 30.5);
    assert_eq!(
        number(&page, &m::RUN_ALLOCATED_CPU_SECONDS, &["nano-lm", ""]),
        60.0
    );
    for (family, expected) in [
        (&m::RUN_GPU_ALLOCATED_SECONDS, 80.0),
        (&m::RUN_GPU_SEEN_SECONDS, 60.0),
        (&m::RUN_GPU_BUSY_SECONDS, 45.0),
        (&m::RUN_GPU_ENERGY, 9000.5),
        (&m::RUN_GPU_UTILIZATION_PEAK, 0.75),
        (&m::RUN_GPU_MEMORY_PEAK, 3.0 * 1024.0 * 1024.0 * 1024.0),
    ] {
        assert_eq!(
            number(&page, family, &["nano-lm", ""]),
            expected,
            "{}",
            family.name
        );
    }
}

#[test]
fn strangers_cannot_make_any_number_of_series() {
    let mut story = Story::new();
    story.at(
        0,
        Event::Configured {
            policy: Box::new(Policy::local(cpus(1))),
        },
    );
    for run in 1..=130 {
        let blueprint = format!("b-{run}").parse().expect("a name");
        let second = i64::try_from(run).expect("small") * 10;
        story.ask_as(second, run, "local", |request| {
            request.subject.blueprint = blueprint;
        });
        story.start(second, second, attempt(run, 1));
        story.end(second + 1, second + 1, attempt(run, 1), Verdict::Passed);
    }
    let page = story.page();
    let blueprints: BTreeSet<_> = page
        .series_of(&m::RUN_SECONDS)
        .map(|(labels, _)| labels[0].clone())
        .collect();
    assert_eq!(blueprints.len(), 101);
    assert_eq!(
        times(&page, &m::RUN_SECONDS, &["_other", ""]),
        (vec![(10.0, 30)], 30.0)
    );
    assert_eq!(page.series_of(&m::BLUEPRINT_LAST_GREEN).count(), 100);
}

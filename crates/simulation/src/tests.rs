//! Histories worked out by hand.

mod faults;
mod turns;
mod usage;

use std::collections::BTreeMap;

use blueproof_queue::{
    EvictionReason, StopPolicy,
    objects::{
        ClusterQueue, FlavorQuotas, LocalQueue, Preemption, Quota, ReclaimWithinCohort, ResourceFlavor,
        ResourceGroup, WithinClusterQueue,
    },
};
use jiff::SignedDuration;

use super::*;

const GPU: &str = "gpu";

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

fn group(gpus: i64) -> Vec<ResourceGroup> {
    let quota = Quota {
        nominal: Quantity(gpus),
        ..Quota::default()
    };
    let flavors = vec![FlavorQuotas {
        name: "any".into(),
        resources: BTreeMap::from([(GPU.into(), quota)]),
    }];
    vec![ResourceGroup { flavors }]
}

fn add_queue(objects: &mut Objects, name: &str, gpus: i64, within: WithinClusterQueue) {
    let queue = ClusterQueue {
        cohort: Some("everybody".into()),
        resource_groups: group(gpus),
        preemption: Preemption {
            within_cluster_queue: within,
            reclaim_within_cohort: ReclaimWithinCohort::Any,
            borrow_within_cohort: None,
        },
        ..ClusterQueue::default()
    };
    let local = LocalQueue {
        cluster_queue: name.into(),
        ..LocalQueue::default()
    };
    objects.flavors.insert("any".into(), ResourceFlavor::default());
    objects.cluster_queues.insert(name.into(), queue);
    objects.local_queues.insert(name.into(), local);
}

fn job(name: &str, gpus: i64, arrives: i64, runs_for: i64) -> Job {
    let requests = BTreeMap::from([(GPU.into(), Quantity(gpus))]);
    let runs_for = seconds(runs_for);
    Job {
        name: name.into(),
        user: name.to_uppercase(),
        class: "test".into(),
        queue: "blue".into(),
        pod_sets: vec![PodSet {
            count: 1,
            requests,
            ..PodSet::default()
        }],
        arrives: Arrival::At(seconds(arrives)),
        executions: vec![Execution {
            runs_for,
            ..Execution::default()
        }],
        ..Job::default()
    }
}

fn urgent(mut job: Job) -> Job {
    job.priority = 10;
    job
}

/// One queue of two GPUs, in which `c` evicts `a` two seconds after `a` started.
fn evicting() -> Scenario {
    let mut scenario = Scenario::default();
    add_queue(
        &mut scenario.objects,
        "blue",
        2,
        WithinClusterQueue::LowerPriority,
    );
    scenario.jobs = vec![job("a", 2, 0, 10), job("b", 1, 1, 5), urgent(job("c", 2, 2, 4))];
    scenario
}

/// Returns when each job had quota.
fn periods(history: &History) -> Vec<Vec<(i64, Option<i64>)>> {
    let of = |period: &AdmittedPeriod| (period.since.as_secs(), period.until.map(|until| until.as_secs()));
    let job_records = history.job_records.iter();
    job_records
        .map(|job_record| job_record.periods.iter().map(of).collect())
        .collect()
}

#[test]
fn one_who_is_evicted_loses_its_work_and_goes_first_among_its_equals() {
    let history = evicting().play();
    assert_eq!(
        periods(&history),
        [
            vec![(0, Some(2)), (6, Some(16))],
            vec![(16, Some(21))],
            vec![(2, Some(6))]
        ]
    );
    let cause = EvictionCause::Preempted {
        by: 2,
        reason: EvictionReason::InClusterQueue,
        reversal: false,
    };
    let first = &history.job_records[0].periods[0];
    assert_eq!(first.evicted, Some((seconds(2), cause)));
}

#[test]
fn the_figures_are_those_of_the_history() {
    let scenario = evicting();
    let figures = Figures::of(&scenario, &scenario.play());
    assert_eq!((figures.jobs, figures.done, figures.never_admitted), (3, 3, 0));
    assert_eq!(figures.makespan_seconds, 21.0);
    // 20, 5 and 8 GPU-seconds on two GPUs.
    assert_eq!(figures.work_alone_seconds, Some(16.5));
    let wait = Spread {
        count: 3,
        mean_seconds: 5.0,
        p50_seconds: 0.0,
        p90_seconds: 15.0,
        p99_seconds: 15.0,
    };
    assert_eq!(figures.wait, wait);
    assert_eq!(figures.wait_by_queue, BTreeMap::from([("blue".into(), wait)]));
    assert_eq!(figures.wait_by_user["B"].p50_seconds, 15.0);
    assert_eq!(figures.completion.mean_seconds, 40.0 / 3.0);
    // 16 of 10 seconds, 20 of 5, 4 of 4.
    let slowdown = Slowdown {
        count: 3,
        mean: (1.0 + 1.6 + 4.0) / 3.0,
        p50: 1.6,
        p90: 4.0,
        p99: 4.0,
    };
    assert_eq!(figures.slowdown, slowdown);
    assert_eq!((figures.evictions, figures.preemptions), (1, 1));
    let gpu = Allocation {
        ratio: 37.0 / 42.0,
        allocated: 37.0,
        wasted: 4.0,
        jain_index: 1.0,
        unused: None,
    };
    assert_eq!(figures.allocation, BTreeMap::from([(GPU.into(), gpu)]));
}

#[test]
fn one_who_can_do_with_fewer_pods_gets_as_many_as_there_is_room_for() {
    let mut scenario = Scenario::default();
    add_queue(&mut scenario.objects, "blue", 8, WithinClusterQueue::Never);
    scenario.jobs = vec![job("a", 3, 0, 10), job("b", 2, 1, 10)];
    (
        scenario.jobs[1].pod_sets[0].count,
        scenario.jobs[1].pod_sets[0].min_count,
    ) = (4, Some(2));
    scenario.jobs[1].pod_sets[0].name = "workers".into();
    let period = &scenario.play().job_records[1].periods[0];
    assert_eq!((period.since, period.held[GPU]), (seconds(1), Quantity(4)));
    let fewer = Fewer {
        pod_set: "workers".into(),
        pods: 2,
        of: 4,
    };
    assert_eq!(period.fewer, Some(fewer));
    // For the least that will do there is no room: it waits, and gets all.
    scenario.jobs[1].pod_sets[0].min_count = Some(3);
    let period = &scenario.play().job_records[1].periods[0];
    assert_eq!(
        (period.since, period.held[GPU], &period.fewer),
        (seconds(10), Quantity(8), &None)
    );
}

#[test]
fn plainer_queues_evict_nobody() {
    let plain = |baseline: Baseline| periods(&baseline.applied_to(&evicting()).play());
    let fifo = [vec![(0, Some(10))], vec![(10, Some(15))], vec![(15, Some(19))]];
    assert_eq!(plain(Baseline::Fifo), fifo);
    let by_priority = [vec![(0, Some(10))], vec![(14, Some(19))], vec![(10, Some(14))]];
    assert_eq!(plain(Baseline::BestEffort), by_priority);
    assert_eq!(plain(Baseline::NoPreemption), by_priority);
}

#[test]
fn the_newcomer_starts_when_the_grace_of_the_evicted_is_over() {
    let mut scenario = evicting();
    scenario.jobs[0].executions[0].grace = seconds(3);
    let history = scenario.play();
    assert_eq!(history.job_records[0].periods[0].until, Some(seconds(5)));
    assert_eq!(history.job_records[2].periods[0].since, seconds(5));
    let figures = Figures::of(&scenario, &history);
    assert_eq!(
        figures.allocation[GPU].wasted, 10.0,
        "the grace is lost as well as the work"
    );
}

fn node(name: &str, gpus: i64) -> SimulatedNode {
    SimulatedNode {
        name: name.into(),
        flavor: "any".into(),
        capacity: BTreeMap::from([(GPU.into(), Quantity(gpus))]),
    }
}

#[test]
fn one_who_had_its_execution_time_over_all_admissions_does_not_come_back() {
    let mut scenario = evicting();
    scenario.jobs[0].maximum_execution_time = Some(seconds(8));
    let history = scenario.play();
    assert_eq!(
        periods(&history),
        [
            vec![(0, Some(2)), (6, Some(12))],
            vec![(12, Some(17))],
            vec![(2, Some(6))]
        ]
    );
    let job_record = &history.job_records[0];
    assert_eq!(
        (job_record.done, job_record.deactivated),
        (None, Some(seconds(12)))
    );
    let told = (seconds(12), EvictionCause::MaximumExecutionTimeExceeded);
    assert_eq!(job_record.periods[1].evicted, Some(told));
    scenario.jobs[0].maximum_execution_time = Some(seconds(12));
    assert_eq!(
        scenario.play().job_records[0].done,
        Some(seconds(16)),
        "it is just enough"
    );
}

#[test]
fn one_who_was_evicted_waits_until_the_newcomer_had_its_protected_time() {
    let mut scenario = Scenario::default();
    let within = WithinClusterQueue::LowerOrNewerEqualPriority;
    add_queue(&mut scenario.objects, "blue", 2, within);
    // `c` evicts `a` from half of its place, and `b` gets the other half. When `c` is done `a` may evict `b`.
    scenario.jobs = vec![
        job("a", 2, 0, 10),
        job("b", 1, 3, 100),
        urgent(job("c", 1, 2, 10)),
    ];
    let of_a_and_b = |scenario: &Scenario| periods(&scenario.play())[..2].to_vec();
    assert_eq!(
        of_a_and_b(&scenario),
        [
            vec![(0, Some(2)), (12, Some(22))],
            vec![(3, Some(12)), (22, Some(122))]
        ]
    );
    scenario.protected_for = Some(seconds(15));
    assert_eq!(
        of_a_and_b(&scenario),
        [
            vec![(0, Some(2)), (18, Some(28))],
            vec![(3, Some(18)), (28, Some(128))]
        ]
    );
}

#[test]
fn a_pod_goes_to_the_fullest_node_that_has_room() {
    let mut scenario = Scenario::default();
    add_queue(&mut scenario.objects, "blue", 16, WithinClusterQueue::Never);
    scenario.nodes = ["n1", "n2"].map(|name| node(name, 8)).into();
    scenario.jobs = vec![
        job("a", 6, 0, 9),
        job("b", 5, 0, 9),
        job("c", 3, 0, 9),
        job("d", 2, 0, 9),
    ];
    scenario.changes = vec![(seconds(1), Change::NodeFails("n2".into()))];
    let history = scenario.play();
    let hit: Vec<bool> = history
        .job_records
        .iter()
        .map(|job_record| !job_record.periods[0].resets.is_empty())
        .collect();
    assert_eq!(hit, [false, true, true, false]);
}

/// Two nodes of eight, on which a job of six and one of five run for nine seconds; one of four ends after a second.
fn fragmented() -> Scenario {
    let mut scenario = Scenario::default();
    add_queue(&mut scenario.objects, "blue", 16, WithinClusterQueue::Never);
    scenario.nodes = ["n1", "n2"].map(|name| node(name, 8)).into();
    scenario.jobs = vec![job("a", 6, 0, 9), job("b", 5, 0, 9), job("c", 3, 0, 1)];
    scenario
}

#[test]
fn what_is_idle_is_fragmented_as_far_as_the_next_pod_has_no_use_for_it() {
    let scenario = fragmented();
    let figures = Figures::of(&scenario, &scenario.play());
    // Two are idle on n1 throughout, of use to nobody. Three are on n2 after a second, of use to one pod of three.
    let unused = Unused {
        idle: 2.0 * 9.0 + 3.0 * 8.0,
        fragmented: 2.0 * 9.0 + (3.0 * 2.0 / 3.0) * 8.0,
    };
    assert_eq!(figures.allocation[GPU].unused, Some(unused));
}

#[test]
fn nothing_is_idle_on_a_node_that_failed_and_all_of_what_no_queue_may_use_is_fragmented() {
    let mut scenario = fragmented();
    scenario.nodes.push(SimulatedNode {
        flavor: "other".into(),
        ..node("n3", 4)
    });
    scenario.jobs.truncate(1);
    scenario.changes = vec![(seconds(4), Change::NodeFails("n2".into()))];
    let figures = Figures::of(&scenario, &scenario.play());
    let unused = Unused {
        idle: 6.0 * 9.0 + 8.0 * 4.0,
        fragmented: 6.0 * 9.0,
    };
    assert_eq!(figures.allocation[GPU].unused, Some(unused));
}

#[test]
fn the_slack_queue_lends_no_more_than_the_nodes_that_are_well() {
    let mut scenario = Scenario::default();
    add_queue(&mut scenario.objects, "slack", 12, WithinClusterQueue::Never);
    add_queue(&mut scenario.objects, "blue", 0, WithinClusterQueue::Never);
    scenario.slack = Some("slack".into());
    scenario.nodes = ["n1", "n2", "n3"].map(|name| node(name, 8)).into();
    let change = |at, change: fn(String) -> Change, node: &str| (seconds(at), change(node.into()));
    scenario.changes = vec![
        change(1, Change::NodeFails, "n1"),
        change(2, Change::NodeFails, "n2"),
        change(9, Change::NodeRecovers, "n1"),
        change(9, Change::NodeRecovers, "n2"),
    ];
    scenario.jobs = vec![job("a", 4, 1, 1), job("b", 5, 1, 1), job("c", 1, 2, 1)];
    let history = scenario.play();
    assert_eq!(
        periods(&history),
        [vec![(1, Some(2))], vec![(9, Some(10))], vec![(9, Some(10))]],
        "four are lent at first, then none, then all"
    );
    let limits: Vec<_> = history.events.iter().filter_map(limit).collect();
    assert_eq!(limits, [Some(4), Some(0), Some(4), None]);
}

fn limit(moment: &HistoryEvent) -> Option<Option<i64>> {
    if let EventKind::LendingLimit { limit, .. } = &moment.what {
        return Some(limit.map(|limit| limit.0));
    }
    None
}

#[test]
fn a_change_of_quota_lets_in_who_had_no_queue() {
    let mut scenario = Scenario::default();
    add_queue(&mut scenario.objects, "red", 1, WithinClusterQueue::Never);
    let mut objects = scenario.objects.clone();
    add_queue(&mut objects, "blue", 1, WithinClusterQueue::Never);
    scenario.changes = vec![(seconds(4), Change::Quota(Box::new(objects)))];
    scenario.jobs = vec![job("a", 2, 0, 6)];
    let history = scenario.play();
    assert_eq!(periods(&history), [vec![(4, Some(10))]]);
    let figures = Figures::of(&scenario, &history);
    assert_eq!(
        figures.allocation[GPU].ratio,
        12.0 / 16.0,
        "one GPU for four seconds, two for six"
    );
}

#[test]
fn a_local_queue_that_is_drained_gives_up_what_it_runs_and_goes_on_later() {
    let mut scenario = Scenario::default();
    add_queue(&mut scenario.objects, "blue", 2, WithinClusterQueue::Never);
    let blue = scenario.objects.local_queues["blue"].clone();
    scenario.objects.local_queues.insert("door".into(), blue);
    scenario.jobs = vec![job("a", 1, 0, 5), job("b", 1, 0, 5)];
    scenario.jobs[0].queue = "door".into();
    let going = Box::new(scenario.objects.clone());
    let mut drained = going.clone();
    let door = drained.local_queues.get_mut("door").expect("just inserted");
    door.stop_policy = StopPolicy::HoldAndDrain;
    scenario.changes = vec![
        (seconds(2), Change::Quota(drained)),
        (seconds(7), Change::Quota(going)),
    ];
    assert_eq!(
        periods(&scenario.play()),
        [vec![(0, Some(2)), (7, Some(12))], vec![(0, Some(5))]]
    );
}

#[test]
fn one_who_is_drained_while_others_still_leave_its_quota_was_evicted_and_keeps_away_from_the_protected() {
    let mut scenario = Scenario::default();
    for (name, gpus) in [("a", 2), ("b", 1), ("c", 1), ("slack", 0)] {
        add_queue(&mut scenario.objects, name, gpus, WithinClusterQueue::Never);
    }
    scenario.protected_for = Some(seconds(20));
    scenario.until = Some(seconds(60));
    // The first is told to go and has three of four; of the third and the fourth, admitted beside it, there is room for one.
    let jobs = [
        ("slack", 3, 0),
        ("a", 2, 1),
        ("b", 1, 1),
        ("c", 1, 1),
        ("slack", 1, 7),
    ];
    scenario.jobs = Vec::from(jobs.map(|(queue, gpus, arrives)| Job {
        queue: queue.into(),
        ..job(queue, gpus, arrives, 90)
    }));
    scenario.jobs[0].executions[0].grace = seconds(5);
    let going = Box::new(scenario.objects.clone());
    let mut drained = going.clone();
    let local = drained.local_queues.get_mut("c").expect("just inserted");
    local.stop_policy = StopPolicy::HoldAndDrain;
    scenario.changes = vec![
        (seconds(2), Change::Quota(drained)),
        (seconds(8), Change::Quota(going)),
    ];
    let told = periods(&scenario.play());
    assert_eq!(told[2], [(1, None)]);
    assert_eq!(told[4], [(7, Some(27))]);
    assert_eq!(told[3], [(27, None)]);
}

#[test]
fn a_follower_comes_when_its_first_is_done_and_one_may_give_up() {
    let mut scenario = Scenario::default();
    add_queue(&mut scenario.objects, "blue", 1, WithinClusterQueue::Never);
    let mut follower = job("b", 1, 0, 5);
    follower.arrives = Arrival::After(0, seconds(2));
    let mut impatient = job("c", 1, 1, 5);
    impatient.gives_up_at = Some(seconds(3));
    scenario.jobs = vec![job("a", 1, 0, 4), follower, impatient];
    let history = scenario.play();
    assert_eq!(
        periods(&history),
        [vec![(0, Some(4))], vec![(6, Some(11))], vec![]]
    );
    assert_eq!(history.job_records[2].gave_up, Some(seconds(3)));
    assert_eq!(Figures::of(&scenario, &history).never_admitted, 1);
}

#[test]
fn what_is_beyond_the_end_is_not_played() {
    let mut scenario = evicting();
    scenario.until = Some(seconds(6));
    let history = scenario.play();
    assert_eq!(
        periods(&history),
        [vec![(0, Some(2)), (6, None)], vec![], vec![(2, Some(6))]]
    );
    assert_eq!(history.end, seconds(6));
}

#[test]
fn how_far_the_queues_lie_apart_is_weighed_by_time() {
    let mut scenario = Scenario::default();
    add_queue(&mut scenario.objects, "blue", 1, WithinClusterQueue::Never);
    add_queue(&mut scenario.objects, "red", 3, WithinClusterQueue::Never);
    // Two of four that could be lent are borrowed, for three of four seconds.
    scenario.jobs = vec![job("a", 3, 0, 3), job("b", 1, 0, 4)];
    let mut other = job("c", 1, 0, 4);
    other.queue = "red".into();
    scenario.jobs[1] = other;
    let figures = Figures::of(&scenario, &scenario.play());
    assert_eq!(figures.fairness.widest_share_gap, 500.0);
    assert_eq!(figures.fairness.mean_share_gap, 375.0);
    // Nine and four GPU-seconds: 13 squared, over twice the sum of the squares.
    assert_eq!(figures.allocation[GPU].jain_index, 169.0 / (2.0 * 97.0));
}

#[test]
fn every_job_of_kueues_baseline_is_done_in_the_same_way_each_time() {
    let scenario = kueue_baseline();
    assert_eq!(scenario.jobs.len(), 15_000);
    let history = scenario.play();
    let figures = Figures::of(&scenario, &history);
    assert_eq!(figures.done, 15_000);
    assert!(
        figures.makespan_seconds > 65.9,
        "the work alone takes 66 seconds: {figures:?}"
    );
    assert_eq!(scenario.play().digest(), history.digest());
}

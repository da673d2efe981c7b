//! Nodes that are bad and pods that fail, and what the retry machine makes of them.

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::retry::{ExitCodes, Reason};

/// Two nodes of one GPU and quota for one, which `a` has for ten seconds; the node under it is bad after two.
fn hit() -> Scenario {
    let mut scenario = Scenario::default();
    add_queue(
        &mut scenario.objects,
        "blue",
        1,
        WithinClusterQueue::LowerPriority,
    );
    scenario.nodes = ["n1", "n2"].map(|name| node(name, 1)).into();
    scenario.jobs = vec![job("a", 1, 0, 10), job("b", 1, 1, 100)];
    scenario.jobs[0].retry.retry_pause = seconds(3);
    scenario.changes = vec![(seconds(2), Change::NodeFails("n1".into()))];
    scenario
}

/// One node of two GPUs on which `a` runs for a hundred seconds.
fn alone() -> Scenario {
    let mut scenario = Scenario::default();
    add_queue(
        &mut scenario.objects,
        "blue",
        4,
        WithinClusterQueue::LowerPriority,
    );
    scenario.nodes = vec![node("n1", 2)];
    scenario.jobs = vec![job("a", 2, 0, 100)];
    scenario
}

fn pod_fails(at: i64, exit_code: i32) -> (SignedDuration, Change) {
    (seconds(at), Change::PodFails { job: 0, exit_code })
}

fn reset(at: i64, reason: Reason, again: i64) -> Reset {
    Reset {
        at: seconds(at),
        reason,
        again: Some(seconds(again)),
    }
}

#[test]
fn whoever_has_a_bad_node_keeps_its_quota_and_runs_elsewhere_after_its_pause() {
    let scenario = hit();
    let history = scenario.play();
    assert_eq!(periods(&history), [vec![(0, Some(15))], vec![(15, Some(115))]]);
    let resets = &history.job_records[0].periods[0].resets;
    assert_eq!(*resets, [reset(2, Reason::AutopilotNoExecute, 5)]);
    let figures = Figures::of(&scenario, &history);
    assert_eq!((figures.resets, figures.failed, figures.evictions), (1, 0, 0));
    assert_eq!(
        figures.allocation[GPU].wasted, 5.0,
        "two seconds of work, three of pause"
    );
}

#[test]
fn one_without_a_retry_left_is_given_up_with_its_node() {
    let mut scenario = hit();
    scenario.jobs[0].retry.retry_limit = 0;
    let history = scenario.play();
    assert_eq!(periods(&history), [vec![(0, Some(2))], vec![(2, Some(102))]]);
    assert_eq!(
        history.job_records[0].failed,
        Some((seconds(2), Reason::AutopilotNoExecute))
    );
    let figures = Figures::of(&scenario, &history);
    assert_eq!((figures.done, figures.failed), (1, 1));
    assert_eq!(figures.allocation[GPU].wasted, 2.0);
}

#[test]
fn what_failed_holds_its_quota_as_long_as_somebody_may_look_at_it() {
    let mut scenario = hit();
    scenario.jobs[0].retry.retry_limit = 0;
    scenario.jobs[0].retry.deletion_delay = seconds(20);
    scenario.jobs[0].executions[0].grace = seconds(4);
    let history = scenario.play();
    assert_eq!(periods(&history), [vec![(0, Some(26))], vec![(26, Some(126))]]);
}

#[test]
fn pods_without_room_wait_for_their_grace_and_cost_a_retry_then() {
    let mut scenario = alone();
    scenario.jobs = vec![job("a", 2, 0, 400), job("b", 1, 1, 10)];
    let history = scenario.play();
    assert_eq!(periods(&history), [vec![(0, Some(400))], vec![(1, Some(410))]]);
    let resets = &history.job_records[1].periods[0].resets;
    assert_eq!(*resets, [reset(301, Reason::InsufficientPodsReady, 400)]);
    let at = |what: &EventKind| {
        let events = history.events.iter().filter(|moment| moment.what == *what);
        events.map(|moment| moment.at.as_secs()).collect::<Vec<_>>()
    };
    assert_eq!(at(&EventKind::Pending { job: 1 }), [1, 391]);
    assert_eq!(at(&EventKind::Running { job: 1 }), [400]);
}

#[test]
fn pods_that_never_find_room_are_given_up_after_the_last_retry() {
    let mut scenario = alone();
    scenario.jobs = vec![job("a", 3, 0, 10)];
    let history = scenario.play();
    // Four times five minutes, and three pauses between them.
    let failed = (seconds(4 * 300 + 3 * 90), Reason::InsufficientPodsReady);
    assert_eq!(history.job_records[0].failed, Some(failed));
    assert_eq!(history.job_records[0].periods[0].resets.len(), 3);
}

#[test]
fn a_flavor_without_nodes_has_room_for_all() {
    let mut scenario = alone();
    scenario.nodes[0].flavor = "other".into();
    scenario.jobs.push(job("b", 2, 0, 10));
    assert_eq!(
        periods(&scenario.play()),
        [vec![(0, Some(100))], vec![(0, Some(10))]]
    );
}

/// Returns why and when `a` is given up, or when it is done, after a pod failed at 10 seconds.
fn after_failure(exit_code: i32, terminal: &[i32], retryable: &[i32]) -> Result<i64, (i64, Reason)> {
    let mut scenario = alone();
    let codes = |codes: &[i32]| codes.iter().copied().collect::<ExitCodes>();
    scenario.jobs[0].retry.terminal_exit_codes = codes(terminal);
    scenario.jobs[0].retry.retryable_exit_codes = codes(retryable);
    scenario.changes = vec![pod_fails(10, exit_code)];
    let history = scenario.play();
    match history.job_records[0].failed {
        Some((at, reason)) => Err((at.as_secs(), reason)),
        None => Ok(history.job_records[0].done.expect("one of the two").as_secs()),
    }
}

#[test]
fn exit_codes_say_whether_trying_again_helps() {
    // A minute of grace; the pause of 90 seconds counts from the failure.
    let (again, given_up) = (Ok(100 + 100), Err((70, Reason::FoundFailedPods)));
    assert_eq!(after_failure(1, &[], &[]), again, "any failure is tried again");
    assert_eq!(after_failure(2, &[2], &[]), given_up, "but not a terminal one");
    assert_eq!(
        after_failure(3, &[2], &[3]),
        again,
        "one that is listed as retryable is"
    );
    assert_eq!(
        after_failure(1, &[2], &[3]),
        given_up,
        "and where there is a list, no other"
    );
}

#[test]
fn the_last_retry_is_the_limits() {
    let mut scenario = alone();
    scenario.jobs[0].retry.retry_limit = 1;
    scenario.changes = vec![pod_fails(10, 1), pod_fails(150, 1)];
    let history = scenario.play();
    let resets = &history.job_records[0].periods[0].resets;
    assert_eq!(*resets, [reset(70, Reason::FoundFailedPods, 100)]);
    assert_eq!(
        history.job_records[0].failed,
        Some((seconds(210), Reason::FoundFailedPods))
    );
}

#[test]
fn a_pod_fails_only_of_a_job_that_runs() {
    let mut scenario = alone();
    scenario.changes = vec![pod_fails(100, 1), pod_fails(500, 1)];
    assert_eq!(periods(&scenario.play()), [vec![(0, Some(100))]]);
}

#[test]
fn a_deletion_that_takes_too_long_is_forced() {
    let mut scenario = evicting();
    scenario.jobs[0].executions[0].grace = seconds(100);
    scenario.jobs[0].retry.forceful_deletion_grace = seconds(10);
    let history = scenario.play();
    assert_eq!(history.job_records[0].periods[0].until, Some(seconds(12)));
    assert_eq!(history.job_records[2].periods[0].since, seconds(12));
}

#[test]
fn one_that_waits_to_be_created_again_has_nothing_to_delete_when_it_must_go() {
    let mut scenario = hit();
    scenario.jobs[0].retry.retry_pause = seconds(50);
    scenario.jobs[0].executions[0].grace = seconds(5);
    scenario.jobs.push(urgent(job("c", 1, 10, 7)));
    let history = scenario.play();
    assert_eq!(
        periods(&history),
        [
            vec![(0, Some(10)), (17, Some(27))],
            vec![(27, Some(127))],
            vec![(10, Some(17))]
        ]
    );
}

#[test]
fn one_that_is_tried_again_for_ever_is_cut_short() {
    let mut scenario = alone();
    scenario.jobs = vec![job("a", 3, 0, 10)];
    scenario.jobs[0].retry.warmup_grace = SignedDuration::ZERO;
    scenario.jobs[0].retry.retry_pause = SignedDuration::ZERO;
    scenario.jobs[0].retry.retry_limit = u32::MAX;
    assert!(scenario.play().cut_short);
}

/// Something that goes wrong, or well again: what, at which second, and on which node or in which job.
fn change() -> impl Strategy<Value = (SignedDuration, Change)> {
    let kind = prop_oneof![Just(0), Just(1), Just(2)];
    (0..900_i64, kind, 0..3_usize).prop_map(|(at, kind, which)| {
        let node = format!("n{which}");
        let change = match kind {
            0 => Change::NodeFails(node),
            1 => Change::NodeRecovers(node),
            _ => Change::PodFails {
                job: which,
                exit_code: 1,
            },
        };
        (seconds(at), change)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_job_comes_to_an_end_whatever_fails(
        asked in vec((1..6_i64, 0..300_i64, 1..300_i64, 0..3_i32), 3..9),
        changes in vec(change(), 0..12),
        grace in 0..30_i64,
    ) {
        let mut scenario = Scenario::default();
        add_queue(&mut scenario.objects, "blue", 9, WithinClusterQueue::LowerOrNewerEqualPriority);
        scenario.nodes = ["n0", "n1", "n2"].map(|name| node(name, 3)).into();
        scenario.changes = changes;
        let jobs = asked.into_iter().enumerate();
        scenario.jobs = jobs.map(|(number, (gpus, arrives, runs_for, priority))| {
            let mut job = job(&number.to_string(), gpus, arrives, runs_for);
            job.priority = priority;
            job.executions[0].grace = seconds(grace);
            job
        }).collect();
        let history = scenario.play();
        prop_assert!(!history.cut_short);
        for (job, job_record) in scenario.jobs.iter().zip(&history.job_records) {
            prop_assert!(job_record.done.is_some() != job_record.failed.is_some(), "{job_record:?}");
            let last = job_record.periods.last().expect("it had its quota");
            let again = last.resets.last().map_or(last.since, |reset| reset.again.unwrap_or(last.since));
            if let Some(done) = job_record.done {
                prop_assert!(done - again >= job.executions[0].runs_for, "its work is done in one piece: {job_record:?}");
            }
            prop_assert!(job_record.periods.iter().all(|period| period.until.is_some()));
        }
        prop_assert_eq!(scenario.play().digest(), history.digest());
    }
}

//! Who used how much and over time, who is compared with whom, and why somebody was never admitted.

use blueproof_core::pending::InactiveQueue;
use blueproof_queue::WaitReason;

use super::*;

fn of_queue(mut job: Job, queue: &str) -> Job {
    job.queue = queue.into();
    job
}

/// Blue has two GPUs and red one. Blue's `a` borrows red's until the end of `b`, which waits for it.
fn shared() -> Scenario {
    let mut scenario = Scenario::default();
    for (name, gpus) in [("blue", 2), ("red", 1)] {
        add_queue(&mut scenario.objects, name, gpus, WithinClusterQueue::Never);
    }
    scenario.jobs = vec![
        job("a", 2, 0, 30),
        of_queue(job("b", 1, 0, 60), "red"),
        of_queue(job("c", 1, 30, 30), "red"),
    ];
    scenario
}

#[test]
fn what_a_queue_and_a_user_used_is_told_with_its_share() {
    let scenario = shared();
    let figures = Figures::of(&scenario, &scenario.play());
    // Blue: 2 GPUs for 30 s. Red: one for 60 s, and one that it borrows for 30 s.
    let used = |allocated: f64, share: f64| ResourceUsage { allocated, share };
    assert_eq!(figures.used_by_queue["blue"][GPU], used(60.0, 0.4));
    assert_eq!(figures.used_by_queue["red"][GPU], used(90.0, 0.6));
    assert_eq!(figures.used_by_user["C"][GPU], used(30.0, 0.2));
}

#[test]
fn what_was_in_use_over_time_adds_up_to_what_was_used_in_all() {
    let scenario = shared();
    let figures = Figures::of(&scenario, &scenario.play());
    let series = &figures.series;
    assert!((series.interval_seconds - 1.0).abs() < 1e-9, "{series:?}");
    assert_eq!(series.used(GPU), [vec![3.0; 30], vec![2.0; 30]].concat());
    assert_eq!(series.capacity[GPU], vec![3.0; 60]);
    for (queue, used) in &figures.used_by_queue {
        let sum: f64 = series.used_by_queue[queue][GPU].iter().sum();
        assert!(
            (sum * series.interval_seconds - used[GPU].allocated).abs() < 1e-6,
            "{queue}"
        );
    }
    let nothing = Figures::of(&Scenario::default(), &Scenario::default().play());
    assert_eq!(nothing.series, Series::default());
}

#[test]
fn intervals_that_begin_and_end_between_two_moments_have_the_mean() {
    let mut scenario = shared();
    scenario.jobs = vec![job("a", 2, 0, 7), job("b", 1, 0, 100)];
    let figures = Figures::of(&scenario, &scenario.play());
    let series = figures.series.used(GPU);
    let sum: f64 = series.iter().sum::<f64>() * figures.series.interval_seconds;
    assert!((sum - 114.0).abs() < 1e-6, "{sum}");
    assert!(
        series.iter().all(|used| (0.0..=3.0 + 1e-9).contains(used)),
        "{series:?}"
    );
}

#[test]
fn means_are_compared_of_those_who_were_done_everywhere() {
    let short = shared();
    let mut cut = shared();
    cut.until = Some(seconds(40));
    let (whole, part) = (short.play(), cut.play());
    let both = in_all(SignedDuration::ZERO, &[(&short, &whole), (&cut, &part)]);
    let [of_whole, of_part] = &both[..] else {
        panic!("one for each");
    };
    assert_eq!(
        (of_whole.completion.count, of_part.completion.count),
        (1, 1),
        "only `a` is done in both"
    );
    assert_eq!(of_whole.completion, of_part.completion);
    assert_eq!((of_whole.wait.count, of_part.wait.count), (3, 3));
    assert_eq!((of_whole.slowdown.count, of_part.slowdown.count), (1, 1));
    let later = &in_all(seconds(30), &[(&short, &whole)])[0];
    assert_eq!(later.completion.count, 1, "only `c` came then");
}

#[test]
fn waits_by_queue_are_compared_of_those_who_were_admitted_everywhere() {
    let whole = shared();
    let mut cut = shared();
    cut.jobs[1].gives_up_at = Some(seconds(0));
    let (in_whole, in_cut) = (whole.play(), cut.play());
    assert!(in_cut.job_records[1].wait().is_none(), "it gave up at once");
    let queue = &whole.jobs[1].queue;
    let both = in_all(SignedDuration::ZERO, &[(&whole, &in_whole), (&cut, &in_cut)]);
    let counts = both
        .iter()
        .map(|of| of.wait_by_queue.get(queue).map_or(0, |wait| wait.count));
    let counts: Vec<_> = counts.collect();
    let admitted = whole.jobs.iter().filter(|job| job.queue == *queue).count();
    assert_eq!(counts, [admitted - 1, admitted - 1]);
}

#[test]
fn one_who_is_never_admitted_is_told_why() {
    let mut scenario = shared();
    scenario.jobs = vec![
        job("large", 4, 0, 1),
        of_queue(job("lost", 1, 0, 1), "green"),
        job("fits", 1, 0, 1),
    ];
    scenario.jobs.push(Job {
        gives_up_at: Some(seconds(5)),
        ..job("impatient", 9, 0, 1)
    });
    let history = scenario.play();
    let told: Vec<(usize, WaitReason, String)> = history
        .unadmitted
        .iter()
        .map(|never| (never.job, never.reason, never.to_string()))
        .collect();
    let most = "flavor any: 6 gpu missing: 3 free of at most 3, its cohort has no more";
    assert_eq!(
        told,
        [
            (3, WaitReason::ExceedsMaxQuota, format!("ExceedsMaxQuota: {most}")),
            (
                0,
                WaitReason::ExceedsMaxQuota,
                "ExceedsMaxQuota: flavor any: 1 gpu missing: 3 free of at most 3, its cohort has no more"
                    .into()
            ),
            (
                1,
                WaitReason::Misconfigured,
                "Misconfigured: there is no LocalQueue `green`".into()
            ),
        ]
    );
    let missing = InactiveQueue::LocalQueueNotFound {
        local_queue: "green".into(),
    };
    assert_eq!(history.unadmitted[2].inactive, Some(missing));
}

#[test]
fn under_other_queues_the_same_jobs_come_and_those_queues_hold_throughout() {
    let mut scenario = shared();
    let given = scenario.objects.clone();
    scenario.changes = vec![
        (seconds(5), Change::Quota(Box::new(given))),
        (seconds(6), Change::Remark("then".into())),
    ];
    let mut other = Objects::default();
    add_queue(&mut other, "blue", 1, WithinClusterQueue::Never);
    let under = scenario.under(other.clone());
    assert_eq!((&under.jobs, &under.objects), (&scenario.jobs, &other));
    assert_eq!(under.changes, [(seconds(6), Change::Remark("then".into()))]);
    assert_eq!(under.without_queue(), ["red"]);
}

#[test]
fn how_even_the_queues_were_is_told_of_those_that_held_then_and_not_of_those_at_the_beginning() {
    let always = shared();
    let mut applied = always.clone();
    // As in a log, which begins with one queue for everybody.
    applied.objects = Objects::default();
    add_queue(&mut applied.objects, "local", 3, WithinClusterQueue::Never);
    let teams = Change::Quota(Box::new(always.objects.clone()));
    applied.changes.push((seconds(0), teams));
    let even = |scenario: &Scenario| Figures::of(scenario, &scenario.play()).allocation[GPU].jain_index;
    // 60 and 90 GPU-seconds.
    assert_eq!(even(&always), 150.0 * 150.0 / (2.0 * (60.0 * 60.0 + 90.0 * 90.0)));
    assert_eq!(even(&applied), even(&always));
}

#[test]
fn a_queue_in_which_somebody_asked_and_got_nothing_makes_it_less_even() {
    let mut scenario = shared();
    add_queue(&mut scenario.objects, "none", 0, WithinClusterQueue::Never);
    scenario.jobs = vec![job("a", 1, 0, 10), of_queue(job("b", 9, 0, 10), "none")];
    let figures = Figures::of(&scenario, &scenario.play());
    assert_eq!(figures.allocation[GPU].jain_index, 0.5);
}

#[test]
fn what_is_held_beyond_quota_that_was_lowered_is_in_use_in_full_and_not_beyond_all() {
    let mut scenario = shared();
    let mut lowered = scenario.objects.clone();
    add_queue(&mut lowered, "blue", 0, WithinClusterQueue::Never);
    scenario.jobs = vec![job("a", 3, 0, 30)];
    scenario.changes = vec![(seconds(10), Change::Quota(Box::new(lowered)))];
    let ratio = |scenario: &Scenario| Figures::of(scenario, &scenario.play()).allocation[GPU].ratio;
    assert_eq!(ratio(&scenario), 1.0);
    // One of three is idle while there are three; then two of one are in use.
    scenario.jobs = vec![job("a", 2, 0, 30)];
    assert_eq!(ratio(&scenario), 60.0 / 70.0);
}

#[test]
fn the_work_alone_is_that_of_the_jobs_that_were_done_so_that_no_schedule_beats_it() {
    let mut scenario = shared();
    scenario.jobs = vec![
        job("too-much", 100, 0, 30),
        job("a", 3, 0, 30),
        of_queue(job("nowhere", 1, 0, 30), "green"),
    ];
    // Evicted it would take longer, and it is not.
    scenario.jobs[1].executions.push(Execution {
        runs_for: seconds(300),
        ..Execution::default()
    });
    let figures = Figures::of(&scenario, &scenario.play());
    assert_eq!((figures.done, figures.makespan_seconds), (1, 30.0));
    assert_eq!(figures.work_alone_seconds, Some(30.0));
}

//! What a file says, and what it may not say.

mod schema;

use blueproof_queue::Quantity;
use jiff::SignedDuration;

use super::*;
use crate::retry::Reason;
use crate::{EvictionCause, History, Reset};

const MLBATCH: &str = include_str!("../../../../examples/mlbatch.yaml");

fn file(text: &str) -> File {
    File {
        name: "simulation.yaml".into(),
        text: text.into(),
    }
}

fn no_other(path: &str) -> Result<File, Vec<Diagnostic>> {
    Err(vec![Diagnostic::error(Code::FileMissing, format!("no {path}"))])
}

fn mlbatch() -> Scenario {
    read(&file(MLBATCH), no_other)
        .expect("the example is right")
        .scenario
}

/// Returns what is wrong once a text in the example is another.
fn wrong(text: &str, instead: &str) -> (Code, Option<u32>, String) {
    assert!(MLBATCH.contains(text), "{text}");
    let found = read(&file(&MLBATCH.replacen(text, instead, 1)), no_other).expect_err("it is wrong");
    let first = &found[0];
    let line = first.place.as_ref().and_then(|place| place.line);
    (
        first.code,
        line,
        format!("{}: {}", first.message, first.hints.join("; ")),
    )
}

/// Returns the line of the example in which a text first stands.
fn line_of(text: &str) -> Option<u32> {
    let at = MLBATCH.lines().position(|line| line.contains(text));
    at.and_then(|at| u32::try_from(at + 1).ok())
}

#[test]
fn a_second_simulation_in_a_file_is_pointed_at() {
    let two = "apiVersion: blueproof.dev/v1alpha1\nkind: Simulation\n---\n".repeat(2);
    let found = read(&file(&two), no_other).expect_err("there are two");
    let line = found[0].place.as_ref().and_then(|place| place.line);
    assert_eq!(
        (found.len(), found[0].code, line),
        (1, Code::WrongFormat, Some(4))
    );
    assert_eq!(found[0].message, "this is another Simulation, and a file has one");
}

#[test]
fn every_key_counts() {
    let scenario = mlbatch();
    assert_eq!(scenario.slack.as_deref(), Some("slack-cluster-queue"));
    assert_eq!(scenario.objects.cluster_queues.len(), 3);
    let names: Vec<&str> = scenario.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names.len(), 7 + 4 + 2 + 1 + 1 + 1);
    assert_eq!(
        (names[0], names[6], names[13]),
        ("short-1", "short-7", "important")
    );
    let large = &scenario.jobs[14];
    assert_eq!(
        (large.user.as_str(), large.class.as_str(), large.priority),
        ("red", "large", 5)
    );
    assert_eq!(large.retry.retry_pause, SignedDuration::from_secs(5));
    assert_eq!(large.executions[0].runs_for, SignedDuration::from_mins(10));
    assert_eq!(large.pod_sets[0].count, 4);
    assert_eq!(large.pod_sets[0].requests["nvidia.com/gpu"], Quantity(4));
    assert_eq!(scenario.jobs[13].priority, 10);
}

#[test]
fn a_mistake_is_shown_at_its_line_in_either_part_of_the_file() {
    let queue = wrong("queue: blue\n", "queue: bleu\n");
    let hint = "there is no LocalQueue `bleu`: did you mean `blue`?".into();
    assert_eq!(queue, (Code::NoSuchQueue, line_of("queue: blue"), hint));
    let class = wrong("priorityClass: high-priority", "priorityClass: highest");
    assert_eq!(
        (class.0, class.1),
        (Code::QueueReference, line_of("priorityClass: high-priority"))
    );
    let case = wrong(
        "count: 2, requests: {nvidia.com/gpu: 4}",
        "count: 2, requests: {nvidia.com/GPU: 4}",
    );
    assert_eq!(
        (case.0, case.1),
        (Code::QueueResourceCase, line_of("count: 2, requests"))
    );
    let resource = wrong(
        "count: 4, requests: {nvidia.com/gpu: 4}",
        "count: 4, requests: {cpu: 4}",
    );
    assert_eq!(
        (resource.0, resource.1),
        (Code::QueueReference, line_of("count: 4, requests"))
    );
    let node = wrong("failNode: node-1", "failNode: node-9");
    assert_eq!((node.0, node.1), (Code::QueueReference, line_of("failNode")));
    let slack = wrong("slackQueue: slack", "slackQueue: black");
    assert_eq!((slack.0, slack.1), (Code::QueueReference, line_of("slackQueue")));
    let queues = wrong("cohortName: default", "cohort: default");
    assert_eq!((queues.0, queues.1), (Code::UnknownKey, line_of("cohortName")));
    let span = wrong("runsFor: 30s", "runsFor: 30");
    assert_eq!((span.0, span.1), (Code::WrongType, line_of("runsFor: 30s")));
    let negative = wrong("runsFor: 30s", "runsFor: -30s");
    assert_eq!(
        (negative.0, negative.1),
        (Code::BadValue, line_of("runsFor: 30s"))
    );
    let both = wrong("failNode: node-1", "failNode: node-1, recoverNode: node-1");
    assert_eq!((both.0, both.1), (Code::BadValue, line_of("failNode")));
    let kind = wrong("kind: Simulation", "kind: Simulacrum");
    assert_eq!(kind.0, Code::WrongFormat);
    let sets = "count: 2, requests: {nvidia.com/gpu: 4}";
    for least in [0, 3] {
        let fewer = wrong(sets, &format!("minCount: {least}, {sets}"));
        assert_eq!((fewer.0, fewer.1), (Code::BadValue, line_of(sets)));
    }
    let others = format!("minCount: 1, {sets}}}\n    - {{name: others, minCount: 1, {sets}");
    let twice = wrong(sets, &others);
    let next = line_of(sets).map(|line| line + 1);
    assert_eq!((twice.0, twice.1), (Code::BadValue, next));
    let many = wrong("count: 7", "count: 4000000000");
    assert_eq!((many.0, many.1), (Code::BadValue, line_of("count: 7")));
}

#[test]
fn queues_may_stand_in_other_files() {
    let (own, queues) = parts(MLBATCH);
    let with_path = own.replacen("spec:", "spec:\n  quota: [queues.yaml]", 1);
    let asked = |path: &str| match path {
        "queues.yaml" => Ok(file(&queues)),
        other => no_other(other),
    };
    let read_apart = read(&file(&with_path), asked).expect("it is right");
    assert_eq!(read_apart.scenario, mlbatch());
    let missing = read(&file(&with_path), no_other).expect_err("there is no such file");
    assert_eq!(missing[0].message, "no queues.yaml");
}

/// Returns who was admitted at a time, by name.
fn admitted(scenario: &Scenario, history: &History, second: i64) -> Vec<String> {
    let at = SignedDuration::from_secs(second);
    let then = history.admissions().filter(|(when, _)| *when == at);
    then.map(|(_, job)| scenario.jobs[job].name.clone()).collect()
}

/// Returns who was evicted: when, who, and for whom.
fn evicted(scenario: &Scenario, history: &History) -> Vec<(i64, String, String)> {
    let name = |job: usize| scenario.jobs[job].name.clone();
    let periods = history
        .job_records
        .iter()
        .enumerate()
        .flat_map(|(job, job_record)| job_record.periods.iter().map(move |period| (job, period)));
    let evicted = periods.filter_map(|(job, period)| {
        let (at, cause) = period.evicted.clone()?;
        Some((at.as_secs(), name(job), cause))
    });
    let mut evictions: Vec<_> = evicted.collect();
    evictions.sort_by_key(|(at, ..)| *at);
    let whom = |cause| match cause {
        EvictionCause::Preempted { by, reason, .. } => format!("{}: {}", name(by), reason.as_str()),
        EvictionCause::Drained => "drained".into(),
        EvictionCause::MaximumExecutionTimeExceeded => "over".into(),
    };
    let told = evictions.into_iter();
    told.map(|(at, job, cause)| (at, job, whom(cause))).collect()
}

#[test]
fn the_four_acts_of_mlbatch_go_as_its_tutorial_says() {
    let scenario = mlbatch();
    let history = scenario.play();
    // Queueing: three of seven run, four wait.
    assert_eq!(
        admitted(&scenario, &history, 0),
        ["short-1", "short-2", "short-3"]
    );
    assert_eq!(
        admitted(&scenario, &history, 30),
        ["short-4", "short-5", "short-6"]
    );
    assert_eq!(admitted(&scenario, &history, 60), ["short-7"]);
    // Borrowing: three of four run, on all there is. The other team gets one of its two, for exactly one borrower.
    let first = (100..=103).flat_map(|second| admitted(&scenario, &history, second));
    let three = ["red-normal-1", "red-normal-2", "red-normal-3"];
    assert_eq!(first.collect::<Vec<_>>(), three);
    assert_eq!(admitted(&scenario, &history, 120), ["blue-normal-1"]);
    // Priority: the important one evicts a normal one of its own team.
    assert_eq!(admitted(&scenario, &history, 140), ["important"]);
    // A node fails: the large one is created again after its pause, on the nodes that are left; the slack is not lent.
    assert_eq!(admitted(&scenario, &history, 3060), [""; 0]);
    let reset = Reset {
        at: SignedDuration::from_secs(3060),
        reason: Reason::AutopilotNoExecute,
        again: Some(SignedDuration::from_secs(3065)),
    };
    let large = &history.job_records[14];
    assert_eq!((large.periods.len(), &large.periods[0].resets), (1, &vec![reset]));
    assert_eq!(large.done, Some(SignedDuration::from_secs(3665)));
    assert_eq!(admitted(&scenario, &history, 3080), [""; 0]);
    assert_eq!(admitted(&scenario, &history, 3200), ["late"]);
    let owned = |at, who: &str, whom: &str| (at, who.to_owned(), whom.to_owned());
    assert_eq!(
        evicted(&scenario, &history),
        [
            owned(120, "red-normal-3", "blue-normal-1: InCohortReclamation"),
            owned(140, "red-normal-2", "important: InClusterQueue"),
        ]
    );
    assert!(
        history
            .job_records
            .iter()
            .all(|job_record| job_record.done.is_some())
    );
}

#[test]
fn a_job_says_in_appwrappers_words_how_it_is_tried_again() {
    let terms = "retryPausePeriodDuration: 5s\n    retryLimit: 1\n    warmupGracePeriodDuration: 2m\n    \
                 failureGracePeriodDuration: 0s\n    forcefulDeletionGracePeriodDuration: 24h\n    \
                 deletionOnFailureGracePeriodDuration: 1h30m\n    terminalExitCodes: [2, 137]\n    \
                 retryableExitCodes: [3]";
    let told = MLBATCH.replacen("retryPausePeriodDuration: 5s", terms, 1);
    let scenario = read(&file(&told), no_other).expect("it is right").scenario;
    let expected = FaultTolerance {
        retry_pause: SignedDuration::from_secs(5),
        retry_limit: 1,
        warmup_grace: SignedDuration::from_mins(2),
        failure_grace: SignedDuration::ZERO,
        forceful_deletion_grace: SignedDuration::from_hours(24),
        deletion_delay: SignedDuration::from_mins(90),
        terminal_exit_codes: [2, 137].into_iter().collect(),
        retryable_exit_codes: [3].into_iter().collect(),
        ..FaultTolerance::default()
    };
    assert_eq!(scenario.jobs[14].retry, expected);
    assert_eq!(scenario.jobs[0].retry, FaultTolerance::default());
    let pause = "retryPausePeriodDuration: 5s";
    let long = wrong(pause, "retryPausePeriodDuration: 25h");
    assert_eq!((long.0, long.1), (Code::BadValue, line_of(pause)));
    let idle = wrong(pause, "successTTLDuration: 5s");
    assert_eq!((idle.0, idle.1), (Code::NotSupportedYet, line_of(pause)));
}

#[test]
fn a_pod_that_fails_is_of_a_job_that_is_known() {
    let event = |event: &str| MLBATCH.replacen("{at: 3060s, failNode: node-1}", event, 1);
    let change = |text: &str| {
        let scenario = read(&file(&event(text)), no_other).expect("it is right").scenario;
        scenario.changes[4].1.clone()
    };
    let fails = |job, exit_code| Change::PodFails { job, exit_code };
    assert_eq!(
        change("{at: 9s, failPod: {job: short-7, exitCode: 3}}"),
        fails(6, 3)
    );
    assert_eq!(change("{at: 9s, failPod: {job: large}}"), fails(14, 1));
    let mistake = |text: &str| {
        let found = read(&file(&event(text)), no_other).expect_err("it is wrong");
        (found[0].code, found[0].message.clone())
    };
    for unknown in ["short-8", "short-0", "short", "larger"] {
        let found = mistake(&format!("{{at: 9s, failPod: {{job: {unknown}}}}}"));
        assert_eq!(
            found,
            (Code::QueueReference, format!("there is no job `{unknown}`"))
        );
    }
    let found = mistake("{at: 9s, failPod: {job: large, exitCode: 0}}");
    assert_eq!(found.0, Code::BadValue);
    let two = mistake("{at: 9s, failPod: {job: large}, say: twice}");
    assert_eq!(two.0, Code::BadValue);
}

#[test]
fn a_simulation_is_seen_as_one_however_its_kind_is_written() {
    let quoted = MLBATCH.replacen("kind: Simulation", "kind: \"Simulation\"", 1);
    let spaced = MLBATCH.replacen("kind: Simulation", "'kind'  :   'Simulation' # ours", 1);
    for text in [quoted, spaced] {
        assert_eq!(
            read(&file(&text), no_other).expect("it is right").scenario,
            mlbatch()
        );
    }
    let json = r#"{
        "apiVersion": "blueproof.dev/v1alpha1", "kind": "Simulation", "metadata": {"name": "t"},
        "spec": {"quota": ["queues.yaml"], "jobs": [{
            "name": "a", "queue": "red", "at": "0s", "runsFor": "1s",
            "podSets": [{"count": 1, "requests": {"nvidia.com/gpu": "1"}}]
        }]}
    }"#;
    let queues = |_: &str| Ok(file(MLBATCH.split_once("---").expect("queues come after it").1));
    let scenario = read(&file(json), queues).expect("it is right").scenario;
    assert_eq!(scenario.jobs.len(), 1);
}

#[test]
fn a_job_may_ask_for_nothing_of_a_resource_that_no_group_covers() {
    let asks =
        |amount: &str| MLBATCH.replacen("requests: {", &format!("requests: {{rdma/hca: {amount}, "), 1);
    let scenario = read(&file(&asks("0")), no_other)
        .expect("Kueue takes it, too")
        .scenario;
    assert!(
        scenario
            .play()
            .job_records
            .iter()
            .all(|job_record| job_record.done.is_some())
    );
    let found = read(&file(&asks("1")), no_other).expect_err("Kueue admits it never");
    assert_eq!(found[0].code, Code::QueueReference);
}

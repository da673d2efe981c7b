//! kill -9 at every point of a run, and start again: the end is that of a run that nobody disturbed.

mod story;

use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

use blueproof_core::{
    domain::{
        Actor, Bytes, Cpus, Ending, QueueName, RequestKey, Resources, RunId, RunRequest, RunState, Verdict,
    },
    event::StopMode,
    policy::Policy,
    ports,
};
use blueproof_tests::pull_request;
use story::Story;

/// What each fact of a run's life is called in the log.
const KINDS: [&str; 14] = [
    "configured",
    "requested",
    "enqueued",
    "cyclesRun",
    "quotaReserved",
    "admitted",
    "reserved",
    "started",
    "finished",
    "ended",
    "released",
    "callFailed",
    "callPostponed",
    "callRepeated",
];

/// A cell that kills the process which runs it.
const KILL_THE_AGENT: &str = "import os, signal, time
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(600)";

const MOMENTS: [&str; 2] = ["before", "after"];

#[tokio::test]
async fn a_crash_at_any_fact_changes_nothing_in_the_end() {
    for kind in KINDS {
        for moment in MOMENTS {
            let (story, at) = (Story::new(), format!("{moment}:{kind}"));
            story.ask().await;
            crash_and_go_on(&story, &at);
            assert_passed_once(&story, &at).await;
        }
    }
}

#[tokio::test]
async fn a_crash_at_an_approval_starts_what_was_approved_once() {
    for moment in MOMENTS {
        let (story, at) = (Story::new(), format!("{moment}:approvalAccepted"));
        let request = pull_request::from_contributor(story.request());
        let subject = request.subject.clone();
        story.ask_for(request).await;
        assert!(story.drive(None).success(), "{at}: it waits for approval");
        assert_eq!(story.executions(), 0, "{at}: nothing runs without it");
        story.submit(pull_request::approve(&subject)).await;
        crash_and_go_on(&story, &at);
        assert_passed_once(&story, &at).await;
    }
}

#[tokio::test]
async fn a_crash_while_quota_is_applied_loses_neither_it_nor_who_waits_for_it() {
    for moment in MOMENTS {
        let (story, at) = (Story::new(), format!("{moment}:quotaApplied"));
        let queue: QueueName = "other".parse().expect("a name");
        story
            .ask_for(RunRequest {
                queue: queue.clone(),
                ..story.request()
            })
            .await;
        let mut host = story.begin_to_drive(Some(&at));
        story.until(RunState::Queued).await;
        story.submit(apply_quota(&queue)).await;
        assert_killed(host.wait().expect("it can be waited for"), &at);
        assert!(story.drive(None).success(), "{at}: the next one comes to an end");
        assert_passed_once(&story, &at).await;
    }
}

#[tokio::test]
async fn a_crash_while_a_push_takes_a_running_attempt_back_leaves_nothing_of_it() {
    for moment in MOMENTS {
        let (story, at) = (endless(), format!("{moment}:synchronized"));
        let request = pull_request::from_contributor(story.request());
        let subject = request.subject.clone();
        let push = pull_request::push(subject.repository.clone());
        story.ask_for(request).await;
        story.submit(pull_request::approve(&subject)).await;
        crash_while_it_runs(&story, &at, push).await;
        assert_stopped(&story, &at, Ending::Superseded).await;
    }
}

#[tokio::test]
async fn a_crash_while_a_running_attempt_is_cancelled_leaves_nothing_of_it() {
    for moment in MOMENTS {
        let (story, at) = (endless(), format!("{moment}:stopRequested"));
        story.ask().await;
        crash_while_it_runs(&story, &at, cancel()).await;
        assert_stopped(&story, &at, Ending::Cancelled).await;
    }
}

#[tokio::test]
async fn a_crash_while_a_waiting_run_is_cancelled_starts_nothing() {
    for moment in MOMENTS {
        let (story, at) = (Story::new(), format!("{moment}:cancelRequested"));
        story.ask().await;
        story.submit(cancel()).await;
        crash_and_go_on(&story, &at);
        let end = story.end().await;
        let ended = RunState::Ended(Ending::Cancelled);
        assert_eq!((end.state, end.settled), (ended, true), "{at}");
        assert_eq!(story.executions(), 0, "{at}: the notebook never ran");
        story.assert_nothing_is_left(&at);
    }
}

#[tokio::test]
async fn a_crash_while_a_run_is_tried_again_makes_one_more_attempt_and_no_other() {
    for moment in MOMENTS {
        let (story, at) = (Story::new(), format!("{moment}:retryRequested"));
        story.ask().await;
        assert!(story.drive(None).success(), "{at}: the first attempt");
        story.submit(retry()).await;
        crash_and_go_on(&story, &at);
        let end = story.end().await;
        assert_eq!((end.attempts.len(), end.settled), (2, true), "{at}");
        assert_eq!(story.executions(), 2, "{at}: once for each attempt");
        story.assert_nothing_is_left(&at);
    }
}

#[tokio::test]
async fn a_crash_while_a_failed_run_is_requeued_makes_one_more_attempt_and_no_other() {
    for moment in MOMENTS {
        let retries = "  retries: {infrastructure: 1}\n";
        let (story, at) = (
            Story::ending_with(KILL_THE_AGENT, retries),
            format!("{moment}:requeued"),
        );
        story.ask().await;
        crash_and_go_on(&story, &at);
        let end = story.end().await;
        assert_eq!((end.attempts.len(), end.settled), (2, true), "{at}");
        story.assert_nothing_is_left(&at);
    }
}

#[tokio::test]
async fn an_agent_that_is_killed_is_an_infrastructure_failure_and_leaves_nothing_behind() {
    let story = Story::ending_with(KILL_THE_AGENT, "  retries: {infrastructure: 0}\n");
    story.ask().await;
    assert!(story.drive(None).success());
    let end = story.end().await;
    let ended = RunState::Ended(Ending::InfrastructureFailed);
    assert_eq!(end.state, ended, "{:?}", end.failure);
    let outcome = end.attempts[0].outcome.as_ref().expect("an outcome");
    assert!(matches!(outcome.verdict, Verdict::Failed(_)));
    story.assert_nothing_is_left("the agent was killed");
}

fn endless() -> Story {
    Story::ending_with("import time\ntime.sleep(600)", "")
}

fn cancel() -> ports::Command {
    ports::Command::Cancel {
        key: RequestKey("cancel".into()),
        run: RunId(1),
        by: Actor::Local("tester".into()),
        how: StopMode::Terminate,
    }
}

/// Lets a queue of that name have what one run asks for.
fn apply_quota(queue: &QueueName) -> ports::Command {
    let plenty = Resources {
        cpu: Cpus::cores(64),
        memory: Bytes(1 << 40),
        ..Resources::default()
    };
    let mut objects = Policy::local(plenty).default_objects();
    let local = objects.local_queues.remove("local").expect("it is the default");
    objects.local_queues.insert(queue.to_string(), local);
    ports::Command::ApplyQuota {
        key: RequestKey("quota".into()),
        objects: Box::new(objects),
        by: Actor::Local("tester".into()),
    }
}

fn retry() -> ports::Command {
    ports::Command::Retry {
        key: RequestKey("retry".into()),
        run: RunId(1),
        by: Actor::Local("tester".into()),
    }
}

/// Drives until it is killed at a moment, and then, in a new process, to the end.
fn crash_and_go_on(story: &Story, at: &str) {
    assert_killed(story.drive(Some(at)), at);
    assert!(story.drive(None).success(), "{at}: the next one comes to an end");
}

/// Leaves a wish while the attempt runs, on which the host is killed; then drives, in a new process, to the end.
async fn crash_while_it_runs(story: &Story, at: &str, wish: ports::Command) {
    let mut host = story.begin_to_drive(Some(at));
    story.until(RunState::Running).await;
    story.submit(wish).await;
    assert_killed(host.wait().expect("it can be waited for"), at);
    assert!(story.drive(None).success(), "{at}: the next one comes to an end");
}

fn assert_killed(status: ExitStatus, at: &str) {
    assert_eq!(status.signal(), Some(9), "{at}: it was killed there");
}

async fn assert_passed_once(story: &Story, at: &str) {
    let end = story.end().await;
    let passed = RunState::Ended(Ending::Passed);
    assert_eq!(end.state, passed, "{at}: {:?}", end.failure);
    assert!(end.settled, "{at}");
    assert_eq!(end.attempts.len(), 1, "{at}: one attempt");
    assert_eq!(story.executions(), 1, "{at}: the notebook ran once");
    story.assert_nothing_is_left(at);
}

async fn assert_stopped(story: &Story, at: &str, ending: Ending) {
    let end = story.end().await;
    let ended = RunState::Ended(ending);
    assert_eq!((end.state, end.settled), (ended, true), "{at}: {:?}", end.failure);
    assert_eq!(end.attempts.len(), 1, "{at}: one attempt");
    story.assert_nothing_is_left(at);
}

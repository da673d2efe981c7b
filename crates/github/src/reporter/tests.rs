//! The reporter against a GitHub with a memory: created once, updated in place, found again, and never two for one run.

use blueproof_core::{
    domain::{Actor, Ending, Outcome, Placement, RunId, Verdict},
    pending::{IsolationPending, PendingReason},
    ports::Retry,
    testing::{FakeClock, contract, outcome},
    view::{AttemptView, OutlookView, QueuePosition},
};
use blueproof_diagnostic::Code;

use super::*;
use crate::{
    check::InfrastructureConclusion,
    testing::{FakeFailure, FakeGitHub, run_status as status},
};

struct World {
    github: Arc<FakeGitHub>,
    clock: Arc<FakeClock>,
}

impl World {
    fn new() -> Self {
        let world = Self {
            github: Arc::new(FakeGitHub::new(99)),
            clock: Arc::default(),
        };
        world
            .github
            .add_repository(RepositoryId(7), "kubeflow/trainer", &[]);
        world
    }

    fn reporter(&self) -> CheckReporter {
        CheckReporter::new(self.github.clone(), self.clock.clone(), settings(), None)
    }

    fn titles(&self) -> Vec<String> {
        let stored = self.github.stored_check_runs(RepositoryId(7));
        stored.into_iter().map(|run| run.check.title).collect()
    }
}

fn settings() -> CheckSettings {
    CheckSettings {
        approver_role: "an approver in OWNERS".into(),
        infrastructure: InfrastructureConclusion::Neutral,
        simulated_clusters: BTreeSet::new(),
    }
}

/// Returns a run that runs since the `second`, and so shows something else for each minute.
fn running(second: i64) -> RunStatus {
    let mut status = status(RunState::Running);
    status.view.attempts = vec![AttemptView {
        id: RunId(41).attempt(1),
        approved_by: Actor::Local("ada".into()),
        place: Some(Placement::on("oke")),
        pending: None,
        queued_at: None,
        reserved_at: Timestamp::UNIX_EPOCH,
        started_at: Some(Timestamp::from_second(second).expect("a time")),
        ended_at: None,
        eviction: None,
        outcome: None::<Outcome>,
    }];
    status
}

fn passed() -> RunStatus {
    let mut status = running(60);
    status.view.state = RunState::Ended(Ending::Passed);
    status.view.attempts[0].ended_at = Some(Timestamp::from_second(120).expect("a time"));
    status.view.attempts[0].outcome = Some(outcome(Verdict::Passed));
    status
}

#[tokio::test(flavor = "current_thread")]
async fn it_keeps_the_promises_of_a_reporter() {
    let world = World::new();
    contract::reporter_keeps_its_promises(&world.reporter(), &passed()).await;
    assert_eq!(world.titles(), ["Passed in 1m00s"]);
    assert_eq!(
        world.github.n_calls("update_check_run"),
        0,
        "nothing was to be changed"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn it_is_created_once_updated_in_place_and_found_again_after_a_restart() {
    let world = World::new();
    let reporter = world.reporter();
    for told in [status(RunState::AwaitingApproval), status(RunState::Queued)] {
        assert_eq!(reporter.report(&told).await, Ok(()));
    }
    assert_eq!(world.titles(), ["Queued"]);
    assert_eq!(world.reporter().report(&passed()).await, Ok(()));
    assert_eq!(world.titles(), ["Passed in 1m00s"]);
    assert_eq!(world.github.n_calls("create_check_run"), 1);
    assert_eq!(
        world.github.n_calls("check_runs"),
        2,
        "once before, and once after the restart"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn a_run_of_a_folder_is_acknowledged_and_shown_nowhere() {
    let world = World::new();
    let mut local = status(RunState::Running);
    local.view.subject.repository = Repository::Local("/work".into());
    assert_eq!(world.reporter().report(&local).await, Ok(()));
    assert_eq!(world.titles(), [""; 0]);
}

#[tokio::test(flavor = "current_thread")]
async fn progress_is_sent_every_15_seconds_and_a_state_at_once() {
    let world = World::new();
    let reporter = world.reporter();
    assert_eq!(reporter.report(&running(60)).await, Ok(()));
    let error = reporter.report(&running(120)).await.expect_err("it is too soon");
    assert_eq!(
        (error.diagnostic.code, error.retry),
        (Code::CheckRunUpdateLater, Retry::WhenFree)
    );
    world.clock.advance(PROGRESS_EVERY);
    assert_eq!(reporter.report(&running(120)).await, Ok(()));
    assert_eq!(world.titles(), ["Running since 1970-01-01 00:02 UTC"]);
    assert_eq!(reporter.report(&passed()).await, Ok(()));
    assert_eq!(world.titles(), ["Passed in 1m00s"]);
}

#[tokio::test(flavor = "current_thread")]
async fn a_lost_answer_never_leads_to_a_second_check_run() {
    let world = World::new();
    let reporter = world.reporter();
    world.github.fail("create_check_run", FakeFailure::AnswerLost);
    let error = reporter.report(&passed()).await.expect_err("the answer is lost");
    assert_eq!(
        (error.diagnostic.code, error.retry),
        (Code::GitHubNotReached, Retry::Later)
    );
    world.github.recover();
    assert_eq!(reporter.report(&passed()).await, Ok(()));
    assert_eq!(world.titles(), ["Passed in 1m00s"]);
}

#[tokio::test(flavor = "current_thread")]
async fn it_converges_after_an_hour_of_errors_of_every_kind() {
    let world = World::new();
    let reporter = world.reporter();
    assert_eq!(reporter.report(&status(RunState::Queued)).await, Ok(()));
    for call in ["repository", "check_runs", "update_check_run", "create_check_run"] {
        for failure in [
            FakeFailure::NotReached,
            FakeFailure::AnswerLost,
            FakeFailure::Refused,
        ] {
            world.github.fail(call, failure);
            for _ in 0..5 {
                world.clock.advance(SignedDuration::from_mins(1));
                // Some of these calls need not be made, so that some succeed.
                let _ = reporter.report(&running(60)).await;
            }
            world.github.recover();
        }
    }
    assert_eq!(reporter.report(&passed()).await, Ok(()));
    assert_eq!(world.titles(), ["Passed in 1m00s"]);
}

#[tokio::test(flavor = "current_thread")]
async fn a_rate_limit_is_told_with_its_time_and_nothing_is_asked_before() {
    let world = World::new();
    let reporter = world.reporter();
    let until = world.clock.now() + SignedDuration::from_mins(10);
    world.github.fail("check_runs", FakeFailure::RateLimited(until));
    for _ in 0..3 {
        let error = reporter.report(&passed()).await.expect_err("it is limited");
        assert_eq!(error.diagnostic.code, Code::GitHubRateLimited);
        assert!(
            error.diagnostic.message.contains("1970-01-01T00:10:00Z"),
            "{error}"
        );
    }
    assert_eq!(world.github.n_calls("check_runs"), 1);
    world.github.recover();
    world.clock.advance(SignedDuration::from_mins(10));
    assert_eq!(reporter.report(&passed()).await, Ok(()));
}

#[tokio::test(flavor = "current_thread")]
async fn a_comment_is_written_when_somebody_has_to_act_and_edited_afterwards() {
    let world = World::new();
    let commenting = || {
        let comments = StickyComments::new(world.github.clone(), world.github.app(), settings());
        world.reporter().commenting(Arc::new(comments))
    };
    let reporter = commenting();
    world.github.fail("create_comment", FakeFailure::AnswerLost);
    let error = reporter.report(&status(RunState::AwaitingApproval)).await;
    assert!(error.is_err());
    world.github.recover();
    for told in [status(RunState::AwaitingApproval), status(RunState::Queued)] {
        assert_eq!(reporter.report(&told).await, Ok(()));
    }
    assert_eq!(commenting().report(&passed()).await, Ok(()));
    let comments = world
        .github
        .comments(RepositoryId(7), 12)
        .await
        .expect("a GitHub that works");
    assert_eq!(comments.len(), 1);
    assert!(
        comments[0]
            .body
            .as_ref()
            .is_some_and(|body| body.contains("needs anything"))
    );
    assert_eq!(
        world.github.n_calls("update_comment"),
        1,
        "once approved nothing changed any more"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn what_only_moves_in_its_line_leaves_room_for_what_must_be_said() {
    let world = World::new();
    let reporter = world.reporter();
    let told = |run: u64, position: usize| {
        let mut told = status(RunState::Queued);
        told.view.id = RunId(run);
        told.view.subject.blueprint = format!("b{run}").parse().expect("a name");
        told.view.outlook = Some(Box::new(OutlookView {
            as_of: Timestamp::UNIX_EPOCH,
            reason: None,
            position: Some(QueuePosition {
                cluster_queue: "gpus".into(),
                position,
                waiting: 200,
            }),
            unblocked_by: Vec::new(),
            estimate: None,
            duration: None,
        }));
        told
    };
    for run in 1..=200 {
        assert_eq!(reporter.report(&told(run, 1 + run as usize)).await, Ok(()));
    }
    world.clock.advance(MOVES_EVERY);
    let mut shown = 0;
    for run in 1..=200 {
        shown += usize::from(reporter.report(&told(run, run as usize)).await.is_ok());
    }
    assert_eq!(shown, 40, "as many as progress may take in a minute");
    assert_eq!(reporter.report(&passed()).await, Ok(()), "an end is told at once");
}

#[tokio::test(flavor = "current_thread")]
async fn that_an_approval_counts_is_told_at_once_though_the_run_cannot_go_on() {
    let world = World::new();
    let reporter = world.reporter();
    let waits = |reason| {
        let mut told = status(RunState::AwaitingApproval);
        told.view.outlook = Some(Box::new(OutlookView {
            as_of: Timestamp::UNIX_EPOCH,
            reason: Some(reason),
            position: None,
            unblocked_by: Vec::new(),
            estimate: None,
            duration: None,
        }));
        told
    };
    let for_approval = PendingReason::AwaitingApproval {
        policy: None,
        lapsed: None,
    };
    let for_machine = PendingReason::WaitingForIsolation(Box::new(IsolationPending {
        cluster: Default::default(),
        why: None,
    }));
    for reason in [for_approval, for_machine] {
        assert_eq!(reporter.report(&waits(reason)).await, Ok(()));
    }
    let titles = world.titles();
    assert!(titles[0].starts_with("Waits: approved"), "{titles:?}");
}

//! What happens where nobody means harm.

use blueproof_core::domain::{Ending, RunState};
use blueproof_github::{
    answer::{Answer, ApprovalProblem},
    api::{ApiError, Permission, Reaction},
    entitlement::the_policy,
};

use blueproof_github::testing::FakeFailure;
use jiff::Timestamp;

use crate::world::{REPOSITORY, World, Written};

#[tokio::test]
async fn what_a_pull_request_concerns_waits_for_an_approval_and_then_runs() {
    approved_and_pushed(World::new().await).await;
}

#[tokio::test]
async fn the_same_holds_through_the_rest_api_with_few_requests() {
    let world = approved_and_pushed(World::over_http().await).await;
    let n = world.n_requests().await;
    assert!((20..80).contains(&n), "{n} requests for three deliveries");
}

async fn approved_and_pushed(mut world: World) -> World {
    let number = world.opened().await;
    assert_eq!(
        world.runs().await,
        [("nano-lm".to_owned(), RunState::AwaitingApproval)]
    );

    let ada = world.ada.clone();
    assert_eq!(world.press(1, &ada, Some("approve")).await, [Ok(())]);
    world.until_running(1).await;

    let attempt = &world.view(1).await.attempts[0];
    assert_eq!(attempt.approved_by, ada.to_actor());
    world.github.push(REPOSITORY, number, &world.mallory.clone());
    world.deliver().await;
    world.until_running(0).await;
    assert_eq!(world.state(2).await, RunState::AwaitingApproval);
    world
}

#[tokio::test]
async fn a_comment_with_a_commit_approves_it_and_is_acknowledged_without_a_word() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (cleo, head) = (world.cleo.clone(), world.head(number));
    let comment = world.github.comment(
        REPOSITORY,
        number,
        &cleo,
        &format!("Read it.\n\n/gpu-test {head} nano-lm"),
    );
    world.deliver().await;
    world.until_running(1).await;
    assert_eq!(world.github.reactions(REPOSITORY, comment), [Reaction::Rocket]);
}

#[tokio::test]
async fn a_comment_without_a_commit_is_of_the_head_that_was_there_a_minute_before() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let ada = world.ada.clone();
    assert_eq!(world.say(number, &ada, "/gpu-test").await, [Ok(())]);
    world.until_running(1).await;
}

#[tokio::test]
async fn a_label_approves_the_head_that_has_stood_for_a_minute() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let cleo = world.cleo.clone();
    world.github.label(REPOSITORY, number, &cleo, "area/examples");
    world.deliver().await;
    assert_eq!(world.state(1).await, RunState::AwaitingApproval);
    world
        .github
        .label(REPOSITORY, number, &cleo, "ok-to-test-gpu-runner");
    world.deliver().await;
    world.until_running(1).await;
}

#[tokio::test]
async fn a_pull_request_that_concerns_no_blueprint_asks_for_no_run() {
    let mut world = World::new().await;
    world.github.open(REPOSITORY, &world.mallory, &["docs/README.md"]);
    world.deliver().await;
    assert_eq!(world.runs().await, []);
}

/// What polling sees is what webhooks tell: no delivery is handled here.
#[tokio::test]
async fn a_sweep_has_the_outcome_of_the_webhooks_that_were_lost() {
    let mut world = World::new().await;
    let mallory = world.mallory.clone();
    let number = world.github.open(REPOSITORY, &mallory, &["examples/mnist/a.py"]);
    world.github.push(REPOSITORY, number, &mallory);
    world.github.take_deliveries();
    world.intake.sweep(REPOSITORY).await.expect("GitHub works");
    world.decide().await;
    assert_eq!(
        world.runs().await,
        [("mnist".to_owned(), RunState::AwaitingApproval)]
    );

    world.github.push(REPOSITORY, number, &mallory);
    world.github.take_deliveries();
    world.restart_intake();
    world.intake.sweep(REPOSITORY).await.expect("GitHub works");
    world.decide().await;
    let expected = [Ending::Superseded]
        .map(RunState::Ended)
        .into_iter()
        .chain([RunState::AwaitingApproval]);
    let states: Vec<_> = world.runs().await.into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, expected.collect::<Vec<_>>());
}

/// Where there is no address that GitHub could send to.
#[tokio::test]
async fn polling_comes_to_what_webhooks_come_to_and_both_together_to_the_same() {
    let mut world = World::new().await;
    let (ada, mallory) = (world.ada.clone(), world.mallory.clone());
    let number = world
        .github
        .open(REPOSITORY, &mallory, &["examples/nano-lm/a.py"]);
    let mut since = Timestamp::UNIX_EPOCH;
    since = world.poll(since).await;
    assert_eq!(
        world.runs().await,
        [("nano-lm".to_owned(), RunState::AwaitingApproval)]
    );
    world.pass_minutes(5);
    let comment = world.github.comment(REPOSITORY, number, &ada, "/gpu-test");
    since = world.poll(since).await;
    world.until_running(1).await;
    assert_eq!(world.github.reactions(REPOSITORY, comment), [Reaction::Rocket]);

    // The webhooks of all that come late, and a poll that looks at it again.
    world.deliver().await;
    world.poll(Timestamp::UNIX_EPOCH).await;
    assert_eq!(world.approvals().await, 1);
    assert_eq!(world.runs().await.len(), 1);

    world.pass_minutes(5);
    world.github.push(REPOSITORY, number, &mallory);
    world.poll(since).await;
    world.until_running(0).await;
    assert_eq!(world.state(2).await, RunState::AwaitingApproval);
    // What was said of the head before is not heard again, not by another process either.
    world.restart_intake();
    world.poll(Timestamp::UNIX_EPOCH).await;
    assert_eq!(world.github.reactions(REPOSITORY, comment), [Reaction::Rocket]);
    assert_eq!(world.approvals().await, 1);
}

#[tokio::test]
async fn a_head_that_comes_back_needs_a_new_approval_and_no_new_run() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (ada, mallory, first) = (world.ada.clone(), world.mallory.clone(), world.head(number));
    world.press(1, &ada, Some("approve")).await;
    world.until_running(1).await;
    world.github.push(REPOSITORY, number, &mallory);
    world.deliver().await;
    world.until_running(0).await;
    world.pass_minutes(1);
    world.github.push_back(REPOSITORY, number, &mallory, &first);
    world.deliver().await;
    world.until(1, RunState::AwaitingApproval).await;
    assert_eq!(world.state(2).await, RunState::Ended(Ending::Superseded));
    assert_eq!(world.press(1, &ada, Some("approve")).await, [Ok(())]);
    world.until_running(1).await;
}

#[tokio::test]
async fn whoever_opened_it_ends_holds_and_tries_again_what_is_theirs() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (ada, mallory) = (world.ada.clone(), world.mallory.clone());
    assert_eq!(world.say(number, &mallory, "/gpu-hold").await, [Ok(())]);
    assert_eq!(world.press(1, &ada, Some("approve")).await, [Ok(())]);
    assert_eq!(world.state(1).await, RunState::AwaitingApproval, "it is held");
    assert_eq!(world.say(number, &mallory, "/gpu-hold cancel").await, [Ok(())]);
    assert_eq!(world.press(1, &ada, Some("approve")).await, [Ok(())]);
    world.until_running(1).await;
    assert_eq!(world.say(number, &mallory, "/gpu-cancel").await, [Ok(())]);
    world.until_running(0).await;
    assert_eq!(world.state(1).await, RunState::Ended(Ending::Cancelled));
    assert_eq!(world.say(number, &mallory, "/gpu-retest").await, [Ok(())]);
    world.until_running(1).await;
    let stranger = world.dora.clone();
    assert_eq!(world.say(number, &stranger, "/gpu-why").await, [Ok(())]);
}

#[tokio::test]
async fn a_poll_that_finds_nothing_new_reads_no_file_and_no_list_of_changes() {
    let mut world = World::new().await;
    for _ in 0..3 {
        world.opened().await;
    }
    let since = world.poll(Timestamp::UNIX_EPOCH).await;
    let asked = |world: &World| {
        ["changed_paths", "file", "paths_named", "account"].map(|call| world.github.n_calls(call))
    };
    let before = asked(&world);
    world.poll(since).await;
    assert_eq!(asked(&world), before);
    // Who has which rights is written in no file, and is looked at each time.
    assert!(world.github.n_calls("collaborators") > 1);
}

#[tokio::test]
async fn a_head_that_comes_back_after_an_outage_is_asked_for_again() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (mallory, first) = (world.mallory.clone(), world.head(number));
    world.github.push(REPOSITORY, number, &mallory);
    world.github.fail("changed_paths", FakeFailure::NotReached);
    world
        .intake
        .look(REPOSITORY, number)
        .await
        .expect_err("GitHub is not reached");
    world.decide().await;
    assert_eq!(world.state(1).await, RunState::Ended(Ending::Superseded));
    world.github.recover();
    world.github.push_back(REPOSITORY, number, &mallory, &first);
    world.intake.look(REPOSITORY, number).await.expect("GitHub works");
    world.until(1, RunState::AwaitingApproval).await;
}

/// GitHub is down at each call in turn. Nothing of the wish is lost, and nothing is done twice.
#[tokio::test]
async fn a_delivery_that_fails_half_way_is_handled_again_without_doubling_anything() {
    for failing in 0..40 {
        let mut world = World::new().await;
        let number = world.opened().await;
        let (ada, head) = (world.ada.clone(), world.head(number));
        world
            .github
            .comment(REPOSITORY, number, &ada, &format!("/gpu-test {head}"));
        let delivery = world.github.take_deliveries().remove(0);
        let payload = crate::world::parse(&delivery);
        world.github.fail_call(failing, ApiError::later("reach GitHub"));
        let first = world.handle(&payload, &Default::default()).await;
        if first.is_err() {
            world.decide().await;
            world.handle_all(&[delivery]).await;
        }
        world.decide().await;
        // The start may have met the failure: it is tried again.
        world
            .until_view(|view| view.state == RunState::Running || !view.failing_calls.is_empty())
            .await;
        world.pass_minutes(1);
        world.until_running(1).await;
        let approvals = world.approvals().await;
        assert_eq!(approvals, 1, "the call {failing} failed");
        assert_eq!(world.runs().await.len(), 1);
    }
}

#[tokio::test]
async fn who_may_approve_follows_the_default_branch_and_the_collaborators() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (dora, mallory) = (world.dora.clone(), world.mallory.clone());
    let not_entitled = || [Err(Answer::Approval(ApprovalProblem::NotEntitled))];
    assert_eq!(world.press(1, &dora, Some("approve")).await, not_entitled());
    world.github.set_permission(REPOSITORY, &dora, Permission::Triage);
    assert_eq!(world.press(1, &dora, Some("approve")).await, not_entitled());
    world
        .github
        .set_permission(REPOSITORY, &dora, Permission::Maintain);
    assert_eq!(world.press(1, &dora, Some("approve")).await, [Ok(())]);
    world.until_running(1).await;
    assert_eq!(world.head(number), world.head(number));
    assert_eq!(
        world.press(1, &mallory, Some("approve")).await,
        [Err(Answer::Approval(ApprovalProblem::Own))]
    );
}

#[tokio::test]
async fn why_a_command_was_not_done_stands_in_one_comment_until_one_is_done() {
    for mut world in [World::new().await, World::over_http().await] {
        world.answer_in_comments();
        let number = world.opened().await;
        let (ada, mallory) = (world.ada.clone(), world.mallory.clone());
        world.github.push(REPOSITORY, number, &mallory);
        let head = world.head(number);
        for by in [&mallory, &ada] {
            let answers = world.say(number, by, "/gpu-test").await;
            assert!(answers.iter().all(Result::is_err), "{answers:?}");
        }
        assert_eq!(answered(&world, number).await, [true]);
        let done = world.say(number, &ada, &format!("/gpu-test {head}")).await;
        assert_eq!(done, [Ok(())]);
        assert_eq!(answered(&world, number).await, [false]);
    }
}

/// Returns for each comment of ours on a pull request whether it says that something was not done, with the line to write.
async fn answered(world: &World, number: u64) -> Vec<bool> {
    use blueproof_github::api::GitHub as _;
    let all = world.github.comments(REPOSITORY, number).await;
    let ours = all
        .expect("it works")
        .into_iter()
        .filter(|comment| comment.app.is_some());
    let line = format!("\n/gpu-test {}\n", world.head(number));
    let says = |text: &str| text.contains("was not done") && text.contains(&line);
    ours.map(|comment| comment.body.as_deref().is_some_and(says))
        .collect()
}

#[tokio::test]
async fn what_the_policy_trusts_its_authors_with_runs_at_once_and_nothing_more() {
    let mut world = World::new().await;
    world
        .set_policy_of_approval("    trustedAuthors: {users: [4], mostGpus: 2}\n")
        .await;
    let number = world.opened().await;
    world.until_running(1).await;
    let view = world.view(1).await;
    assert_eq!(view.attempts[0].approved_by, the_policy());
    let mallory = world.mallory.clone();
    world.github.push(REPOSITORY, number, &mallory);
    world.deliver().await;
    world.until(2, RunState::Running).await;

    world.blueprints.write(Written::Greedily);
    world.github.push(REPOSITORY, number, &mallory);
    world.deliver().await;
    assert_eq!(world.approvals().await, 2, "eight GPUs are more than that");

    world.blueprints.write(Written::Well);
    let cleo = world.cleo.clone();
    world.github.open(REPOSITORY, &cleo, &["examples/nano-lm/a.py"]);
    world.deliver().await;
    assert_eq!(
        world.state(4).await,
        RunState::AwaitingApproval,
        "nobody trusts her"
    );
}

#[tokio::test]
async fn an_author_who_is_trusted_no_more_starts_nothing_though_nobody_has_told_so() {
    let mut world = World::new().await;
    world
        .set_policy_of_approval("    trustedAuthors: {users: [4]}\n")
        .await;
    let before = world.github.take_deliveries();
    assert_eq!(before, []);
    let number = world
        .github
        .open(REPOSITORY, &world.mallory, &["examples/nano-lm/a.py"]);
    world.intake.look(REPOSITORY, number).await.expect("GitHub works");
    world.github.push_to_main(REPOSITORY, &crate::world::FILES);
    world.github.take_deliveries();
    world.until_view(|view| !view.failing_calls.is_empty()).await;
    assert!(world.cluster.running().is_empty());
}

//! What GitHub shows at the moment of a start, where the scheduler was told less.

use blueproof_core::{
    domain::{Ending, RunState},
    view::RunView,
};
use blueproof_diagnostic::Code;
use blueproof_github::api::Permission;

use crate::world::{REPOSITORY, World};

const WAITS: RunState = RunState::AwaitingApproval;

/// Returns with which code a run's start has failed.
fn not_started(view: &RunView) -> Option<Code> {
    view.failing_calls.first().map(|call| call.last.code)
}

/// Has the engine work until a start has failed with this code.
async fn until_not_started(world: &mut World, expected: Code) {
    world.until_view(|view| not_started(view) == Some(expected)).await;
    assert!(world.cluster.running().is_empty());
}

/// Has a look at whatever was seen to be another than was approved.
async fn look(world: &mut World) {
    let (repository, number) = world.looks.try_recv().expect("it was seen");
    world.intake.look(repository, number).await.expect("GitHub works");
    world.decide().await;
}

async fn approved() -> (World, u64) {
    let mut world = World::new().await;
    let number = world.opened().await;
    let ada = world.ada.clone();
    world.press(1, &ada, Some("approve")).await;
    (world, number)
}

#[tokio::test]
async fn a6_a_push_whose_webhook_is_lost_is_seen_before_the_start() {
    let (mut world, number) = approved().await;
    let mallory = world.mallory.clone();
    world.github.push(REPOSITORY, number, &mallory);
    assert_eq!(world.github.take_deliveries().len(), 1, "it is lost on the way");
    until_not_started(&mut world, Code::PullRequestChanged).await;
    look(&mut world).await;
    world.until(1, RunState::Ended(Ending::Superseded)).await;
    assert_eq!(world.state(2).await, WAITS);
}

#[tokio::test]
async fn a1_a_base_or_a_closing_whose_webhook_is_lost_is_seen_before_the_start() {
    for closes in [false, true] {
        let (mut world, number) = approved().await;
        let mallory = world.mallory.clone();
        match closes {
            true => world.github.close(REPOSITORY, number, &mallory),
            false => world
                .github
                .change_base(REPOSITORY, number, &mallory, "release-1.0"),
        }
        world.github.take_deliveries();
        until_not_started(&mut world, Code::PullRequestChanged).await;
        look(&mut world).await;
        world.until_view(|view| view.failing_calls.is_empty()).await;
        assert!(world.cluster.running().is_empty());
    }
}

#[tokio::test]
async fn a30_a_right_that_is_lost_without_a_word_is_seen_before_the_start() {
    let mut world = World::new().await;
    world.opened().await;
    let cleo = world.cleo.clone();
    world.press(1, &cleo, Some("approve")).await;
    world.github.set_permission(REPOSITORY, &cleo, Permission::Read);
    until_not_started(&mut world, Code::PullRequestChanged).await;
    world.intake.sweep(REPOSITORY).await.expect("GitHub works");
    world.until(1, WAITS).await;
}

#[tokio::test]
async fn nothing_starts_while_github_cannot_be_asked_and_what_is_approved_starts_afterwards() {
    let (mut world, _) = approved().await;
    world.github.go_down();
    until_not_started(&mut world, Code::GitHubNotReached).await;
    for _ in 0..60 {
        world.pass_minutes(1);
        world.decide().await;
    }
    assert!(world.cluster.running().is_empty());
    let view = world.view(1).await;
    assert_eq!(
        not_started(&view),
        Some(Code::GitHubNotReached),
        "{:?}",
        view.state
    );
    world.github.recover();
    world.pass_minutes(5);
    world.until_running(1).await;
    assert_eq!(world.view(1).await.attempts.len(), 1, "it is the same attempt");
}

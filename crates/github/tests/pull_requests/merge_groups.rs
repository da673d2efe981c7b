//! What would be merged, and its checks.

use blueproof_core::{
    domain::{Ending, Outcome, RunId, RunState, Verdict},
    testing::outcome,
};
use blueproof_github::{answer::ApprovalProblem, api::CheckConclusion};
use jiff::Timestamp;

use crate::world::{REPOSITORY, World};

const NOTEBOOK: &str = "examples/nano-lm/nano-lm.ipynb";
const WAITS: RunState = RunState::AwaitingApproval;

fn passed() -> Outcome {
    outcome(Verdict::Passed)
}

/// Returns a world in which a pull request's run has passed with this notebook.
async fn with_a_run_that_passed(notebook: &str) -> (World, u64) {
    let mut world = World::new().await;
    let number = world.opened().await;
    let head = world.head(number);
    world
        .github
        .set_files(REPOSITORY, &head, &[(NOTEBOOK, notebook), ("README.md", "old")]);
    let ada = world.ada.clone();
    world.press(1, &ada, Some("approve")).await;
    world.until_running(1).await;
    world.cluster.finish(RunId(1).attempt(1), passed());
    world.until(1, RunState::Ended(Ending::Passed)).await;
    (world, number)
}

fn check(name: &str, conclusion: CheckConclusion) -> (String, CheckConclusion) {
    (name.into(), conclusion)
}

#[tokio::test]
async fn a_merge_group_of_what_has_passed_has_passed_however_it_comes_to_be_known() {
    for polls in [false, true] {
        let (mut world, number) = with_a_run_that_passed("print(1)").await;
        let required = ["GPU · mnist", "GPU · nano-lm"];
        world.github.require_checks(REPOSITORY, "main", &required);
        let files = [(NOTEBOOK, "print(1)"), ("README.md", "another's change")];
        let group = world.github.enqueue(REPOSITORY, number, &files);
        for _ in 0..2 {
            match polls {
                true => {
                    world.github.take_deliveries();
                    world.poll(Timestamp::UNIX_EPOCH).await;
                }
                false => {
                    world.deliver().await;
                }
            }
        }
        let expected = [
            check("GPU · nano-lm", CheckConclusion::Success),
            check("GPU · mnist", CheckConclusion::Neutral),
        ];
        assert_eq!(world.concluded(&group), expected, "polls: {polls}");
        assert_eq!(world.runs().await.len(), 1);
    }
}

#[tokio::test]
async fn what_nobody_has_tested_runs_once_that_commit_is_approved_and_ends_with_its_group() {
    let (mut world, number) = with_a_run_that_passed("print(1)").await;
    let group = world
        .github
        .enqueue(REPOSITORY, number, &[(NOTEBOOK, "print(2)")]);
    world.deliver().await;
    assert_eq!(world.state(2).await, WAITS);
    assert_eq!(world.concluded(&group), []);
    let (ada, mallory) = (world.ada.clone(), world.mallory.clone());
    assert_eq!(
        world.press(2, &mallory, Some("approve")).await,
        [Err(ApprovalProblem::NotEntitled.into())]
    );
    assert_eq!(world.press(2, &ada, Some("approve")).await, [Ok(())]);
    world.until(2, RunState::Running).await;
    world.github.dequeue(REPOSITORY, &group);
    world.deliver().await;
    world.until(2, RunState::Ended(Ending::Cancelled)).await;
}

#[tokio::test]
async fn a_group_that_is_gone_starts_nothing_though_nobody_has_told_so() {
    let (mut world, number) = with_a_run_that_passed("print(1)").await;
    let group = world
        .github
        .enqueue(REPOSITORY, number, &[(NOTEBOOK, "print(2)")]);
    world.deliver().await;
    let ada = world.ada.clone();
    assert_eq!(world.press(2, &ada, Some("approve")).await, [Ok(())]);
    world.github.dequeue(REPOSITORY, &group);
    world.github.take_deliveries();
    world
        .until_view(|view| view.id == RunId(2) && !view.failing_calls.is_empty())
        .await;
    assert!(world.cluster.running().is_empty());
    assert_eq!(
        world.press(2, &ada, Some("approve")).await,
        [Err(ApprovalProblem::Nothing.into())],
        "nor is it approved again"
    );
    world.intake.sweep(REPOSITORY).await.expect("GitHub works");
    world.decide().await;
    world.until(2, RunState::Ended(Ending::Cancelled)).await;
}

#[tokio::test]
async fn by_the_policy_what_nobody_has_tested_is_neutral() {
    let (mut world, number) = with_a_run_that_passed("print(1)").await;
    world.set_policy("  mergeQueue: neutral\n").await;
    let group = world
        .github
        .enqueue(REPOSITORY, number, &[(NOTEBOOK, "print(2)")]);
    world.deliver().await;
    assert_eq!(
        world.concluded(&group),
        [check("GPU · nano-lm", CheckConclusion::Neutral)]
    );
    assert_eq!(world.runs().await.len(), 1);
}

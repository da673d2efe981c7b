//! Check runs of what is not run.

use blueproof_github::{api::CheckConclusion, testing::FakeFailure};

use crate::world::{REPOSITORY, World, Written};

/// Returns what the check runs at the head of a pull request say.
fn told(world: &World, number: u64) -> Vec<(String, CheckConclusion)> {
    world.concluded(&world.head(number))
}

fn neutral(name: &str) -> (String, CheckConclusion) {
    (name.into(), CheckConclusion::Neutral)
}

fn failed(name: &str) -> (String, CheckConclusion) {
    (name.into(), CheckConclusion::Failure)
}

#[tokio::test]
async fn what_a_branch_requires_and_a_pull_request_does_not_concern_is_neutral_at_once_and_once() {
    for mut world in [World::new().await, World::over_http().await] {
        let required = ["GPU · mnist", "GPU · nano-lm", "unit tests"];
        world.github.require_checks(REPOSITORY, "main", &required);
        let number = world.opened().await;
        assert_eq!(told(&world, number), [neutral("GPU · mnist")]);
        world.intake.sweep(REPOSITORY).await.expect("GitHub works");
        world.restart_intake();
        world.intake.sweep(REPOSITORY).await.expect("GitHub works");
        assert_eq!(told(&world, number).len(), 1, "a restart makes no second one");
    }
}

#[tokio::test]
async fn what_is_not_required_and_not_concerned_has_no_check_run() {
    let mut world = World::new().await;
    let number = world.opened().await;
    assert_eq!(told(&world, number), []);
    assert_eq!(world.github.n_calls("check_runs"), 0);
}

#[tokio::test]
async fn a_check_that_is_required_later_is_concluded_when_somebody_asks_why() {
    let mut world = World::new().await;
    let number = world.opened().await;
    world.github.require_checks(REPOSITORY, "main", &["GPU · mnist"]);
    let mallory = world.mallory.clone();
    assert_eq!(world.say(number, &mallory, "/gpu-why").await, [Ok(())]);
    assert_eq!(told(&world, number), [neutral("GPU · mnist")]);
}

#[tokio::test]
async fn a_blueprint_with_a_mistake_fails_with_its_line_until_a_push_mends_it() {
    let mut world = World::new().await;
    world.blueprints.write(Written::WithMistake);
    let number = world
        .github
        .open(REPOSITORY, &world.mallory, &["examples/mnist/blueprint.yaml"]);
    world.deliver().await;
    assert_eq!(told(&world, number), [failed("GPU · mnist")]);
    let check = &world.github.checks(REPOSITORY, &world.head(number))[0];
    assert_eq!(check.annotations[0].start_line, 3);
    assert!(check.title.contains("notbook"), "{}", check.title);
    assert_eq!(world.runs().await, []);

    world.blueprints.write(Written::Well);
    let mallory = world.mallory.clone();
    world.github.push(REPOSITORY, number, &mallory);
    world.deliver().await;
    assert_eq!(told(&world, number), []);
    assert_eq!(world.runs().await.len(), 1);
}

#[tokio::test]
async fn a_head_of_which_nothing_can_be_read_says_so() {
    let mut world = World::new().await;
    world.blueprints.write(Written::Unreadably);
    let number = world.opened().await;
    assert_eq!(told(&world, number), [failed("GPU")]);
    assert_eq!(world.runs().await, []);
}

#[tokio::test]
async fn a_check_run_whose_answer_is_lost_is_not_made_twice() {
    let mut world = World::new().await;
    world.github.require_checks(REPOSITORY, "main", &["GPU · mnist"]);
    world.github.fail("create_check_run", FakeFailure::AnswerLost);
    let number = world
        .github
        .open(REPOSITORY, &world.mallory, &["examples/nano-lm/a.py"]);
    let failed = world.intake.look(REPOSITORY, number).await;
    assert!(failed.is_err(), "the answer is lost");
    world.github.recover();
    world.intake.look(REPOSITORY, number).await.expect("GitHub works");
    world.decide().await;
    assert_eq!(told(&world, number), [neutral("GPU · mnist")]);
    assert_eq!(world.runs().await.len(), 1);
}

//! Attacks that are told apart where GitHub's words come in: research/github.md 4.5, by its numbers. What the scheduler alone holds off
//! stands in core's scenarios (`attack-*.scenario`), what a comment or a signature does in their own modules.

use blueproof_core::domain::{Ending, RunState};
use blueproof_github::{
    answer::{Answer, ApprovalProblem},
    api::Permission,
    budget::{BudgetOf, BudgetProblem},
    intake::{Handled, Ignored, Pushes},
    payload::{AccountKind, App, Payload},
};

use crate::world::{FILES, POLICY, REPOSITORY, World, Written, answers, check_of, parse};

const WAITS: RunState = RunState::AwaitingApproval;

fn refused(problem: ApprovalProblem) -> Vec<Result<(), Answer>> {
    vec![Err(Answer::Approval(problem))]
}

#[tokio::test]
async fn a1_a_push_between_approval_and_run_ends_the_approval() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (ada, mallory) = (world.ada.clone(), world.mallory.clone());
    world.github.push(REPOSITORY, number, &mallory);
    // The button is that of the check run of the head before. The webhook of the push is still on its way.
    assert_eq!(
        world.github.take_deliveries().len(),
        1,
        "the push is told, and lost on the way"
    );
    let now = world.head(number);
    assert_eq!(
        world.press(1, &ada, Some("approve")).await,
        refused(ApprovalProblem::HeadChanged(now))
    );
    assert_eq!(world.state(1).await, RunState::Ended(Ending::Superseded));
    assert!(world.cluster.running().is_empty());
}

#[tokio::test]
async fn a2_a_push_between_a_comment_and_its_handling_is_not_what_was_approved() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (ada, mallory) = (world.ada.clone(), world.mallory.clone());
    world.github.comment(REPOSITORY, number, &ada, "/gpu-test");
    world.github.push(REPOSITORY, number, &mallory);
    // The comment comes first, and GitHub has the new head by then.
    let handled = world.deliver().await;
    let now = world.head(number);
    assert_eq!(answers(handled), refused(ApprovalProblem::WhichHead(now)));
    world.decide().await;
    assert!(world.cluster.running().is_empty());
}

#[tokio::test]
async fn a2_a_push_that_is_stored_and_not_handled_leaves_open_which_head_was_meant() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let ada = world.ada.clone();
    world.github.comment(REPOSITORY, number, &ada, "/gpu-test");
    let comment = parse(&world.github.take_deliveries()[0]);
    world.github.push(REPOSITORY, number, &world.mallory.clone());
    let push = parse(&world.github.take_deliveries()[0]);
    world
        .github
        .push_back(REPOSITORY, number, &world.mallory.clone(), &world.head(number));
    let handled = world
        .handle(&comment, &Pushes::among([&push]))
        .await
        .expect("GitHub works");
    assert!(matches!(
        answers(vec![handled]).as_slice(),
        [Err(Answer::Approval(ApprovalProblem::WhichHead(_)))]
    ));
}

#[tokio::test]
async fn a3_a_head_that_came_less_than_a_minute_before_needs_its_commit_named() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (ada, mallory) = (world.ada.clone(), world.mallory.clone());
    world.github.push(REPOSITORY, number, &mallory);
    world.deliver().await;
    let now = world.head(number);
    assert_eq!(
        world.say(number, &ada, "/gpu-test").await,
        refused(ApprovalProblem::WhichHead(now.clone()))
    );
    assert_eq!(
        world.say(number, &ada, &format!("/gpu-test {now}")).await,
        [Ok(())]
    );
}

#[tokio::test]
async fn a4_a_commit_that_is_cut_short_approves_nothing() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (ada, head) = (world.ada.clone(), world.head(number).to_string());
    for digits in [7, 12, 39] {
        let answers = world
            .say(number, &ada, &format!("/gpu-test {}", &head[..digits]))
            .await;
        assert!(matches!(answers[..], [Err(Answer::Comment(_))]), "{answers:?}");
    }
    assert_eq!(world.state(1).await, WAITS);
    assert_eq!(world.approvals().await, 0);
}

#[tokio::test]
async fn a5_a_label_that_was_there_before_the_push_approves_nothing_after_it() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (cleo, mallory) = (world.cleo.clone(), world.mallory.clone());
    world
        .github
        .label(REPOSITORY, number, &cleo, "ok-to-test-gpu-runner");
    world.deliver().await;
    world.until_running(1).await;
    world.github.push(REPOSITORY, number, &mallory);
    world.deliver().await;
    world.until_running(0).await;
    assert_eq!(world.state(2).await, WAITS);
    world.pass_minutes(10);
    world
        .github
        .label(REPOSITORY, number, &mallory, "ok-to-test-gpu-runner");
    assert_eq!(answers(world.deliver().await), refused(ApprovalProblem::Own));
}

#[tokio::test]
async fn a6_a_lost_webhook_of_a_push_is_made_good_by_any_later_look() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (ada, mallory) = (world.ada.clone(), world.mallory.clone());
    world.press(1, &ada, Some("approve")).await;
    world.until_running(1).await;
    world.github.push(REPOSITORY, number, &mallory);
    world.github.take_deliveries();
    world.intake.look(REPOSITORY, number).await.expect("GitHub works");
    world.decide().await;
    world.until_running(0).await;
    assert_eq!(world.state(2).await, WAITS);
}

#[tokio::test]
async fn a7_what_was_edited_into_a_command_is_none() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (ada, mallory) = (world.ada.clone(), world.mallory.clone());
    let comment = world.github.comment(REPOSITORY, number, &ada, "Thanks!");
    world.pass_minutes(5);
    // Whoever may edit comments of others edits one of an approver's.
    world
        .github
        .edit_comment(REPOSITORY, comment, &mallory, "/gpu-test");
    let handled = world.deliver().await;
    assert_eq!(
        handled,
        [
            Handled::Ignored(Ignored::NoCommand),
            Handled::Ignored(Ignored::Action)
        ]
    );
    assert_eq!(world.state(1).await, WAITS);
}

#[tokio::test]
async fn a7_a_program_approves_nothing_whatever_its_rights() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let bot = world.github.add_account(50, "helper[bot]", AccountKind::Bot);
    world.github.set_permission(REPOSITORY, &bot, Permission::Admin);
    world.github.comment(REPOSITORY, number, &bot, "/gpu-test");
    assert_eq!(world.deliver().await, [Handled::Ignored(Ignored::NotAsWritten)]);
    assert_eq!(
        world.press(1, &bot, Some("approve")).await,
        refused(ApprovalProblem::NoPerson)
    );
    assert_eq!(world.state(1).await, WAITS);
}

#[tokio::test]
async fn a7_what_a_program_writes_in_the_name_of_a_person_approves_nothing() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (ada, head) = (world.ada.clone(), world.head(number));
    world
        .github
        .comment(REPOSITORY, number, &ada, &format!("/gpu-test {head}"));
    let delivery = world.github.take_deliveries().remove(0);
    let Payload::IssueComment(mut event) = parse(&delivery) else {
        panic!("it is a comment");
    };
    event.comment.app = Some(App { id: 5 });
    let payload = Payload::IssueComment(event);
    let handled = world.handle(&payload, &Pushes::default()).await;
    let expected = Handled::Ignored(Ignored::NotAsWritten);
    assert_eq!(handled.expect("GitHub works"), expected);
    assert_eq!(world.state(1).await, WAITS);
}

#[tokio::test]
async fn a8_a_policy_that_changes_ends_what_was_approved_under_the_one_before() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let ada = world.ada.clone();
    let stricter = POLICY.replace("8h", "1h");
    world.say(number, &ada, "/gpu-hold").await;
    let files = [
        ("OWNERS", "approvers: [ada]\n"),
        (".github/blueproof.yaml", &*stricter),
    ];
    world.github.push_to_main(REPOSITORY, &files);
    world.deliver().await;
    world.say(number, &ada, "/gpu-hold cancel").await;
    assert_eq!(world.press(1, &ada, Some("approve")).await, [Ok(())]);
    world.until_running(1).await;
    world.pass_minutes(1);
    world.github.push_to_main(REPOSITORY, &FILES);
    world.deliver().await;
    // What runs goes on; another attempt needs another approval.
    world.say(number, &ada, "/gpu-cancel").await;
    world.until_running(0).await;
    world.say(number, &ada, "/gpu-retest").await;
    world.until(1, WAITS).await;
}

#[tokio::test]
async fn a9_a_login_that_another_person_took_over_approves_nothing() {
    let mut world = World::new().await;
    world.opened().await;
    let cleo = world.cleo.clone();
    world.github.rename_account("cleo", "cleopatra");
    let successor = world.github.add_account(60, "cleo", AccountKind::User);
    assert_eq!(
        world.press(1, &successor, Some("approve")).await,
        refused(ApprovalProblem::NotEntitled)
    );
    assert_eq!(world.press(1, &cleo, Some("approve")).await, [Ok(())]);
}

#[tokio::test]
async fn a10_nobody_approves_their_own_pull_request() {
    let mut world = World::new().await;
    let cleo = world.cleo.clone();
    let number = world.github.open(REPOSITORY, &cleo, &["examples/mnist/a.py"]);
    world.deliver().await;
    world.pass_minutes(5);
    assert_eq!(
        world.press(1, &cleo, Some("approve")).await,
        refused(ApprovalProblem::Own)
    );
    assert_eq!(
        world.say(number, &cleo, "/gpu-test").await,
        refused(ApprovalProblem::Own)
    );
}

#[tokio::test]
async fn a10_a_right_to_sort_issues_is_none_to_approve() {
    let mut world = World::new().await;
    world.opened().await;
    let puppet = world.github.add_account(70, "puppet", AccountKind::User);
    world
        .github
        .set_permission(REPOSITORY, &puppet, Permission::Triage);
    assert_eq!(
        world.press(1, &puppet, Some("approve")).await,
        refused(ApprovalProblem::NotEntitled)
    );
}

#[tokio::test]
async fn a11_the_same_commit_in_another_pull_request_needs_an_approval_of_its_own() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (ada, mallory) = (world.ada.clone(), world.mallory.clone());
    let other = world.opened().await;
    world
        .github
        .push_back(REPOSITORY, other, &mallory, &world.head(number));
    world.deliver().await;
    assert_eq!(world.head(other), world.head(number));
    world.press(1, &ada, Some("approve")).await;
    world.until_running(1).await;
    let waiting: Vec<_> = world.runs().await.into_iter().map(|(_, state)| state).collect();
    let expected = [RunState::Running, RunState::Ended(Ending::Superseded), WAITS];
    assert_eq!(waiting, expected);
}

#[tokio::test]
async fn a12_an_old_head_is_not_run_again_after_a_newer_push() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (ada, mallory) = (world.ada.clone(), world.mallory.clone());
    world.press(1, &ada, Some("approve")).await;
    world.until_running(1).await;
    world.github.push(REPOSITORY, number, &mallory);
    world.deliver().await;
    world.until_running(0).await;
    // The check run of the old head still has GitHub's own link to run it again.
    world.press(1, &ada, None).await;
    assert!(world.cluster.running().is_empty());
    assert_ne!(world.state(1).await, RunState::Running);
}

#[tokio::test]
async fn a19_more_gpus_than_the_policy_allows_are_refused_whatever_the_blueprint_says() {
    let mut world = World::new().await;
    world.blueprints.write(Written::Greedily);
    world.set_policy("  runs: {mostGpus: 2}\n").await;
    let number = world.opened().await;
    let ada = world.ada.clone();
    assert_eq!(world.runs().await, []);
    let head = world.head(number);
    let check = &world.github.checks(REPOSITORY, &head)[0];
    assert!(check.title.contains("8 GPUs"), "{}", check.title);
    assert_eq!(
        world.say(number, &ada, &format!("/gpu-test {head}")).await,
        refused(ApprovalProblem::Nothing)
    );
}

#[tokio::test]
async fn a21_a_flood_of_pull_requests_and_pushes_gets_what_its_authors_budget_allows() {
    let mut world = World::new().await;
    world.set_policy("  budgets: {author: {runs: 2}}\n").await;
    let (ada, mallory) = (world.ada.clone(), world.mallory.clone());
    let mut answers = Vec::new();
    for run in [1, 3, 5] {
        let number = world.opened().await;
        world.github.push(REPOSITORY, number, &mallory);
        world.deliver().await;
        answers.extend(world.press(run + 1, &ada, Some("approve")).await);
        assert_eq!(world.state(run).await, RunState::Ended(Ending::Superseded));
    }
    let used_up = BudgetProblem::Runs {
        of: BudgetOf::Author,
        active: 3,
        most: 2,
    };
    let over = Err(Answer::Approval(ApprovalProblem::Budget(used_up)));
    assert_eq!(answers, [Ok(()), Ok(()), over]);
    assert_eq!(world.state(6).await, WAITS);
    // Somebody else's has room.
    let cleo = world.cleo.clone();
    let number = world.github.open(REPOSITORY, &cleo, &["examples/nano-lm/a.py"]);
    world.deliver().await;
    let head = world.head(number);
    assert_eq!(
        world.say(number, &ada, &format!("/gpu-test {head}")).await,
        [Ok(())]
    );
}

#[tokio::test]
async fn a26_a_delivery_that_comes_again_does_nothing_again() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (ada, head) = (world.ada.clone(), world.head(number));
    world
        .github
        .comment(REPOSITORY, number, &ada, &format!("/gpu-test {head}"));
    let comment = world.github.take_deliveries();
    world.handle_all(&comment).await;
    world.until_running(1).await;
    world.say(number, &ada, "/gpu-cancel").await;
    world.until_running(0).await;
    world.handle_all(&comment).await;
    world.decide().await;
    assert_eq!(world.state(1).await, RunState::Ended(Ending::Cancelled));
    assert_eq!(world.approvals().await, 1);
}

#[tokio::test]
async fn a28_a_check_run_of_another_app_has_no_buttons_of_ours() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (ada, head) = (world.ada.clone(), world.head(number));
    let forged = check_of(1, head.as_str(), 98);
    world.github.press(REPOSITORY, &forged, &ada, Some("approve"));
    assert_eq!(world.deliver().await, [Handled::Ignored(Ignored::OtherApp)]);
    // Of ours, but with the run of one pull request on the head of another.
    let other = world
        .github
        .open(REPOSITORY, &world.mallory, &["examples/nano-lm/a.py"]);
    world.deliver().await;
    let mixed = check_of(1, world.head(other).as_str(), world.github.app());
    world.github.press(REPOSITORY, &mixed, &ada, Some("approve"));
    assert_eq!(answers(world.deliver().await), [Err(Answer::NoRun)]);
    assert_eq!(world.state(1).await, WAITS);
}

#[tokio::test]
async fn a30_whoever_loses_the_right_loses_what_they_approved() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let cleo = world.cleo.clone();
    world.press(1, &cleo, Some("approve")).await;
    world.until_running(1).await;
    world.github.set_permission(REPOSITORY, &cleo, Permission::Read);
    world.intake.sweep(REPOSITORY).await.expect("GitHub works");
    world.until(1, WAITS).await;
    assert_eq!(
        world.say(number, &cleo, "/gpu-test").await,
        refused(ApprovalProblem::NotEntitled)
    );
}

#[tokio::test]
async fn a_base_that_changes_ends_what_was_approved_against_the_one_before() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (ada, mallory) = (world.ada.clone(), world.mallory.clone());
    world.press(1, &ada, Some("approve")).await;
    world.until_running(1).await;
    world
        .github
        .change_base(REPOSITORY, number, &mallory, "release-1.0");
    world.deliver().await;
    world.until_running(0).await;
    assert_eq!(world.state(2).await, WAITS);
    let now = world.head(number);
    assert_eq!(
        world.say(number, &ada, "/gpu-test").await,
        refused(ApprovalProblem::WhichHead(now))
    );
}

#[tokio::test]
async fn a_pull_request_that_was_closed_runs_nothing_and_takes_no_word() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (ada, mallory) = (world.ada.clone(), world.mallory.clone());
    world.press(1, &ada, Some("approve")).await;
    world.until_running(1).await;
    world.github.close(REPOSITORY, number, &mallory);
    world.deliver().await;
    world.until_running(0).await;
    let head = world.head(number);
    assert_eq!(
        world.say(number, &ada, &format!("/gpu-test {head}")).await,
        refused(ApprovalProblem::Closed)
    );
}

#[tokio::test]
async fn strangers_end_hold_and_retry_nothing() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let stranger = world.github.add_account(80, "stranger", AccountKind::User);
    for command in ["/gpu-cancel", "/gpu-hold", "/gpu-hold cancel"] {
        assert_eq!(
            world.say(number, &stranger, command).await,
            [Err(Answer::MayNot)],
            "{command}"
        );
    }
    assert_eq!(
        world.press(1, &stranger, Some("cancel")).await,
        [Err(Answer::MayNot)]
    );
    assert_eq!(world.state(1).await, WAITS);
}

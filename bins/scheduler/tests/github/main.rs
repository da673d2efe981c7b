//! The program beside a GitHub: a pull request is opened, its webhook comes, and the word of an owner lets it run.

mod executed;
mod place;

use std::{fs, process::Command};

use blueproof_core::{
    domain::{RunId, RunState},
    ports::{DeliveryState, StoreClient as _},
};
use blueproof_github::api::{CheckAction, CheckConclusion, CheckRunState};

use tokio::time::timeout;

use place::{Agent, BOUND, News, Place, REPOSITORY, send, until};

#[tokio::test]
async fn a_pull_request_waits_for_an_owner_whose_word_lets_it_run() {
    let place = Place::new().await;
    let head = place.repository();
    let (process, address) = place.serve(Agent::None, News::Webhooks);
    let store = place.store();
    let number = place
        .github
        .open(REPOSITORY, &place.mallory, &["examples/nano-lm/nano-lm.ipynb"]);
    place.github.push_back(REPOSITORY, number, &place.mallory, &head);
    place.deliver(&address);
    until(&store, RunId(1), |view| view.state == RunState::AwaitingApproval).await;
    let checks = || place.github.checks(REPOSITORY, &head);
    let waits = |state| {
        let conclusion = CheckConclusion::ActionRequired;
        matches!(state, CheckRunState::Completed { conclusion: now, .. } if now == conclusion)
    };
    place.until_shown(&head, waits).await;
    assert_eq!(checks()[0].actions[0], CheckAction::Approve);
    place
        .github
        .comment(REPOSITORY, number, &place.mallory, &format!("/gpu-test {head}"));
    place
        .github
        .comment(REPOSITORY, number, &place.ada, &format!("/gpu-test {head}"));
    place.deliver(&address);
    until(&store, RunId(1), |view| !view.attempts.is_empty()).await;
    let view = store.run(RunId(1)).await.expect("a read").expect("it is there");
    assert_eq!(view.attempts[0].approved_by, place.ada.to_actor());
    let told = place.outcomes(&store).await;
    let outcome = |outcome: &str| DeliveryState::Done {
        outcome: outcome.into(),
    };
    let refused = "not done: nobody approves their own pull request";
    assert_eq!(told, [outcome("done"), outcome(refused)]);
    place
        .until_shown(&head, |state| state == CheckRunState::InProgress)
        .await;
    assert_eq!(checks().len(), 1);
    assert_eq!(process.terminate(), Some(0));
}

#[tokio::test]
async fn what_was_lost_while_the_program_was_away_is_asked_for_when_it_is_back() {
    let place = Place::new().await;
    let head = place.repository();
    let number = place
        .github
        .open(REPOSITORY, &place.mallory, &["examples/nano-lm/nano-lm.ipynb"]);
    place.github.push_back(REPOSITORY, number, &place.mallory, &head);
    let lost = place.github.lose_deliveries();
    let (process, address) = place.serve(Agent::None, News::Webhooks);
    let asked = place
        .github
        .until(|github| github.n_calls("redeliver") as usize == lost.len());
    timeout(BOUND, asked).await.expect("it asks for each");
    for (name, delivery) in place.github.take_redeliveries(202) {
        send(&address, name.as_str(), &delivery);
    }
    let store = place.store();
    let looked = DeliveryState::Done {
        outcome: "looked at what it is about".into(),
    };
    assert_eq!(place.outcomes(&store).await, [looked.clone(), looked]);
    until(&store, RunId(1), |view| view.state == RunState::AwaitingApproval).await;
    assert_eq!(process.terminate(), Some(0));
}

#[test]
fn a_connection_with_mistakes_is_refused_with_all_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("github.yaml");
    fs::write(&file, "apiVersion: blueproof.dev/v1alpha1\nkind: GitHubConnection\nspec:\n  tokenFile: t\n  repos: [a]\n  pollEvery: 1s\n")
        .expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_blueproof-scheduler"))
        .args(["serve", "--github"])
        .arg(&file)
        .env_clear()
        .env("HOME", folder.path())
        .output();
    let output = output.expect("it starts");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in [
        "unknown key `repos`",
        "github.yaml:6:",
        "`1s` is not allowed here",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

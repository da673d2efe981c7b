//! What is asked of GitHub is what GitHub's own description of its API allows, and what the fake answers is a part of what is described.
//!
//! The description is the npm package `@octokit/openapi`, which `cargo xtask ci github` fetches and names in `BLUEPROOF_GITHUB_OPENAPI`.
//! Without that variable our requests are not compared with anything, and the test says so.

mod description;
mod refusals;
mod requests;

use std::{collections::BTreeSet, env, fs};

use description::{Description, Sent};

/// The ports, of which every call is made.
const PORTS: [&str; 3] = [
    include_str!("../../src/api.rs"),
    include_str!("../../src/api/actions.rs"),
    include_str!("../../src/api/hook.rs"),
];

/// The calls that are made by another call of the port, and so are no requests of their own.
const MADE_BY_OTHERS: [&str; 1] = ["paths_named"];

/// Returns GitHub's description of its API; `None` where it is not here.
fn published() -> Option<Description> {
    let Some(file) = env::var_os("BLUEPROOF_GITHUB_OPENAPI") else {
        println!("NOT TESTED: BLUEPROOF_GITHUB_OPENAPI names no file; `cargo xtask ci github` fetches it");
        return None;
    };
    let text = fs::read(&file).expect("the description can be read");
    Some(Description::new(
        serde_json::from_slice(&text).expect("the description is JSON"),
    ))
}

/// Returns the names of the ports' calls.
fn calls_of_ports() -> BTreeSet<&'static str> {
    let after = PORTS.iter().flat_map(|port| port.split("async fn ").skip(1));
    after.filter_map(|rest| rest.split('(').next()).collect()
}

#[tokio::test]
async fn every_call_of_the_ports_is_made_and_counted() {
    let made = requests::all().await;
    let names = calls_of_ports();
    assert!(names.len() >= 19, "{names:?}");
    let is_missing = |name: &&&str| made.n_calls(name) == 0 && !MADE_BY_OTHERS.contains(*name);
    let missing: Vec<_> = names.iter().filter(is_missing).collect();
    assert!(
        missing.is_empty(),
        "no request of {missing:?} is held to the description"
    );
}

#[tokio::test]
async fn every_request_is_one_that_github_describes() {
    let Some(description) = published() else { return };
    let made = requests::all().await;
    let mut operations = BTreeSet::new();
    for sent in made.sent().await {
        let operation = description.check(&sent);
        operations.insert(operation.unwrap_or_else(|why| panic!("{} {}: {why}", sent.method, sent.path)));
    }
    let expected = requests::OPERATIONS.into_iter().map(str::to_owned);
    assert_eq!(operations, expected.collect());
}

#[tokio::test]
async fn every_answer_of_the_fake_is_a_part_of_one_that_github_describes() {
    let Some(description) = published() else { return };
    let made = requests::all().await;
    let answers = made.answers();
    assert!(answers.len() >= requests::OPERATIONS.len(), "{answers:?}");
    let wrong = answers.iter().filter_map(|answer| {
        description
            .check_answer(&answer.method, &answer.path, answer.status, &answer.body)
            .err()
    });
    assert_eq!(wrong.collect::<Vec<_>>(), [""; 0]);
}

#[tokio::test]
async fn a_request_that_github_does_not_describe_is_told_from_one_that_it_does() {
    let Some(description) = published() else { return };
    let made = requests::all().await.sent().await;
    let check_run = made
        .iter()
        .find(|sent| sent.method == "POST" && sent.path.ends_with("/check-runs"));
    refusals::each_is_refused(&description, check_run.expect("one was made"));
}

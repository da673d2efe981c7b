//! Every example of a payload that GitHub's Octokit publishes is read.
//!
//! The examples are the npm package `@octokit/webhooks-examples`, which `cargo xtask ci github` fetches and names in
//! `BLUEPROOF_WEBHOOK_EXAMPLES`. Without that variable nothing is tested here, and the test says so.

use std::{collections::BTreeMap, env, fs};

use blueproof_github::payload::Payload;
use serde_json::Value;

/// The fewest examples that the package has had since 7.0.
const FEWEST: usize = 250;

#[test]
fn every_published_payload_is_read() {
    let Some(file) = env::var_os("BLUEPROOF_WEBHOOK_EXAMPLES") else {
        println!("not run: BLUEPROOF_WEBHOOK_EXAMPLES names no file; `cargo xtask ci github` fetches it");
        return;
    };
    let text = fs::read(&file).expect("the examples can be read");
    let events: Vec<Value> = serde_json::from_slice(&text).expect("the examples are JSON");
    let mut read = BTreeMap::new();
    for event in &events {
        let name = event["name"].as_str().expect("an event has a name");
        for example in event["examples"].as_array().expect("an event has examples") {
            let body = serde_json::to_vec(example).expect("JSON");
            let payload = Payload::parse(&name.parse().expect("a name of an event"), &body);
            let payload = payload
                .unwrap_or_else(|error| panic!("{name}: {error}: {:?}", std::error::Error::source(&error)));
            compare(name, example, &payload);
            *read.entry(name).or_insert(0_usize) += 1;
        }
    }
    assert!(read.values().sum::<usize>() >= FEWEST, "{read:?}");
    for name in [
        "pull_request",
        "issue_comment",
        "check_run",
        "check_suite",
        "push",
        "merge_group",
        "workflow_job",
    ] {
        assert!(read.contains_key(name), "there is no example of {name}");
    }
}

/// What was read is what is there.
fn compare(name: &str, example: &Value, payload: &Payload) {
    let text = |pointer: &str| {
        example
            .pointer(pointer)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let number = |pointer: &str| example.pointer(pointer).and_then(Value::as_u64);
    let length = |pointer: &str| {
        example
            .pointer(pointer)
            .and_then(Value::as_array)
            .map_or(0, Vec::len)
    };
    if let Some(repository) = payload.repository() {
        assert_eq!(Some(repository.id), number("/repository/id"));
        assert_eq!(Some(repository.full_name.clone()), text("/repository/full_name"));
    }
    let head = match payload {
        Payload::PullRequest(event) => {
            assert_eq!(Some(event.pull_request.number), number("/number"));
            assert_eq!(
                Some(event.pull_request.base.name.clone()),
                text("/pull_request/base/ref")
            );
            (event.pull_request.head.sha.as_str(), "/pull_request/head/sha")
        }
        Payload::CheckRun(event) => {
            let pressed = event.requested_action.as_ref();
            assert_eq!(
                pressed.map(|pressed| pressed.identifier.clone()),
                text("/requested_action/identifier")
            );
            (event.check_run.head_sha.as_str(), "/check_run/head_sha")
        }
        Payload::IssueComment(event) => {
            let is_pull_request = example.pointer("/issue/pull_request").is_some();
            assert_eq!(event.issue.is_pull_request(), is_pull_request);
            (event.comment.body.as_deref().unwrap_or_default(), "/comment/body")
        }
        Payload::WorkflowJob(event) => {
            assert_eq!(event.workflow_job.labels.len(), length("/workflow_job/labels"));
            (event.workflow_job.head_sha.as_str(), "/workflow_job/head_sha")
        }
        Payload::InstallationRepositories(event) => {
            assert_eq!(event.repositories_added.len(), length("/repositories_added"));
            return;
        }
        Payload::CheckSuite(event) => (event.check_suite.head_sha.as_str(), "/check_suite/head_sha"),
        Payload::MergeGroup(event) => (event.merge_group.head_sha.as_str(), "/merge_group/head_sha"),
        Payload::Push(event) => (event.reference.as_str(), "/ref"),
        Payload::Installation(event) => {
            return assert_eq!(Some(event.installation.id), number("/installation/id"));
        }
        Payload::Ping => return assert_eq!(name, "ping"),
        Payload::Repository(_) | Payload::Other => return,
    };
    assert_eq!(Some(head.0.to_owned()), text(head.1));
}

//! What approvals cover, and how they are read.

use serde_json::json;

use super::*;
use crate::testing::request;

fn subject(blueprint: &str, profile: Option<&str>) -> Subject {
    Subject {
        repository: Repository::GitHub(7),
        pull_request: Some(12),
        head: Head::Commit("a".repeat(40)),
        base: Some("main".parse().expect("a branch")),
        blueprint: blueprint.parse().expect("a name"),
        profile: profile.map(|name| name.parse().expect("a name")),
    }
}

/// Returns a request for a run of a subject.
fn of(subject: &Subject) -> RunRequest {
    RunRequest {
        subject: subject.clone(),
        ..request("a", "nano-lm")
    }
}

#[test]
fn an_approval_covers_what_its_scope_says_of_one_head_for_one_base() {
    let one = subject("nano-lm", None);
    let exactly = ApprovalTarget::of(&one);
    let whole = ApprovalTarget::whole_head_of(&one);
    let others = [subject("nano-lm", Some("smoke")), subject("small-gpt", None)];
    assert!(exactly.covers(&of(&one)) && whole.covers(&of(&one)));
    for other in &others {
        assert!(
            !exactly.covers(&of(other)) && whole.covers(&of(other)),
            "{other:?}"
        );
    }
    let elsewhere: [fn(&mut Subject); 4] = [
        |other| other.repository = Repository::GitHub(8),
        |other| other.pull_request = Some(13),
        |other| other.head = Head::Commit("b".repeat(40)),
        |other| other.base = Some("release".parse().expect("a branch")),
    ];
    for change in elsewhere {
        let mut other = one.clone();
        change(&mut other);
        assert!(!whole.covers(&of(&other)), "{other:?}");
    }
}

#[test]
fn an_approval_of_named_jobs_covers_no_other_of_the_same_head() {
    let one = of(&subject("nano-lm", None));
    let mut target = ApprovalTarget::whole_head_of(&one.subject);
    target.scope.jobs = Selection::one(one.job.digest());
    assert!(target.covers(&one));
    let mut other = one;
    other.job.work = json!({"notebook": "a.ipynb", "secrets": [{"name": "hf-token", "env": "HF_TOKEN"}]});
    assert!(!target.covers(&other));
    target.scope.jobs = Selection::All;
    assert!(target.covers(&other));
    let text = serde_json::to_value(&target).expect("plain data");
    assert_eq!(text["scope"].get("jobs"), None, "as approvals of before have it");
}

#[test]
fn an_approval_of_before_there_were_scopes_covers_exactly_its_subject() {
    let stored = json!({
        "subject": {
            "project": {"gitHub": 7}, "change": 12, "head": "a".repeat(40), "blueprint": "nano-lm", "profile": "smoke",
        },
        "policy": "p",
        "by": {"gitHub": {"id": 1, "login": "ada"}},
        "expiresAt": null,
    });
    let approval: Approval = serde_json::from_value(stored).expect("an earlier version wrote it");
    let mut approved = subject("nano-lm", Some("smoke"));
    approved.base = None;
    assert_eq!(approval.target, ApprovalTarget::of(&approved));
    assert!(approval.target.covers(&of(&approved)));
    for other in [subject("nano-lm", None), subject("small-gpt", Some("smoke"))] {
        let other = Subject { base: None, ..other };
        assert!(!approval.target.covers(&of(&other)), "{other:?}");
    }
    let text = serde_json::to_value(&approval).expect("plain data");
    assert_eq!(
        serde_json::from_value::<Approval>(text).expect("it comes back"),
        approval
    );
}

#[test]
fn an_approval_without_a_scope_is_none() {
    let stored = json!({"repository": {"gitHub": 7}, "head": "a".repeat(40)});
    assert!(serde_json::from_value::<ApprovalTarget>(stored).is_err());
}

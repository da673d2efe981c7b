//! What GitHub leaves out, adds, and gets wrong. Its own examples are in `tests/published.rs`.

use super::*;

const SHA: &str = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d";

fn parse(event: &str, body: &str) -> Result<Payload, PayloadError> {
    Payload::parse(&event.parse().expect("a name"), body.as_bytes())
}

fn check_run(sha: &str) -> String {
    format!(
        r#"{{"action":"requested_action","check_run":{{"id":1,"name":"GPU","head_sha":"{sha}"}},
            "requested_action":{{"identifier":"approve"}},"repository":{{"id":7,"full_name":"a/b"}},
            "sender":{{"id":2,"login":"ada","type":"User"}}}}"#
    )
}

#[test]
fn what_is_missing_is_absent_and_what_is_new_is_kept() {
    let Ok(Payload::CheckRun(event)) = parse("check_run", &check_run(SHA)) else {
        panic!("it is one");
    };
    assert_eq!((event.check_run.app, event.installation), (None, None));
    assert!(event.sender.is_person());
    let later = check_run(SHA).replace("requested_action\",\"check_run", "dreamt_of\",\"check_run");
    let Ok(Payload::CheckRun(event)) = parse("check_run", &later) else {
        panic!("it is one");
    };
    assert_eq!(event.action, CheckRunAction::Other("dreamt_of".into()));
}

#[test]
fn a_commit_that_is_none_is_an_error_and_no_guess() {
    for sha in ["", "1a2b3c4", &SHA.to_uppercase(), &"0".repeat(64)] {
        let error = parse("check_run", &check_run(sha)).expect_err("it is no commit");
        assert_eq!(
            error.to_string(),
            "could not read the payload of the event `check_run`"
        );
    }
}

/// A check run's head is of git: a folder's digest never comes from GitHub.
#[test]
fn a_digest_of_a_folder_is_no_head_of_githubs() {
    let digest = format!("snapshot:{}", "0".repeat(64));
    assert!(parse("check_run", &check_run(&digest)).is_err());
}

#[test]
fn what_does_not_say_that_it_is_a_person_is_none() {
    let account = |kind: &str| {
        let account: Account =
            serde_json::from_str(&format!(r#"{{"id":1,"login":"a"{kind}}}"#)).expect("an account");
        account.is_person()
    };
    assert!(account(r#","type":"User""#));
    for kind in [
        "",
        r#","type":"Bot""#,
        r#","type":"Organization""#,
        r#","type":"Mannequin""#,
    ] {
        assert!(!account(kind), "{kind}");
    }
}

#[test]
fn what_is_no_json_is_an_error_for_each_event() {
    for event in ["ping", "push", "event_of_next_year", "pull_request"] {
        for body in ["", "[", "\u{0}", "{\"action\":", "null garbage"] {
            assert!(parse(event, body).is_err(), "{event}: {body:?}");
        }
    }
    let deep = "[".repeat(100_000);
    assert!(parse("ping", &deep).is_err());
    assert!(Payload::parse(&"push".parse().expect("a name"), b"\xff\xfe").is_err());
    assert_eq!(
        parse("ping", "\u{feff}{}").expect("a mark in front is borne"),
        Payload::Ping
    );
}

#[test]
fn only_the_default_branch_has_the_policy() {
    let push = |reference: &str, default: &str| {
        let body = format!(
            r#"{{"ref":"{reference}","after":"{SHA}","repository":{{"id":7,"full_name":"a/b"{default}}}}}"#
        );
        match parse("push", &body) {
            Ok(Payload::Push(event)) => event.is_to_default_branch(),
            other => panic!("{other:?}"),
        }
    };
    let main = r#","default_branch":"main""#;
    assert!(push("refs/heads/main", main));
    assert!(!push("refs/tags/main", main));
    assert!(!push("refs/heads/mainline", main));
    assert!(!push("refs/tags/v1", ""));
}

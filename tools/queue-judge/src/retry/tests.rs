//! What the judge makes of sentences; the cases themselves are in `cases/`.

use super::*;

fn case(from: &str, when: &str, to: &str) -> RetryCase {
    RetryCase {
        id: "x".into(),
        from: from.into(),
        when: when.into(),
        within: None,
        after: None,
        retries_now: None,
        to: to.into(),
        then: None,
        retries: None,
        reason: None,
        quota: None,
        pods_ready: None,
        recheck_s: None,
        _note: None,
    }
}

#[test]
fn a_sentence_is_known_in_other_words() {
    let rows = [
        ("Suspended", "suspend is set to false", "Resuming"),
        ("Suspended", "suspend stays true", "Suspended"),
        (
            "Resuming",
            "creating a component fails with a non-fatal error",
            "Resuming",
        ),
        ("Resuming", "suspend has become true", "Suspending"),
        ("Running", "a Job component failed and no pod did", "Resetting"),
        ("Running", "one component was removed by somebody", "Failed"),
        (
            "Running",
            "a pod uses a GPU that its node has as NoExecute, with no retries left",
            "Failed",
        ),
        ("Running", "all pods exist, some still pending", "Running"),
        (
            "Running",
            "running and succeeded pods are as many as expected and none failed",
            "Running",
        ),
        ("Resetting", "all is deleted, and the pause is over", "Resuming"),
        (
            "Resetting",
            "all is deleted, but 90s have not passed",
            "Resetting",
        ),
        ("Suspending", "components are gone", "Suspended"),
        ("Suspending", "components are still being deleted", "Suspending"),
        ("Succeeded", "its time to live is over", "Succeeded"),
        ("Terminating", "components are gone", "Terminating"),
    ];
    for (from, when, to) in rows {
        let found = run(&case(from, when, to)).expect(when);
        assert_eq!(found, Vec::<String>::new(), "from {from}: {when}");
    }
}

#[test]
fn an_exit_code_is_on_the_list_or_it_is_not() {
    let rows = [
        ("the exit code of a pod is listed as terminal", "Failed"),
        (
            "a list of retryable codes is given and does not hold it",
            "Failed",
        ),
        (
            "a pod failed with a code that is missing from the retryable ones and no component did",
            "Failed",
        ),
        (
            "a pod failed whose exit code isn't among the terminal ones",
            "Resetting",
        ),
        (
            "a pod failed with a retryable exit code and no component did",
            "Resetting",
        ),
    ];
    for (when, to) in rows {
        let case = RetryCase {
            after: Some(60),
            ..case("Running", when, to)
        };
        assert_eq!(run(&case).expect(when), Vec::<String>::new(), "{when}");
    }
}

#[test]
fn a_sentence_that_is_not_understood_says_so() {
    let error = run(&case("Running", "the moon is full", "Failed")).expect_err("nobody knows");
    assert_eq!(
        error.to_string(),
        "from Running, `the moon is full` is not understood"
    );
}

#[test]
fn what_differs_is_told_with_what_was_expected_and_what_came() {
    let wrong = RetryCase {
        retries: Some(Value::from(1)),
        reason: Some("CreateFailed".into()),
        quota: Some("held".into()),
        pods_ready: Some(true),
        recheck_s: Some(5),
        then: Some("Suspended".into()),
        ..case("Running", "a component is missing", "Resetting")
    };
    let found = run(&wrong).expect("it is understood");
    let expected = [
        "to: expected Resetting, got Failed",
        "retries: expected 1, got 0",
        "reason: expected Some(\"CreateFailed\"), got Some(\"MissingComponent\")",
        "pods_ready: expected true, got false",
        "recheck_s: expected Some(5s), got Some(0s)",
        "then: expected Suspended, got Failed",
        "quota: expected \"held\", got \"released\"",
    ];
    assert_eq!(found, expected);
}

#[test]
fn more_retries_than_there_can_be_are_no_case() {
    let case = RetryCase {
        retries_now: Some(4),
        ..case("Running", "a component is missing", "Failed")
    };
    assert!(run(&case).is_err());
}

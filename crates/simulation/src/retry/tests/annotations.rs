//! Terms as annotations say them.

use blueproof_diagnostic::{Code, Diagnostic};

use super::*;

fn annotated(name: &str, value: &str) -> Result<FaultTolerance, Vec<Diagnostic>> {
    let key = format!("workload.codeflare.dev.appwrapper/{name}");
    FaultTolerance::annotated([(key.as_str(), value), ("another.dev/retryLimit", "many")])
}

#[test]
fn annotations_are_read_as_appwrapper_reads_them() {
    let set = |change: fn(&mut FaultTolerance)| {
        let mut terms = FaultTolerance::default();
        change(&mut terms);
        terms
    };
    let day = 24 * 3600;
    let rows = [
        (
            "admissionGracePeriodDuration",
            "2m",
            set(|terms| terms.admission_grace = seconds(120)),
        ),
        (
            "warmupGracePeriodDuration",
            "1m30s",
            set(|terms| terms.warmup_grace = seconds(90)),
        ),
        (
            "failureGracePeriodDuration",
            "0",
            set(|terms| terms.failure_grace = seconds(0)),
        ),
        (
            "retryPausePeriodDuration",
            "-5s",
            set(|terms| terms.retry_pause = seconds(0)),
        ),
        ("retryLimit", "0", set(|terms| terms.retry_limit = 0)),
        (
            "successTTLDuration",
            "1h",
            set(|terms| terms.success_ttl = seconds(3600)),
        ),
        ("successTTLDuration", "1000h", FaultTolerance::default()),
        ("successTTLDuration", "-1h", FaultTolerance::default()),
        ("terminalExitCodes", "", FaultTolerance::default()),
    ];
    for (name, value, expected) in rows {
        assert_eq!(annotated(name, value), Ok(expected), "{name}: {value}");
    }
    let forceful = annotated("forcefulDeletionGracePeriodDuration", "48h").expect("it is cut");
    assert_eq!(forceful.forceful_deletion_grace, seconds(day));
    let delay = annotated("deletionOnFailureGracePeriodDuration", "25h").expect("it is cut");
    assert_eq!(delay.deletion_delay, seconds(day));
}

#[test]
fn a_blank_after_a_comma_loses_no_exit_code() {
    let terms = annotated("terminalExitCodes", "1, 2").expect("it is a list");
    for code in [1, 2] {
        let mut story = Story {
            terms: terms.clone(),
            ..Story::running()
        };
        story.look(0, &failed_with(&[0, code]));
        story.look(60, &failed_with(&[0, code]));
        assert_eq!(story.machine.phase(), Phase::Failed, "exit code {code}");
    }
}

#[test]
fn with_a_list_of_retryable_codes_those_are_retried() {
    let terms = annotated("retryableExitCodes", "3 ,4").expect("it is a list");
    let rows = [
        (vec![3], Phase::Resetting),
        (vec![4], Phase::Resetting),
        (vec![3, 5], Phase::Failed),
        (vec![], Phase::Resetting),
        (vec![0], Phase::Resetting),
    ];
    for (codes, phase) in rows {
        let mut story = Story {
            terms: terms.clone(),
            ..Story::running()
        };
        story.look(0, &failed_with(&codes));
        story.look(60, &failed_with(&codes));
        assert_eq!(story.machine.phase(), phase, "exit codes {codes:?}");
    }
}

#[test]
fn what_cannot_be_read_in_an_annotation_is_refused_with_what_to_write() {
    let rows = [
        ("terminalExitCodes", "1,oom", "it is not a list of exit codes"),
        ("retryableExitCodes", "1,,2", "it is not a list of exit codes"),
        ("retryLimit", "-1", "it is not a whole number of retries"),
        ("warmupGracePeriodDuration", "5", "it is not a duration"),
    ];
    for (name, value, cause) in rows {
        let wrong = annotated(name, value).expect_err("it cannot be read");
        let key = format!("workload.codeflare.dev.appwrapper/{name}");
        let message = format!("the annotation `{key}` cannot have the value `{value}`");
        assert_eq!((wrong[0].code, &wrong[0].message), (Code::RetryTerms, &message));
        assert_eq!(wrong[0].causes, [cause]);
        assert_eq!(wrong[0].hints.len(), 1);
    }
    let unknown = annotated("retrylimit", "3").expect_err("there is none of that name");
    let message = "there is no annotation `workload.codeflare.dev.appwrapper/retrylimit`";
    assert_eq!(unknown[0].message, message);
}

//! What is said of a run that had several attempts.

use blueproof_diagnostic::Code;

use super::*;
use crate::{
    domain::FailureClass,
    event::Event,
    policy::Policy,
    scheduler::Scheduler,
    testing::{outcome, request},
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("small")
}

/// Returns a run that was asked for at the first second, with one attempt that was admitted there.
fn view() -> RunView {
    let mut scheduler = Scheduler::new(Policy::local(Resources {
        cpu: crate::domain::Cpus::cores(2),
        memory: crate::domain::Bytes(1 << 30),
        ..Resources::default()
    }));
    let request = Box::new(request("a", "nano-lm"));
    scheduler.handle(at(0), Event::Requested { request });
    scheduler.runs().next().expect("it was asked for")
}

fn attempt(of: &RunView, number: u32, queued: i64, reserved: i64, ended: i64) -> AttemptView {
    AttemptView {
        id: of.id.attempt(number),
        queued_at: Some(at(queued)),
        reserved_at: at(reserved),
        ended_at: Some(at(ended)),
        ..of.attempts[0].clone()
    }
}

#[test]
fn the_time_between_a_runs_end_and_the_request_to_try_it_again_is_no_wait() {
    let mut view = view();
    let first = attempt(&view, 1, 0, 9, 50);
    let by_itself = attempt(&view, 2, 55, 57, 60);
    let by_hand = attempt(&view, 3, 1000, 1003, 1004);
    view.attempts = vec![first.clone(), by_itself.clone(), by_hand.clone()];
    view.retried_at = Some(at(1000));
    for (why, attempt, seconds) in [
        ("from the request", &first, 9),
        ("from when it was back in its queue", &by_itself, 2),
        ("from the request to try again", &by_hand, 3),
    ] {
        assert_eq!(view.waited_for(attempt).as_secs(), seconds, "{why}");
    }
    assert_eq!(view.attempt_asked_for(), Some(&by_hand));
    view.attempts.pop();
    assert_eq!(view.attempt_asked_for(), None, "it was refused before it had one");
    assert_eq!(view.waiting_since(), at(1000));
}

#[test]
fn a_pass_after_a_failure_says_so_and_what_failed() {
    let mut view = view();
    let failure = Failure {
        class: FailureClass::Notebook,
        diagnostic: Diagnostic::error(Code::CellRaised, "KeyError: 'x'"),
        cell: None,
    };
    let ended = |number, verdict| AttemptView {
        outcome: Some(outcome(verdict)),
        ..attempt(&view, number, 0, 0, 1)
    };
    let failed = ended(1, Verdict::Failed(Box::new(failure)));
    let (stopped, passed) = (ended(1, Verdict::Stopped), ended(2, Verdict::Passed));
    view.attempts = vec![failed.clone(), passed.clone()];
    let late = "in attempt 2 of 2; attempt 1 failed: KeyError: 'x'";
    assert_eq!(view.passed_late().as_deref(), Some(late));
    for attempts in [vec![passed.clone()], vec![stopped, passed], vec![failed]] {
        view.attempts = attempts;
        assert_eq!(view.passed_late(), None);
    }
}

#[test]
fn an_eviction_is_told_so_that_it_goes_on_from_what_was_evicted() {
    let eviction = |by: Option<u64>, reason| Eviction {
        at: at(0),
        by: by.map(RunId),
        reason: EvictionReason::from(reason),
        message: None,
    };
    for (eviction, told) in [
        (
            eviction(Some(3), "InCohortReclamation"),
            "for r-3: another queue takes back what is its own (InCohortReclamation)",
        ),
        (
            eviction(None, "LocalQueueStopped"),
            "because its LocalQueue was stopped and drained (LocalQueueStopped)",
        ),
        (
            eviction(None, "ClusterQueueStopped"),
            "because its ClusterQueue was stopped and drained (ClusterQueueStopped)",
        ),
        (
            eviction(None, "AdmissionCheck"),
            "because its cluster took its quota back (AdmissionCheck)",
        ),
        (
            Eviction {
                message: Some("pods were not ready within 5m".into()),
                ..eviction(None, "PodsReadyTimeout")
            },
            "because pods were not ready within 5m (PodsReadyTimeout)",
        ),
    ] {
        assert_eq!(eviction.to_string(), told);
    }
}

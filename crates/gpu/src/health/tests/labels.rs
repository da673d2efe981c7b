//! When a node's labels change, and when they do not.

use std::collections::BTreeMap;

use blueproof_core::gpu::{Figure, Readings};
use jiff::SignedDuration;

use super::super::{
    AUTOPILOT_LABEL, Answer, CheckId, Finding, Findings, Health, LabelChange, LabelPolicy, Labels, OWN_LABEL,
    Person, Severity, Streak, Testing,
};
use super::stories::*;

/// Two problems in a row stand, and two times ok clear them.
fn policy() -> LabelPolicy {
    LabelPolicy {
        ok: Streak::times(2),
        ..LabelPolicy::default()
    }
}

fn labels() -> Labels {
    Labels::new(policy())
}

/// Returns the changes of Autopilot's label in one word each, and that of ours.
fn words(changes: &[LabelChange]) -> Vec<String> {
    let word = |change: &LabelChange| match change.key {
        AUTOPILOT_LABEL => change.value.to_owned(),
        key => {
            assert_eq!(key, OWN_LABEL);
            format!("own {}", change.value)
        }
    };
    changes.iter().map(word).collect()
}

fn ok() -> Findings {
    looked([healthy()], &[])
}

fn found(readings: Readings) -> Findings {
    looked([readings], &[])
}

fn remap(figure: Figure) -> Findings {
    found(with(figure, 1.0))
}

/// Returns labels of a node that passes, at the time 1.
fn passing() -> Labels {
    let mut labels = labels();
    assert_eq!(words(&labels.next(at(0), &ok())), ["", "own unknown"]);
    assert_eq!(words(&labels.next(at(1), &ok())), ["PASS", "own ok"]);
    labels
}

/// Returns labels of a node that is to be emptied, at the time 3.
fn evicted() -> Labels {
    let mut labels = passing();
    assert!(labels.next(at(2), &remap(Figure::RowRemapFailure)).is_empty());
    let changes = labels.next(at(3), &remap(Figure::RowRemapFailure));
    assert_eq!(words(&changes), ["EVICT", "own problem"]);
    assert_eq!(
        changes[0].why,
        "GPU-0: remapped rows: a row could not be replaced; replaced so far: 0 after uncorrectable errors, 0 after others"
    );
    labels
}

fn passed() -> Findings {
    only(CheckId::DcgmLevel3, Answer::ok("all passed"))
}

#[test]
fn a_node_passes_once_every_check_was_ok_often_enough_and_is_told_once() {
    let mut labels = passing();
    assert_eq!(labels.next(at(2), &ok()), []);
    assert_eq!(labels.health(), Health::Ok);
}

#[test]
fn one_problem_alone_changes_nothing_and_two_warn() {
    let mut labels = passing();
    assert_eq!(labels.next(at(2), &remap(Figure::RowRemapPending)), []);
    assert_eq!(
        words(&labels.next(at(3), &remap(Figure::RowRemapPending))),
        ["WARN", "own problem"]
    );
    assert_eq!(labels.next(at(4), &ok()), []);
    assert_eq!(words(&labels.next(at(5), &ok())), ["PASS", "own ok"]);
}

#[test]
fn a_device_that_flaps_changes_the_labels_once() {
    let mut labels = passing();
    let mut changes = Vec::new();
    for second in 2..200 {
        let found = if second % 2 == 0 {
            remap(Figure::RowRemapPending)
        } else {
            ok()
        };
        changes.extend(labels.next(at(second), &found));
    }
    assert_eq!(words(&changes), ["WARN", "own problem"]);
}

#[test]
fn a_reading_that_fails_now_and_then_changes_the_labels_once() {
    let mut labels = passing();
    let mut changes = Vec::new();
    for second in 2..200 {
        let found = if second % 2 == 0 {
            found(but(Figure::PcieWidth, failed()))
        } else {
            ok()
        };
        changes.extend(labels.next(at(second), &found));
    }
    assert_eq!(words(&changes), ["", "own unknown"]);
}

#[test]
fn a_problem_must_last_as_long_as_is_configured_and_so_must_its_end() {
    let lasting = Streak {
        times: 1,
        lasting: SignedDuration::from_secs(60),
    };
    let mut labels = Labels::new(LabelPolicy {
        problem: lasting,
        ok: lasting,
        ..policy()
    });
    let mut told = Vec::new();
    for second in 0..=300 {
        let found = if (100..=200).contains(&second) {
            remap(Figure::RowRemapPending)
        } else {
            ok()
        };
        let changes = labels.next(at(second), &found);
        told.extend(words(&changes).into_iter().map(|word| (second, word)));
    }
    let autopilot: Vec<_> = told.iter().filter(|(_, word)| !word.starts_with("own")).collect();
    let expected = [(0, ""), (60, "PASS"), (160, "WARN"), (261, "PASS")];
    assert_eq!(autopilot.len(), expected.len(), "{told:?}");
    for (got, expected) in autopilot.iter().zip(expected) {
        assert_eq!((got.0, got.1.as_str()), expected);
    }
}

#[test]
fn findings_that_come_twice_or_late_change_nothing() {
    let mut labels = passing();
    for _ in 0..5 {
        assert_eq!(labels.next(at(5), &remap(Figure::RowRemapPending)), []);
    }
    for _ in 0..5 {
        assert_eq!(labels.next(at(4), &remap(Figure::RowRemapPending)), []);
    }
    assert_eq!(
        words(&labels.next(at(6), &remap(Figure::RowRemapPending))),
        ["WARN", "own problem"]
    );
}

#[test]
fn an_error_that_the_driver_reports_once_empties_the_node_at_once() {
    let mut labels = passing();
    let changes = labels.next(at(2), &looked([healthy()], &[79]));
    assert_eq!(words(&changes), ["EVICT", "own problem"]);
    assert_eq!(changes[0].why, "GPU-0: XIDs: XID 79: it fell off the bus");
}

#[test]
fn an_error_that_the_driver_reports_once_counts_even_beside_what_was_found_at_the_same_time() {
    let mut labels = passing();
    labels.next(at(2), &ok());
    let changes = labels.next(at(2), &looked([healthy()], &[79]));
    assert_eq!(words(&changes), ["EVICT", "own problem"]);
}

#[test]
fn problems_add_up_only_until_all_was_well_for_long_enough() {
    let mut labels = passing();
    for round in 0..50 {
        for (second, found) in [remap(Figure::RowRemapPending), ok(), ok()].iter().enumerate() {
            let now = 2 + 3 * round + i64::try_from(second).expect("a small number");
            assert_eq!(labels.next(at(now), found), []);
        }
    }
}

#[test]
fn a_pass_that_lifts_an_eviction_leaves_the_warning_that_was_found_since() {
    let mut labels = evicted();
    assert_eq!(labels.next(at(4), &remap(Figure::RowRemapPending)), []);
    assert_eq!(words(&labels.next(at(5), &passed())), ["WARN"]);
    assert_eq!(labels.next(at(6), &remap(Figure::RowRemapPending)), []);
    assert_eq!(labels.next(at(7), &ok()), []);
    assert_eq!(words(&labels.next(at(8), &ok())), ["PASS", "own ok"]);
}

#[test]
fn an_error_of_a_program_does_not_change_the_labels() {
    let mut labels = passing();
    assert_eq!(labels.next(at(2), &looked([healthy()], &[13, 31, 43, 45])), []);
}

#[test]
fn an_eviction_stays_however_often_light_checks_are_ok() {
    let mut labels = evicted();
    for second in 4..400 {
        assert_eq!(labels.next(at(second), &ok()), []);
    }
}

#[test]
fn an_eviction_is_lifted_by_an_invasive_pass_and_the_node_has_to_be_found_ok_again() {
    let mut labels = evicted();
    assert_eq!(labels.next(at(4), &ok()), []);
    assert_eq!(words(&labels.next(at(5), &passed())), ["", "own unknown"]);
    assert_eq!(labels.next(at(6), &ok()), []);
    assert_eq!(words(&labels.next(at(7), &ok())), ["PASS", "own ok"]);
}

#[test]
fn an_eviction_is_not_lifted_by_a_pass_while_a_light_check_still_sees_the_reason() {
    let mut labels = evicted();
    assert_eq!(labels.next(at(4), &passed()), []);
    assert_eq!(labels.next(at(5), &ok()), []);
    assert_eq!(words(&labels.next(at(6), &passed())), ["", "own unknown"]);
}

#[test]
fn a_pass_that_is_told_again_does_not_lift_a_later_eviction() {
    let mut labels = evicted();
    labels.next(at(4), &ok());
    assert_eq!(words(&labels.next(at(5), &passed())), ["", "own unknown"]);
    assert_eq!(
        words(&labels.next(at(6), &looked([healthy()], &[79]))),
        ["EVICT", "own problem"]
    );
    labels.next(at(7), &ok());
    assert_eq!(labels.next(at(5), &passed()), []);
}

#[test]
fn an_eviction_is_lifted_by_somebody_with_a_name() {
    let mut labels = evicted();
    assert_eq!(Person::named("  "), None);
    let changes = labels.clear(&Person::named("ada").expect("a name"));
    assert_eq!(words(&changes), ["", "own unknown"]);
    assert_eq!(changes[0].why, "cleared by ada");
    labels.next(at(4), &ok());
    assert_eq!(words(&labels.next(at(5), &ok())), ["PASS", "own ok"]);
}

#[test]
fn an_invasive_failure_empties_the_node_and_an_invasive_pass_lifts_it() {
    let mut labels = passing();
    let failed = only(CheckId::DcgmLevel3, problem(Severity::Evict));
    assert_eq!(words(&labels.next(at(2), &failed)), ["EVICT", "own problem"]);
    assert_eq!(labels.next(at(3), &ok()), []);
    assert_eq!(words(&labels.next(at(4), &passed())), ["PASS", "own ok"]);
}

#[test]
fn a_warning_stays_while_its_check_is_unknown_or_not_done() {
    for (why, other) in [
        (
            "its reading failed",
            found(but(Figure::RowRemapPending, failed())),
        ),
        ("the card does not tell any more", found(healthy_volta())),
        (
            "only another check was done",
            only(CheckId::Ecc, Answer::ok("fine")),
        ),
        ("nothing was done", Findings::default()),
    ] {
        let mut labels = passing();
        labels.next(at(2), &remap(Figure::RowRemapPending));
        labels.next(at(3), &remap(Figure::RowRemapPending));
        for second in 4..50 {
            assert_eq!(labels.next(at(second), &other), [], "{why}");
        }
    }
}

#[test]
fn what_is_unknown_never_passes() {
    for (why, unknown) in [
        (
            "a reading failed",
            found(but(Figure::UncorrectedErrors, failed())),
        ),
        ("a count is not known", found(Readings::default())),
        ("nothing was done", Findings::default()),
    ] {
        let mut labels = labels();
        let changes: Vec<_> = (0..50)
            .flat_map(|second| labels.next(at(second), &unknown))
            .collect();
        assert_eq!(words(&changes), ["", "own unknown"], "{why}");
    }
}

#[test]
fn what_was_ok_long_ago_is_not_ok_now() {
    let mut labels = passing();
    assert_eq!(labels.next(at(3600), &Findings::default()), []);
    assert_eq!(
        words(&labels.next(at(3602), &Findings::default())),
        ["", "own unknown"]
    );
}

#[test]
fn a_test_is_shown_while_it_runs_unless_the_node_is_to_be_emptied() {
    let mut node = passing();
    assert_eq!(words(&node.testing(at(2), Testing::Began)), ["TESTING"]);
    assert_eq!(node.next(at(3), &ok()), []);
    assert_eq!(words(&node.testing(at(4), Testing::Ended)), ["PASS"]);

    let mut node = evicted();
    assert_eq!(node.testing(at(4), Testing::Began), []);
}

#[test]
fn a_test_that_told_something_or_died_is_over() {
    let mut node = passing();
    node.testing(at(2), Testing::Began);
    assert_eq!(words(&node.next(at(3), &passed())), ["PASS"]);

    let mut node = passing();
    node.testing(at(2), Testing::Began);
    assert_eq!(node.next(at(2 + 45 * 60), &ok()), []);
    assert_eq!(words(&node.next(at(3 + 45 * 60), &ok())), ["PASS"]);
}

#[test]
fn a_restart_clears_nothing() {
    let node = |autopilot: &str, own: &str| {
        let labels = [(AUTOPILOT_LABEL, autopilot), (OWN_LABEL, own)];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Labels::resume(policy(), at(0), &BTreeMap::from(labels))
    };
    let mut emptied = node("EVICT", "problem");
    for second in 0..50 {
        assert_eq!(emptied.next(at(second), &ok()), []);
    }
    assert_eq!(words(&emptied.next(at(50), &passed())), ["PASS", "own ok"]);

    let mut warned = node("WARN", "problem");
    assert_eq!(warned.next(at(0), &ok()), []);
    assert_eq!(warned.next(at(1), &only(CheckId::Ecc, Answer::ok("fine"))), []);
    assert_eq!(words(&warned.next(at(2), &ok())), ["PASS", "own ok"]);

    let mut tested = node("TESTING", "ok");
    assert_eq!(words(&tested.next(at(1), &ok())), ["own unknown"]);

    let mut passed = node("PASS", "ok");
    assert_eq!(words(&passed.next(at(0), &ok())), ["", "own unknown"]);
}

#[test]
fn somebody_with_a_name_clears_what_stood_before_a_restart() {
    let before = BTreeMap::from([(AUTOPILOT_LABEL.to_owned(), "WARN".to_owned())]);
    let mut labels = Labels::resume(policy(), at(0), &before);
    let changes = labels.clear(&Person::named("ada").expect("a name"));
    assert_eq!(words(&changes), ["", "own unknown"]);
}

/// Findings of two devices, both well.
fn ok_twice() -> Findings {
    let mut findings = ok();
    let of_devices = findings
        .0
        .clone()
        .into_iter()
        .filter(|finding| finding.device.is_some());
    findings.0.extend(of_devices.map(|finding| Finding {
        device: Some(gpu(1)),
        ..finding
    }));
    findings
}

#[test]
fn a_device_that_was_exchanged_is_forgotten_and_its_problem_is_not() {
    let mut labels = labels();
    labels.next(at(0), &ok_twice());
    assert_eq!(words(&labels.next(at(1), &ok_twice())), ["PASS", "own ok"]);
    assert_eq!(
        labels.next(at(5000), &ok()),
        [],
        "the other one is gone, and nobody waits for it"
    );

    let mut broken = ok_twice();
    for finding in &mut broken.0 {
        if finding.check == CheckId::Ecc && finding.device == Some(gpu(1)) {
            finding.answer = problem(Severity::Warn);
        }
    }
    labels.next(at(5001), &broken);
    assert_eq!(words(&labels.next(at(5002), &broken)), ["WARN", "own problem"]);
    for second in 5003..5100 {
        assert_eq!(labels.next(at(second), &ok()), []);
    }
}

#[test]
fn a_node_without_checks_that_count_does_not_pass() {
    let mut labels = Labels::new(LabelPolicy {
        counting: [].into(),
        ..policy()
    });
    let changes: Vec<_> = (0..9).flat_map(|second| labels.next(at(second), &ok())).collect();
    assert_eq!(words(&changes), ["", "own unknown"]);
}

#[test]
fn a_late_count_forgets_no_device_that_came_since() {
    let mut labels = labels();
    labels.next(at(1), &ok_twice());
    labels.next(at(0), &ok());
    assert_eq!(words(&labels.next(at(2), &ok_twice())), ["PASS", "own ok"]);
}

#[test]
fn a_node_without_devices_does_not_pass() {
    let mut labels = Labels::new(LabelPolicy {
        counting: [CheckId::DeviceCount].into(),
        ..policy()
    });
    let none = only(CheckId::DeviceCount, Answer::ok("0 of 0 answer"));
    let changes: Vec<_> = (0..9).flat_map(|second| labels.next(at(second), &none)).collect();
    assert_eq!(words(&changes), ["", "own unknown"]);
}

//! What each check answers.

use blueproof_core::gpu::{Figure, Reading, Readings};

use super::super::{CheckId, CheckPolicy, Facts, Health, Reports, Severity, XidClass, check, xid_class};
use super::stories::*;

/// One device with healthy readings but for one figure, and what a check says to it.
fn table(check: CheckId, rows: &[(&str, Figure, f64, &str)]) {
    for (why, figure, value, expected) in rows {
        assert_eq!(line(&answer(check, [with(*figure, *value)])), *expected, "{why}");
    }
}

#[test]
fn rows_that_wait_are_a_warning_and_rows_that_cannot_be_replaced_empty_the_node() {
    let replaced = "replaced so far: 0 after uncorrectable errors, 0 after others";
    table(
        CheckId::RemappedRows,
        &[
            (
                "nothing waits",
                Figure::RowRemapPending,
                0.0,
                &format!("ok: no row waits; {replaced}"),
            ),
            (
                "a reset mends it",
                Figure::RowRemapPending,
                1.0,
                &format!("warn: rows wait for a reset to be replaced; {replaced}"),
            ),
            (
                "nothing mends it",
                Figure::RowRemapFailure,
                1.0,
                &format!("evict: a row could not be replaced; {replaced}"),
            ),
            (
                "rows that were replaced are well, and counted",
                Figure::UncorrectableRemappedRows,
                3.0,
                "ok: no row waits; replaced so far: 3 after uncorrectable errors, 0 after others",
            ),
        ],
    );
}

#[test]
fn a_row_that_could_not_be_replaced_is_a_problem_though_nobody_knows_what_waits() {
    let mut readings = with(Figure::RowRemapFailure, 1.0);
    readings.set(Figure::RowRemapPending, failed());
    assert_eq!(
        answer(CheckId::RemappedRows, [readings]).severity(),
        Some(Severity::Evict)
    );
}

#[test]
fn pages_that_wait_or_are_too_many_are_a_problem() {
    let rows = [
        (
            "nothing waits",
            Figure::RetiredPagesPending,
            0.0,
            "ok: no page waits; 0 are given up",
        ),
        (
            "a reset gives them up",
            Figure::RetiredPagesPending,
            1.0,
            "warn: pages wait for a reset to be given up; 0 are so far",
        ),
        (
            "there is room",
            Figure::RetiredPagesCorrectable,
            59.0,
            "ok: no page waits; 59 are given up",
        ),
        (
            "there is hardly any room",
            Figure::RetiredPagesUncorrectable,
            60.0,
            "warn: 60 pages are given up, and 59 is the most that is well",
        ),
    ];
    for (why, figure, value, expected) in rows {
        let mut readings = healthy_volta();
        readings.set(figure, Reading::Value(value));
        assert_eq!(
            line(&answer(CheckId::RetiredPages, [readings])),
            expected,
            "{why}"
        );
    }
}

#[test]
fn one_reading_of_a_slowdown_is_no_problem() {
    let slow = || with(Figure::HardwareSlowdown, 1.0);
    let rows = [
        ("never", vec![healthy()], "ok"),
        ("once, and nothing else is known", vec![slow()], "unknown"),
        (
            "twice of two: a third would decide",
            vec![slow(), slow()],
            "unknown",
        ),
        (
            "once of five",
            vec![healthy(), healthy(), slow(), healthy(), healthy()],
            "ok",
        ),
        (
            "three of five",
            vec![slow(), healthy(), slow(), healthy(), slow()],
            "warn",
        ),
        (
            "long ago",
            vec![
                slow(),
                slow(),
                slow(),
                healthy(),
                healthy(),
                healthy(),
                healthy(),
                healthy(),
            ],
            "ok",
        ),
    ];
    for (why, readings, expected) in rows {
        let told = line(&answer(CheckId::Slowdown, readings));
        assert_eq!(told.split(':').next(), Some(expected), "{why}: {told}");
    }
}

#[test]
fn one_reading_of_a_slowdown_is_no_problem_even_where_the_policy_says_so() {
    let snapshots = [snapshot(0, [with(Figure::HardwareSlowdown, 1.0)])];
    let facts = Facts {
        inventory: Ok(&inventory(1)),
        snapshots: &snapshots,
        reports: Reports::of_all(&[]),
    };
    let policy = CheckPolicy {
        slowdown_readings: 0,
        slowdown_problem_from: 0,
        ..CheckPolicy::expecting(1)
    };
    assert_eq!(check(&policy, &facts).worst(), None);
}

#[test]
fn a_slowdown_says_what_it_is_for() {
    for (figure, words) in [
        (Figure::HardwareSlowdown, "hardware slowdown"),
        (Figure::HardwareThermalSlowdown, "hardware thermal slowdown"),
        (Figure::HardwarePowerBrake, "hardware power brake"),
    ] {
        let told = line(&answer(CheckId::Slowdown, vec![with(figure, 1.0); 3]));
        assert_eq!(
            told,
            format!("warn: slowed down in 3 of 3 readings ({words} in 3)")
        );
    }
}

#[test]
fn errors_that_could_not_be_corrected_are_a_problem() {
    table(
        CheckId::Ecc,
        &[
            (
                "none",
                Figure::UncorrectedErrors,
                0.0,
                "ok: no uncorrected error of memory since the driver was loaded",
            ),
            (
                "some",
                Figure::UncorrectedErrors,
                2.0,
                "warn: 2 uncorrected errors of memory since the driver was loaded",
            ),
        ],
    );
}

#[test]
fn fewer_lanes_than_possible_are_a_problem() {
    table(
        CheckId::PcieWidth,
        &[
            (
                "all",
                Figure::PcieWidth,
                16.0,
                "ok: connected over 16 lanes, as is possible",
            ),
            (
                "half",
                Figure::PcieWidth,
                8.0,
                "warn: connected over 8 lanes, and 16 are possible",
            ),
            (
                "no lane tells nothing",
                Figure::PcieWidthMost,
                0.0,
                "ok: connected over 16 lanes, as is possible",
            ),
        ],
    );
}

#[test]
fn a_link_without_lanes_is_not_well() {
    let mut readings = with(Figure::PcieWidth, 0.0);
    readings.set(Figure::PcieWidthMost, Reading::Value(0.0));
    assert_eq!(
        line(&answer(CheckId::PcieWidth, [readings])),
        "unknown: pcie width cannot be 0"
    );
}

#[test]
fn the_generation_of_an_idle_link_is_no_problem() {
    let slow = |busy| {
        let mut readings = with(Figure::PcieGeneration, 1.0);
        readings.set(Figure::Utilization, Reading::Value(busy));
        readings
    };
    let rows = [
        ("idle links are slow on purpose", vec![slow(0.0); 3], "unknown"),
        (
            "one reading may be of the first moment",
            vec![slow(0.9)],
            "unknown",
        ),
        ("a short burst does not wake it", vec![slow(0.9); 4], "unknown"),
        ("it stays slow under load", vec![slow(0.9); 5], "warn"),
        ("it woke up", vec![slow(0.9), healthy()], "ok"),
        ("it was fast when it mattered", vec![healthy(), slow(0.0)], "ok"),
    ];
    for (why, readings, expected) in rows {
        let told = line(&answer(CheckId::PcieGeneration, readings));
        assert_eq!(told.split(':').next(), Some(expected), "{why}: {told}");
    }
}

#[test]
fn a_link_that_a_virtual_machine_shows_as_slow_is_no_problem() {
    let mut slow = with(Figure::PcieGeneration, 1.0);
    slow.set(Figure::Utilization, Reading::Value(0.9));
    let snapshots: Vec<_> = (0..5).map(|second| snapshot(second, [slow.clone()])).collect();
    for (mode, expected) in [
        (Reading::Value(true), "unknown"),
        (Reading::Value(false), "warn"),
        (Reading::Unsupported, "warn"),
    ] {
        let mut inventory = inventory(1);
        inventory.devices[0].is_virtual = mode;
        let facts = Facts {
            inventory: Ok(&inventory),
            snapshots: &snapshots,
            reports: Reports::of_all(&[]),
        };
        let findings = check(&CheckPolicy::expecting(1), &facts);
        let told = line(&answer_in(&findings, CheckId::PcieGeneration));
        assert_eq!(told.split(':').next(), Some(expected), "{told}");
    }
}

#[test]
fn what_is_sent_again_is_a_problem_by_its_growth_and_not_by_its_count() {
    let counts = |counts: &[f64]| -> Vec<Readings> {
        counts
            .iter()
            .map(|count| with(Figure::PcieReplays, *count))
            .collect()
    };
    let rows = [
        (
            "one reading has no growth",
            counts(&[900.0]),
            "unknown: two snapshots are needed to see it grow",
        ),
        (
            "many long ago",
            counts(&[900.0, 900.0]),
            "ok: 0 transfers were made again in 2 snapshots",
        ),
        (
            "many now",
            counts(&[0.0, 5.0, 17.0]),
            "warn: 17 transfers were made again in 3 snapshots, and 16 is the most that is well",
        ),
        (
            "a new count",
            counts(&[900.0, 0.0, 901.0]),
            "unknown: its count fell: the driver was loaded anew",
        ),
    ];
    for (why, readings, expected) in rows {
        assert_eq!(line(&answer(CheckId::PcieReplays, readings)), expected, "{why}");
    }
}

#[test]
fn errors_are_of_the_class_that_says_who_is_to_act() {
    let classes = [
        (
            XidClass::Reset,
            &[48, 62, 64, 74, 79, 95, 119, 120][..],
            Some(Severity::Evict),
        ),
        (XidClass::Contained, &[94], Some(Severity::Warn)),
        (XidClass::Application, &[13, 31, 43, 45], None),
        (XidClass::Informational, &[63, 92], None),
        (XidClass::Unknown, &[0, 1, 154, 999], None),
    ];
    for (class, numbers, severity) in classes {
        for number in numbers {
            assert_eq!(xid_class(*number), class, "XID {number}");
            let found = answer_in(&looked([healthy()], &[*number]), CheckId::Xids);
            assert_eq!(found.severity(), severity, "XID {number}");
            assert_eq!(
                found.is_ok(),
                matches!(class, XidClass::Application | XidClass::Informational)
            );
        }
    }
}

#[test]
fn the_worst_error_is_told_with_how_often_it_came() {
    let told = answer_in(&looked([healthy()], &[31, 79, 999, 79]), CheckId::Xids);
    assert_eq!(line(&told), "evict: XID 79 (2 times): it fell off the bus");
}

#[test]
fn that_nobody_listened_is_not_that_nothing_was_reported() {
    let snapshots = [snapshot(0, [healthy()])];
    let facts = Facts {
        inventory: Ok(&inventory(1)),
        snapshots: &snapshots,
        reports: Reports::NONE,
    };
    let policy = CheckPolicy::expecting(1);
    let findings = check(&policy, &facts);
    assert_eq!(
        line(&answer_in(&findings, CheckId::Xids)),
        "unknown: nobody listened to its driver, or not all the time of late"
    );
    assert_eq!(findings.health(&policy.counting), Health::Unknown);
}

/// The checks that need figures, with one that each cannot do without.
const NEEDS: [(CheckId, Figure); 7] = [
    (CheckId::RemappedRows, Figure::RowRemapFailure),
    (CheckId::RetiredPages, Figure::RetiredPagesUncorrectable),
    (CheckId::Slowdown, Figure::HardwarePowerBrake),
    (CheckId::Ecc, Figure::UncorrectedErrors),
    (CheckId::PcieWidth, Figure::PcieWidthMost),
    (CheckId::PcieGeneration, Figure::PcieGenerationMost),
    (CheckId::PcieReplays, Figure::PcieReplays),
];

#[test]
fn a_figure_that_did_not_come_is_never_ok_and_says_why() {
    for (check, figure) in NEEDS {
        let readings = |reading: Reading<f64>| {
            let mut readings = healthy_volta();
            readings.extend(REMAP.map(|figure| (figure, Reading::Value(0.0))));
            readings.set(figure, reading);
            vec![readings; 3]
        };
        let told = |reading| line(&answer(check, readings(reading)));
        assert!(
            told(Reading::Value(0.0)).starts_with("ok") || check == CheckId::PcieWidth,
            "{check}"
        );
        assert!(
            told(Reading::Unsupported).starts_with("unknown: this card does not tell"),
            "{check}"
        );
        assert!(told(failed()).contains("TIMEOUT"), "{check}");
        assert!(told(failed()).starts_with("unknown: could not read"), "{check}");
        assert!(
            told(Reading::Value(f64::NAN)).ends_with("cannot be NaN"),
            "{check}"
        );
        assert!(told(Reading::Value(-1.0)).ends_with("cannot be -1"), "{check}");
    }
}

#[test]
fn a_figure_that_nobody_asked_for_is_not_taken_for_one_that_the_card_does_not_have() {
    let told = line(&answer(CheckId::Ecc, [Readings::default()]));
    assert_eq!(told, "unknown: nobody asked for uncorrected errors");
}

#[test]
fn a_card_of_one_age_passes_without_the_checks_of_another() {
    for (why, readings) in [
        ("Ampere has rows", healthy()),
        ("Volta has pages", healthy_volta()),
    ] {
        let findings = looked([readings], &[]);
        assert_eq!(
            findings.health(&CheckPolicy::default().counting),
            Health::Ok,
            "{why}"
        );
    }
    let mut neither = healthy();
    neither.extend(REMAP.map(|figure| (figure, Reading::Unsupported)));
    let findings = looked([neither], &[]);
    assert_eq!(findings.health(&CheckPolicy::default().counting), Health::Unknown);
}

#[test]
fn what_failed_is_not_excused_by_what_a_card_does_not_tell() {
    let mut readings = healthy();
    readings.set(Figure::RetiredPagesUncorrectable, failed());
    let findings = looked([readings], &[]);
    assert!(line(&answer_in(&findings, CheckId::RetiredPages)).contains("TIMEOUT"));
    assert_eq!(findings.health(&CheckPolicy::default().counting), Health::Unknown);
}

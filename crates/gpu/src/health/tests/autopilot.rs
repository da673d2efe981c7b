//! What Autopilot gets wrong, as it stands in its source; each is told here as what must be true instead. Its mixed-up
//! metrics, its label of levels and its Jobs have no counterpart here: this module writes no metric and starts nothing.

use std::collections::BTreeSet;

use blueproof_core::{
    gpu::{DeviceUuid, Figure, Reading, Readings},
    ports::ProbeErrorKind,
};

use super::super::{
    AUTOPILOT_LABEL, Answer, CheckId, CheckPolicy, Facts, Findings, Health, LabelPolicy, Labels, Reports,
    Severity, Testing, check,
};
use super::stories::*;

/// Returns what Autopilot's label says after these findings, a second apart.
fn label(findings: impl IntoIterator<Item = Findings>) -> &'static str {
    let mut labels = Labels::new(LabelPolicy::default());
    let mut shown = "nothing";
    for (second, findings) in (0..).zip(findings) {
        for change in labels.next(at(second * 60), &findings) {
            if change.key == AUTOPILOT_LABEL {
                shown = change.value;
            }
        }
    }
    shown
}

fn again(findings: &Findings) -> Vec<Findings> {
    vec![findings.clone(); 9]
}

#[test]
fn defect_1_a_node_whose_checks_could_not_run_does_not_pass() {
    let refused = Facts {
        inventory: Err(ProbeErrorKind::LibraryMissing),
        snapshots: &[],
        reports: Reports::NONE,
    };
    let blind = check(&CheckPolicy::expecting(1), &refused);
    let unsupported = Figure::ALL.iter().map(|figure| (*figure, Reading::Unsupported));
    assert_eq!(label(again(&blind)), "");
    assert_eq!(label(again(&looked([unsupported.collect()], &[]))), "");
    assert_eq!(label(again(&looked([Readings::default()], &[]))), "");
    assert_eq!(label(again(&looked([healthy()], &[]))), "PASS");
}

#[test]
fn defect_2_an_eviction_is_not_erased_by_the_next_light_checks() {
    let failed = only(CheckId::DcgmLevel3, problem(Severity::Evict));
    let light = again(&looked([healthy()], &[]));
    assert_eq!(label([failed].into_iter().chain(light)), "EVICT");
}

#[test]
fn defect_3_a_problem_is_not_overwritten_by_what_comes_after_it_in_the_same_round() {
    let findings = looked([with(Figure::UncorrectedErrors, 1.0)], &[]);
    assert_eq!(findings.health(&CheckPolicy::default().counting), Health::Problem);
    let failed = |answer| only(CheckId::GpuMemory, answer);
    let mut labels = Labels::new(LabelPolicy::default());
    labels.next(at(0), &failed(problem(Severity::Warn)));
    labels.next(at(1), &failed(problem(Severity::Warn)));
    labels.next(at(1), &failed(Answer::ok("set to fine unasked")));
    assert_eq!(labels.health(), Health::Problem);
}

#[test]
fn defect_4_a_problem_is_recorded_under_the_check_that_found_it() {
    let broken: [(CheckId, Figure, f64); 5] = [
        (CheckId::RemappedRows, Figure::RowRemapPending, 1.0),
        (CheckId::Slowdown, Figure::HardwareSlowdown, 1.0),
        (CheckId::Ecc, Figure::UncorrectedErrors, 1.0),
        (CheckId::PcieWidth, Figure::PcieWidth, 1.0),
        (CheckId::PcieGeneration, Figure::PcieGeneration, 1.0),
    ];
    for (check, figure, value) in broken {
        let findings = looked(vec![with(figure, value); 5], &[]);
        let found: Vec<_> = findings.problems().map(|(finding, _)| finding.check).collect();
        assert_eq!(found, [check]);
    }
}

#[test]
fn defect_5_an_error_in_one_check_stops_no_other_and_a_partial_set_passes_no_node() {
    let whole: BTreeSet<CheckId> = looked([healthy()], &[])
        .0
        .iter()
        .map(|finding| finding.check)
        .collect();
    assert_eq!(whole, CheckId::ALL.into());
    let mut readings = with(Figure::RowRemapFailure, 1.0);
    readings.set(Figure::UncorrectedErrors, failed());
    readings.set(Figure::PcieWidth, failed());
    let partly = looked([readings], &[]);
    assert_eq!(partly.0.len(), looked([healthy()], &[]).0.len());
    assert_eq!(partly.worst(), Some(Severity::Evict));

    let mut partial = looked([healthy()], &[]);
    partial.0.retain(|finding| finding.check != CheckId::Ecc);
    assert_eq!(label(again(&partial)), "");
}

#[test]
fn defect_6_only_what_is_fatal_evicts() {
    for check in CheckId::ALL {
        let findings = only(check, problem(Severity::Warn));
        assert_eq!(label(again(&findings)), "WARN", "{check}");
    }
}

#[test]
fn defect_7_an_invasive_pass_does_not_erase_a_warning() {
    let mut labels = Labels::new(LabelPolicy::default());
    labels.next(at(0), &only(CheckId::Ecc, problem(Severity::Warn)));
    labels.next(at(1), &only(CheckId::Ecc, problem(Severity::Warn)));
    let passed = only(CheckId::DcgmLevel3, Answer::ok("all passed"));
    for second in 2..50 {
        assert_eq!(labels.next(at(second), &passed), []);
    }
    assert_eq!(labels.health(), Health::Problem);
}

#[test]
fn defect_8_a_machine_is_expected_to_have_what_it_is_told_and_a_test_that_never_starts_is_over() {
    for devices in [1, 2, 8] {
        let snapshots = [snapshot(0, (0..devices).map(|_| healthy()))];
        let facts = Facts {
            inventory: Ok(&inventory(devices)),
            snapshots: &snapshots,
            reports: Reports::of_all(&[]),
        };
        let policy = CheckPolicy::expecting(devices);
        assert_eq!(check(&policy, &facts).health(&policy.counting), Health::Ok);
    }
    let mut labels = Labels::new(LabelPolicy::default());
    labels.testing(at(0), Testing::Began);
    let changes = labels.next(at(45 * 60 + 1), &Findings::default());
    assert_eq!(changes.first().map(|change| change.value), Some(""));
}

#[test]
fn defect_9_an_invasive_failure_reaches_the_label_that_is_read() {
    let failed = only(CheckId::DcgmLevel3, problem(Severity::Evict));
    assert_eq!(label([failed]), "EVICT");
}

#[test]
fn defect_10_every_check_of_every_device_is_in_what_is_told() {
    let snapshots = [snapshot(0, [healthy(), lost()])];
    let events = [xid(0, 79)];
    let facts = Facts {
        inventory: Ok(&inventory(2)),
        snapshots: &snapshots,
        reports: Reports::of_all(&events),
    };
    let findings = check(&CheckPolicy::expecting(2), &facts);
    let json = serde_json::to_string(&findings).expect("it has no map with other keys than texts");
    let read: Findings = serde_json::from_str(&json).expect("what was written is read");
    assert_eq!(read, findings);
    for device in [gpu(0), gpu(1)] {
        let of = |device: &DeviceUuid| {
            read.0
                .iter()
                .filter(|finding| finding.device.as_ref() == Some(device))
                .count()
        };
        assert_eq!(of(&device), CheckId::of_devices().count());
    }
}

//! What is found of whole machines: who is there, and what cannot be asked.

use blueproof_core::{
    gpu::{Fault, FaultKind, Figure, Reading, Readings},
    ports::ProbeErrorKind,
};

use super::super::{Answer, CheckId, CheckPolicy, Facts, Health, Reports, Severity, check};
use super::stories::*;

#[test]
fn a_lost_device_is_a_problem_and_its_neighbour_is_checked_all_the_same() {
    let snapshots = [snapshot(0, [lost(), healthy()])];
    let facts = Facts {
        inventory: Ok(&inventory(2)),
        snapshots: &snapshots,
        reports: Reports::of_all(&[]),
    };
    let findings = check(&CheckPolicy::expecting(2), &facts);
    let of = |check, n| line(findings.of(check, Some(&gpu(n))).expect("every check answers"));
    assert_eq!(
        of(CheckId::Presence, 0),
        "evict: it is lost: the driver does not reach it any more"
    );
    assert_eq!(
        of(CheckId::Ecc, 0),
        "unknown: could not read uncorrected errors: GPU_IS_LOST"
    );
    assert_eq!(
        of(CheckId::Ecc, 1),
        "ok: no uncorrected error of memory since the driver was loaded"
    );
    let count = findings
        .of(CheckId::DeviceCount, None)
        .expect("every check answers");
    assert_eq!(line(count), "warn: only 1 of 2 answer");
}

#[test]
fn a_device_is_a_problem_when_it_is_listed_and_not_read_or_was_away_meanwhile() {
    let told = |snapshots: &[_]| {
        let facts = Facts {
            inventory: Ok(&inventory(1)),
            snapshots,
            reports: Reports::of_all(&[]),
        };
        line(&answer_in(
            &check(&CheckPolicy::expecting(1), &facts),
            CheckId::Presence,
        ))
    };
    let here = || snapshot(0, [healthy()]);
    assert_eq!(told(&[here()]), "ok: it tells 15 figures");
    assert_eq!(
        told(&[snapshot(0, [])]),
        "evict: it is gone: the last snapshot has nothing of it"
    );
    let back = [here(), snapshot(1, [lost()]), here()];
    assert_eq!(
        told(&back),
        "evict: it was lost in 1 of 3 snapshots, and came back"
    );
    assert_eq!(told(&[]), "unknown: no snapshot was taken");
    assert_eq!(
        told(&[snapshot(0, [Readings::default()])]),
        "unknown: the driver tells no figure of it"
    );
}

#[test]
fn a_device_that_may_not_be_read_is_unknown_and_not_lost() {
    let refused = Reading::Failed(Fault::new(FaultKind::NoPermission, "NO_PERMISSION"));
    let all = Figure::ALL.iter().map(|figure| (*figure, refused.clone()));
    let findings = looked([all.collect()], &[]);
    assert_eq!(findings.worst(), None);
    assert_eq!(findings.health(&CheckPolicy::default().counting), Health::Unknown);
}

#[test]
fn devices_are_counted_against_what_is_expected() {
    let count = |expected_devices, inventory| {
        let policy = CheckPolicy {
            expected_devices,
            ..CheckPolicy::default()
        };
        let facts = Facts {
            inventory,
            snapshots: &[],
            reports: Reports::NONE,
        };
        line(
            check(&policy, &facts)
                .of(CheckId::DeviceCount, None)
                .expect("every check answers"),
        )
    };
    let two = inventory(2);
    assert_eq!(count(Some(2), Ok(&two)), "ok: 2 of 2 answer");
    assert_eq!(count(Some(8), Ok(&two)), "warn: only 2 of 8 answer");
    assert_eq!(count(Some(1), Ok(&two)), "unknown: 2 answer where 1 should be");
    assert_eq!(
        count(None, Ok(&two)),
        "unknown: 2 answer, and nobody said how many there should be"
    );
    assert_eq!(
        count(Some(1), Err(ProbeErrorKind::NoDevices)),
        "warn: only 0 of 1 answer"
    );
    let blind = "unknown: nothing can be seen of any device: no permission";
    assert_eq!(count(Some(1), Err(ProbeErrorKind::NoPermission)), blind);
}

#[test]
fn a_driver_that_is_not_loaded_or_of_another_version_is_a_problem_and_one_that_cannot_be_asked_is_unknown() {
    let driver = |inventory| {
        let facts = Facts {
            inventory,
            snapshots: &[],
            reports: Reports::NONE,
        };
        let findings = check(&CheckPolicy::expecting(1), &facts);
        findings.of(CheckId::Driver, None).map(Answer::severity)
    };
    assert_eq!(
        driver(Err(ProbeErrorKind::VersionMismatch)),
        Some(Some(Severity::Warn))
    );
    assert_eq!(
        driver(Err(ProbeErrorKind::DriverNotLoaded)),
        Some(Some(Severity::Warn))
    );
    for blind in [
        ProbeErrorKind::LibraryMissing,
        ProbeErrorKind::NoPermission,
        ProbeErrorKind::NoDevices,
        ProbeErrorKind::DriverError,
    ] {
        assert_eq!(driver(Err(blind)), Some(None), "{blind}");
    }
    let silent = blueproof_core::gpu::GpuInventory::default();
    assert_eq!(driver(Ok(&silent)), Some(None));
}

#[test]
fn checks_that_need_more_than_the_library_are_named_and_not_passed() {
    let findings = looked([healthy()], &[]);
    for (check, needs) in [
        (CheckId::PcieBandwidth, "unknown: not done here: needs CUDA"),
        (CheckId::GpuMemory, "unknown: not done here: needs CUDA"),
        (
            CheckId::DcgmLevel3,
            "unknown: not done here: needs DCGM and an idle machine",
        ),
    ] {
        assert_eq!(line(findings.of(check, None).expect("it is named")), needs);
        let counting = [check].into();
        assert_eq!(findings.health(&counting), Health::Unknown);
    }
}

#[test]
fn nothing_is_ok_where_nothing_counts_or_nothing_is_there() {
    let findings = looked([healthy()], &[]);
    assert_eq!(findings.health(&[].into()), Health::Unknown);
    let facts = Facts {
        inventory: Err(ProbeErrorKind::NoDevices),
        snapshots: &[],
        reports: Reports::of_all(&[]),
    };
    let policy = CheckPolicy {
        counting: [CheckId::DeviceCount].into(),
        ..CheckPolicy::expecting(0)
    };
    assert_eq!(check(&policy, &facts).health(&policy.counting), Health::Unknown);
}

#[test]
fn what_was_read_of_a_device_before_it_went_says_nothing_of_it_now() {
    let facts = Facts {
        inventory: Ok(&inventory(1)),
        snapshots: &[snapshot(0, [healthy()]), snapshot(1, [])],
        reports: Reports::of_all(&[]),
    };
    let findings = check(&CheckPolicy::expecting(1), &facts);
    for check in [
        CheckId::RemappedRows,
        CheckId::Ecc,
        CheckId::PcieWidth,
        CheckId::Slowdown,
    ] {
        assert!(!answer_in(&findings, check).is_known(), "{check}");
    }
}

#[test]
fn a_device_that_came_later_was_not_lost() {
    let facts = Facts {
        inventory: Ok(&inventory(1)),
        snapshots: &[snapshot(0, []), snapshot(1, [healthy()])],
        reports: Reports::of_all(&[]),
    };
    let findings = check(&CheckPolicy::expecting(1), &facts);
    assert!(answer_in(&findings, CheckId::Presence).is_ok());
}

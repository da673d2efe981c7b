//! Whatever comes, in whatever order: nothing is ok that was not found so.

use std::collections::BTreeSet;

use blueproof_core::{
    gpu::{DeviceEvent, Fault, FaultKind, Figure, GpuSnapshot, Reading, Readings},
    ports::ProbeErrorKind,
};
use proptest::{collection::vec, option, prelude::*, sample::select};

use super::super::{
    Answer, AttemptVerdict, CheckId, CheckPolicy, Facts, Findings, FlightRecord, Health, LabelPolicy, Labels,
    OWN_LABEL, Scope, Severity, check, judge,
};
use super::stories::*;

/// A reading that is well most of the time, as otherwise nothing would ever be ok.
fn any_reading() -> impl Strategy<Value = Option<Reading<f64>>> {
    let fault = select(vec![FaultKind::Lost, FaultKind::NoPermission, FaultKind::Driver]);
    prop_oneof![
        2 => select(vec![0.0, 1.0, 8.0, 1e300, -1.0, f64::NAN, f64::INFINITY])
            .prop_map(|value| Some(Reading::Value(value))),
        1 => Just(Some(Reading::Unsupported)),
        1 => fault.prop_map(|kind| Some(Reading::Failed(Fault::new(kind, "WORD")))),
        1 => Just(None),
    ]
}

/// Healthy readings but for a few.
fn any_readings() -> impl Strategy<Value = Readings> {
    let figures: Vec<Figure> = healthy().iter().map(|(figure, _)| figure).collect();
    let changes = prop_oneof![3 => Just(0), 2 => Just(1), 1 => 2..5usize]
        .prop_flat_map(move |n| vec((select(figures.clone()), any_reading()), n));
    (any::<bool>(), changes).prop_map(|(is_volta, changes)| {
        let mut readings = if is_volta { healthy_volta() } else { healthy() };
        for (figure, reading) in changes {
            readings = match reading {
                Some(reading) => {
                    readings.set(figure, reading);
                    readings
                }
                None => readings
                    .into_iter()
                    .filter(|(other, _)| *other != figure)
                    .collect(),
            };
        }
        readings
    })
}

fn any_snapshots() -> impl Strategy<Value = Vec<GpuSnapshot>> {
    let devices = prop_oneof![8 => Just(1usize), 2 => Just(2), 1 => Just(0)];
    vec(
        devices.prop_flat_map(|devices| vec(any_readings(), devices)),
        0..4,
    )
    .prop_map(|all| (0..).zip(all).map(|(n, each)| snapshot(n, each)).collect())
}

fn any_events() -> impl Strategy<Value = Option<Vec<DeviceEvent>>> {
    let event =
        (0..2u32, select(vec![13, 31, 63, 79, 94, 999])).prop_map(|(device, number)| xid(device, number));
    option::weighted(0.9, prop_oneof![2 => Just(Vec::new()), 1 => vec(event, 0..3)])
}

fn any_inventory() -> impl Strategy<Value = Result<u32, ProbeErrorKind>> {
    prop_oneof![8 => Just(Ok(1)), 1 => Just(Ok(0)), 1 => Just(Ok(2)), 1 => Just(Err(ProbeErrorKind::DriverError))]
}

fn looked_over(
    inventory: Result<u32, ProbeErrorKind>,
    snapshots: &[GpuSnapshot],
    events: Option<&[DeviceEvent]>,
) -> Findings {
    let listed = inventory.map(super::stories::inventory);
    let facts = Facts {
        inventory: listed.as_ref().map_err(|blind| *blind),
        snapshots,
        reports: reports(events),
    };
    check(&CheckPolicy::expecting(1), &facts)
}

/// Says by the findings alone, and in other words than the code, whether all that counts is ok.
fn all_that_counts_is_ok(findings: &Findings) -> bool {
    let is_ok = |check, device| findings.of(check, device).is_some_and(Answer::is_ok);
    let devices: BTreeSet<_> = findings
        .0
        .iter()
        .filter_map(|finding| finding.device.clone())
        .collect();
    let counting = CheckPolicy::default().counting;
    let of = |scope| {
        counting
            .iter()
            .copied()
            .filter(move |check: &CheckId| check.scope() == scope)
    };
    let cells = [CheckId::RemappedRows, CheckId::RetiredPages];
    let device_is_ok = |device| {
        let each = of(Scope::Device).filter(|check| !cells.contains(check));
        let memory: Vec<_> = cells
            .map(|check| findings.of(check, Some(device)))
            .into_iter()
            .flatten()
            .collect();
        each.into_iter().all(|check| is_ok(check, Some(device)))
            && memory.len() == 2
            && memory.iter().any(|answer| answer.is_ok())
            && memory.iter().all(|answer| answer.is_ok() || answer.is_not_told())
    };
    !devices.is_empty()
        && of(Scope::Machine).all(|check| is_ok(check, None))
        && devices.iter().all(device_is_ok)
}

/// Says of a sample whether each figure that checks need was read, and can be.
fn was_read(snapshots: &[GpuSnapshot]) -> bool {
    let needed = [
        Figure::UncorrectedErrors,
        Figure::PcieWidth,
        Figure::PcieWidthMost,
        Figure::HardwareSlowdown,
        Figure::HardwareThermalSlowdown,
        Figure::HardwarePowerBrake,
    ];
    let can_be = |value: f64| value.is_finite() && value >= 0.0;
    snapshots.last().is_some_and(|last| {
        !last.samples.is_empty()
            && last.samples.iter().all(|sample| {
                needed
                    .iter()
                    .all(|figure| sample.readings.value(*figure).is_some_and(can_be))
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_called_ok_was_looked_at_in_full_and_found_ok(
        inventory in any_inventory(), snapshots in any_snapshots(), events in any_events(),
    ) {
        let findings = looked_over(inventory, &snapshots, events.as_deref());
        let is_ok = findings.health(&CheckPolicy::default().counting) == Health::Ok;
        let has_problem = findings.problems().next().is_some();
        prop_assert_eq!(is_ok, all_that_counts_is_ok(&findings) && !has_problem);
        if is_ok {
            prop_assert!(was_read(&snapshots) && events.is_some());
        }
    }

    #[test]
    fn a_clean_attempt_was_looked_at_in_full_and_found_ok(
        before in option::weighted(0.9, any_readings()),
        snapshots in any_snapshots(), events in any_events(), inventory in any_inventory(),
    ) {
        let before = before.map(|before| snapshot(0, [before]));
        let listed = inventory.map(super::stories::inventory);
        let flight = FlightRecord {
            promised: &promised(1),
            before: before.as_ref(),
            since: Facts {
                inventory: listed.as_ref().map_err(|blind| *blind),
                snapshots: &snapshots,
                reports: reports(events.as_deref()),
            },
        };
        let judgement = judge(&CheckPolicy::default(), &flight);
        if judgement.verdict == AttemptVerdict::Clean {
            // The other device's may be anything.
            let mut own = snapshots.clone();
            for snapshot in &mut own {
                snapshot.samples.truncate(1);
            }
            let reported: Vec<_> = events.into_iter().flatten().filter(|event| event.device == gpu(0)).collect();
            let findings = looked_over(inventory.map(|_| 1), &own, Some(&reported));
            prop_assert!(all_that_counts_is_ok(&findings), "{}", findings);
            prop_assert!(was_read(&own) && before.is_some());
            prop_assert!(judgement.unknown.is_empty() && judgement.leftovers.is_clean());
        }
    }

    #[test]
    fn a_node_comes_to_pass_only_by_findings_without_a_problem_and_never_leaves_an_eviction_by_itself(
        rounds in vec((any_readings(), any_events(), 1..120i64), 0..30),
    ) {
        let mut labels = Labels::new(LabelPolicy::default());
        let (mut now, mut is_evicted) = (0, false);
        for (readings, events, seconds) in rounds {
            now += seconds;
            let findings = looked_over(Ok(1), &[snapshot(now, [readings])], events.as_deref());
            for change in labels.next(at(now), &findings) {
                prop_assert!(!is_evicted, "{} is {} now", change.key, change.value);
                if change.value == "PASS" || (change.key == OWN_LABEL && change.value == "ok") {
                    let known: Vec<_> = findings.devices().into_iter().cloned().collect();
                    prop_assert!(findings.worst().is_none() && !known.is_empty());
                    prop_assert!(all_that_counts_is_ok(&findings), "{}", findings);
                }
            }
            is_evicted |= events.iter().flatten().any(|event| event.xid == 79);
            prop_assert!(!is_evicted || labels.health() == Health::Problem);
            let worst = findings.of(CheckId::Xids, Some(&gpu(0))).and_then(Answer::severity);
            prop_assert!(worst != Some(Severity::Evict) || is_evicted);
        }
    }
}

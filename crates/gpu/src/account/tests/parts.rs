//! Parts of devices.

use std::collections::BTreeMap;

use super::*;

fn part(uuid: &str) -> Sample {
    Sample {
        partition: Some(device(uuid)),
        ..sample()
    }
}

#[test]
fn a_part_is_a_device_of_its_own_whose_energy_nobody_can_tell() {
    let whole = |joules| sample().joules(joules);
    let mut told = Told::new();
    told.read(0.0, [whole(0.0), part("MIG-1"), part("MIG-2")]);
    told.0.hold(at(0.0), &named("r-1.1"), &[device("MIG-1")]);
    for (seconds, active) in [(1.0, 0.5), (2.0, 1.0)] {
        let used = part("MIG-1").figure(Figure::MemoryUsed, 3e9);
        let used = used.figure(Figure::EngineActive, active);
        told.read(seconds, [whole(seconds * 100.0), used, part("MIG-2")]);
    }
    told.report(2.0, 31);
    told.release(2.0, "r-1.1");
    told.read(3.0, [whole(250.0), part("MIG-1"), part("MIG-2")]);

    // 1 s × 0.5 + 1 s × 1 by the monitors, which are means over all of the time.
    let usage_record = told.usage_record("r-1.1");
    assert_eq!(sums(usage_record.amounts), (2.0, Some(1.5), None));
    assert_eq!(usage_record.source, Some(Source::Means));
    assert_eq!(usage_record.part_of, Some(device(GPU)));
    assert_eq!(usage_record.xids, BTreeMap::from([(31, 1)]));
    // The device drew 200 J while a part of it was held, and 50 J when none was.
    assert_eq!(sums(told.device_totals().parts), (2.0, None, Some(200.0)));
    assert_eq!(sums(told.device_totals().idle), (1.0, None, Some(50.0)));
    let unused = told.0.device_totals(&device("MIG-2")).expect("it was read");
    assert_eq!(sums(unused.idle), (3.0, None, None));
}

#[test]
fn a_part_that_was_held_before_it_was_read_makes_its_device_no_idle_one() {
    let mut told = Told::new();
    told.0.hold(at(0.0), &named("r-1.1"), &[device("MIG-1")]);
    told.read(0.0, [sample(), part("MIG-1")]);
    told.read(1.0, [sample(), part("MIG-1")]);
    told.release(1.0, "r-1.1");
    told.read(2.0, [sample(), part("MIG-1")]);

    assert_eq!(told.device_totals().parts.allocated_seconds(), 1.0);
    assert_eq!(told.device_totals().idle.allocated_seconds(), 1.0);
}

#[test]
fn monitors_that_were_asked_too_soon_are_believed_the_next_time() {
    let active = |share| part("MIG-1").figure(Figure::EngineActive, share);
    let mut told = Told::new();
    told.0.hold(at(0.0), &named("r-1.1"), &[device("MIG-1")]);
    told.read(0.0, [part("MIG-1")]);
    told.read(0.05, [part("MIG-1")]);
    told.read(1.0, [active(0.5)]);

    assert_eq!(told.usage_record("r-1.1").amounts.busy_seconds(), Some(0.5));
    assert_eq!(coverage(&told.usage_record("r-1.1")).0, 1.0);
}

#[test]
fn what_monitors_repeat_because_they_were_asked_too_soon_is_not_charged_again() {
    let active = |share| part("MIG-1").figure(Figure::EngineActive, share);
    let mut told = Told::new();
    told.0.hold(at(0.0), &named("r-1.1"), &[device("MIG-1")]);
    told.read(0.0, [part("MIG-1")]);
    told.read(1.0, [active(0.5)]);
    told.read(1.05, [active(0.5)]);
    told.read(2.0, [active(1.0)]);

    // 1 s × 0.5 + 1 s × 1: what was done from 1.00 s to 1.05 s is in the last mean.
    assert_eq!(told.usage_record("r-1.1").amounts.busy_seconds(), Some(1.5));
    assert_eq!(coverage(&told.usage_record("r-1.1")).0, 1.0);
}

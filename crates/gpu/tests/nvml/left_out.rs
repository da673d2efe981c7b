//! What is left out: a device that cannot be told from another, and figures that nobody asked for.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::*;

#[test]
fn of_two_devices_that_say_the_same_uuid_one_is_told_and_the_other_is_unidentified() {
    let mut scenario = Scenario::of([busy_a10(), a10(), h200()]);
    scenario.devices[1].uuid = scenario.devices[0].uuid.clone();
    let installed = install_scenario(&scenario);
    let mut probe = open(&installed);
    let inventory = probe.inventory().expect("they answer");
    let places: Vec<_> = inventory.devices.iter().map(|device| device.index).collect();
    assert_eq!((places, inventory.unidentified), (vec![0, 2], 1));
    let samples = probe.snapshot().expect("they answer").samples;
    assert_eq!(samples.len(), 2, "{samples:?}");
    assert_eq!(
        value(&samples[0], Figure::Power),
        123.456,
        "it is the first one's"
    );
}

#[test]
fn policies_that_few_ask_for_are_asked_of_the_driver_only_while_somebody_does() {
    let installed = install([a10()]);
    let asked = Arc::new(AtomicBool::new(false));
    let mut probe = open(&installed).counting_policies(Arc::clone(&asked));
    for is_asked in [false, true, false] {
        asked.store(is_asked, Ordering::Relaxed);
        let snapshot = probe.snapshot().expect("it answers");
        let readings = &snapshot.samples[0].readings;
        assert_eq!(readings.value(Figure::PowerViolation), Some(0.0));
        for figure in NvmlProbe::ASKED_FOR {
            let expected = is_asked.then_some(0.0);
            assert_eq!(readings.value(figure), expected, "{figure:?}");
        }
    }
}

#[test]
fn of_two_parts_that_say_the_same_uuid_one_is_told_and_the_other_could_not_be_read() {
    let mut scenario = Scenario::of([h100_with_mig(2)]);
    let mig = scenario.devices[0].mig.as_mut().expect("it is divided");
    mig.instances[1].uuid = mig.instances[0].uuid.clone();
    let installed = install_scenario(&scenario);
    let mut probe = open(&installed);
    let inventory = probe.inventory().expect("it answers");
    let device = &inventory.devices[0];
    assert_eq!(device.partitions.len(), 1);
    assert!(device.unread_partitions.is_some());
    assert_eq!(probe.snapshot().expect("it answers").samples.len(), 2);
}

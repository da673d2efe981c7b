//! Who is told of an XID, and how often.

use crate::{init, install, install_device};
use fake_nvml::{Clock, Device, Scenario, Steps, Xid, a10, h100_with_mig};
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::event::EventData;
use nvml_wrapper::{EventSet, Nvml};
use std::thread;

fn xid(at: f64, code: u64) -> Xid {
    Xid { at, code, mig: None }
}

fn a10_with(xids: &[Xid]) -> Device {
    Device {
        xids: xids.to_vec(),
        ..a10()
    }
}

/// Makes a set that waits for the XIDs of one device.
fn listen(nvml: &Nvml, index: u32) -> EventSet<'_> {
    let device = nvml.device_by_index(index).unwrap();
    device
        .register_events(EventTypes::CRITICAL_XID_ERROR, nvml.create_event_set().unwrap())
        .unwrap()
}

/// Returns the XIDs that a set has, until there is none.
fn drain(set: &EventSet<'_>) -> Vec<u64> {
    std::iter::from_fn(|| set.wait(0).ok())
        .map(|event| code(&event))
        .collect()
}

fn code(event: &EventData<'_>) -> u64 {
    match event.event_data {
        Some(XidError::Value(code)) => code,
        ref other => panic!("an XID carries its number, not {other:?}"),
    }
}

#[test]
fn each_set_is_told_of_an_xid_once() {
    let installed = install_device(a10_with(&[xid(5.0, 79)]));
    let nvml = init(&installed);
    let sets = [listen(&nvml, 0), listen(&nvml, 0)];
    for set in &sets {
        assert!(
            matches!(set.wait(0), Err(NvmlError::Timeout)),
            "nothing has happened yet"
        );
    }
    installed.set_time(5.0);
    for set in &sets {
        assert_eq!(drain(set), [79]);
    }
    installed.set_time(99.0);
    for set in &sets {
        assert!(drain(set).is_empty(), "nobody is told twice");
    }
}

#[test]
fn time_that_another_process_moves_in_a_file_brings_figures_and_wakes_whoever_waits() {
    let mut device = a10_with(&[xid(5.0, 79)]);
    device.figures.power_milliwatts = Steps::constant(100_000.0);
    let mut scenario = Scenario::of([device]);
    scenario.clock = Clock::File;
    let installed = install(&scenario);
    let nvml = init(&installed);
    let set = listen(&nvml, 0);
    let energy = || {
        nvml.device_by_index(0)
            .unwrap()
            .total_energy_consumption()
            .unwrap()
    };
    assert_eq!(energy(), 0, "without a file it is second 0");
    thread::scope(|scope| {
        let waiting = scope.spawn(move || code(&set.wait(60_000).unwrap()));
        installed.write_time(6.0).unwrap();
        assert_eq!(waiting.join().unwrap(), 79);
    });
    assert_eq!(energy(), 600_000);
}

#[test]
fn an_xid_says_which_device_it_is_of() {
    let installed = install(&Scenario::of([a10(), a10_with(&[xid(1.0, 31)])]));
    let nvml = init(&installed);
    let set = listen(&nvml, 0);
    let set = nvml
        .device_by_index(1)
        .unwrap()
        .register_events(EventTypes::CRITICAL_XID_ERROR, set)
        .unwrap();
    installed.set_time(1.0);
    let event = set.wait(0).unwrap();
    assert_eq!((event.device.index().unwrap(), code(&event)), (1, 31));
}

#[test]
fn a_set_is_not_told_of_what_happened_before_it_listened() {
    let installed = install_device(a10_with(&[xid(1.0, 13), xid(2.0, 43)]));
    let nvml = init(&installed);
    installed.set_time(1.0);
    let set = listen(&nvml, 0);
    installed.set_time(2.0);
    assert_eq!(drain(&set), [43]);
}

#[test]
fn xids_that_nobody_waited_for_in_between_all_show_the_newest() {
    let installed = install_device(a10_with(&[xid(1.0, 13), xid(2.0, 79)]));
    let nvml = init(&installed);
    let set = listen(&nvml, 0);
    installed.set_time(3.0);
    assert_eq!(drain(&set), [79, 79]);
}

#[test]
fn a_wait_ends_when_time_reaches_an_xid() {
    let installed = install_device(a10_with(&[xid(5.0, 79)]));
    let nvml = init(&installed);
    let set = listen(&nvml, 0);
    thread::scope(|scope| {
        let waiting = scope.spawn(move || code(&set.wait(60_000).unwrap()));
        installed.set_time(5.0);
        assert_eq!(waiting.join().unwrap(), 79);
    });
}

#[test]
fn with_a_real_clock_an_xid_comes_by_itself() {
    let device = a10_with(&[xid(0.03, 79)]);
    let installed = install(&Scenario {
        clock: Clock::Real,
        devices: vec![device],
        ..Scenario::default()
    });
    let nvml = init(&installed);
    let set = listen(&nvml, 0);
    assert_eq!(code(&set.wait(60_000).unwrap()), 79);
}

#[test]
fn events_that_a_device_does_not_have_cannot_be_registered() {
    let installed = install_device(Device {
        supported_event_types: 0,
        ..h100_with_mig(1)
    });
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    assert_eq!(device.supported_event_types().unwrap(), EventTypes::empty());
    let refused = device
        .register_events(EventTypes::CRITICAL_XID_ERROR, nvml.create_event_set().unwrap())
        .unwrap_err();
    assert!(matches!(refused.error, NvmlError::NotSupported), "{refused:?}");
}

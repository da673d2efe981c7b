//! Calls that fail, and calls that hang.

use crate::{init, install};
use fake_nvml::{Delay, Fault, NvmlReturn, Scenario, a10, h200};
use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::error::NvmlError;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

fn fault(
    function: &str,
    device: Option<usize>,
    (from, to): (f64, Option<f64>),
    returns: NvmlReturn,
) -> Fault {
    Fault {
        function: function.to_owned(),
        device,
        from,
        to,
        returns,
    }
}

#[test]
fn a_lost_device_says_so_everywhere_and_its_neighbour_goes_on() {
    let installed = install(&Scenario {
        faults: vec![fault("*", Some(0), (10.0, None), NvmlReturn::GpuIsLost)],
        ..Scenario::of([a10(), a10()])
    });
    let nvml = init(&installed);
    let (lost, healthy) = (nvml.device_by_index(0).unwrap(), nvml.device_by_index(1).unwrap());
    assert!(lost.utilization_rates().is_ok());
    installed.set_time(10.0);
    assert!(matches!(lost.utilization_rates(), Err(NvmlError::GpuLost)));
    assert!(matches!(lost.uuid(), Err(NvmlError::GpuLost)));
    assert!(matches!(nvml.device_by_index(0), Err(NvmlError::GpuLost)));
    assert!(healthy.utilization_rates().is_ok());
    assert!(nvml.device_by_index(1).is_ok());
    assert_eq!(nvml.device_count().unwrap(), 2);
}

#[test]
fn a_fault_ends_at_its_time_and_is_of_its_function_only() {
    let installed = install(&Scenario {
        faults: vec![fault(
            "nvmlDeviceGetPowerUsage",
            None,
            (1.0, Some(2.0)),
            NvmlReturn::Unknown,
        )],
        ..Scenario::of([a10()])
    });
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    for (second, fails) in [(0.0, false), (1.0, true), (1.9, true), (2.0, false)] {
        installed.set_time(second);
        assert_eq!(device.power_usage().is_err(), fails, "at second {second}");
        assert!(device.total_energy_consumption().is_ok());
    }
}

#[test]
fn a_driver_that_does_not_answer_can_be_tried_again_later() {
    let fault = fault(
        "nvmlInit_v2",
        None,
        (0.0, Some(30.0)),
        NvmlReturn::LibRmVersionMismatch,
    );
    let installed = install(&Scenario {
        faults: vec![fault],
        ..Scenario::of([a10()])
    });
    let path = installed.path();
    let refused = Nvml::builder().lib_path(path.as_os_str()).init().unwrap_err();
    assert!(matches!(refused, NvmlError::LibRmVersionMismatch), "{refused}");
    installed.set_time(30.0);
    assert_eq!(init(&installed).device_count().unwrap(), 1);
}

#[test]
fn a_wait_shows_a_lost_device_once_no_event_is_left() {
    let lost = fault("*", Some(0), (5.0, None), NvmlReturn::GpuIsLost);
    let mut scenario = Scenario {
        faults: vec![lost],
        ..Scenario::of([a10()])
    };
    scenario.devices[0].xids = vec![fake_nvml::Xid {
        at: 5.0,
        code: 79,
        mig: None,
    }];
    let installed = install(&scenario);
    let nvml = init(&installed);
    let set = nvml.create_event_set().unwrap();
    let set = nvml
        .device_by_index(0)
        .unwrap()
        .register_events(EventTypes::CRITICAL_XID_ERROR, set)
        .unwrap();
    installed.set_time(5.0);
    assert!(set.wait(0).is_ok());
    assert!(matches!(set.wait(0), Err(NvmlError::GpuLost)));
}

#[test]
fn a_slow_call_does_not_hold_up_a_call_about_another_device() {
    let delay = Delay::always("nvmlDeviceGetPowerUsage", Some(0), 3_600_000);
    let installed = install(&Scenario {
        delays: vec![delay],
        ..Scenario::of([a10(), h200()])
    });
    // Nobody waits for the slow call: it ends with the process, and what it uses is there until then.
    let nvml: &'static Nvml = Box::leak(Box::new(init(&installed)));
    thread::spawn(|| nvml.device_by_index(0).unwrap().power_usage());
    while installed.calls("nvmlDeviceGetPowerUsage") == 0 {
        thread::yield_now();
    }
    let (done, quick) = mpsc::channel();
    thread::spawn(move || done.send(nvml.device_by_index(1).unwrap().power_usage().unwrap()));
    let answer = quick.recv_timeout(Duration::from_secs(60));
    assert_eq!(answer, Ok(75_000), "it does not wait for the slow one");
}

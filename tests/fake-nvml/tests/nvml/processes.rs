//! Which processes are seen, how much they use, and what is remembered of them.

use crate::{init, install, install_device};
use fake_nvml::{Device, Process, ProcessKind, Scenario, Steps, h200};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;

/// Two processes that compute, one after the other with two seconds of both, and one that draws.
fn busy() -> Device {
    let train = Process {
        pid: 4001,
        name: "python3".to_owned(),
        begin: 10.0,
        end: Some(20.0),
        memory_used_bytes: Steps::of([(10.0, 1e9), (15.0, 8e9), (16.0, 2e9)]),
        sm_utilization_percent: Steps::of([(10.0, 80.0), (18.0, 30.0)]),
        ..Process::default()
    };
    let infer = Process {
        pid: 4002,
        begin: 18.0,
        sm_utilization_percent: Steps::constant(60.0),
        ..Process::default()
    };
    let draw = Process {
        pid: 9,
        kind: ProcessKind::Graphics,
        ..Process::default()
    };
    Device {
        processes: vec![train, infer, draw],
        ..h200()
    }
}

#[test]
fn a_process_is_listed_from_its_beginning_to_its_end() {
    let installed = install_device(busy());
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    let rows: [(f64, &[u32]); 5] = [
        (9.9, &[]),
        (10.0, &[4001]),
        (18.0, &[4001, 4002]),
        (20.0, &[4002]),
        (1e6, &[4002]),
    ];
    for (second, pids) in rows {
        installed.set_time(second);
        let listed: Vec<_> = device
            .running_compute_processes()
            .unwrap()
            .iter()
            .map(|p| p.pid)
            .collect();
        assert_eq!(listed, pids, "at second {second}");
        assert_eq!(device.running_graphics_processes_count().unwrap(), 1);
    }
}

#[test]
fn the_memory_of_a_process_is_what_it_has_now_or_unknown() {
    let installed = install_device(busy());
    installed.set_time(18.0);
    let nvml = init(&installed);
    let processes = nvml
        .device_by_index(0)
        .unwrap()
        .running_compute_processes()
        .unwrap();
    assert_eq!(processes[0].used_gpu_memory, UsedGpuMemory::Used(2_000_000_000));
    assert_eq!(processes[1].used_gpu_memory, UsedGpuMemory::Unavailable);
    assert_eq!(processes[0].gpu_instance_id, None);
    assert_eq!(nvml.sys_process_name(4001, 64).unwrap(), "python3");
    assert!(matches!(nvml.sys_process_name(1, 64), Err(NvmlError::NotFound)));
}

#[test]
fn utilisation_of_processes_is_not_found_while_all_are_idle() {
    let installed = install_device(busy());
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    for second in [0.0, 5.0, 10.0] {
        installed.set_time(second);
        assert!(
            matches!(device.process_utilization_stats(None), Err(NvmlError::NotFound)),
            "at {second}"
        );
    }
    installed.set_time(10.5);
    assert_eq!(device.process_utilization_stats(None).unwrap().len(), 3);
}

#[test]
fn each_process_has_its_share_of_each_sampling_period() {
    let installed = install_device(busy());
    installed.set_time(18.0);
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    let seen = device
        .process_utilization_stats(None)
        .unwrap()
        .last()
        .unwrap()
        .timestamp;
    installed.set_time(18.4);
    let samples = device.process_utilization_stats(seen).unwrap();
    let shares: Vec<_> = samples
        .iter()
        .map(|sample| (sample.pid, sample.sm_util))
        .collect();
    assert_eq!(shares, [(4001, 30), (4002, 60), (4001, 30), (4002, 60)]);
    assert!(samples.iter().all(|sample| sample.timestamp > seen));
}

#[test]
fn accounting_remembers_a_process_that_has_ended() {
    let installed = install_device(Device {
        accounting: Some(true),
        ..busy()
    });
    installed.set_time(30.0);
    let nvml = init(&installed);
    let mut device = nvml.device_by_index(0).unwrap();
    assert!(device.is_accounting_enabled().unwrap());
    assert_eq!(device.accounting_pids().unwrap(), [9, 4001, 4002]);
    let ended = device.accounting_stats_for(4001).unwrap();
    assert_eq!(
        (ended.gpu_utilization, ended.max_memory_usage),
        (Some(70), Some(8_000_000_000))
    );
    assert_eq!((ended.time, ended.is_running), (10_000, false));
    assert_eq!(ended.start_time, 1_767_225_610_000_000);
    let running = device.accounting_stats_for(4002).unwrap();
    assert_eq!((running.time, running.is_running), (0, true));
    assert!(matches!(device.accounting_stats_for(1), Err(NvmlError::NotFound)));
    device.clear_accounting_pids().unwrap();
    assert_eq!(
        device.accounting_pids().unwrap(),
        [9, 4002],
        "only ended ones are forgotten"
    );
}

#[test]
fn accounting_begins_when_it_is_switched_on_and_forgets_with_the_driver() {
    let installed = install(&Scenario {
        driver_reloads: vec![50.0],
        devices: vec![busy()],
        ..Scenario::default()
    });
    installed.set_time(12.0);
    let nvml = init(&installed);
    let mut device = nvml.device_by_index(0).unwrap();
    assert!(!device.is_accounting_enabled().unwrap());
    assert!(device.accounting_pids().unwrap().is_empty());
    device.set_accounting(true).unwrap();
    installed.set_time(30.0);
    assert_eq!(
        device.accounting_pids().unwrap(),
        [4002],
        "the others had begun before"
    );
    installed.set_time(50.0);
    assert!(device.accounting_pids().unwrap().is_empty());
}

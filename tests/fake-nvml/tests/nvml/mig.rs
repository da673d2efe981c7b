//! Devices that are divided, and GPM.

use crate::{init, install, install_device};
use fake_nvml::{Device, Figures, Process, Scenario, Steps, a10, h100_with_mig, h200};
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::gpm_metrics_get;

const SM: GpmMetricId = GpmMetricId::SmUtil;
const TENSOR: GpmMetricId = GpmMetricId::AnyTensorUtil;

#[test]
fn instances_are_found_by_index_and_know_their_device() {
    let installed = install(&Scenario::of([a10(), h100_with_mig(2)]));
    let nvml = init(&installed);
    let device = nvml.device_by_index(1).unwrap();
    assert_eq!(
        (
            device.mig_mode().unwrap().current,
            device.mig_device_count().unwrap()
        ),
        (1, 7)
    );
    assert!(!device.mig_is_mig_device_handle().unwrap());
    let instances: Vec<_> = (0..7)
        .map_while(|index| device.mig_device_by_index(index).ok())
        .collect();
    let uuids: Vec<_> = instances
        .iter()
        .map(|instance| instance.uuid().unwrap())
        .collect();
    assert_eq!(
        uuids,
        [
            "MIG-b1e0be55-0000-4000-8000-000001000000",
            "MIG-b1e0be55-0000-4000-8000-000001000001"
        ]
    );
    assert!(matches!(device.mig_device_by_index(2), Err(NvmlError::NotFound)));
    let instance = &instances[1];
    assert!(instance.mig_is_mig_device_handle().unwrap());
    assert_eq!(instance.name().unwrap(), "NVIDIA H100 80GB HBM3 MIG 1g.10gb");
    assert_eq!(
        instance.mig_parent_device().unwrap().uuid().unwrap(),
        device.uuid().unwrap()
    );
    assert_eq!(instance.attributes().unwrap().multiprocessor_count, 16);
    assert_eq!(
        nvml.device_by_uuid(uuids[1].as_str()).unwrap().index().unwrap(),
        1
    );
}

#[test]
fn each_instance_has_its_own_memory_and_processes() {
    let mut device = h100_with_mig(2);
    device.processes = vec![
        Process {
            pid: 100,
            mig: Some(0),
            ..Process::default()
        },
        Process {
            pid: 200,
            mig: Some(1),
            ..Process::default()
        },
    ];
    device.mig.as_mut().unwrap().instances[1].memory_used_bytes = Steps::constant(5e9);
    let installed = install_device(device);
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    let instance = |index| device.mig_device_by_index(index).unwrap();
    assert_eq!(instance(0).memory_info().unwrap().used, 12 << 20);
    assert_eq!(instance(1).memory_info().unwrap().used, 5_000_000_000);
    let processes = instance(1).running_compute_processes().unwrap();
    let [process] = processes.as_slice() else {
        panic!("one process, not {processes:?}")
    };
    assert_eq!(
        (process.pid, process.gpu_instance_id, process.compute_instance_id),
        (200, Some(8), Some(0))
    );
    assert_eq!(
        device.running_compute_processes().unwrap().len(),
        2,
        "the device has them all"
    );
}

#[test]
fn utilisation_of_a_divided_device_is_not_supported() {
    let installed = install(&Scenario::of([h100_with_mig(1)]));
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    let instance = device.mig_device_by_index(0).unwrap();
    assert!(matches!(device.utilization_rates(), Err(NvmlError::NotSupported)));
    assert!(matches!(
        instance.utilization_rates(),
        Err(NvmlError::NotSupported)
    ));
    assert!(matches!(
        device.process_utilization_stats(None),
        Err(NvmlError::NotSupported)
    ));
    assert!(matches!(instance.power_usage(), Err(NvmlError::NotSupported)));
    assert!(device.power_usage().is_ok());
}

#[test]
fn a_metric_of_gpm_is_its_mean_between_two_samples() {
    let mut figures = h200().figures;
    figures.gpm.insert(2, Steps::of([(0.0, 0.0), (1.0, 90.0)]));
    figures.gpm.remove(&5);
    let installed = install_device(Device {
        figures: Figures { ..figures },
        ..h200()
    });
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    let first = device.gpm_sample().unwrap();
    installed.set_time(3.0);
    let second = device.gpm_sample().unwrap();
    let metrics = gpm_metrics_get(&nvml, &first, &second, &[SM, TENSOR]).unwrap();
    let sm = metrics[0].as_ref().unwrap();
    assert_eq!(
        (
            sm.value,
            sm.metric_info.short_name.as_str(),
            sm.metric_info.unit.as_str()
        ),
        (60.0, "SM_UTIL", "%")
    );
    assert!(matches!(metrics[1], Err(NvmlError::NotSupported)));
    let backwards = gpm_metrics_get(&nvml, &second, &first, &[SM]);
    assert!(matches!(backwards, Err(NvmlError::InvalidArg)), "{backwards:?}");
}

#[test]
fn gpm_of_an_instance_is_its_own() {
    let mut device = h100_with_mig(2);
    device.mig.as_mut().unwrap().instances[1]
        .gpm
        .insert(2, Steps::constant(75.0));
    let installed = install_device(device);
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    let samples = |second| {
        installed.set_time(second);
        (
            device.gpm_mig_sample(7).unwrap(),
            device.gpm_mig_sample(8).unwrap(),
        )
    };
    let (first, second) = (samples(0.0), samples(1.0));
    let value = |one, two| {
        gpm_metrics_get(&nvml, one, two, &[SM]).unwrap()[0]
            .as_ref()
            .unwrap()
            .value
    };
    assert_eq!(
        (value(&first.0, &second.0), value(&first.1, &second.1)),
        (0.0, 75.0)
    );
    let mixed = gpm_metrics_get(&nvml, &first.0, &second.1, &[SM]);
    assert!(
        matches!(mixed, Err(NvmlError::InvalidArg)),
        "samples of two instances have nothing between them"
    );
    assert!(matches!(device.gpm_mig_sample(9), Err(NvmlError::InvalidArg)));
}

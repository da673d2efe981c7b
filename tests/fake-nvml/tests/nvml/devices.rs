//! Which devices there are, and who is told of them.

use crate::{init, install};
use fake_nvml::{Scenario, a10, h100_with_mig, h200};
use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Brand, P2pCapabilitiesIndex, P2pStatus};
use nvml_wrapper::error::NvmlError;
use std::fs;

#[test]
fn devices_are_found_with_their_names_in_the_order_of_the_scenario() {
    let installed = install(&Scenario::of([a10(), h200(), h100_with_mig(2)]));
    let nvml = init(&installed);
    let names: Vec<_> = (0..nvml.device_count().unwrap())
        .map(|index| nvml.device_by_index(index).unwrap().name().unwrap())
        .collect();
    assert_eq!(names, ["NVIDIA A10", "NVIDIA H200", "NVIDIA H100 80GB HBM3"]);
    assert_eq!(nvml.sys_driver_version().unwrap(), "580.159.03");
    assert_eq!(nvml.sys_cuda_driver_version().unwrap(), 13_000);
}

#[test]
fn a_device_is_the_same_one_however_it_is_found() {
    let installed = install(&Scenario::of([a10(), a10()]));
    let nvml = init(&installed);
    let device = nvml.device_by_index(1).unwrap();
    let uuid = device.uuid().unwrap();
    let bus_id = device.pci_info().unwrap().bus_id;
    assert_eq!(uuid, "GPU-b1e0be55-0000-4000-8000-000000000001");
    assert_eq!(bus_id, "00000000:11:00.0");
    assert_eq!(nvml.device_by_uuid(uuid).unwrap().index().unwrap(), 1);
    assert_eq!(nvml.device_by_pci_bus_id(bus_id).unwrap().index().unwrap(), 1);
    assert_eq!(device.minor_number().unwrap(), 1);
    assert_eq!(device.brand().unwrap(), Brand::Nvidia);
}

#[test]
fn what_is_no_device_is_refused() {
    let installed = install(&Scenario::of([a10()]));
    let nvml = init(&installed);
    assert!(matches!(nvml.device_by_index(1), Err(NvmlError::InvalidArg)));
    assert!(matches!(
        nvml.device_by_uuid("GPU-other"),
        Err(NvmlError::NotFound)
    ));
    assert!(matches!(
        nvml.device_by_pci_bus_id("00000000:FF:00.0"),
        Err(NvmlError::NotFound)
    ));
}

#[test]
fn two_copies_in_one_process_have_devices_and_times_of_their_own() {
    let (one, two) = (
        install(&Scenario::of([a10()])),
        install(&Scenario::of([h200(), h200()])),
    );
    let (nvml_one, nvml_two) = (init(&one), init(&two));
    one.set_time(10.0);
    assert_eq!(nvml_one.device_count().unwrap(), 1);
    assert_eq!(nvml_two.device_count().unwrap(), 2);
    let energy = |nvml: &Nvml| {
        nvml.device_by_index(0)
            .unwrap()
            .total_energy_consumption()
            .unwrap()
    };
    assert_eq!((energy(&nvml_one), energy(&nvml_two)), (160_000, 0));
    assert_eq!(one.calls("nvmlDeviceGetTotalEnergyConsumption"), 1);
}

#[test]
fn a_copy_can_be_given_another_scenario_while_it_is_used() {
    let installed = install(&Scenario::of([a10()]));
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    installed.replace_scenario(&Scenario::of([h200()])).unwrap();
    assert_eq!(device.name().unwrap(), "NVIDIA H200");
    installed.replace_scenario(&Scenario::default()).unwrap();
    assert!(
        matches!(device.name(), Err(NvmlError::InvalidArg)),
        "its handle names nothing any more"
    );
}

#[test]
fn a_copy_that_somebody_else_made_reads_the_scenario_beside_it() {
    let installed = install(&Scenario::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libnvidia-ml.so.1");
    fs::copy(installed.path(), &path).unwrap();
    let init = || Nvml::builder().lib_path(path.as_os_str()).init();
    let error = init().unwrap_err();
    assert!(
        matches!(error, NvmlError::DriverNotLoaded),
        "without a scenario there is no driver: {error}"
    );

    let write = |text: &str| fs::write(folder.path().join("scenario.json"), text).unwrap();
    write(r#"{ "device": [] }"#);
    let error = init().unwrap_err();
    assert!(
        matches!(error, NvmlError::Unknown),
        "a misspelt key is refused: {error}"
    );

    write(r#"{ "devices": [{ "name": "NVIDIA T4" }] }"#);
    let nvml = init().unwrap();
    let device = nvml.device_by_index(0).unwrap();
    assert_eq!(device.name().unwrap(), "NVIDIA T4");
    assert!(
        matches!(device.power_usage(), Err(NvmlError::NotSupported)),
        "what is left out is not there"
    );
}

#[test]
fn a_scenario_is_the_same_after_it_was_written_and_read() {
    let scenario = Scenario::of([a10(), h200(), h100_with_mig(3)]);
    let text = serde_json::to_string(&scenario).unwrap();
    assert_eq!(serde_json::from_str::<Scenario>(&text).unwrap(), scenario);
}

#[test]
fn devices_reach_each_other_only_over_links() {
    let installed = install(&Scenario::of([h200(), h200(), a10()]));
    let nvml = init(&installed);
    let device = |index| nvml.device_by_index(index).unwrap();
    let status = |one, two| {
        device(one)
            .p2p_status(&device(two), P2pCapabilitiesIndex::Read)
            .unwrap()
    };
    assert_eq!(status(0, 1), P2pStatus::Ok);
    assert_eq!(status(0, 2), P2pStatus::ChipsetNotSupported);
    assert!(device(0).link_wrapper_for(17).is_active().unwrap());
    assert!(matches!(
        device(2).link_wrapper_for(0).is_active(),
        Err(NvmlError::NotSupported)
    ));
}

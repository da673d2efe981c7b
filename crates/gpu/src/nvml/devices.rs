//! Which devices there are, and the parts that they are divided into.

use blueproof_core::{
    domain::Bytes,
    gpu::{Device, DeviceUuid, Partition, Reading, Vendor},
};
use nvml_wrapper::{Device as Handle, Nvml, error::NvmlError};

use super::errors::read;

/// Returns who is in a place, and how it is divided now.
///
/// Who a device is does not change while the driver is loaded, and it stays loaded while the probe is open: so only those that
/// were not known are asked for all of it. How they are divided may change at any time.
pub(super) fn device(nvml: &Nvml, place: u32, was: Option<&Device>) -> Result<Device, NvmlError> {
    let handle = nvml.device_by_index(place)?;
    let uuid = DeviceUuid(handle.uuid()?);
    let was = was.filter(|was| was.uuid == uuid);
    let who = match was.filter(|was| is_known(was)) {
        Some(was) => was.clone(),
        None => who(&handle, uuid, place)?,
    };
    let parts = was.map_or(&[][..], |was| &was.partitions);
    Ok(Device {
        is_partitioned: read(handle.mig_mode()).map(|mode| mode.current == 1),
        partitions: partitions(&handle, parts),
        ..who
    })
}

/// Returns what a device says of itself, without how it is divided.
fn who(handle: &Handle<'_>, uuid: DeviceUuid, place: u32) -> Result<Device, NvmlError> {
    Ok(Device {
        uuid,
        index: place,
        vendor: Vendor::Nvidia,
        model: handle.name()?,
        pci_bus_id: read(handle.pci_info()).map(|pci| pci.bus_id),
        minor: read(handle.minor_number()),
        serial: read(handle.serial()),
        memory: read(handle.memory_info()).map(|memory| Bytes(memory.total)),
        is_partitioned: Reading::Unsupported,
        partitions: Vec::new(),
    })
}

/// Returns whether all that a device says of itself could be read.
fn is_known(device: &Device) -> bool {
    let faults = [
        device.pci_bus_id.fault(),
        device.minor.fault(),
        device.serial.fault(),
        device.memory.fault(),
    ];
    faults.into_iter().all(|fault| fault.is_none())
}

/// Returns the parts of a device, in the order of their places. Places may be empty in between.
fn partitions(device: &Handle<'_>, were: &[Partition]) -> Vec<Partition> {
    let most = device.mig_device_count().unwrap_or(0);
    let handles = (0..most).filter_map(|place| device.mig_device_by_index(place).ok());
    handles
        .filter_map(|handle| partition(&handle, were).ok())
        .collect()
}

/// Returns a part. One whose UUID is known is the part that it was.
fn partition(handle: &Handle<'_>, were: &[Partition]) -> Result<Partition, NvmlError> {
    let uuid = DeviceUuid(handle.uuid()?);
    let was = were.iter().find(|was| was.uuid == uuid);
    if let Some(was) = was.filter(|was| is_known_part(was)) {
        return Ok(was.clone());
    }
    Ok(Partition {
        uuid,
        profile: profile(handle),
        gpu_instance: read(super::raw::gpu_instance(handle)),
        compute_instance: read(super::raw::compute_instance(handle)),
        memory: read(handle.memory_info()).map(|memory| Bytes(memory.total)),
    })
}

fn is_known_part(part: &Partition) -> bool {
    let faults = [
        part.profile.fault(),
        part.gpu_instance.fault(),
        part.compute_instance.fault(),
        part.memory.fault(),
    ];
    faults.into_iter().all(|fault| fault.is_none())
}

/// Returns what a part has, as NVIDIA writes it: slices of processors, and memory in GB.
fn profile(handle: &Handle<'_>) -> Reading<String> {
    // The driver gives megabytes of 2^20; profiles are called by GB, rounded up.
    const MEGABYTES_OF_GB: u64 = 1024;
    read(handle.attributes()).map(|of| {
        let memory = of.memory_size_mb.div_ceil(MEGABYTES_OF_GB);
        let (compute, gpu) = (of.compute_instance_slice_count, of.gpu_instance_slice_count);
        if compute == gpu {
            format!("{gpu}g.{memory}gb")
        } else {
            format!("{compute}c.{gpu}g.{memory}gb")
        }
    })
}

/// Returns CUDA's version from the number that the driver gives: 12080 is 12.8.
pub(super) fn cuda_version(number: i32) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

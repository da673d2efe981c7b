//! Which devices there are, and the parts that they are divided into.

use blueproof_core::{
    domain::Bytes,
    gpu::{Device, DeviceUuid, Fault, Partition, Reading, Vendor},
};
use nvml_wrapper::{Device as Handle, Nvml, enum_wrappers::device::GpuVirtualizationMode, error::NvmlError};

use super::errors::{self, read};

/// Returns who is in a place, and how it is divided now.
///
/// Who a device is does not change while the driver is loaded, and it stays loaded while the probe is open: so only those that
/// were not known are asked for all of it. How they are divided may change at any time.
pub(super) fn device(nvml: &Nvml, place: u32, was: Option<&Device>) -> Result<Device, NvmlError> {
    let handle = nvml.device_by_index(place)?;
    let uuid = uuid(&handle)?;
    let was = was.filter(|was| was.uuid == uuid);
    let who = match was.filter(|was| is_known(was)) {
        Some(was) => was.clone(),
        None => who(&handle, uuid, place),
    };
    let parts = was.map_or(&[][..], |was| &was.partitions);
    let is_partitioned = read(handle.mig_mode()).map(|mode| mode.current == 1);
    let (partitions, unread) = partitions(&handle, parts);
    // A card that has no MIG has no parts that could not be read.
    let may_be_partitioned = matches!(is_partitioned, Reading::Value(true) | Reading::Failed(_));
    Ok(Device {
        unread_partitions: unread.filter(|_| may_be_partitioned),
        is_partitioned,
        partitions,
        ..who
    })
}

/// Returns what a device is called; no name is none.
pub(super) fn uuid(handle: &Handle<'_>) -> Result<DeviceUuid, NvmlError> {
    let uuid = handle.uuid()?;
    let is_one = !uuid.trim().is_empty();
    is_one.then_some(DeviceUuid(uuid)).ok_or(NvmlError::Unknown)
}

/// Returns what a device says of itself, without how it is divided. It is known by its UUID, whatever else it does not say.
fn who(handle: &Handle<'_>, uuid: DeviceUuid, place: u32) -> Device {
    Device {
        uuid,
        index: place,
        vendor: Vendor::Nvidia,
        model: handle.name().unwrap_or_default(),
        pci_bus_id: read(handle.pci_info()).map(|pci| pci.bus_id),
        minor: read(handle.minor_number()),
        serial: read(handle.serial()),
        memory: read(handle.memory_info()).map(|memory| Bytes(memory.total)),
        is_partitioned: Reading::Unsupported,
        is_virtual: read(handle.virtualization_mode()).map(|mode| is_guest(&mode)),
        partitions: Vec::new(),
        unread_partitions: None,
    }
}

/// Returns whether the driver runs in a virtual machine, and not on the machine that has the device.
fn is_guest(mode: &GpuVirtualizationMode) -> bool {
    match mode {
        GpuVirtualizationMode::PassThrough | GpuVirtualizationMode::Vgpu => true,
        GpuVirtualizationMode::Bare | GpuVirtualizationMode::HostVgpu | GpuVirtualizationMode::HostVsga => {
            false
        }
    }
}

/// Returns whether all that a device says of itself could be read.
fn is_known(device: &Device) -> bool {
    let faults = [
        device.pci_bus_id.fault(),
        device.minor.fault(),
        device.serial.fault(),
        device.memory.fault(),
        device.is_virtual.fault(),
    ];
    !device.model.is_empty() && faults.into_iter().all(|fault| fault.is_none())
}

/// Returns the parts of a device, in the order of their places, and why there may be others. Places may be empty in between.
fn partitions(device: &Handle<'_>, were: &[Partition]) -> (Vec<Partition>, Option<Fault>) {
    let most = match device.mig_device_count() {
        Ok(most) => most,
        Err(error) => return (Vec::new(), unread(&error)),
    };
    let (mut parts, mut fault) = (Vec::new(), None);
    for place in 0..most {
        let part = match device.mig_device_by_index(place) {
            // The driver's words for a place with nothing in it.
            Err(NvmlError::NotFound | NvmlError::InvalidArg) => continue,
            handle => handle.and_then(|handle| partition(&handle, device, were)),
        };
        match part {
            // One that says that it is another cannot be told from it.
            Ok(part) if parts.iter().any(|other: &Partition| other.uuid == part.uuid) => {
                fault = fault.or(unread(&NvmlError::Unknown));
            }
            Ok(part) => parts.push(part),
            Err(error) => fault = fault.or(unread(&error)),
        }
    }
    (parts, fault)
}

/// Returns why something is not known; `None` is that the card does not have it.
fn unread(error: &NvmlError) -> Option<Fault> {
    errors::unread::<()>(error).fault().cloned()
}

/// Returns a part. One whose UUID is known is the part that it was.
fn partition(handle: &Handle<'_>, device: &Handle<'_>, were: &[Partition]) -> Result<Partition, NvmlError> {
    let uuid = uuid(handle)?;
    let was = were.iter().find(|was| was.uuid == uuid);
    if let Some(was) = was.filter(|was| is_known_part(was)) {
        return Ok(was.clone());
    }
    Ok(Partition {
        uuid,
        profile: profile(handle, device),
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

/// Returns what a part has, as NVIDIA writes it. The driver ends a part's name with it; where it does not, it follows from
/// what the part has of its device, but for media extensions (`+me`), of which nothing is told then.
fn profile(part: &Handle<'_>, device: &Handle<'_>) -> Reading<String> {
    let name = part.name().ok();
    if let Some(profile) = name.as_deref().and_then(profile_in) {
        return Reading::Value(profile.to_owned());
    }
    let of = part
        .attributes()
        .and_then(|of| Ok((of, device.memory_info()?.total)));
    read(of).map(|(of, total)| {
        let memory = gigabytes(of.memory_size_mb, total);
        let (compute, gpu) = (of.compute_instance_slice_count, of.gpu_instance_slice_count);
        if compute == gpu {
            format!("{gpu}g.{memory}gb")
        } else {
            format!("{compute}c.{gpu}g.{memory}gb")
        }
    })
}

/// Returns the profile at the end of a part's name: `NVIDIA H200 MIG 1g.18gb`.
fn profile_in(name: &str) -> Option<&str> {
    let (_, profile) = name.rsplit_once(" MIG ")?;
    let is_one = profile.starts_with(|first: char| first.is_ascii_digit()) && profile.contains("g.");
    is_one.then_some(profile)
}

/// Returns the memory by which a profile is called: the part's share of its device, in eighths and rounded up, of the
/// device's memory in GiB, rounded up. The rule is NVIDIA's: `getMigMemorySizeGB` in NVIDIA/go-nvlib,
/// `pkg/nvlib/device/mig_profile.go`. `part` is in MiB, `total` in bytes.
fn gigabytes(part: u64, total: u64) -> u64 {
    const EIGHTHS: u128 = 8;
    let (part, total) = (u128::from(part) << 20, u128::from(total).max(1));
    let eighths = (part * EIGHTHS).div_ceil(total);
    let whole = total.div_ceil(1 << 30);
    // Half of one counts as one.
    u64::try_from((2 * eighths * whole + EIGHTHS) / (2 * EIGHTHS)).unwrap_or(u64::MAX)
}

/// Returns CUDA's version from the number that the driver gives: 12080 is 12.8.
pub(super) fn cuda_version(number: i32) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_called_by_nvidias_rule_on_every_card() {
        for (card, total, parts) in [
            ("H200", 143_771, &[(16_384, 18), (33_280, 35), (71_424, 71)][..]),
            (
                "H100 80GB",
                81_559,
                &[(9_984, 10), (20_096, 20), (40_448, 40), (81_559, 80)],
            ),
            (
                "A100 40GB",
                40_960,
                &[(4_864, 5), (9_856, 10), (19_968, 20), (40_448, 40)],
            ),
            ("A30", 24_576, &[(5_952, 6), (11_968, 12), (24_125, 24)]),
            ("GB200", 189_471, &[(23_552, 23), (189_000, 186)]),
        ] {
            for (part, expected) in parts {
                assert_eq!(gigabytes(*part, total << 20), *expected, "{part} MiB of a {card}");
            }
        }
    }

    #[test]
    fn the_driver_says_itself_what_a_part_has() {
        for (name, profile) in [
            ("NVIDIA H200 MIG 1g.18gb", Some("1g.18gb")),
            ("NVIDIA A100-SXM4-40GB MIG 1g.5gb+me", Some("1g.5gb+me")),
            ("NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", Some("1c.3g.20gb")),
            ("NVIDIA H200", None),
            ("NVIDIA MIG something", None),
        ] {
            assert_eq!(profile_in(name), profile, "{name}");
        }
    }
}

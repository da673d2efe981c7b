//! Which devices there are, what they are, and how they are found.

use crate::handle::Handle;
use crate::library::Target;
use crate::returns::{Answer, NvmlReturn};
use crate::scenario::{Device, Scenario};
use nvml_wrapper_sys::bindings::nvmlPciInfo_t;
use std::ffi::c_char;

/// Finds the device at an index.
pub(crate) fn by_index(scenario: &Scenario, index: u32) -> Answer<Handle> {
    let index = index as usize;
    if index < scenario.devices.len() {
        Ok(Handle::of(index))
    } else {
        Err(NvmlReturn::InvalidArgument)
    }
}

/// Finds a device or a MIG instance by its UUID.
pub(crate) fn by_uuid(scenario: &Scenario, uuid: &str) -> Answer<Handle> {
    for (index, device) in scenario.devices.iter().enumerate() {
        if device.uuid == uuid {
            return Ok(Handle::of(index));
        }
        let mut instances = device.mig.iter().flat_map(|mig| &mig.instances);
        if let Some(mig) = instances.position(|instance| instance.uuid == uuid) {
            return Ok(Handle {
                device: index,
                mig: Some(mig),
            });
        }
    }
    Err(NvmlReturn::NotFound)
}

/// Finds a device by its board's serial number.
pub(crate) fn by_serial(scenario: &Scenario, serial: &str) -> Answer<Handle> {
    by(scenario, |device| device.serial.as_deref() == Some(serial))
}

/// Finds a device by its PCI address; the domain may be short or left out, and case does not matter.
pub(crate) fn by_pci_bus_id(scenario: &Scenario, bus_id: &str) -> Answer<Handle> {
    let wanted = bus_id.to_ascii_uppercase();
    by(scenario, |device| {
        let own = device.pci.bus_id();
        match wanted.split_once(':') {
            Some((domain, rest)) if rest.contains(':') => own == format!("{domain:0>8}:{rest}"),
            _ => own == format!("00000000:{wanted}"),
        }
    })
}

fn by(scenario: &Scenario, is_wanted: impl Fn(&Device) -> bool) -> Answer<Handle> {
    scenario
        .devices
        .iter()
        .position(is_wanted)
        .map(Handle::of)
        .ok_or(NvmlReturn::NotFound)
}

/// Returns the index of a device, or of a MIG instance on its device.
pub(crate) fn index(target: &Target<'_>) -> Answer<u32> {
    Ok(target.handle.mig.unwrap_or(target.handle.device) as u32)
}

/// Returns the name; a MIG instance's ends with its profile.
pub(crate) fn name(target: &Target<'_>) -> Answer<String> {
    let name = &target.device.name;
    Ok(target
        .mig
        .map_or_else(|| name.clone(), |mig| format!("{name} MIG {}", mig.profile)))
}

/// Returns the UUID.
pub(crate) fn uuid(target: &Target<'_>) -> Answer<String> {
    Ok(target.mig.map_or(&target.device.uuid, |mig| &mig.uuid).clone())
}

/// Returns the board's serial number.
pub(crate) fn serial(target: &Target<'_>) -> Answer<String> {
    target.whole()?.serial.clone().ok_or(NvmlReturn::NotSupported)
}

/// Returns the VBIOS version.
pub(crate) fn vbios_version(target: &Target<'_>) -> Answer<String> {
    Ok(target.whole()?.vbios_version.clone())
}

/// Returns the number of the device's node.
pub(crate) fn minor_number(target: &Target<'_>) -> Answer<u32> {
    Ok(target.device.minor_number)
}

/// Returns where the device is on PCI.
pub(crate) fn pci_info(target: &Target<'_>) -> Answer<nvmlPciInfo_t> {
    let pci = target.device.pci;
    let bus_id = pci.bus_id();
    Ok(nvmlPciInfo_t {
        // The older form has a domain of four digits.
        busIdLegacy: chars(bus_id.get(4..).unwrap_or_default()),
        domain: pci.domain,
        bus: pci.bus,
        device: pci.device,
        pciDeviceId: pci.pci_device_id,
        pciSubSystemId: pci.pci_sub_system_id,
        busId: chars(&bus_id),
    })
}

/// Puts a short text into a C array, with zeros after it.
fn chars<const N: usize>(text: &str) -> [c_char; N] {
    let mut chars = [0; N];
    for (place, byte) in chars.iter_mut().zip(text.bytes().take(N - 1)) {
        *place = byte as c_char;
    }
    chars
}

/// Returns NVML's number for the brand.
pub(crate) fn brand(target: &Target<'_>) -> Answer<u32> {
    Ok(target.device.brand)
}

/// Returns NVML's number for the architecture.
pub(crate) fn architecture(target: &Target<'_>) -> Answer<u32> {
    Ok(target.device.architecture)
}

/// Returns the compute capability.
pub(crate) fn cuda_compute_capability(target: &Target<'_>) -> Answer<(i32, i32)> {
    Ok(target.device.cuda_compute_capability)
}

/// Returns NVML's number for how the device is virtualised.
pub(crate) fn virtualization(target: &Target<'_>) -> Answer<u32> {
    target.whole()?.virtualization.ok_or(NvmlReturn::NotSupported)
}

/// Returns whether the device stays initialised without clients.
pub(crate) fn persistence_mode(target: &Target<'_>) -> Answer<u32> {
    Ok(u32::from(target.whole()?.persistence_mode))
}

/// Returns whether ECC is on, and whether it will be.
pub(crate) fn ecc_mode(target: &Target<'_>) -> Answer<(u32, u32)> {
    let is_on = u32::from(target.whole()?.ecc_enabled.ok_or(NvmlReturn::NotSupported)?);
    Ok((is_on, is_on))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::a10;

    #[test]
    fn a_pci_address_is_known_in_every_way_of_writing_it() {
        let mut device = a10();
        device.pci.bus = 0xaf;
        let scenario = Scenario {
            devices: vec![device],
            ..Scenario::default()
        };
        for written in ["00000000:AF:00.0", "0000:af:00.0", "af:00.0", "0:AF:00.0"] {
            assert_eq!(by_pci_bus_id(&scenario, written), Ok(Handle::of(0)), "{written}");
        }
        for written in ["00000001:AF:00.0", "AE:00.0", "", "AF"] {
            assert_eq!(
                by_pci_bus_id(&scenario, written),
                Err(NvmlReturn::NotFound),
                "{written}"
            );
        }
    }
}

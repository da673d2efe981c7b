//! Devices, and the parts that they are divided into.

use serde::{Deserialize, Serialize};

use super::{Fault, Reading};
use crate::domain::{Bytes, DeviceUuid};

/// Who made a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Vendor {
    /// NVIDIA.
    Nvidia,
    /// Google.
    Google,
}

/// The accelerators of a machine: each is there once, however often a scheduler was told of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GpuInventory {
    /// The driver's version.
    pub driver_version: Option<String>,
    /// The newest version of the vendor's programming interface that the driver knows, such as CUDA's.
    pub api_version: Option<String>,
    /// The devices, in the driver's order.
    pub devices: Vec<Device>,
    /// How many more devices the driver counts that never said who they are, or say that they are one of these.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unidentified: u32,
    /// Why they do not say it, of those that gave a reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unidentified_because: Vec<Fault>,
}

impl GpuInventory {
    /// Returns how many devices the driver counts, whether they said who they are or not.
    pub fn counted(&self) -> usize {
        self.devices.len() + self.unidentified as usize
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks it so")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

/// An accelerator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// What it is called, for as long as it lives.
    pub uuid: DeviceUuid,
    /// Its number among the driver's devices, which another start of the machine may change.
    pub index: u32,
    /// Who made it.
    pub vendor: Vendor,
    /// Its model, in its maker's words.
    pub model: String,
    /// Its address on the bus, such as `00000000:18:00.0`.
    pub pci_bus_id: Reading<String>,
    /// The number in its device file, such as 0 of `/dev/nvidia0`.
    pub minor: Reading<u32>,
    /// Its serial number.
    pub serial: Reading<String>,
    /// Its memory.
    pub memory: Reading<Bytes>,
    /// Whether it can only be used in parts, as by MIG.
    pub is_partitioned: Reading<bool>,
    /// Whether it is seen from a virtual machine: passed through to it, or shared out by a hypervisor.
    #[serde(default = "untold")]
    pub is_virtual: Reading<bool>,
    /// Its parts, as far as they could be read.
    pub partitions: Vec<Partition>,
    /// Why there may be parts that are not told of; `None` where all could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_partitions: Option<Fault>,
}

/// Recordings of before do not say it.
fn untold() -> Reading<bool> {
    Reading::Unsupported
}

/// A part of a device that is used as a device of its own: a MIG instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Partition {
    /// What it is called.
    pub uuid: DeviceUuid,
    /// What it has of the device, such as `1g.10gb`.
    pub profile: Reading<String>,
    /// The number of its GPU instance.
    pub gpu_instance: Reading<u32>,
    /// The number of its compute instance in there.
    pub compute_instance: Reading<u32>,
    /// Its memory.
    pub memory: Reading<Bytes>,
}

impl GpuInventory {
    /// Returns a device by its name.
    pub fn device(&self, uuid: &DeviceUuid) -> Option<&Device> {
        self.devices.iter().find(|device| device.uuid == *uuid)
    }

    /// Returns what can be given to somebody, in the driver's order: devices, and of those that can only be used in parts,
    /// the parts.
    pub fn units(&self) -> impl Iterator<Item = &DeviceUuid> {
        self.devices.iter().flat_map(Device::units)
    }
}

impl Device {
    /// Returns whether it is divided, and of none of its parts it is known which it is: what is told of the whole is nobody's then.
    pub fn has_only_unknown_parts(&self) -> bool {
        let is_known = |part: &Partition| matches!(part.gpu_instance, Reading::Value(_));
        let is_divided = self.unread_partitions.is_some() || !self.partitions.is_empty();
        is_divided && !self.partitions.iter().any(is_known)
    }

    /// Returns itself, or its parts where it can only be used in parts.
    fn units(&self) -> impl Iterator<Item = &DeviceUuid> {
        let is_whole = self.is_partitioned != Reading::Value(true);
        let parts = self.partitions.iter().map(|part| &part.uuid);
        is_whole.then_some(&self.uuid).into_iter().chain(parts)
    }
}

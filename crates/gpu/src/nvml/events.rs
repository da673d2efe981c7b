//! Errors that the driver reports by itself.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_core::gpu::{DeviceEvent, DeviceUuid, GpuInventory};
use jiff::Timestamp;
use nvml_wrapper::{EventSet, Nvml, bitmasks::event::EventTypes, enums::event::XidError};

/// How many events of one device are taken at a time: a device in trouble may report without end.
const MOST_AT_A_TIME: usize = 64;

/// What NVML tells where it does not know the number.
const UNKNOWN_XID: u64 = 999;

/// Listens to each device with a set of its own: where one cannot be listened to, NVML frees the set that it was given.
#[derive(Default)]
pub(super) struct Watch<'nvml> {
    sets: BTreeMap<DeviceUuid, EventSet<'nvml>>,
}

impl<'nvml> Watch<'nvml> {
    /// Listens to those that came, and not to those that went.
    pub(super) fn follow(&mut self, nvml: &'nvml Nvml, inventory: &GpuInventory) {
        self.sets.retain(|uuid, _| inventory.device(uuid).is_some());
        for device in &inventory.devices {
            if !self.sets.contains_key(&device.uuid)
                && let Some(set) = listen(nvml, &device.uuid)
            {
                self.sets.insert(device.uuid.clone(), set);
            }
        }
    }

    /// Returns those that are listened to.
    pub(super) fn heard(&self) -> BTreeSet<DeviceUuid> {
        self.sets.keys().cloned().collect()
    }

    /// Returns what was reported since the last time.
    pub(super) fn drain(&mut self, now: Timestamp) -> Vec<DeviceEvent> {
        let mut events = Vec::new();
        for (device, set) in &self.sets {
            let reported = std::iter::from_fn(|| set.wait(0).ok()).take(MOST_AT_A_TIME);
            let errors = reported.filter_map(|event| event.event_data);
            events.extend(errors.map(|xid| DeviceEvent {
                at: now,
                device: device.clone(),
                xid: match xid {
                    XidError::Value(xid) => xid,
                    XidError::Unknown => UNKNOWN_XID,
                },
            }));
        }
        events
    }
}

/// Listens to a device, if that is possible.
fn listen<'nvml>(nvml: &'nvml Nvml, uuid: &DeviceUuid) -> Option<EventSet<'nvml>> {
    let device = nvml.device_by_uuid(uuid.0.as_str()).ok()?;
    let supported = device.supported_event_types().ok()?;
    let set = supported
        .contains(EventTypes::CRITICAL_XID_ERROR)
        .then(|| nvml.create_event_set())?;
    device
        .register_events(EventTypes::CRITICAL_XID_ERROR, set.ok()?)
        .ok()
}

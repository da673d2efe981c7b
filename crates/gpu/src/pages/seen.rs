//! What there is to tell.

use std::collections::BTreeMap;

use blueproof_core::{
    gpu::{DeviceEvent, DeviceUuid, GpuInventory, GpuSnapshot},
    ports::Blindness,
};
use jiff::{SignedDuration, Timestamp};

/// All that the pages tell.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The devices and what was read of them, or why nothing can be said of any.
    pub devices: Option<(GpuInventory, GpuSnapshot)>,
    /// The errors that drivers reported, since this program began.
    pub errors: Errors,
    /// Who has which device, or part of one.
    pub owners: BTreeMap<DeviceUuid, Owner>,
    /// How reading went.
    pub collection: Collection,
}

/// Who has a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owner {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The container in the pod.
    pub container: String,
}

/// How reading went.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Collection {
    /// How long ago reading began; `None` where nothing was ever read.
    pub age: Option<SignedDuration>,
    /// Whether this is from before, because reading takes too long now.
    pub is_cached: bool,
    /// Why nothing can be said of any device.
    pub blind: Option<Blindness>,
    /// How often nothing could be read, since this program began.
    pub failures: u64,
}

/// Errors by device and number.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Errors {
    counts: BTreeMap<(DeviceUuid, u64), XidCount>,
    last: BTreeMap<DeviceUuid, u64>,
}

/// How often an error was reported of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XidCount {
    /// How often.
    pub times: u64,
    /// When it was reported last.
    pub last: Timestamp,
}

impl Errors {
    /// Counts an error.
    pub fn count(&mut self, event: &DeviceEvent) {
        let key = (event.device.clone(), event.xid);
        let count = self.counts.entry(key).or_insert(XidCount {
            times: 0,
            last: event.at,
        });
        count.times += 1;
        count.last = event.at;
        self.last.insert(event.device.clone(), event.xid);
    }

    /// Returns the number of the last error of a device, if there was any.
    pub fn last(&self, device: &DeviceUuid) -> Option<u64> {
        self.last.get(device).copied()
    }

    /// Returns how often each error was reported of each device.
    pub fn counts(&self) -> impl Iterator<Item = (&DeviceUuid, u64, XidCount)> {
        let counts = self.counts.iter();
        counts.map(|((device, xid), count)| (device, *xid, *count))
    }
}

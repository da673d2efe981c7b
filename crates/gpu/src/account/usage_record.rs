//! What a holder is charged with, and how a device's time and energy were divided.

use std::collections::BTreeMap;

use blueproof_core::{
    domain::{Bytes, GpuUse},
    gpu::DeviceUuid,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    Holder,
    amounts::{Amounts, WHOLE},
    device_account::{AccountEntry, DeviceAccount},
};

/// What a holder had, and what came of it.
///
/// It may still grow after the devices were released: drivers tell of the last moment a little later. After a snapshot
/// that was taken some two seconds later it stays as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageRecord {
    /// Who is charged.
    pub holder: Holder,
    /// When the first window opened.
    pub from: Timestamp,
    /// When the last window closed; `None` while one is open.
    pub until: Option<Timestamp>,
    /// What it had, in the order of their names.
    pub devices: Vec<DeviceUsage>,
}

/// What a holder had of one device, or of one part, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceUsage {
    /// The device, or the part.
    pub device: DeviceUuid,
    /// The device that it is a part of, where that was read.
    pub part_of: Option<DeviceUuid>,
    /// Time and energy.
    pub amounts: Amounts,
    /// Whether others had it at the same time, at some time.
    pub is_shared: bool,
    /// What the device drew while it was shared that none of those who shared it is charged with, in joules: it rested,
    /// or nobody knows whose work it was. `None` where it was not shared.
    pub unclaimed_joules: Option<f64>,
    /// From what it is known how busy it was; `None` where it is not.
    pub source: Option<Source>,
    /// How busy it was at most in any of the driver's periods that lie within the window; on a shared device, with this
    /// holder's work.
    pub peak_utilization: Option<f64>,
    /// How much memory was used at most, when it was looked at.
    pub peak_memory: Option<PeakMemory>,
    /// Which errors were reported in the window, and how often.
    pub xids: BTreeMap<u64, u32>,
    /// How often the driver was loaded anew, as far as its counters tell.
    pub reloads: u32,
    /// How many snapshots were left out because they were older than what was known already.
    pub ignored_snapshots: u32,
    /// How many ends of the window were told too late, or by a clock that went back, and so count from when they were told.
    pub late_edges: u32,
}

/// From what it is known how busy a device was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// From means over all of the time: the driver's own samples, or its monitors.
    Means,
    /// From single moments, when snapshots were taken: coarser.
    Moments,
    /// Now from the one, now from the other.
    Both,
}

/// Memory, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PeakMemory {
    /// How much.
    pub bytes: Bytes,
    /// Whose.
    pub of: MemoryOf,
}

/// Whose memory it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MemoryOf {
    /// That of the holder's processes.
    Processes,
    /// All that was used on the device: nobody said which processes are the holder's, or the driver does not tell of them.
    Device,
}

/// How a device's time and energy were divided: [`Self::total`] is the sum of all the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceTotals {
    /// What the device did, since it was first heard of.
    pub total: Amounts,
    /// What holders are charged with, those that were forgotten too.
    pub held: Amounts,
    /// What it did while nobody had it.
    pub idle: Amounts,
    /// What it did while only parts of it were held, which have balances of their own. What a part draws nobody can tell.
    pub parts: Amounts,
    /// What it did while several had it and that is none of theirs: it rested, or nobody knows whose work it was.
    pub undivided: Amounts,
    /// Which errors were reported, and how often.
    pub xids: BTreeMap<u64, u32>,
}

impl UsageRecord {
    /// Returns the sum over all devices.
    pub fn total(&self) -> Amounts {
        self.devices.iter().map(|device| device.amounts).sum()
    }

    /// Returns what was made of the devices.
    pub fn used(&self) -> GpuUse {
        let total = self.total();
        let peaks = self.devices.iter().filter_map(|device| device.peak_utilization);
        let memory = self.devices.iter().filter_map(|device| device.peak_memory);
        GpuUse {
            devices: u32::try_from(self.devices.len()).unwrap_or(u32::MAX),
            allocated_seconds: total.allocated_seconds(),
            seen_seconds: total.seen_seconds(),
            busy_seconds: total.busy_seconds(),
            joules: total.joules(),
            peak_utilization: peaks.reduce(f64::max),
            peak_memory: memory.map(|memory| memory.bytes).max(),
        }
    }
}

impl DeviceUsage {
    pub(super) fn new(device: DeviceUuid, part_of: Option<DeviceUuid>, line: &AccountEntry) -> Self {
        let of_processes = line.peak_of_processes.map(|bytes| (bytes, MemoryOf::Processes));
        let memory = of_processes.or(line.peak_of_device.map(|bytes| (bytes, MemoryOf::Device)));
        Self {
            device,
            part_of,
            amounts: line.amounts,
            is_shared: line.is_shared,
            unclaimed_joules: line.is_shared.then(|| line.unclaimed as f64 / 1e6),
            source: Source::of(line),
            peak_utilization: line.peak.map(|peak| peak as f64 / WHOLE as f64),
            peak_memory: memory.map(|(bytes, of)| PeakMemory {
                bytes: Bytes(bytes),
                of,
            }),
            xids: line.xids.clone(),
            reloads: line.reloads,
            ignored_snapshots: line.ignored,
            late_edges: line.late_edges,
        }
    }
}

impl Source {
    fn of(line: &AccountEntry) -> Option<Self> {
        match (line.is_fine, line.is_coarse) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::Means),
            (false, true) => Some(Self::Moments),
            (false, false) => None,
        }
    }
}

impl DeviceTotals {
    pub(super) fn new(device_account: &DeviceAccount, xids: BTreeMap<u64, u32>) -> Self {
        Self {
            total: device_account.total,
            held: device_account.held,
            idle: device_account.idle,
            parts: device_account.parts,
            undivided: device_account.undivided,
            xids,
        }
    }

    /// Returns the sum of what was divided, which is the total: nothing is lost, and nothing is charged twice.
    pub fn divided(&self) -> Amounts {
        [self.held, self.idle, self.parts, self.undivided]
            .into_iter()
            .sum()
    }
}

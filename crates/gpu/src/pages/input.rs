//! What there is to tell.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_core::{
    gpu::{DeviceEvent, DeviceUuid, GpuInventory, GpuSnapshot},
    ports::ProbeErrorKind,
};
use jiff::{SignedDuration, Timestamp};

use super::Peaks;
use crate::{
    account::{DeviceTotals, UsageRecord},
    health::Findings,
};

/// All that the pages tell.
#[derive(Debug, Clone, Default)]
pub struct PageInput {
    /// The devices and what was read of them, or why nothing can be said of any.
    pub devices: Option<(GpuInventory, GpuSnapshot)>,
    /// How busy devices were at most of late.
    pub peaks: Peaks,
    /// The errors that drivers reported, since this program began.
    pub errors: Errors,
    /// The devices whose drivers' reports are listened to: that nothing is reported of another one means nothing.
    pub listened_to: BTreeSet<DeviceUuid>,
    /// Who has which device, or part of one.
    pub owners: BTreeMap<DeviceUuid, Owners>,
    /// How the devices fare; `None` where nobody looked.
    pub health: Option<Findings>,
    /// Whether each process has series of its own.
    pub shows_processes: bool,
    /// How it is known who has what; `None` where nobody is asked.
    pub attribution: Option<Attribution>,
    /// What attempts of this machine make of their devices; `None` where they are not looked for.
    pub attempts: Option<Attempts>,
    /// How reading went.
    pub collection: Collection,
}

/// Who has a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owners {
    /// Those who have it, or a share of it.
    pub pods: Vec<Owner>,
    /// Whether it is given in shares, so that there may be several.
    pub is_shared: bool,
    /// How many claim what only one of them can have; none of these is among the pods.
    pub disputing: u64,
}

/// How it is known who has what. With this somebody can see why devices have no owner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attribution {
    /// Why nothing is known, as a word.
    pub silence: Option<&'static str>,
    /// How often nothing was known when it was asked for, since this program began.
    pub failures: u64,
    /// How long ago it was asked for what is told; `None` where nothing is.
    pub age: Option<SignedDuration>,
    /// What was told, if anything was.
    pub told: Option<AllocationReport>,
}

/// What was told of who has what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllocationReport {
    /// How many pods are known.
    pub pods: u64,
    /// How many of the devices that they have came to what, by the resource and a word.
    pub devices: Vec<(String, &'static str, u64)>,
    /// How many devices were given away in a manner that cannot be followed, by the driver that gave them.
    pub dynamic: BTreeMap<String, u64>,
    /// How many devices there are to be given away; `None` where that is not told.
    pub advertised: Option<u64>,
}

/// A pod that has a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owner {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// Its UID, where somebody wanted to know it and it could be found.
    pub pod_uid: Option<String>,
    /// The container in the pod; empty where several of its containers have the device.
    pub container: String,
    /// How many shares of the device it has.
    pub shares: u64,
}

/// What attempts make of their devices, and how the devices' time was divided.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attempts {
    /// Whether it could be read who has what.
    pub is_known: bool,
    /// Those that have devices, or had some a moment ago.
    pub attempts: Vec<Attempt>,
    /// How the time of each device, and of each part, was divided.
    pub device_totals: Vec<DeviceAccounting>,
}

/// An attempt that has devices. What is not known of it, or not there, is empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attempt {
    /// Its name: `r-41.2`.
    pub attempt: String,
    /// The run's.
    pub run: String,
    /// The repository or folder that is tested.
    pub repository: String,
    /// The pull request's number.
    pub pull_request: String,
    /// The blueprint.
    pub blueprint: String,
    /// The profile.
    pub profile: String,
    /// How many devices it was promised.
    pub promised: Option<u64>,
    /// What it had, and made of it.
    pub usage_record: Option<UsageRecord>,
}

/// How the time of a device, or of one part, was divided.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceAccounting {
    /// The device.
    pub device: DeviceUuid,
    /// The part of it.
    pub partition: Option<DeviceUuid>,
    /// How it was divided.
    pub device_totals: DeviceTotals,
}

impl Owners {
    /// Returns the pod that has it all, if that is one, and certain.
    pub fn only(&self) -> Option<&Owner> {
        match &self.pods[..] {
            [owner] if self.disputing == 0 => Some(owner),
            _ => None,
        }
    }
}

impl Owner {
    /// Returns whether another one is of the same pod.
    pub(super) fn is_pod_of(&self, other: &Self) -> bool {
        (&self.namespace, &self.pod) == (&other.namespace, &other.pod)
    }
}

/// How reading went.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Collection {
    /// How long ago reading began; `None` where nothing was ever read.
    pub age: Option<SignedDuration>,
    /// Whether this is from before, because reading takes too long now.
    pub is_cached: bool,
    /// Why nothing can be said of any device, but maybe which there are.
    pub blind: Option<ProbeErrorKind>,
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

    /// Returns the number of the last error of each device that had any.
    pub fn lasts(&self) -> impl Iterator<Item = (&DeviceUuid, u64)> {
        self.last.iter().map(|(device, xid)| (device, *xid))
    }

    /// Returns how often each error was reported of each device.
    pub fn counts(&self) -> impl Iterator<Item = (&DeviceUuid, u64, XidCount)> {
        let counts = self.counts.iter();
        counts.map(|((device, xid), count)| (device, *xid, *count))
    }
}

//! What all devices did at one time.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{DeviceUuid, Fault, FaultKind, Reading, Readings};
use crate::domain::Bytes;

/// What was read of all devices, one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GpuSnapshot {
    /// When reading began.
    pub at: Timestamp,
    /// How long it took.
    pub took: SignedDuration,
    /// Of each device, in the inventory's order; of a divided one its parts follow it.
    pub samples: Vec<Sample>,
}

/// What was read of a device, or of a part of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// The device.
    pub device: DeviceUuid,
    /// The part of it, if this is of a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<DeviceUuid>,
    /// Its figures.
    pub readings: Readings,
    /// Who uses it.
    pub processes: Reading<Vec<GpuProcess>>,
    /// How busy it was since the last snapshot, the earliest first, as far as the driver remembers.
    pub busy: Reading<Vec<BusySample>>,
}

/// A process that uses a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GpuProcess {
    /// Its number, in the namespace in which the driver tells it.
    pub pid: u32,
    /// The memory that it has there.
    pub memory: Reading<Bytes>,
    /// In which share of the time since the last snapshot it ran there; of the time before, where the driver told nothing
    /// since. Of a process that the driver tells no sample of it is not known.
    pub utilization: Reading<f64>,
}

/// How busy a device was in one of the driver's own periods.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BusySample {
    /// When the period ended.
    pub at: Timestamp,
    /// In which share of it anything ran.
    pub utilization: f64,
}

/// Something that a driver reports by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceEvent {
    /// When it was met with.
    pub at: Timestamp,
    /// Where it happened.
    pub device: DeviceUuid,
    /// The number that NVIDIA gives to errors of hardware, driver and program alike.
    pub xid: u64,
}

impl GpuSnapshot {
    /// Returns what was read of a whole device.
    pub fn of(&self, device: &DeviceUuid) -> Option<&Sample> {
        self.wholes().find(|sample| sample.device == *device)
    }

    /// Returns what was read of devices as a whole.
    pub fn wholes(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(|sample| sample.partition.is_none())
    }

    /// Returns whether there are devices, and none of them answers.
    pub fn is_silent(&self) -> bool {
        self.wholes().next().is_some() && self.wholes().all(|sample| sample.silence().is_some())
    }
}

impl Sample {
    /// Returns whether it is of a device that does not answer.
    pub fn hangs(&self) -> bool {
        self.has_fault(FaultKind::Hangs)
    }

    /// Returns whether it is of a device that is gone.
    pub fn is_lost(&self) -> bool {
        self.has_fault(FaultKind::Lost)
    }

    /// Returns why it is of a device that tells nothing: it does not answer, is gone, or every call fails. `None` of one that
    /// tells something, or has nothing to tell.
    pub fn silence(&self) -> Option<&Fault> {
        let is_over = |fault: &&Fault| matches!(fault.kind, FaultKind::Hangs | FaultKind::Lost);
        let mut told = self.readings.iter().map(|(_, reading)| reading);
        let tells = told.any(|reading| matches!(reading, Reading::Value(_)));
        self.faults()
            .find(is_over)
            .or(self.faults().next().filter(|_| !tells))
    }

    fn has_fault(&self, kind: FaultKind) -> bool {
        self.faults().any(|fault| fault.kind == kind)
    }

    fn faults(&self) -> impl Iterator<Item = &Fault> {
        let of_figures = self.readings.faults().map(|(_, fault)| fault);
        of_figures.chain(self.processes.fault())
    }
}

//! A machine with healthy devices, and what may become of them.

use std::collections::BTreeSet;

use blueproof_core::{
    domain::Bytes,
    gpu::{
        Device, DeviceEvent, DeviceUuid, Fault, FaultKind, Figure, GpuInventory, GpuProcess, GpuSnapshot,
        Reading, Readings, Sample, Vendor,
    },
};
use jiff::{SignedDuration, Timestamp};

use super::super::{Answer, CheckId, CheckPolicy, Facts, Finding, Findings, Reports, Severity, check};

pub(super) const REMAP: [Figure; 2] = [Figure::RowRemapPending, Figure::RowRemapFailure];

pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a time of these years")
}

pub(super) fn gpu(n: u32) -> DeviceUuid {
    DeviceUuid(format!("GPU-{n}"))
}

/// What an Ampere card tells while it works: it has rows, and no pages.
pub(super) fn healthy() -> Readings {
    [
        (Figure::Utilization, 0.9),
        (Figure::MemoryUsed, 500.0 * 1048576.0),
        (Figure::PcieWidth, 16.0),
        (Figure::PcieWidthMost, 16.0),
        (Figure::PcieGeneration, 4.0),
        (Figure::PcieGenerationMost, 4.0),
        (Figure::PcieReplays, 0.0),
        (Figure::HardwareSlowdown, 0.0),
        (Figure::HardwareThermalSlowdown, 0.0),
        (Figure::HardwarePowerBrake, 0.0),
        (Figure::UncorrectedErrors, 0.0),
        (Figure::RowRemapPending, 0.0),
        (Figure::RowRemapFailure, 0.0),
        (Figure::UncorrectableRemappedRows, 0.0),
        (Figure::CorrectableRemappedRows, 0.0),
    ]
    .into_iter()
    .map(|(figure, value)| (figure, Reading::Value(value)))
    .chain(PAGES.map(|figure| (figure, Reading::Unsupported)))
    .collect()
}

pub(super) const PAGES: [Figure; 3] = [
    Figure::RetiredPagesPending,
    Figure::RetiredPagesCorrectable,
    Figure::RetiredPagesUncorrectable,
];

/// What a card from before Ampere tells: it has pages, and no rows.
pub(super) fn healthy_volta() -> Readings {
    let mut readings = healthy();
    readings.extend(PAGES.map(|figure| (figure, Reading::Value(0.0))));
    readings.extend(REMAP.map(|figure| (figure, Reading::Unsupported)));
    readings
}

pub(super) fn with(figure: Figure, value: f64) -> Readings {
    but(figure, Reading::Value(value))
}

pub(super) fn but(figure: Figure, reading: Reading<f64>) -> Readings {
    let mut readings = healthy();
    readings.set(figure, reading);
    readings
}

pub(super) fn failed<T>() -> Reading<T> {
    Reading::Failed(Fault::new(FaultKind::Driver, "TIMEOUT"))
}

pub(super) fn lost() -> Readings {
    let lost = Reading::Failed(Fault::new(FaultKind::Lost, "GPU_IS_LOST"));
    Figure::ALL.iter().map(|figure| (*figure, lost.clone())).collect()
}

pub(super) fn sample(device: DeviceUuid, readings: Readings) -> Sample {
    Sample {
        device,
        partition: None,
        readings,
        processes: Reading::Value(Vec::new()),
        busy: Reading::Unsupported,
    }
}

pub(super) fn process(pid: u32, mebibytes: u64) -> GpuProcess {
    GpuProcess {
        pid,
        memory: Reading::Value(Bytes(mebibytes << 20)),
        utilization: Reading::Unsupported,
    }
}

/// A snapshot with a sample for each list of readings, of the devices 0, 1, ….
pub(super) fn snapshot(seconds: i64, each: impl IntoIterator<Item = Readings>) -> GpuSnapshot {
    GpuSnapshot {
        at: at(seconds),
        took: SignedDuration::from_millis(3),
        samples: (0..)
            .zip(each)
            .map(|(n, readings)| sample(gpu(n), readings))
            .collect(),
    }
}

pub(super) fn inventory(devices: u32) -> GpuInventory {
    let device = |index| Device {
        uuid: gpu(index),
        index,
        vendor: Vendor::Nvidia,
        model: "NVIDIA A10".to_owned(),
        pci_bus_id: Reading::Unsupported,
        minor: Reading::Unsupported,
        serial: Reading::Unsupported,
        memory: Reading::Unsupported,
        is_partitioned: Reading::Value(false),
        is_virtual: Reading::Unsupported,
        partitions: Vec::new(),
        unread_partitions: None,
    };
    GpuInventory {
        driver_version: Some("580.159".to_owned()),
        api_version: Some("13.0".to_owned()),
        devices: (0..devices).map(device).collect(),
        unidentified: 0,
        unidentified_because: Vec::new(),
    }
}

/// Returns what was reported by drivers that were all listened to; `None` where nobody listened.
pub(super) fn reports(events: Option<&[DeviceEvent]>) -> Reports<'_> {
    events.map_or(Reports::NONE, Reports::of_all)
}

pub(super) fn xid(device: u32, xid: u64) -> DeviceEvent {
    DeviceEvent {
        at: at(1),
        device: gpu(device),
        xid,
    }
}

pub(super) fn promised(devices: u32) -> BTreeSet<DeviceUuid> {
    (0..devices).map(gpu).collect()
}

/// Looks over one device, of which these readings were made, and that reported these errors.
pub(super) fn looked(readings: impl IntoIterator<Item = Readings>, xids: &[u64]) -> Findings {
    let snapshots: Vec<_> = (0..)
        .zip(readings)
        .map(|(n, readings)| snapshot(n, [readings]))
        .collect();
    let events: Vec<_> = xids.iter().map(|number| xid(0, *number)).collect();
    let facts = Facts {
        inventory: Ok(&inventory(1)),
        snapshots: &snapshots,
        reports: Reports::of_all(&events),
    };
    check(&CheckPolicy::expecting(1), &facts)
}

/// Returns what one check finds of one device.
pub(super) fn answer(check: CheckId, readings: impl IntoIterator<Item = Readings>) -> Answer {
    answer_in(&looked(readings, &[]), check)
}

pub(super) fn answer_in(findings: &Findings, check: CheckId) -> Answer {
    findings
        .of(check, Some(&gpu(0)))
        .expect("every check answers")
        .clone()
}

/// Returns an answer in one line: `warn: …`, `ok: …`, `unknown: …`.
pub(super) fn line(answer: &Answer) -> String {
    let state = match answer {
        Answer::Ok { .. } => "ok".to_owned(),
        Answer::Problem { severity, .. } => severity.to_string(),
        Answer::Unknown { .. } => "unknown".to_owned(),
    };
    format!("{state}: {answer}")
}

/// Returns the findings of one check alone, of the machine or of device 0.
pub(super) fn only(check: CheckId, answer: Answer) -> Findings {
    let device = match check.scope() {
        super::super::Scope::Machine => None,
        super::super::Scope::Device => Some(gpu(0)),
    };
    Findings(vec![Finding {
        check,
        device,
        answer,
    }])
}

pub(super) fn problem(severity: Severity) -> Answer {
    Answer::problem(severity, "broken")
}

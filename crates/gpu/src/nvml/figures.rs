//! What a device says of itself now.

use std::collections::BTreeMap;

use blueproof_core::gpu::{Fault, Figure, Reading, Readings};
use nvml_wrapper::{
    Device,
    bitmasks::device::ThrottleReasons,
    enum_wrappers::device::{
        Clock, EccCounter, MemoryError, PcieUtilCounter, PerformancePolicy, TemperatureSensor,
    },
    enums::device::SampleValue,
    error::NvmlError,
    struct_wrappers::device::{MemoryInfo, Utilization},
    structs::device::FieldId,
    sys_exports::field_id as field,
};

use super::errors::{read, unread as not_read};

type Get = fn(&Device<'_>) -> Result<f64, NvmlError>;

/// Figures for which there is a call each.
const CALLS: &[(Figure, Get)] = &[
    (Figure::SmClock, |device| device.clock_info(Clock::SM).map(hertz)),
    (Figure::MemoryClock, |device| {
        device.clock_info(Clock::Memory).map(hertz)
    }),
    (Figure::Temperature, |device| {
        device.temperature(TemperatureSensor::Gpu).map(f64::from)
    }),
    (Figure::Power, |device| {
        device.power_usage().map(|milliwatts| f64::from(milliwatts) / 1e3)
    }),
    (Figure::Energy, |device| {
        device
            .total_energy_consumption()
            .map(|millijoules| count(millijoules) / 1e3)
    }),
    (Figure::PcieReplays, |device| {
        device.pcie_replay_counter().map(f64::from)
    }),
    (Figure::EncoderUtilization, |device| {
        device
            .encoder_utilization()
            .map(|of| f64::from(of.utilization) / 100.0)
    }),
    (Figure::DecoderUtilization, |device| {
        device
            .decoder_utilization()
            .map(|of| f64::from(of.utilization) / 100.0)
    }),
    (Figure::CorrectedErrors, |device| {
        errors(device, MemoryError::Corrected, EccCounter::Volatile)
    }),
    (Figure::UncorrectedErrors, |device| {
        errors(device, MemoryError::Uncorrected, EccCounter::Volatile)
    }),
    (Figure::CorrectedErrorsOfAllTime, |device| {
        errors(device, MemoryError::Corrected, EccCounter::Aggregate)
    }),
    (Figure::UncorrectedErrorsOfAllTime, |device| {
        errors(device, MemoryError::Uncorrected, EccCounter::Aggregate)
    }),
    (Figure::PowerViolation, |device| {
        violation(device, PerformancePolicy::Power)
    }),
    (Figure::ThermalViolation, |device| {
        violation(device, PerformancePolicy::Thermal)
    }),
    (Figure::PcieGeneration, |device| {
        device.current_pcie_link_gen().map(f64::from)
    }),
    (Figure::PcieGenerationMost, |device| {
        device.max_pcie_link_gen().map(f64::from)
    }),
    (Figure::PcieWidth, |device| {
        device.current_pcie_link_width().map(f64::from)
    }),
    (Figure::PcieWidthMost, |device| {
        device.max_pcie_link_width().map(f64::from)
    }),
];

/// Figures of policies that few ask for.
const POLICIES: [(Figure, PerformancePolicy); 4] = [
    (Figure::SyncBoostViolation, PerformancePolicy::SyncBoost),
    (Figure::BoardLimitViolation, PerformancePolicy::BoardLimit),
    (Figure::LowUtilizationViolation, PerformancePolicy::LowUtilization),
    (Figure::ReliabilityViolation, PerformancePolicy::Reliability),
];

/// The figures of [`POLICIES`].
pub(super) const OF_POLICIES: [Figure; 4] = {
    let [(first, _), (second, _), (third, _), (fourth, _)] = POLICIES;
    [first, second, third, fourth]
};

/// Figures that are asked for together, by the driver's number for each.
const FIELDS: [(Figure, u32); 8] = [
    (Figure::MemoryTemperature, field::NVML_FI_DEV_MEMORY_TEMP),
    (Figure::CorrectableRemappedRows, field::NVML_FI_DEV_REMAPPED_COR),
    (Figure::UncorrectableRemappedRows, field::NVML_FI_DEV_REMAPPED_UNC),
    (Figure::RowRemapPending, field::NVML_FI_DEV_REMAPPED_PENDING),
    (Figure::RowRemapFailure, field::NVML_FI_DEV_REMAPPED_FAILURE),
    (Figure::RetiredPagesCorrectable, field::NVML_FI_DEV_RETIRED_SBE),
    (Figure::RetiredPagesUncorrectable, field::NVML_FI_DEV_RETIRED_DBE),
    (Figure::RetiredPagesPending, field::NVML_FI_DEV_RETIRED_PENDING),
];

/// What may slow a device down.
const SLOWDOWNS: [(Figure, ThrottleReasons); 5] = [
    (Figure::HardwareSlowdown, ThrottleReasons::HW_SLOWDOWN),
    (
        Figure::HardwareThermalSlowdown,
        ThrottleReasons::HW_THERMAL_SLOWDOWN,
    ),
    (
        Figure::HardwarePowerBrake,
        ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN,
    ),
    (
        Figure::SoftwareThermalSlowdown,
        ThrottleReasons::SW_THERMAL_SLOWDOWN,
    ),
    (Figure::PowerCap, ThrottleReasons::SW_POWER_CAP),
];

/// Reads all figures of a device, but those of its performance monitors.
pub(super) fn of_device(device: &Device<'_>) -> Readings {
    let calls = CALLS.iter().map(|(figure, get)| (*figure, read(get(device))));
    let mut readings: Readings = calls.collect();
    readings.extend(of_memory(device));
    readings.extend(utilization(device));
    readings.extend(slowdowns(device));
    readings.extend(fields(device));
    readings
}

/// Reads for how long policies that few ask for held a device back.
pub(super) fn policies(device: &Device<'_>) -> impl Iterator<Item = (Figure, Reading<f64>)> {
    let of = move |(figure, policy)| (figure, read(violation(device, policy)));
    POLICIES.into_iter().map(of)
}

/// Counts what goes over PCIe, in each direction for 20 ms.
pub(super) fn pcie(device: &Device<'_>) -> [(Figure, Reading<f64>); 2] {
    let counted = |counter| read(device.pcie_throughput(counter)).map(|kilobytes| f64::from(kilobytes) * 1e3);
    [
        (Figure::PcieSent, counted(PcieUtilCounter::Send)),
        (Figure::PcieReceived, counted(PcieUtilCounter::Receive)),
    ]
}

/// Reads how much memory a device, or a part of one, has and uses.
pub(super) fn of_memory(device: &Device<'_>) -> Readings {
    let memory = read(device.memory_info());
    let of = |figure, of: fn(&MemoryInfo) -> u64| (figure, memory.as_ref().map(|memory| count(of(memory))));
    [
        of(Figure::MemoryTotal, |memory| memory.total),
        of(Figure::MemoryUsed, |memory| memory.used),
        of(Figure::MemoryFree, |memory| memory.free),
        of(Figure::MemoryReserved, |memory| memory.reserved),
    ]
    .into_iter()
    .collect()
}

/// Returns what is said of the figures of a device none of which can be read.
pub(super) fn unread(fault: &Fault) -> Readings {
    let calls = CALLS.iter().map(|(figure, _)| *figure);
    let fields = FIELDS.iter().map(|(figure, _)| *figure);
    let slowdowns = SLOWDOWNS.iter().map(|(figure, _)| *figure);
    let others = [
        Figure::MemoryTotal,
        Figure::MemoryUsed,
        Figure::MemoryFree,
        Figure::MemoryReserved,
        Figure::Utilization,
        Figure::MemoryUtilization,
    ];
    let all = calls.chain(fields).chain(slowdowns).chain(others);
    all.map(|figure| (figure, Reading::Failed(fault.clone())))
        .collect()
}

fn utilization(device: &Device<'_>) -> [(Figure, Reading<f64>); 2] {
    let rates = read(device.utilization_rates());
    // Some drivers tell what cannot be.
    let share =
        |of: fn(&Utilization) -> u32| rates.as_ref().filter_map(|rates| percent(f64::from(of(rates))));
    [
        (Figure::Utilization, share(|rates| rates.gpu)),
        (Figure::MemoryUtilization, share(|rates| rates.memory)),
    ]
}

fn slowdowns(device: &Device<'_>) -> impl Iterator<Item = (Figure, Reading<f64>)> {
    let reasons = read(device.current_throttle_reasons());
    SLOWDOWNS.into_iter().map(move |(figure, reason)| {
        let is_so = reasons
            .as_ref()
            .map(|reasons| f64::from(u8::from(reasons.contains(reason))));
        (figure, is_so)
    })
}

/// Reads several figures in one call. They come back in the order in which they were asked for: some drivers have other
/// numbers for them, and answer with those.
fn fields(device: &Device<'_>) -> BTreeMap<Figure, Reading<f64>> {
    let ids = FIELDS.map(|(_, id)| FieldId(id));
    let values = match device.field_values_for(&ids) {
        Ok(values) => values,
        Err(error) => {
            return FIELDS
                .iter()
                .map(|(figure, _)| (*figure, not_read(&error)))
                .collect();
        }
    };
    let figures = FIELDS.iter().map(|(figure, _)| *figure);
    figures
        .zip(values)
        .map(|(figure, sample)| {
            let value = read(sample.and_then(|sample| sample.value)).map(|value| number(&value));
            (figure, value)
        })
        .collect()
}

/// Returns a share of a hundred as one of one; more than all of it cannot be.
pub(super) fn percent(percent: f64) -> Option<f64> {
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

fn hertz(megahertz: u32) -> f64 {
    f64::from(megahertz) * 1e6
}

fn errors(device: &Device<'_>, of: MemoryError, since: EccCounter) -> Result<f64, NvmlError> {
    device.total_ecc_errors(of, since).map(count)
}

/// Returns for how long something held the device back, in seconds.
fn violation(device: &Device<'_>, policy: PerformancePolicy) -> Result<f64, NvmlError> {
    device
        .violation_status(policy)
        .map(|time| count(time.violation_time) / 1e9)
}

/// Returns a value that the driver gives in one of several types.
#[expect(
    clippy::cast_precision_loss,
    reason = "beyond 2^53 nobody tells amounts apart"
)]
pub(super) fn number(value: &SampleValue) -> f64 {
    match value {
        SampleValue::F64(value) => *value,
        SampleValue::U32(value) => f64::from(*value),
        SampleValue::U64(value) => *value as f64,
        SampleValue::I64(value) => *value as f64,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "beyond 2^53 nobody tells amounts apart"
)]
fn count(number: u64) -> f64 {
    number as f64
}

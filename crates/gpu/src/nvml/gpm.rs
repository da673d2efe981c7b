//! What the performance monitors of a device say, from Hopper on: between two looks, what was done in which share of the
//! time.

use std::{
    collections::BTreeMap,
    ops::{Range, RangeInclusive},
};

use blueproof_core::gpu::{DeviceUuid, Figure, Partition, Readings};
use jiff::{SignedDuration, Timestamp};
use nvml_wrapper::{
    Device,
    enums::gpm::GpmMetricId,
    error::NvmlError,
    gpm::{GpmSample, gpm_metrics_get},
};

use super::errors::{read, unread};

/// Two looks must be so far apart to say anything. Who asks sooner is told once more what was told last.
const APART_AT_LEAST: SignedDuration = SignedDuration::from_millis(100);

/// Of two looks that are farther apart, the earlier is of another time.
const APART_AT_MOST: SignedDuration = SignedDuration::from_mins(10);

/// How far apart two looks are of which the later one says nothing new, and two that can be compared.
const SOON: Range<SignedDuration> = SignedDuration::ZERO..APART_AT_LEAST;
const COMPARABLE: RangeInclusive<SignedDuration> = APART_AT_LEAST..=APART_AT_MOST;

/// MiB, in which NVML counts what goes over buses.
const MEBIBYTE: f64 = 1_048_576.0;

/// The figures, and what one of NVML's units of each is in ours.
const METRICS: [(Figure, GpmMetricId, f64); 12] = [
    (Figure::EngineActive, GpmMetricId::GraphicsUtil, 0.01),
    (Figure::SmActive, GpmMetricId::SmUtil, 0.01),
    (Figure::SmOccupancy, GpmMetricId::SmOccupancy, 0.01),
    (Figure::TensorActive, GpmMetricId::AnyTensorUtil, 0.01),
    (Figure::DramActive, GpmMetricId::DramBwUtil, 0.01),
    (Figure::Fp64Active, GpmMetricId::Fp64Util, 0.01),
    (Figure::Fp32Active, GpmMetricId::Fp32Util, 0.01),
    (Figure::Fp16Active, GpmMetricId::Fp16Util, 0.01),
    (Figure::PcieSent, GpmMetricId::PcieTxPerSec, MEBIBYTE),
    (Figure::PcieReceived, GpmMetricId::PcieRxPerSec, MEBIBYTE),
    (Figure::NvlinkSent, GpmMetricId::NvlinkTotalTxPerSec, MEBIBYTE),
    (Figure::NvlinkReceived, GpmMetricId::NvlinkTotalRxPerSec, MEBIBYTE),
];

/// The last look at each device, and at each part of one.
#[derive(Default)]
pub(super) struct Meters<'nvml> {
    looks: BTreeMap<DeviceUuid, Look<'nvml>>,
}

/// What the monitors counted until a time.
struct Look<'nvml> {
    at: Timestamp,
    counted: GpmSample<'nvml>,
    /// What was done since the look before.
    told: Readings,
}

impl<'nvml> Meters<'nvml> {
    /// Reads what a device did since it was looked at before; nothing the first time.
    pub(super) fn of_device(
        &mut self,
        device: &Device<'nvml>,
        uuid: &DeviceUuid,
        now: Timestamp,
    ) -> Readings {
        match device.gpm_support() {
            Ok(true) => self.since(device, uuid, now, device.gpm_sample()),
            Ok(false) => none(&NvmlError::NotSupported),
            Err(error) => none(&error),
        }
    }

    /// Reads what a part of a device did since it was looked at before.
    pub(super) fn of_partition(
        &mut self,
        device: &Device<'nvml>,
        part: &Partition,
        now: Timestamp,
    ) -> Readings {
        let instance = part.gpu_instance.clone().value();
        match (device.gpm_support(), instance) {
            (Ok(true), Some(instance)) => {
                self.since(device, &part.uuid, now, device.gpm_mig_sample(instance))
            }
            (Ok(_), _) => none(&NvmlError::NotSupported),
            (Err(error), _) => none(&error),
        }
    }

    fn since(
        &mut self,
        device: &Device<'nvml>,
        uuid: &DeviceUuid,
        now: Timestamp,
        counted: Result<GpmSample<'nvml>, NvmlError>,
    ) -> Readings {
        let counted = match counted {
            Ok(counted) => counted,
            Err(error) => return none(&error),
        };
        let before = self.looks.get(uuid);
        let apart = before.map(|before| now.duration_since(before.at));
        let told = match (before, apart) {
            (Some(before), Some(apart)) if SOON.contains(&apart) => return before.told.clone(),
            (Some(before), Some(apart)) if COMPARABLE.contains(&apart) => {
                between(device, &before.counted, &counted)
            }
            // Nobody looked before, or the clock has stepped, or it is too long ago.
            _ => Readings::default(),
        };
        let look = Look {
            at: now,
            counted,
            told: told.clone(),
        };
        self.looks.insert(uuid.clone(), look);
        told
    }
}

fn between<'nvml>(device: &Device<'nvml>, before: &GpmSample<'nvml>, after: &GpmSample<'nvml>) -> Readings {
    let ids = METRICS.map(|(_, id, _)| id);
    let values = match gpm_metrics_get(device.nvml(), before, after, &ids) {
        Ok(values) => values,
        Err(error) => return none(&error),
    };
    let values = METRICS.iter().zip(values).map(|((figure, _, unit), result)| {
        let value = read(result).filter_map(|of| of.value.is_finite().then_some(of.value * unit));
        (*figure, value)
    });
    values.collect()
}

fn none(error: &NvmlError) -> Readings {
    METRICS
        .iter()
        .map(|(figure, ..)| (*figure, unread(error)))
        .collect()
}

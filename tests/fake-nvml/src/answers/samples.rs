//! The driver's ring of samples: what each sixth of a second read.

use crate::library::Target;
use crate::returns::{Answer, NvmlReturn};
use crate::scenario::Figures;
use crate::steps::Steps;
use nvml_wrapper_sys::bindings::*;

/// How many samples the driver takes each second.
const PER_SECOND: f64 = 6.0;
/// How many samples the driver keeps: the newest.
const KEPT: usize = 100;

/// One sampling period that is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tick {
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// The end of the period, in microseconds since 1970.
    pub(crate) stamp: u64,
}

/// Returns the periods that the ring still has and that ended after a timestamp, oldest first.
pub(crate) fn ticks(target: &Target<'_>, last_seen: u64) -> Vec<Tick> {
    let newest = (target.now * PER_SECOND).floor();
    let loaded_at = target.driver_loaded_at();
    let kept = (0..KEPT).map(|age| newest - age as f64);
    let mut ticks: Vec<_> = kept
        .map(|number| {
            let to = number / PER_SECOND;
            Tick {
                from: (number - 1.0) / PER_SECOND,
                to,
                stamp: target.stamp(to),
            }
        })
        .take_while(|tick| tick.to > loaded_at && tick.stamp > last_seen)
        .collect();
    ticks.reverse();
    ticks
}

/// Returns timestamps and values of what was sampled after a timestamp: means of utilisation, power as it was.
pub(crate) fn samples(
    target: &Target<'_>,
    of: nvmlSamplingType_t,
    last_seen: u64,
) -> Answer<Vec<(u64, u32)>> {
    let device = target.undivided()?;
    if !device.samples {
        return Err(NvmlReturn::NotSupported);
    }
    let (steps, read) = kind(&device.figures, of)?;
    if !steps.is_supported() {
        return Err(NvmlReturn::NotSupported);
    }
    let ticks = ticks(target, last_seen);
    if ticks.is_empty() {
        return Err(NvmlReturn::NotFound);
    }
    let value = |tick: &Tick| read(steps, tick).unwrap_or_default().round() as u32;
    Ok(ticks.iter().map(|tick| (tick.stamp, value(tick))).collect())
}

/// What one sample says of a figure.
type Read = fn(&Steps, &Tick) -> Option<f64>;

/// Returns the figure of a kind of samples, and what each sample says of it.
fn kind(figures: &Figures, of: nvmlSamplingType_t) -> Answer<(&Steps, Read)> {
    match of {
        nvmlSamplingType_enum_NVML_TOTAL_POWER_SAMPLES => Ok((&figures.power_milliwatts, at_end)),
        nvmlSamplingType_enum_NVML_GPU_UTILIZATION_SAMPLES => Ok((&figures.gpu_utilization_percent, mean)),
        nvmlSamplingType_enum_NVML_MEMORY_UTILIZATION_SAMPLES => {
            Ok((&figures.memory_utilization_percent, mean))
        }
        nvmlSamplingType_enum_NVML_ENC_UTILIZATION_SAMPLES => {
            Ok((&figures.encoder_utilization_percent, mean))
        }
        nvmlSamplingType_enum_NVML_DEC_UTILIZATION_SAMPLES => {
            Ok((&figures.decoder_utilization_percent, mean))
        }
        nvmlSamplingType_enum_NVML_PROCESSOR_CLK_SAMPLES => Ok((&figures.sm_clock_mhz, at_end)),
        nvmlSamplingType_enum_NVML_MEMORY_CLK_SAMPLES => Ok((&figures.memory_clock_mhz, at_end)),
        other if other < nvmlSamplingType_enum_NVML_SAMPLINGTYPE_COUNT => Err(NvmlReturn::NotSupported),
        _ => Err(NvmlReturn::InvalidArgument),
    }
}

fn mean(steps: &Steps, tick: &Tick) -> Option<f64> {
    steps.mean(tick.from, tick.to)
}

fn at_end(steps: &Steps, tick: &Tick) -> Option<f64> {
    steps.at(tick.to)
}

//! What a device reads now: load, power, temperature, clocks, memory and its PCIe link.

use super::narrow;
use crate::library::Target;
use crate::returns::{Answer, NvmlReturn};
use crate::scenario::PowerLimits;
use nvml_wrapper_sys::bindings::*;

/// How long the encoder's and decoder's utilisation is sampled, in microseconds: 1/6 s as everything else.
const SAMPLING_PERIOD_US: u32 = 166_667;
/// The size and number by which callers say which struct they mean, as NVML composes them.
const MEMORY_V2: u32 = size_of::<nvmlMemory_v2_t>() as u32 | 2 << 24;
/// As above, for the temperature.
const TEMPERATURE_V1: u32 = size_of::<nvmlTemperature_v1_t>() as u32 | 1 << 24;

/// Returns how busy the device and its memory are.
pub(crate) fn utilization_rates(target: &Target<'_>) -> Answer<nvmlUtilization_t> {
    target.undivided()?;
    Ok(nvmlUtilization_t {
        gpu: target.figure_u32(|figures| &figures.gpu_utilization_percent)?,
        memory: target.figure_u32(|figures| &figures.memory_utilization_percent)?,
    })
}

/// Returns how busy the encoder is, and how long that was sampled.
pub(crate) fn encoder_utilization(target: &Target<'_>) -> Answer<(u32, u32)> {
    target.undivided()?;
    Ok((
        target.figure_u32(|figures| &figures.encoder_utilization_percent)?,
        SAMPLING_PERIOD_US,
    ))
}

/// Returns how busy the decoder is, and how long that was sampled.
pub(crate) fn decoder_utilization(target: &Target<'_>) -> Answer<(u32, u32)> {
    target.undivided()?;
    Ok((
        target.figure_u32(|figures| &figures.decoder_utilization_percent)?,
        SAMPLING_PERIOD_US,
    ))
}

/// Returns the power, in milliwatts.
pub(crate) fn power_usage(target: &Target<'_>) -> Answer<u32> {
    target.figure_u32(|figures| &figures.power_milliwatts)
}

/// Returns the energy since the driver was loaded, in millijoules.
pub(crate) fn total_energy_consumption(target: &Target<'_>) -> Answer<u64> {
    target.since_load(|figures| &figures.power_milliwatts)
}

/// Returns the power limit that is set.
pub(crate) fn power_limit(target: &Target<'_>) -> Answer<u32> {
    Ok(power_limits(target)?.current_milliwatts)
}

/// Returns the power limit that is set without anybody's doing.
pub(crate) fn default_power_limit(target: &Target<'_>) -> Answer<u32> {
    Ok(power_limits(target)?.default_milliwatts)
}

/// Returns the least and the greatest power limit.
pub(crate) fn power_limit_constraints(target: &Target<'_>) -> Answer<(u32, u32)> {
    let limits = power_limits(target)?;
    Ok((limits.min_milliwatts, limits.max_milliwatts))
}

/// Returns all limits.
pub(crate) fn power_limits(target: &Target<'_>) -> Answer<PowerLimits> {
    target.whole()?.power_limits.ok_or(NvmlReturn::NotSupported)
}

/// Returns the temperature of a sensor; there is one.
pub(crate) fn temperature(target: &Target<'_>, sensor: nvmlTemperatureSensors_t) -> Answer<u32> {
    if sensor != nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU {
        return Err(NvmlReturn::InvalidArgument);
    }
    target.figure_u32(|figures| &figures.temperature_celsius)
}

/// Returns the temperature as NVML's newer call has it.
pub(crate) fn temperature_v(target: &Target<'_>, asked: nvmlTemperature_t) -> Answer<nvmlTemperature_t> {
    if asked.version != TEMPERATURE_V1 {
        return Err(NvmlReturn::ArgumentVersionMismatch);
    }
    let temperature = temperature(target, asked.sensorType)?.cast_signed();
    Ok(nvmlTemperature_t { temperature, ..asked })
}

/// Returns the performance state.
pub(crate) fn performance_state(target: &Target<'_>) -> Answer<nvmlPstates_t> {
    target.figure_u32(|figures| &figures.performance_state)
}

/// Returns a clock, in MHz.
pub(crate) fn clock(target: &Target<'_>, of: nvmlClockType_t) -> Answer<u32> {
    match of {
        nvmlClockType_enum_NVML_CLOCK_GRAPHICS | nvmlClockType_enum_NVML_CLOCK_SM => {
            target.figure_u32(|figures| &figures.sm_clock_mhz)
        }
        nvmlClockType_enum_NVML_CLOCK_MEM => target.figure_u32(|figures| &figures.memory_clock_mhz),
        nvmlClockType_enum_NVML_CLOCK_VIDEO => target.figure_u32(|figures| &figures.video_clock_mhz),
        _ => Err(NvmlReturn::InvalidArgument),
    }
}

/// Returns the highest that a clock can be, in MHz.
pub(crate) fn max_clock(target: &Target<'_>, of: nvmlClockType_t) -> Answer<u32> {
    let max = target.whole()?.max_clocks_mhz;
    let clock = match of {
        nvmlClockType_enum_NVML_CLOCK_GRAPHICS | nvmlClockType_enum_NVML_CLOCK_SM => max.sm,
        nvmlClockType_enum_NVML_CLOCK_MEM => max.memory,
        nvmlClockType_enum_NVML_CLOCK_VIDEO => max.video,
        _ => return Err(NvmlReturn::InvalidArgument),
    };
    if clock == 0 {
        Err(NvmlReturn::NotSupported)
    } else {
        Ok(clock)
    }
}

/// Returns the memory, with what is reserved beside what is used.
pub(crate) fn memory_info_v2(target: &Target<'_>, version: u32) -> Answer<nvmlMemory_v2_t> {
    if version != MEMORY_V2 {
        return Err(NvmlReturn::ArgumentVersionMismatch);
    }
    let (total, reserved, used) = match target.mig {
        Some(mig) => (mig.memory_total_bytes, 0, mig.memory_used_bytes.at(target.now)),
        None => {
            let device = target.device;
            let used = device.figures.memory_used_bytes.at(target.now);
            (device.memory_total_bytes, device.memory_reserved_bytes, used)
        }
    };
    let used = used.ok_or(NvmlReturn::NotSupported)?.round() as u64;
    Ok(nvmlMemory_v2_t {
        version,
        total,
        reserved,
        free: total.saturating_sub(reserved + used),
        used,
    })
}

/// Returns the memory as NVML's older call has it: what is reserved counts as used.
pub(crate) fn memory_info(target: &Target<'_>) -> Answer<nvmlMemory_t> {
    let info = memory_info_v2(target, MEMORY_V2)?;
    Ok(nvmlMemory_t {
        total: info.total,
        free: info.free,
        used: info.used + info.reserved,
    })
}

/// Returns the generation at which the PCIe link runs.
pub(crate) fn pcie_link_generation(target: &Target<'_>) -> Answer<u32> {
    target.figure_u32(|figures| &figures.pcie_link_generation)
}

/// Returns the width at which the PCIe link runs.
pub(crate) fn pcie_link_width(target: &Target<'_>) -> Answer<u32> {
    target.figure_u32(|figures| &figures.pcie_link_width)
}

/// Returns the highest generation of the PCIe link.
pub(crate) fn max_pcie_link_generation(target: &Target<'_>) -> Answer<u32> {
    Ok(target.whole()?.max_pcie_link.ok_or(NvmlReturn::NotSupported)?.0)
}

/// Returns the greatest width of the PCIe link.
pub(crate) fn max_pcie_link_width(target: &Target<'_>) -> Answer<u32> {
    Ok(target.whole()?.max_pcie_link.ok_or(NvmlReturn::NotSupported)?.1)
}

/// Returns how often the PCIe link sent something again.
pub(crate) fn pcie_replay_counter(target: &Target<'_>) -> Answer<u32> {
    target.figure_u32(|figures| &figures.pcie_replay_counter)
}

/// Returns what goes over PCIe, in kilobytes a second.
pub(crate) fn pcie_throughput(target: &Target<'_>, counter: nvmlPcieUtilCounter_t) -> Answer<u32> {
    let bytes = match counter {
        nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_TX_BYTES => {
            target.figure(|figures| &figures.pcie_tx_bytes_per_second)
        }
        nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_RX_BYTES => {
            target.figure(|figures| &figures.pcie_rx_bytes_per_second)
        }
        _ => Err(NvmlReturn::InvalidArgument),
    };
    Ok(narrow(bytes? / 1000))
}

//! What is wrong with a device: throttling, memory errors, and links.

use crate::library::Target;
use crate::returns::{Answer, NvmlReturn};
use crate::scenario::{Figures, NvLink};
use crate::steps::Steps;
use nvml_wrapper_sys::bindings::*;

/// Returns why the clocks are held back, as NVML's bits.
pub(crate) fn throttle_reasons(target: &Target<'_>) -> Answer<u64> {
    target.figure(|figures| &figures.throttle_reasons)
}

/// Returns the reasons that the device could give: those that NVML has names for, where it gives any.
pub(crate) fn supported_throttle_reasons(target: &Target<'_>) -> Answer<u64> {
    throttle_reasons(target).map(|_| 0x1ff)
}

/// Returns for how long a policy has held the clocks back since the driver was loaded.
///
/// It follows from the throttle reasons, so the two never contradict each other. Policies that no reason stands for
/// have held back nothing.
pub(crate) fn violation_status(
    target: &Target<'_>,
    policy: nvmlPerfPolicyType_t,
) -> Answer<nvmlViolationTime_t> {
    let reasons = match policy {
        nvmlPerfPolicyType_enum_NVML_PERF_POLICY_POWER => {
            nvmlClocksEventReasonSwPowerCap | nvmlClocksThrottleReasonHwPowerBrakeSlowdown
        }
        nvmlPerfPolicyType_enum_NVML_PERF_POLICY_THERMAL => {
            nvmlClocksEventReasonSwThermalSlowdown | nvmlClocksThrottleReasonHwThermalSlowdown
        }
        nvmlPerfPolicyType_enum_NVML_PERF_POLICY_SYNC_BOOST => nvmlClocksEventReasonSyncBoost,
        nvmlPerfPolicyType_enum_NVML_PERF_POLICY_BOARD_LIMIT
        | nvmlPerfPolicyType_enum_NVML_PERF_POLICY_LOW_UTILIZATION
        | nvmlPerfPolicyType_enum_NVML_PERF_POLICY_RELIABILITY => 0,
        _ => return Err(NvmlReturn::InvalidArgument),
    };
    let is_held = |bits: f64| {
        if bits as u64 & u64::from(reasons) == 0 {
            0.0
        } else {
            1.0
        }
    };
    let steps = &target.whole()?.figures.throttle_reasons;
    let seconds = steps.integral_of(target.driver_loaded_at(), target.now, is_held);
    Ok(nvmlViolationTime_t {
        referenceTime: target.stamp(target.now),
        violationTime: (seconds.ok_or(NvmlReturn::NotSupported)? * 1e9).round() as u64,
    })
}

/// Returns how many memory errors there were, since the driver was loaded or ever.
pub(crate) fn total_ecc_errors(
    target: &Target<'_>,
    error: nvmlMemoryErrorType_t,
    counter: nvmlEccCounterType_t,
) -> Answer<u64> {
    if !target.whole()?.ecc_enabled.unwrap_or(false) {
        return Err(NvmlReturn::NotSupported);
    }
    let of: fn(&Figures) -> &Steps = match (error, counter) {
        (0, 0) => |figures| &figures.ecc_corrected_volatile,
        (0, 1) => |figures| &figures.ecc_corrected_aggregate,
        (1, 0) => |figures| &figures.ecc_uncorrected_volatile,
        (1, 1) => |figures| &figures.ecc_uncorrected_aggregate,
        _ => return Err(NvmlReturn::InvalidArgument),
    };
    target.figure(of)
}

/// Returns rows remapped for correctable and for uncorrectable errors, whether one is pending, and whether one failed.
pub(crate) fn remapped_rows(target: &Target<'_>) -> Answer<[u32; 4]> {
    Ok([
        target.figure_u32(|figures| &figures.remapped_rows_correctable)?,
        target.figure_u32(|figures| &figures.remapped_rows_uncorrectable)?,
        target.figure_u32(|figures| &figures.remapped_rows_pending)?,
        target.figure_u32(|figures| &figures.remapped_rows_failure)?,
    ])
}

/// Returns the addresses of retired pages, made up from their count, and when they were retired: unknown.
pub(crate) fn retired_pages(
    target: &Target<'_>,
    cause: nvmlPageRetirementCause_t,
) -> Answer<Vec<(u64, u64)>> {
    let n_pages = match cause {
        nvmlPageRetirementCause_enum_NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS => {
            target.figure(|figures| &figures.retired_pages_single_bit)
        }
        nvmlPageRetirementCause_enum_NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR => {
            target.figure(|figures| &figures.retired_pages_double_bit)
        }
        _ => Err(NvmlReturn::InvalidArgument),
    };
    Ok((1..=n_pages?).map(|page| (page << 16, 0)).collect())
}

/// Returns whether a page waits to be retired.
pub(crate) fn retired_pages_pending(target: &Target<'_>) -> Answer<u32> {
    target.figure_u32(|figures| &figures.retired_pages_pending)
}

/// Returns whether a link is up.
pub(crate) fn nvlink_state(target: &Target<'_>, link: u32) -> Answer<u32> {
    Ok(u32::from(nvlink(target, link)?.active))
}

/// Returns one of a link's error counters.
pub(crate) fn nvlink_error_counter(
    target: &Target<'_>,
    link: u32,
    counter: nvmlNvLinkErrorCounter_t,
) -> Answer<u64> {
    let link = nvlink(target, link)?;
    match counter {
        nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_REPLAY => Ok(link.replay_errors),
        nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_RECOVERY => Ok(link.recovery_errors),
        nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_CRC_FLIT => Ok(link.crc_flit_errors),
        nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_CRC_DATA => Ok(link.crc_data_errors),
        nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_ECC_DATA => Ok(link.ecc_data_errors),
        _ => Err(NvmlReturn::InvalidArgument),
    }
}

fn nvlink<'a>(target: &'a Target<'_>, link: u32) -> Answer<&'a NvLink> {
    if link >= NVML_NVLINK_MAX_LINKS {
        return Err(NvmlReturn::InvalidArgument);
    }
    target
        .whole()?
        .nvlinks
        .get(link as usize)
        .ok_or(NvmlReturn::NotSupported)
}

/// Returns whether two devices reach each other's memory: over their links, if both have one that is up.
pub(crate) fn p2p_status(
    target: &Target<'_>,
    other: &Target<'_>,
    index: nvmlGpuP2PCapsIndex_t,
) -> Answer<u32> {
    if index >= nvmlGpuP2PCapsIndex_enum_NVML_P2P_CAPS_INDEX_UNKNOWN || target.handle == other.handle {
        return Err(NvmlReturn::InvalidArgument);
    }
    let mut ends = [target.whole()?, other.whole()?].into_iter();
    let is_linked = ends.all(|device| device.nvlinks.iter().any(|link| link.active));
    Ok(if is_linked {
        nvmlGpuP2PStatus_enum_NVML_P2P_STATUS_OK
    } else {
        nvmlGpuP2PStatus_enum_NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED
    })
}

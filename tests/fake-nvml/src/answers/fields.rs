//! Fields by number: many figures in one call, each with a return code of its own.
//!
//! Numbers are the driver's: nothing is translated for the version that the scenario claims, because those that
//! changed are of fields that nothing here has.

use super::{figures, health};
use crate::library::Target;
use crate::returns::{Answer, NvmlReturn};
use crate::scenario::{Figures, NvLink};
use crate::steps::Steps;
use nvml_wrapper_sys::bindings::field_id::*;

/// The scope of a field of links that means all links together.
const ALL_LINKS: u32 = u32::MAX;

/// A field's value in the type that NVML gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    Unsigned(u32),
    UnsignedLongLong(u64),
}

/// Returns one field as it is now.
pub(crate) fn value(target: &Target<'_>, field: u32, scope: u32) -> Answer<Value> {
    if field == 0 || field >= NVML_FI_MAX {
        return Err(NvmlReturn::InvalidArgument);
    }
    match field {
        NVML_FI_DEV_ECC_CURRENT => super::identity::ecc_mode(target).map(|mode| Value::Unsigned(mode.0)),
        NVML_FI_DEV_ECC_PENDING => super::identity::ecc_mode(target).map(|mode| Value::Unsigned(mode.1)),
        NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION => {
            figures::total_energy_consumption(target).map(Value::UnsignedLongLong)
        }
        NVML_FI_DEV_PCIE_COUNT_TX_BYTES => target
            .since_load(|figures| &figures.pcie_tx_bytes_per_second)
            .map(Value::UnsignedLongLong),
        NVML_FI_DEV_PCIE_COUNT_RX_BYTES => target
            .since_load(|figures| &figures.pcie_rx_bytes_per_second)
            .map(Value::UnsignedLongLong),
        NVML_FI_DEV_ECC_SBE_VOL_TOTAL..=NVML_FI_DEV_ECC_DBE_AGG_TOTAL => ecc(target, field),
        NVML_FI_DEV_PERF_POLICY_POWER..=NVML_FI_DEV_PERF_POLICY_RELIABILITY => {
            let policy = field - NVML_FI_DEV_PERF_POLICY_POWER;
            let status = health::violation_status(target, policy)?;
            Ok(Value::UnsignedLongLong(status.violationTime))
        }
        NVML_FI_DEV_POWER_MIN_LIMIT..=NVML_FI_DEV_POWER_REQUESTED_LIMIT => power_limit(target, field),
        _ if is_of_links(field) => links(target, field, scope),
        _ => Ok(Value::Unsigned(
            target.figure_u32(figure(field).ok_or(NvmlReturn::NotSupported)?)?,
        )),
    }
}

/// Returns the figure that a field shows as it is.
fn figure(field: u32) -> Option<fn(&Figures) -> &Steps> {
    let of: fn(&Figures) -> &Steps = match field {
        NVML_FI_DEV_MEMORY_TEMP => |figures| &figures.memory_temperature_celsius,
        NVML_FI_DEV_PCIE_REPLAY_COUNTER => |figures| &figures.pcie_replay_counter,
        NVML_FI_DEV_POWER_AVERAGE | NVML_FI_DEV_POWER_INSTANT => |figures| &figures.power_milliwatts,
        NVML_FI_DEV_REMAPPED_COR => |figures| &figures.remapped_rows_correctable,
        NVML_FI_DEV_REMAPPED_UNC => |figures| &figures.remapped_rows_uncorrectable,
        NVML_FI_DEV_REMAPPED_PENDING => |figures| &figures.remapped_rows_pending,
        NVML_FI_DEV_REMAPPED_FAILURE => |figures| &figures.remapped_rows_failure,
        NVML_FI_DEV_RETIRED_SBE => |figures| &figures.retired_pages_single_bit,
        NVML_FI_DEV_RETIRED_DBE => |figures| &figures.retired_pages_double_bit,
        NVML_FI_DEV_RETIRED_PENDING => |figures| &figures.retired_pages_pending,
        _ => return None,
    };
    Some(of)
}

/// Returns a count of memory errors; the four fields are in the order single and double bit, volatile and aggregate.
fn ecc(target: &Target<'_>, field: u32) -> Answer<Value> {
    let place = field - NVML_FI_DEV_ECC_SBE_VOL_TOTAL;
    health::total_ecc_errors(target, place % 2, place / 2).map(Value::UnsignedLongLong)
}

fn power_limit(target: &Target<'_>, field: u32) -> Answer<Value> {
    let limits = figures::power_limits(target)?;
    let limit = match field {
        NVML_FI_DEV_POWER_MIN_LIMIT => limits.min_milliwatts,
        NVML_FI_DEV_POWER_MAX_LIMIT => limits.max_milliwatts,
        NVML_FI_DEV_POWER_DEFAULT_LIMIT => limits.default_milliwatts,
        NVML_FI_DEV_POWER_CURRENT_LIMIT | NVML_FI_DEV_POWER_REQUESTED_LIMIT => limits.current_milliwatts,
        _ => return Err(NvmlReturn::NotSupported),
    };
    Ok(Value::Unsigned(limit))
}

fn is_of_links(field: u32) -> bool {
    matches!(
        field,
        NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL
            | NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL
            | NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL
            | NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL
            | NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL
            | NVML_FI_DEV_NVLINK_LINK_COUNT
            | NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX
            | NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX
    )
}

/// Returns what a card with links says of them; one without has none of these fields.
fn links(target: &Target<'_>, field: u32, scope: u32) -> Answer<Value> {
    let links = &target.whole()?.nvlinks;
    if links.is_empty() {
        return Err(NvmlReturn::NotSupported);
    }
    let sum = |of: fn(&NvLink) -> u64| Ok(Value::UnsignedLongLong(links.iter().map(of).sum()));
    match field {
        NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL => sum(|link| link.crc_flit_errors),
        NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL => sum(|link| link.crc_data_errors),
        NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL => sum(|link| link.replay_errors),
        NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL => sum(|link| link.recovery_errors),
        NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL => sum(|link| link.ecc_data_errors),
        NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX => {
            throughput(target, scope, |figures| &figures.nvlink_tx_bytes_per_second)
        }
        NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX => {
            throughput(target, scope, |figures| &figures.nvlink_rx_bytes_per_second)
        }
        _ => Ok(Value::Unsigned(links.len() as u32)),
    }
}

/// Returns the KiB that went over one link, or over all; links that are up carry equal shares.
fn throughput(target: &Target<'_>, scope: u32, of: fn(&Figures) -> &Steps) -> Answer<Value> {
    let kibibytes = target.since_load(of)? >> 10;
    if scope == ALL_LINKS {
        return Ok(Value::UnsignedLongLong(kibibytes));
    }
    let links = &target.whole()?.nvlinks;
    let link = links.get(scope as usize).ok_or(NvmlReturn::InvalidArgument)?;
    let n_active = links.iter().filter(|link| link.active).count() as u64;
    Ok(Value::UnsignedLongLong(if link.active {
        kibibytes / n_active
    } else {
        0
    }))
}

//! Functions that return something of one device: which function, into what, and who answers.

use super::{reply, write, write_text};
use crate::answers::{accounting, figures, gpm, health, identity, mig};
use crate::handle::Handle;
use crate::library::{self, Target};
use crate::returns::{Answer, NvmlReturn};
use nvml_wrapper_sys::bindings::*;
use std::ffi::{c_char, c_int, c_uint, c_ulonglong};

/// Functions with one value.
macro_rules! values {
    ($($function:ident: $type:ty = $answer:path;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $function(device: nvmlDevice_t, out: *mut $type) -> nvmlReturn_t {
            let value = library::ask(stringify!($function), Handle::from_raw(device), $answer);
            // SAFETY: a caller of NVML hands over null or room for the value.
            reply(value.and_then(|value| unsafe { write(out, value) }))
        }
    )*};
}

/// Functions with one value, which a further argument chooses.
macro_rules! chosen_values {
    ($($function:ident($choice:ty): $type:ty = $answer:path;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $function(device: nvmlDevice_t, choice: $choice, out: *mut $type) -> nvmlReturn_t {
            let answer = |target: &Target<'_>| $answer(target, choice);
            let value = library::ask(stringify!($function), Handle::from_raw(device), answer);
            // SAFETY: a caller of NVML hands over null or room for the value.
            reply(value.and_then(|value| unsafe { write(out, value) }))
        }
    )*};
}

/// Functions with one value, which two further arguments choose.
macro_rules! twice_chosen_values {
    ($($function:ident($one:ty, $two:ty): $type:ty = $answer:path;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $function(
            device: nvmlDevice_t,
            one: $one,
            two: $two,
            out: *mut $type,
        ) -> nvmlReturn_t {
            let answer = |target: &Target<'_>| $answer(target, one, two);
            let value = library::ask(stringify!($function), Handle::from_raw(device), answer);
            // SAFETY: a caller of NVML hands over null or room for the value.
            reply(value.and_then(|value| unsafe { write(out, value) }))
        }
    )*};
}

/// Functions with two values.
macro_rules! pairs {
    ($($function:ident: $type:ty = $answer:path;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $function(device: nvmlDevice_t, one: *mut $type, two: *mut $type) -> nvmlReturn_t {
            let values = library::ask(stringify!($function), Handle::from_raw(device), $answer);
            // SAFETY: a caller of NVML hands over null or room for each value.
            reply(values.and_then(|values| unsafe { write(one, values.0).and(write(two, values.1)) }))
        }
    )*};
}

/// Functions with a text.
macro_rules! texts {
    ($($function:ident = $answer:path;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $function(device: nvmlDevice_t, out: *mut c_char, length: c_uint) -> nvmlReturn_t {
            let text = library::ask(stringify!($function), Handle::from_raw(device), $answer);
            // SAFETY: a caller of NVML hands over null or room for as many bytes as it says.
            reply(text.and_then(|text| unsafe { write_text(out, length, &text) }))
        }
    )*};
}

texts! {
    nvmlDeviceGetName = identity::name;
    nvmlDeviceGetUUID = identity::uuid;
    nvmlDeviceGetSerial = identity::serial;
    nvmlDeviceGetVbiosVersion = identity::vbios_version;
}

values! {
    nvmlDeviceGetIndex: c_uint = identity::index;
    nvmlDeviceGetMinorNumber: c_uint = identity::minor_number;
    nvmlDeviceGetPciInfo_v3: nvmlPciInfo_t = identity::pci_info;
    nvmlDeviceGetBrand: nvmlBrandType_t = identity::brand;
    nvmlDeviceGetArchitecture: nvmlDeviceArchitecture_t = identity::architecture;
    nvmlDeviceGetPersistenceMode: nvmlEnableState_t = identity::persistence_mode;
    nvmlDeviceGetVirtualizationMode: nvmlGpuVirtualizationMode_t = identity::virtualization;
    nvmlDeviceGetUtilizationRates: nvmlUtilization_t = figures::utilization_rates;
    nvmlDeviceGetPerformanceState: nvmlPstates_t = figures::performance_state;
    nvmlDeviceGetPowerUsage: c_uint = figures::power_usage;
    nvmlDeviceGetPowerManagementLimit: c_uint = figures::power_limit;
    nvmlDeviceGetEnforcedPowerLimit: c_uint = figures::power_limit;
    nvmlDeviceGetPowerManagementDefaultLimit: c_uint = figures::default_power_limit;
    nvmlDeviceGetTotalEnergyConsumption: c_ulonglong = figures::total_energy_consumption;
    nvmlDeviceGetMemoryInfo: nvmlMemory_t = figures::memory_info;
    nvmlDeviceGetCurrPcieLinkGeneration: c_uint = figures::pcie_link_generation;
    nvmlDeviceGetCurrPcieLinkWidth: c_uint = figures::pcie_link_width;
    nvmlDeviceGetMaxPcieLinkGeneration: c_uint = figures::max_pcie_link_generation;
    nvmlDeviceGetMaxPcieLinkWidth: c_uint = figures::max_pcie_link_width;
    nvmlDeviceGetPcieReplayCounter: c_uint = figures::pcie_replay_counter;
    nvmlDeviceGetCurrentClocksThrottleReasons: c_ulonglong = health::throttle_reasons;
    nvmlDeviceGetCurrentClocksEventReasons: c_ulonglong = health::throttle_reasons;
    nvmlDeviceGetSupportedClocksThrottleReasons: c_ulonglong = health::supported_throttle_reasons;
    nvmlDeviceGetSupportedClocksEventReasons: c_ulonglong = health::supported_throttle_reasons;
    nvmlDeviceGetRetiredPagesPendingStatus: nvmlEnableState_t = health::retired_pages_pending;
    nvmlDeviceGetAccountingMode: nvmlEnableState_t = accounting::mode;
    nvmlDeviceGetAccountingBufferSize: c_uint = accounting::buffer_size;
    nvmlDeviceGetMaxMigDeviceCount: c_uint = mig::max_device_count;
    nvmlDeviceIsMigDeviceHandle: c_uint = mig::is_instance;
    nvmlDeviceGetGpuInstanceId: c_uint = mig::gpu_instance_id;
    nvmlDeviceGetComputeInstanceId: c_uint = mig::compute_instance_id;
    nvmlDeviceGetAttributes_v2: nvmlDeviceAttributes_t = mig::attributes;
    nvmlDeviceGetDeviceHandleFromMigDeviceHandle: nvmlDevice_t = parent;
    nvmlDeviceGetSupportedEventTypes: c_ulonglong = supported_event_types;
}

chosen_values! {
    nvmlDeviceGetTemperature(nvmlTemperatureSensors_t): c_uint = figures::temperature;
    nvmlDeviceGetClockInfo(nvmlClockType_t): c_uint = figures::clock;
    nvmlDeviceGetMaxClockInfo(nvmlClockType_t): c_uint = figures::max_clock;
    nvmlDeviceGetPcieThroughput(nvmlPcieUtilCounter_t): c_uint = figures::pcie_throughput;
    nvmlDeviceGetViolationStatus(nvmlPerfPolicyType_t): nvmlViolationTime_t = health::violation_status;
    nvmlDeviceGetNvLinkState(c_uint): nvmlEnableState_t = health::nvlink_state;
    nvmlDeviceGetAccountingStats(c_uint): nvmlAccountingStats_t = accounting::stats;
    nvmlDeviceGetMigDeviceHandleByIndex(c_uint): nvmlDevice_t = instance;
}

twice_chosen_values! {
    nvmlDeviceGetTotalEccErrors(nvmlMemoryErrorType_t, nvmlEccCounterType_t): c_ulonglong = health::total_ecc_errors;
    nvmlDeviceGetNvLinkErrorCounter(c_uint, nvmlNvLinkErrorCounter_t): c_ulonglong = health::nvlink_error_counter;
}

pairs! {
    nvmlDeviceGetCudaComputeCapability: c_int = identity::cuda_compute_capability;
    nvmlDeviceGetEccMode: nvmlEnableState_t = identity::ecc_mode;
    nvmlDeviceGetEncoderUtilization: c_uint = figures::encoder_utilization;
    nvmlDeviceGetDecoderUtilization: c_uint = figures::decoder_utilization;
    nvmlDeviceGetPowerManagementLimitConstraints: c_uint = figures::power_limit_constraints;
    nvmlDeviceGetMigMode: c_uint = mig::mode;
}

fn parent(target: &Target<'_>) -> Answer<nvmlDevice_t> {
    mig::parent(target).map(Handle::raw)
}

fn instance(target: &Target<'_>, index: c_uint) -> Answer<nvmlDevice_t> {
    mig::by_index(target, index).map(Handle::raw)
}

fn supported_event_types(target: &Target<'_>) -> Answer<c_ulonglong> {
    Ok(target.whole()?.supported_event_types)
}

/// The caller says in the struct which version of it there is room for.
#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(
    device: nvmlDevice_t,
    out: *mut nvmlMemory_v2_t,
) -> nvmlReturn_t {
    let info = library::ask("nvmlDeviceGetMemoryInfo_v2", Handle::from_raw(device), |target| {
        // SAFETY: a caller of NVML hands over null, or a struct whose version it has set.
        let version = unsafe { out.as_ref() }
            .ok_or(NvmlReturn::InvalidArgument)?
            .version;
        figures::memory_info_v2(target, version)
    });
    // SAFETY: as above.
    reply(info.and_then(|info| unsafe { write(out, info) }))
}

/// As with the memory, and the caller says of which sensor too.
#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetTemperatureV(
    device: nvmlDevice_t,
    out: *mut nvmlTemperature_t,
) -> nvmlReturn_t {
    let temperature = library::ask("nvmlDeviceGetTemperatureV", Handle::from_raw(device), |target| {
        // SAFETY: a caller of NVML hands over null, or a struct that it has filled in.
        let asked = unsafe { out.as_ref() }.ok_or(NvmlReturn::InvalidArgument)?;
        figures::temperature_v(target, *asked)
    });
    // SAFETY: as above.
    reply(temperature.and_then(|temperature| unsafe { write(out, temperature) }))
}

/// As with the memory, and the answer is one number in the same struct.
#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmQueryDeviceSupport(
    device: nvmlDevice_t,
    out: *mut nvmlGpmSupport_t,
) -> nvmlReturn_t {
    let is_supported = library::ask(
        "nvmlGpmQueryDeviceSupport",
        Handle::from_raw(device),
        gpm::support,
    );
    reply(is_supported.and_then(|is_supported| {
        // SAFETY: a caller of NVML hands over null, or a struct whose version it has set.
        let out = unsafe { out.as_mut() }.ok_or(NvmlReturn::InvalidArgument)?;
        if out.version != NVML_GPM_SUPPORT_VERSION {
            return Err(NvmlReturn::ArgumentVersionMismatch);
        }
        out.isSupportedDevice = is_supported;
        Ok(())
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetRemappedRows(
    device: nvmlDevice_t,
    correctable: *mut c_uint,
    uncorrectable: *mut c_uint,
    is_pending: *mut c_uint,
    failure_occurred: *mut c_uint,
) -> nvmlReturn_t {
    let handle = Handle::from_raw(device);
    let rows = library::ask("nvmlDeviceGetRemappedRows", handle, health::remapped_rows);
    reply(rows.and_then(|rows| {
        let outs = [correctable, uncorrectable, is_pending, failure_occurred];
        // SAFETY: a caller of NVML hands over null or room for each value.
        outs.into_iter()
            .zip(rows)
            .try_for_each(|(out, value)| unsafe { write(out, value) })
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetP2PStatus(
    device: nvmlDevice_t,
    other: nvmlDevice_t,
    index: nvmlGpuP2PCapsIndex_t,
    out: *mut nvmlGpuP2PStatus_t,
) -> nvmlReturn_t {
    let status = library::change(
        "nvmlDeviceGetP2PStatus",
        Handle::from_raw(device),
        |library, handle| {
            let other = Handle::from_raw(other).ok_or(NvmlReturn::InvalidArgument)?;
            health::p2p_status(&library.target(handle)?, &library.target(other)?, index)
        },
    );
    // SAFETY: a caller of NVML hands over null or room for the value.
    reply(status.and_then(|status| unsafe { write(out, status) }))
}

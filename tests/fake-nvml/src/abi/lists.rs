//! Functions with more than one of something: processes, samples, fields, recorded processes, pages.

use super::{reply, write, write_list};
use crate::answers::{accounting, fields, health, processes, samples};
use crate::handle::Handle;
use crate::library;
use crate::returns::{Answer, NvmlReturn};
use crate::scenario::ProcessKind;
use nvml_wrapper_sys::bindings::*;
use std::ffi::{c_int, c_uint, c_ulonglong};
use std::slice;

/// Functions with the processes that use a device for one thing.
macro_rules! process_lists {
    ($($function:ident = $kind:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $function(
            device: nvmlDevice_t,
            count: *mut c_uint,
            out: *mut nvmlProcessInfo_t,
        ) -> nvmlReturn_t {
            let handle = Handle::from_raw(device);
            let infos = library::ask(stringify!($function), handle, |target| processes::running(target, $kind));
            // SAFETY: a caller of NVML hands over null or room for as many items as it says.
            reply(infos.and_then(|infos| unsafe { write_list(&infos, count, out) }))
        }
    )*};
}

process_lists! {
    nvmlDeviceGetComputeRunningProcesses_v3 = ProcessKind::Compute;
    nvmlDeviceGetGraphicsRunningProcesses_v3 = ProcessKind::Graphics;
    nvmlDeviceGetMPSComputeRunningProcesses_v3 = ProcessKind::MpsCompute;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetProcessUtilization(
    device: nvmlDevice_t,
    out: *mut nvmlProcessUtilizationSample_t,
    count: *mut c_uint,
    last_seen: c_ulonglong,
) -> nvmlReturn_t {
    let samples = library::ask(
        "nvmlDeviceGetProcessUtilization",
        Handle::from_raw(device),
        |target| processes::utilization(target, last_seen),
    );
    // SAFETY: a caller of NVML hands over null or room for as many samples as it says.
    reply(samples.and_then(|samples| unsafe { write_list(&samples, count, out) }))
}

/// Without room it says how many samples there are; with too little, it gives the oldest.
#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetSamples(
    device: nvmlDevice_t,
    of: nvmlSamplingType_t,
    last_seen: c_ulonglong,
    value_type: *mut nvmlValueType_t,
    count: *mut c_uint,
    out: *mut nvmlSample_t,
) -> nvmlReturn_t {
    let samples = library::ask("nvmlDeviceGetSamples", Handle::from_raw(device), |target| {
        samples::samples(target, of, last_seen)
    });
    reply(samples.and_then(|samples| {
        let samples: Vec<_> = samples.into_iter().map(sample).collect();
        // SAFETY: a caller of NVML hands over null or room for the type and the count.
        unsafe { write(value_type, nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT) }?;
        // SAFETY: as above, and the count is set.
        let room = unsafe { count.as_ref() }
            .copied()
            .ok_or(NvmlReturn::InvalidArgument)?;
        if out.is_null() {
            // SAFETY: as above.
            return unsafe { write(count, samples.len() as c_uint) };
        }
        if room == 0 {
            return Err(NvmlReturn::InvalidArgument);
        }
        let fitting = &samples[..samples.len().min(room as usize)];
        // SAFETY: a caller of NVML hands over room for as many samples as it says.
        unsafe { write_list(fitting, count, out) }
    }))
}

fn sample((stamp, value): (u64, u32)) -> nvmlSample_t {
    nvmlSample_t {
        timeStamp: stamp,
        sampleValue: union_of(fields::Value::Unsigned(value)).1,
    }
}

/// Each field has a return code, a time and a latency of its own, so one that fails does not hide the others.
#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetFieldValues(
    device: nvmlDevice_t,
    count: c_int,
    values: *mut nvmlFieldValue_t,
) -> nvmlReturn_t {
    reply(library::ask(
        "nvmlDeviceGetFieldValues",
        Handle::from_raw(device),
        |target| {
            let count = usize::try_from(count)
                .ok()
                .filter(|count| *count > 0 && !values.is_null());
            let count = count.ok_or(NvmlReturn::InvalidArgument)?;
            // SAFETY: a caller of NVML hands over as many fields as it says.
            for field in unsafe { slice::from_raw_parts_mut(values, count) } {
                field.timestamp = target.stamp(target.now).cast_signed();
                field.latencyUsec = i64::from(target.device.field_latency_us);
                fill(field, fields::value(target, field.fieldId, field.scopeId));
            }
            Ok(())
        },
    ))
}

fn fill(field: &mut nvmlFieldValue_t, value: Answer<fields::Value>) {
    match value {
        Ok(value) => {
            field.nvmlReturn = nvmlReturn_enum_NVML_SUCCESS;
            (field.valueType, field.value) = union_of(value);
        }
        Err(error) => field.nvmlReturn = error.code(),
    }
}

/// Returns a value's type and the value, in a union that is zero beside it.
fn union_of(value: fields::Value) -> (nvmlValueType_t, nvmlValue_t) {
    match value {
        // Numbers are little-endian wherever there are drivers, so the wider one holds the narrower one.
        fields::Value::Unsigned(value) => (
            nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT,
            nvmlValue_t {
                ullVal: u64::from(value),
            },
        ),
        fields::Value::UnsignedLongLong(value) => (
            nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG,
            nvmlValue_t { ullVal: value },
        ),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetAccountingPids(
    device: nvmlDevice_t,
    count: *mut c_uint,
    out: *mut c_uint,
) -> nvmlReturn_t {
    let pids = library::ask(
        "nvmlDeviceGetAccountingPids",
        Handle::from_raw(device),
        accounting::pids,
    );
    // SAFETY: a caller of NVML hands over null or room for as many numbers as it says.
    reply(pids.and_then(|pids| unsafe { write_list(&pids, count, out) }))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceSetAccountingMode(device: nvmlDevice_t, mode: nvmlEnableState_t) -> nvmlReturn_t {
    reply(accounting::set_mode(
        "nvmlDeviceSetAccountingMode",
        Handle::from_raw(device),
        mode,
    ))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceClearAccountingPids(device: nvmlDevice_t) -> nvmlReturn_t {
    reply(accounting::clear(
        "nvmlDeviceClearAccountingPids",
        Handle::from_raw(device),
    ))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetRetiredPages(
    device: nvmlDevice_t,
    cause: nvmlPageRetirementCause_t,
    count: *mut c_uint,
    addresses: *mut c_ulonglong,
) -> nvmlReturn_t {
    let pages = library::ask("nvmlDeviceGetRetiredPages", Handle::from_raw(device), |target| {
        health::retired_pages(target, cause)
    });
    reply(pages.and_then(|pages| {
        let pages: Vec<_> = pages.into_iter().map(|page| page.0).collect();
        // SAFETY: a caller of NVML hands over null or room for as many addresses as it says.
        unsafe { write_list(&pages, count, addresses) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetRetiredPages_v2(
    device: nvmlDevice_t,
    cause: nvmlPageRetirementCause_t,
    count: *mut c_uint,
    addresses: *mut c_ulonglong,
    timestamps: *mut c_ulonglong,
) -> nvmlReturn_t {
    let pages = library::ask(
        "nvmlDeviceGetRetiredPages_v2",
        Handle::from_raw(device),
        |target| health::retired_pages(target, cause),
    );
    reply(pages.and_then(|pages| {
        let (pages, times): (Vec<_>, Vec<_>) = pages.into_iter().unzip();
        // SAFETY: a caller of NVML hands over null or room for as many addresses, and times, as it says.
        unsafe { write_list(&pages, count, addresses).and_then(|()| write_list(&times, count, timestamps)) }
    }))
}

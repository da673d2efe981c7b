//! Functions of GPM's samples.

use super::{reply, write};
use crate::answers::gpm;
use crate::handle::Handle;
use crate::library::{self, Library};
use crate::returns::{Answer, NvmlReturn};
use nvml_wrapper_sys::bindings::*;
use std::ffi::c_uint;
use std::{ptr, slice};

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmSampleAlloc(out: *mut nvmlGpmSample_t) -> nvmlReturn_t {
    reply(library::call(
        "nvmlGpmSampleAlloc",
        |_| Ok(None),
        |library| {
            // Room that nobody can be given is not made, for nobody could free it.
            // SAFETY: a caller of NVML hands over null or room for the handle.
            unsafe { write(out, ptr::null_mut()) }?;
            let sample = library.gpm_samples.allocate();
            // SAFETY: as above.
            unsafe { write(out, ptr::without_provenance_mut(sample)) }
        },
    ))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmSampleFree(sample: nvmlGpmSample_t) -> nvmlReturn_t {
    reply(library::call(
        "nvmlGpmSampleFree",
        |_| Ok(None),
        |library| library.gpm_samples.free(sample.addr()),
    ))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmSampleGet(device: nvmlDevice_t, sample: nvmlGpmSample_t) -> nvmlReturn_t {
    reply(library::change(
        "nvmlGpmSampleGet",
        Handle::from_raw(device),
        |library, handle| gpm::take(library, handle, None, sample.addr()),
    ))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmMigSampleGet(
    device: nvmlDevice_t,
    gpu_instance: c_uint,
    sample: nvmlGpmSample_t,
) -> nvmlReturn_t {
    reply(library::change(
        "nvmlGpmMigSampleGet",
        Handle::from_raw(device),
        |library, handle| gpm::take(library, handle, Some(gpu_instance), sample.addr()),
    ))
}

/// More metrics than any version of NVML has room for: a count that nobody set.
const TOO_MANY: c_uint = 1024;

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmMetricsGet(request: *mut nvmlGpmMetricsGet_t) -> nvmlReturn_t {
    let answer = |library: &mut Library| {
        if request.is_null() {
            return Err(NvmlReturn::InvalidArgument);
        }
        // The end of the struct moves from one version of NVML to the next, so it is never touched as a whole.
        // SAFETY: a caller of NVML hands over a request with these fields set, and as many metrics as it says.
        let (version, count, first, second) = unsafe {
            (
                (*request).version,
                (*request).numMetrics,
                (*request).sample1,
                (*request).sample2,
            )
        };
        if version != NVML_GPM_METRICS_GET_VERSION {
            return Err(NvmlReturn::ArgumentVersionMismatch);
        }
        if count >= TOO_MANY {
            return Err(NvmlReturn::InvalidArgument);
        }
        // SAFETY: as above.
        let metrics = unsafe {
            slice::from_raw_parts_mut(
                (&raw mut (*request).metrics).cast::<nvmlGpmMetric_t>(),
                count as usize,
            )
        };
        let ids: Vec<_> = metrics.iter().map(|metric| metric.metricId).collect();
        let values = gpm::between(library, first.addr(), second.addr(), &ids)?;
        for (metric, value) in metrics.iter_mut().zip(values) {
            fill(metric, value);
        }
        Ok(())
    };
    reply(library::call("nvmlGpmMetricsGet", |_| Ok(None), answer))
}

fn fill(metric: &mut nvmlGpmMetric_t, value: Answer<f64>) {
    let (short, long, unit) = gpm::description(metric.metricId);
    metric.metricInfo = nvmlGpmMetric_t__bindgen_ty_1 {
        shortName: short.as_ptr().cast_mut(),
        longName: long.as_ptr().cast_mut(),
        unit: unit.as_ptr().cast_mut(),
    };
    match value {
        Ok(value) => {
            metric.nvmlReturn = nvmlReturn_enum_NVML_SUCCESS;
            metric.value = value;
        }
        Err(error) => metric.nvmlReturn = error.code(),
    }
}

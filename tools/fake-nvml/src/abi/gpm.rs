//! Functions of GPM's samples.

use super::{reply, write};
use crate::answers::gpm;
use crate::handle::Handle;
use crate::library;
use crate::returns::{Answer, NvmlReturn};
use nvml_wrapper_sys::bindings::*;
use std::ffi::c_uint;
use std::ptr;

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

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmMetricsGet(request: *mut nvmlGpmMetricsGet_t) -> nvmlReturn_t {
    reply(library::call(
        "nvmlGpmMetricsGet",
        |_| Ok(None),
        |library| {
            // SAFETY: a caller of NVML hands over null, or a request that it has filled in.
            let request = unsafe { request.as_mut() }.ok_or(NvmlReturn::InvalidArgument)?;
            if request.version != NVML_GPM_METRICS_GET_VERSION {
                return Err(NvmlReturn::ArgumentVersionMismatch);
            }
            let (first, second) = (request.sample1.addr(), request.sample2.addr());
            let metrics = request.metrics.get_mut(..request.numMetrics as usize);
            let metrics = metrics.ok_or(NvmlReturn::InvalidArgument)?;
            let ids: Vec<_> = metrics.iter().map(|metric| metric.metricId).collect();
            let values = gpm::between(library, first, second, &ids)?;
            for (metric, value) in metrics.iter_mut().zip(values) {
                fill(metric, value);
            }
            Ok(())
        },
    ))
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

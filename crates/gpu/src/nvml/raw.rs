//! The few functions of NVML that nvml-wrapper 0.13 does not wrap. The only unsafe code here.

#![expect(
    unsafe_code,
    reason = "these are calls into a C library that the wrapper has loaded"
)]

use nvml_wrapper::{
    Device,
    error::{NvmlError, nvml_sym, nvml_try},
};
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

/// Returns the number of the GPU instance that a part of a device is in.
pub(super) fn gpu_instance(part: &Device<'_>) -> Result<u32, NvmlError> {
    let function = nvml_sym(part.nvml().lib().nvmlDeviceGetGpuInstanceId.as_ref())?;
    number(part, *function)
}

/// Returns the number of the compute instance that a part of a device is in.
pub(super) fn compute_instance(part: &Device<'_>) -> Result<u32, NvmlError> {
    let function = nvml_sym(part.nvml().lib().nvmlDeviceGetComputeInstanceId.as_ref())?;
    number(part, *function)
}

fn number(
    device: &Device<'_>,
    function: unsafe extern "C" fn(nvmlDevice_t, *mut u32) -> nvmlReturn_t,
) -> Result<u32, NvmlError> {
    let mut number = 0;
    // SAFETY: the handle is the wrapper's own and is valid as long as the library is, which `device` borrows; the function
    // writes one number to where it is told.
    let code = unsafe { function(device.handle(), &raw mut number) };
    nvml_try(code)?;
    Ok(number)
}

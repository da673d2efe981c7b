//! How a device is divided, and what its instances are.

use crate::handle::Handle;
use crate::library::Target;
use crate::returns::{Answer, NvmlReturn};
use crate::scenario::{Device, Mig, MigInstance};
use nvml_wrapper_sys::bindings::{INVALID_GPU_INSTANCE_ID, nvmlDeviceAttributes_t};

/// Returns whether MIG is on, and whether it will be.
pub(crate) fn mode(target: &Target<'_>) -> Answer<(u32, u32)> {
    let is_on = u32::from(mig(target)?.enabled);
    Ok((is_on, is_on))
}

/// Returns how many instances there can be: none where MIG is off or unknown.
pub(crate) fn max_device_count(target: &Target<'_>) -> Answer<u32> {
    let mig = target.whole()?.mig.as_ref().filter(|mig| mig.enabled);
    Ok(mig.map_or(0, |mig| mig.max_devices))
}

/// Finds an instance by its index; indices that nothing has are not found.
pub(crate) fn by_index(target: &Target<'_>, index: u32) -> Answer<Handle> {
    let mig = mig(target)?;
    if index >= mig.max_devices {
        return Err(NvmlReturn::InvalidArgument);
    }
    let index = index as usize;
    if !mig.enabled || index >= mig.instances.len() {
        return Err(NvmlReturn::NotFound);
    }
    Ok(Handle {
        mig: Some(index),
        ..target.handle
    })
}

/// Returns the device that an instance is part of.
pub(crate) fn parent(target: &Target<'_>) -> Answer<Handle> {
    instance(target).map(|_| Handle::of(target.handle.device))
}

/// Returns whether a handle names an instance.
pub(crate) fn is_instance(target: &Target<'_>) -> Answer<u32> {
    Ok(u32::from(target.mig.is_some()))
}

/// Returns the number of an instance's GPU instance.
pub(crate) fn gpu_instance_id(target: &Target<'_>) -> Answer<u32> {
    Ok(instance(target)?.gpu_instance_id)
}

/// Returns the number of an instance's compute instance.
pub(crate) fn compute_instance_id(target: &Target<'_>) -> Answer<u32> {
    Ok(instance(target)?.compute_instance_id)
}

/// Returns what an instance is made of.
pub(crate) fn attributes(target: &Target<'_>) -> Answer<nvmlDeviceAttributes_t> {
    let instance = instance(target)?;
    Ok(nvmlDeviceAttributes_t {
        multiprocessorCount: instance.multiprocessor_count,
        sharedCopyEngineCount: instance.slice_count,
        sharedDecoderCount: instance.slice_count,
        sharedEncoderCount: 0,
        sharedJpegCount: instance.slice_count,
        sharedOfaCount: 0,
        gpuInstanceSliceCount: instance.slice_count,
        computeInstanceSliceCount: instance.slice_count,
        memorySizeMB: instance.memory_total_bytes >> 20,
    })
}

/// Returns the GPU and compute instance at an index, or what NVML says for a whole device.
pub(crate) fn instance_ids(device: &Device, index: Option<usize>) -> (u32, u32) {
    let instances = device.mig.iter().flat_map(|mig| &mig.instances);
    let instance = index.and_then(|index| instances.into_iter().nth(index));
    instance.map_or((INVALID_GPU_INSTANCE_ID, INVALID_GPU_INSTANCE_ID), |instance| {
        (instance.gpu_instance_id, instance.compute_instance_id)
    })
}

fn mig<'a>(target: &'a Target<'_>) -> Answer<&'a Mig> {
    target.whole()?.mig.as_ref().ok_or(NvmlReturn::NotSupported)
}

fn instance<'a>(target: &Target<'a>) -> Answer<&'a MigInstance> {
    target.mig.ok_or(NvmlReturn::NotSupported)
}

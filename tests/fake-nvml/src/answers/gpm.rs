//! GPM: metrics of the time between two samples.

use crate::handle::Handle;
use crate::library::{Library, Target};
use crate::returns::{Answer, NvmlReturn};
use crate::scenario::{Device, Scenario};
use crate::steps::Steps;
use std::collections::BTreeMap;
use std::ffi::CStr;

/// The samples that callers have allocated, by the handle that they hold.
pub(crate) struct GpmSamples {
    samples: BTreeMap<usize, Option<GpmSample>>,
    n_allocated: usize,
}

/// Of whom a sample was taken, and when. What it holds follows from the scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GpmSample {
    of: Handle,
    at: f64,
}

impl GpmSamples {
    /// Makes a table without samples.
    pub(crate) const fn new() -> Self {
        Self {
            samples: BTreeMap::new(),
            n_allocated: 0,
        }
    }

    /// Makes room for a sample.
    pub(crate) fn allocate(&mut self) -> usize {
        self.n_allocated += 1;
        // Away from null, and unlike the small numbers that an uninitialised handle might hold.
        let handle = 0x6b70_0000 + self.n_allocated;
        self.samples.insert(handle, None);
        handle
    }

    /// Gives the room back.
    pub(crate) fn free(&mut self, handle: usize) -> Answer<()> {
        self.samples
            .remove(&handle)
            .map(|_| ())
            .ok_or(NvmlReturn::InvalidArgument)
    }

    fn filled(&self, handle: usize) -> Answer<GpmSample> {
        self.samples
            .get(&handle)
            .copied()
            .flatten()
            .ok_or(NvmlReturn::InvalidArgument)
    }
}

/// Returns whether the device has GPM.
pub(crate) fn support(target: &Target<'_>) -> Answer<u32> {
    Ok(u32::from(!target.whole()?.figures.gpm.is_empty()))
}

/// Takes a sample of a device, or of one of its GPU instances.
pub(crate) fn take(
    library: &mut Library,
    handle: Handle,
    gpu_instance: Option<u32>,
    sample: usize,
) -> Answer<()> {
    let target = library.target(handle)?;
    let of = Handle {
        mig: gpu_instance.map(|id| place(target.device, id)).transpose()?,
        ..handle
    };
    target.whole()?;
    if metrics(&library.scenario, of)?.is_empty() {
        return Err(NvmlReturn::NotSupported);
    }
    let at = library.now();
    let room = library
        .gpm_samples
        .samples
        .get_mut(&sample)
        .ok_or(NvmlReturn::InvalidArgument)?;
    *room = Some(GpmSample { of, at });
    Ok(())
}

/// Returns metrics as their means between two samples; each metric may fail on its own.
pub(crate) fn between(
    library: &Library,
    first: usize,
    second: usize,
    ids: &[u32],
) -> Answer<Vec<Answer<f64>>> {
    let (first, second) = (
        library.gpm_samples.filled(first)?,
        library.gpm_samples.filled(second)?,
    );
    if first.of != second.of || first.at > second.at {
        return Err(NvmlReturn::InvalidArgument);
    }
    let metrics = metrics(&library.scenario, first.of)?;
    let value = |id: &u32| {
        let steps = metrics.get(id).ok_or(NvmlReturn::NotSupported)?;
        if first.at >= second.at {
            return Err(NvmlReturn::NoData);
        }
        steps.mean(first.at, second.at).ok_or(NvmlReturn::NotSupported)
    };
    Ok(ids.iter().map(value).collect())
}

/// Returns the short and the long name of a metric, and its unit.
pub(crate) fn description(id: u32) -> (&'static CStr, &'static CStr, &'static CStr) {
    match id {
        1 => (c"GRAPHICS_UTIL", c"Graphics Engine Utilization", c"%"),
        2 => (c"SM_UTIL", c"SM Utilization", c"%"),
        3 => (c"SM_OCCUPANCY", c"SM Occupancy", c"%"),
        5 => (c"ANY_TENSOR_UTIL", c"Any Tensor Core Utilization", c"%"),
        10 => (c"DRAM_BW_UTIL", c"DRAM Bandwidth Utilization", c"%"),
        11 => (c"FP64_UTIL", c"FP64 Utilization", c"%"),
        12 => (c"FP32_UTIL", c"FP32 Utilization", c"%"),
        13 => (c"FP16_UTIL", c"FP16 Utilization", c"%"),
        20 => (c"PCIE_TX_PER_SEC", c"PCIe Sent", c"MiB/s"),
        21 => (c"PCIE_RX_PER_SEC", c"PCIe Received", c"MiB/s"),
        60 => (c"NVLINK_TOTAL_RX_PER_SEC", c"NVLink Received", c"MiB/s"),
        61 => (c"NVLINK_TOTAL_TX_PER_SEC", c"NVLink Sent", c"MiB/s"),
        _ => (c"METRIC", c"Metric", c""),
    }
}

/// Finds the GPU instance of a number among a device's instances.
fn place(device: &Device, gpu_instance: u32) -> Answer<usize> {
    let mig = device
        .mig
        .as_ref()
        .filter(|mig| mig.enabled)
        .ok_or(NvmlReturn::NotSupported)?;
    let place = mig
        .instances
        .iter()
        .position(|instance| instance.gpu_instance_id == gpu_instance);
    place.ok_or(NvmlReturn::InvalidArgument)
}

/// Returns the metrics of a device or of one of its instances.
fn metrics(scenario: &Scenario, of: Handle) -> Answer<&BTreeMap<u32, Steps>> {
    let device = scenario
        .devices
        .get(of.device)
        .ok_or(NvmlReturn::InvalidArgument)?;
    let Some(place) = of.mig else {
        return Ok(&device.figures.gpm);
    };
    let mut instances = device.mig.iter().flat_map(|mig| &mig.instances);
    instances
        .nth(place)
        .map(|instance| &instance.gpm)
        .ok_or(NvmlReturn::InvalidArgument)
}

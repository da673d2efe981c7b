//! Which processes have a context on a device, and how much of it they use.

use super::samples::{Tick, ticks};
use crate::library::Target;
use crate::returns::{Answer, NvmlReturn};
use crate::scenario::{Process, ProcessKind, Scenario};
use crate::steps::Steps;
use nvml_wrapper_sys::bindings::*;

/// What NVML says where a number is not known.
const NOT_AVAILABLE: u64 = NVML_VALUE_NOT_AVAILABLE as u64;

impl Process {
    /// Says whether it runs at a second. At its end it is gone.
    pub(crate) fn is_running(&self, second: f64) -> bool {
        self.begin <= second && self.end.is_none_or(|end| second < end)
    }
}

/// Returns the processes of a device, or of a MIG instance, that use it for something.
pub(crate) fn running(target: &Target<'_>, kind: ProcessKind) -> Answer<Vec<nvmlProcessInfo_t>> {
    let is_meant = |process: &&Process| {
        let is_here = target.handle.mig.is_none() || process.mig == target.handle.mig;
        process.kind == kind && is_here && process.is_running(target.now)
    };
    let processes = target.device.processes.iter().filter(is_meant);
    Ok(processes.map(|process| process_info(target, process)).collect())
}

fn process_info(target: &Target<'_>, process: &Process) -> nvmlProcessInfo_t {
    let (gpu_instance, compute_instance) = super::mig::instance_ids(target.device, process.mig);
    let memory = process.memory_used_bytes.at(target.now);
    nvmlProcessInfo_t {
        pid: process.pid,
        usedGpuMemory: memory.map_or(NOT_AVAILABLE, |bytes| bytes.round() as u64),
        gpuInstanceId: gpu_instance,
        computeInstanceId: compute_instance,
    }
}

/// Returns each process's share of each sampling period after a timestamp; periods of no use have no sample.
pub(crate) fn utilization(
    target: &Target<'_>,
    last_seen: u64,
) -> Answer<Vec<nvmlProcessUtilizationSample_t>> {
    let device = target.undivided()?;
    if !device.samples {
        return Err(NvmlReturn::NotSupported);
    }
    let ticks = ticks(target, last_seen);
    let of_tick = |tick: &Tick| {
        let tick = *tick;
        device
            .processes
            .iter()
            .filter_map(move |process| sample(process, &tick))
    };
    let samples: Vec<_> = ticks.iter().flat_map(of_tick).collect();
    if samples.is_empty() {
        Err(NvmlReturn::NotFound)
    } else {
        Ok(samples)
    }
}

fn sample(process: &Process, tick: &Tick) -> Option<nvmlProcessUtilizationSample_t> {
    let share = |of: &Steps| {
        let to = process.end.map_or(tick.to, |end| end.min(tick.to));
        let used = of.integral(process.begin.max(tick.from), to).unwrap_or_default();
        (used / (tick.to - tick.from)).round() as u32
    };
    let sample = nvmlProcessUtilizationSample_t {
        pid: process.pid,
        timeStamp: tick.stamp,
        smUtil: share(&process.sm_utilization_percent),
        memUtil: share(&process.memory_utilization_percent),
        encUtil: 0,
        decUtil: 0,
    };
    (sample.smUtil > 0 || sample.memUtil > 0).then_some(sample)
}

/// Returns the name of a process that runs on some device.
pub(crate) fn name(scenario: &Scenario, now: f64, pid: u32) -> Answer<String> {
    let mut processes = scenario.devices.iter().flat_map(|device| &device.processes);
    let found = processes.find(|process| process.pid == pid && process.is_running(now));
    found
        .map(|process| process.name.clone())
        .ok_or(NvmlReturn::NotFound)
}

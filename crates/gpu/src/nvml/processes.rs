//! Who uses a device.

use std::collections::BTreeMap;

use blueproof_core::{
    domain::Bytes,
    gpu::{GpuProcess, Reading},
};
use nvml_wrapper::{
    Device,
    enums::device::UsedGpuMemory,
    error::NvmlError,
    struct_wrappers::device::{ProcessInfo, ProcessUtilizationSample},
};

use super::{errors, figures};

/// Returns who uses a device, by number, and how much since a time in the driver's microseconds.
///
/// The two lists of the driver need not agree: in a container it may tell the container's numbers in one and the machine's
/// in the other. So whoever is only in the second is told, too, without memory.
pub(super) fn of_device(device: &Device<'_>, since: Option<u64>) -> Reading<Vec<GpuProcess>> {
    let used = match device.process_utilization_stats(since) {
        // The driver's word for a device that nobody used.
        Err(NvmlError::NotFound) => Reading::Value(Vec::new()),
        other => errors::read(other),
    };
    let shares = used.map(|samples| shares(&samples, since.unwrap_or(0)));
    let running = match running(device) {
        Ok(running) => running,
        Err(error) => return errors::unread(&error),
    };
    Reading::Value(joined(running, &shares))
}

/// Returns who uses a part of a device. How much of the time nobody tells of a part.
pub(super) fn of_partition(part: &Device<'_>) -> Reading<Vec<GpuProcess>> {
    errors::read(running(part)).map(|running| joined(running, &Reading::Unsupported))
}

/// Returns the memory of each process: computing ones, those that share the device by MPS, and drawing ones may be the same.
fn running(device: &Device<'_>) -> Result<BTreeMap<u32, Reading<Bytes>>, NvmlError> {
    let mut all = BTreeMap::new();
    let computing = device.running_compute_processes()?;
    let sharing = if_known(device.mps_running_compute_processes())?;
    let drawing = if_known(device.running_graphics_processes())?;
    let all_lists = computing.into_iter().chain(sharing).chain(drawing);
    for process in all_lists.filter(is_process) {
        let memory = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Reading::Value(Bytes(bytes)),
            UsedGpuMemory::Unavailable => Reading::Unsupported,
        };
        all.entry(process.pid).or_insert(memory);
    }
    Ok(all)
}

/// Returns a list, which is empty where the driver does not know of such processes.
fn if_known(list: Result<Vec<ProcessInfo>, NvmlError>) -> Result<Vec<ProcessInfo>, NvmlError> {
    match list {
        Err(NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_)) => Ok(Vec::new()),
        other => other,
    }
}

/// Returns whether an entry is of a process: one driver (535.54) mixes the fields up.
fn is_process(info: &ProcessInfo) -> bool {
    // The kernel's own limit, PID_MAX_LIMIT on 64 bits.
    const MOST: u32 = 1 << 22;
    (1..=MOST).contains(&info.pid)
}

/// Returns the mean share of each process since a time. What cannot be is left out.
fn shares(samples: &[ProcessUtilizationSample], since: u64) -> BTreeMap<u32, f64> {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.timestamp > since) {
        if let Some(share) = figures::percent(f64::from(sample.sm_util)) {
            let (sum, count) = sums.entry(sample.pid).or_default();
            *sum += share;
            *count += 1.0;
        }
    }
    sums.into_iter()
        .map(|(pid, (sum, count))| (pid, sum / count))
        .collect()
}

fn joined(running: BTreeMap<u32, Reading<Bytes>>, shares: &Reading<BTreeMap<u32, f64>>) -> Vec<GpuProcess> {
    let mut all = running;
    if let Reading::Value(shares) = shares {
        for pid in shares.keys() {
            all.entry(*pid).or_insert(Reading::Unsupported);
        }
    }
    let processes = all.into_iter().map(|(pid, memory)| GpuProcess {
        pid,
        memory,
        // Without a sample it is not known: in a container both lists may be of different numbers.
        utilization: shares.as_ref().filter_map(|shares| shares.get(&pid).copied()),
    });
    processes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_which_only_a_sample_is_told_is_one_too() {
        let running = BTreeMap::from([(1, Reading::Value(Bytes(5)))]);
        let shares = Reading::Value(BTreeMap::from([(1, 0.25), (700, 0.5)]));
        let told: Vec<_> = joined(running, &shares)
            .into_iter()
            .map(|process| (process.pid, process.memory, process.utilization))
            .collect();
        assert_eq!(
            told,
            [
                (1, Reading::Value(Bytes(5)), Reading::Value(0.25)),
                (700, Reading::Unsupported, Reading::Value(0.5)),
            ]
        );
    }

    #[test]
    fn what_no_process_can_be_called_is_none() {
        let entry = |pid| ProcessInfo {
            pid,
            used_gpu_memory: UsedGpuMemory::Unavailable,
            gpu_instance_id: None,
            compute_instance_id: None,
        };
        for (pid, is_one) in [
            (0, false),
            (1, true),
            (1 << 22, true),
            ((1 << 22) + 1, false),
            (u32::MAX, false),
        ] {
            assert_eq!(is_process(&entry(pid)), is_one, "{pid}");
        }
    }
}

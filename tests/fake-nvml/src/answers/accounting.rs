//! What the driver remembers of processes, ended ones too.

use crate::handle::Handle;
use crate::library::{self, Target};
use crate::returns::{Answer, NvmlReturn};
use crate::scenario::{Device, Process};
use crate::steps::Steps;
use nvml_wrapper_sys::bindings::nvmlAccountingStats_t;

/// How many processes the driver remembers, as NVML says it.
const BUFFER_SIZE: u32 = 4000;

/// How a device records processes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Accounting {
    /// Since when it does; processes that began earlier are not recorded.
    enabled_since: Option<f64>,
    /// When ended processes were last forgotten.
    cleared_at: f64,
}

impl Accounting {
    /// Returns how a device records before anybody has changed it.
    pub(crate) fn at_start(device: &Device) -> Self {
        let is_enabled = device.accounting == Some(true);
        Self {
            enabled_since: is_enabled.then_some(f64::NEG_INFINITY),
            cleared_at: f64::NEG_INFINITY,
        }
    }
}

/// Returns whether processes are recorded.
pub(crate) fn mode(target: &Target<'_>) -> Answer<u32> {
    recordable(target)?;
    Ok(u32::from(target.accounting.enabled_since.is_some()))
}

/// Returns how many processes are remembered at most.
pub(crate) fn buffer_size(target: &Target<'_>) -> Answer<u32> {
    recordable(target).map(|_| BUFFER_SIZE)
}

/// Returns the processes that are remembered, in the order in which they began.
pub(crate) fn pids(target: &Target<'_>) -> Answer<Vec<u32>> {
    let mut known: Vec<_> = remembered(target)?.collect();
    known.sort_by(|a, b| a.begin.total_cmp(&b.begin));
    Ok(known.into_iter().map(|process| process.pid).collect())
}

/// Returns what one process used while it ran.
pub(crate) fn stats(target: &Target<'_>, pid: u32) -> Answer<nvmlAccountingStats_t> {
    let process = remembered(target)?
        .find(|process| process.pid == pid)
        .ok_or(NvmlReturn::NotFound)?;
    let is_running = process.is_running(target.now);
    let to = if is_running {
        target.now
    } else {
        process.end.unwrap_or(target.now)
    };
    let mean = |of: &Steps| of.mean(process.begin, to).unwrap_or_default().round() as u32;
    let peak = process
        .memory_used_bytes
        .max(process.begin, to)
        .unwrap_or_default();
    Ok(nvmlAccountingStats_t {
        gpuUtilization: mean(&process.sm_utilization_percent),
        memoryUtilization: mean(&process.memory_utilization_percent),
        maxMemoryUsage: peak.round() as u64,
        // NVML does not say how long a process has run while it does.
        time: if is_running {
            0
        } else {
            ((to - process.begin) * 1e3).round() as u64
        },
        startTime: target.stamp(process.begin),
        isRunning: u32::from(is_running),
        reserved: [0; 5],
    })
}

/// Records processes from now on, or no longer; what was remembered is gone when it ends.
pub(crate) fn set_mode(function: &'static str, handle: Option<Handle>, mode: u32) -> Answer<()> {
    library::change(function, handle, |library, handle| {
        let target = library.target(handle)?;
        recordable(&target)?;
        let mut accounting = target.accounting;
        accounting.enabled_since = match mode {
            0 => None,
            1 => accounting.enabled_since.or(Some(target.now)),
            _ => return Err(NvmlReturn::InvalidArgument),
        };
        library.set_accounting(handle.device, accounting);
        Ok(())
    })
}

/// Forgets the processes that have ended.
pub(crate) fn clear(function: &'static str, handle: Option<Handle>) -> Answer<()> {
    library::change(function, handle, |library, handle| {
        let target = library.target(handle)?;
        recordable(&target)?;
        let accounting = Accounting {
            cleared_at: target.now,
            ..target.accounting
        };
        library.set_accounting(handle.device, accounting);
        Ok(())
    })
}

/// Refuses devices that cannot record, and with MIG all of them.
fn recordable(target: &Target<'_>) -> Answer<()> {
    target
        .undivided()?
        .accounting
        .map(|_| ())
        .ok_or(NvmlReturn::NotSupported)
}

/// Finds the processes that were recorded and not yet forgotten. A driver that is loaded anew has forgotten all.
fn remembered<'a>(target: &'a Target<'_>) -> Answer<impl Iterator<Item = &'a Process>> {
    recordable(target)?;
    let Accounting {
        enabled_since,
        cleared_at,
    } = target.accounting;
    let since = enabled_since
        .unwrap_or(f64::INFINITY)
        .max(target.driver_loaded_at());
    let is_known = move |process: &&Process| {
        let is_cleared = process.end.is_some_and(|end| end <= cleared_at);
        process.begin >= since && process.begin <= target.now && !is_cleared
    };
    Ok(target.device.processes.iter().filter(is_known))
}

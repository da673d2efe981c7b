//! What the processes of an attempt use, sampled.

use std::time::Duration;

use super::{
    Child,
    proc_fs::{ProcessStat, descendants, resident_peak_bytes},
};

/// Adds up what this process' descendants use.
///
/// Time of a child that its parent waited for is in its parent's figure; time of one that was orphaned is kept here
/// when it is reaped.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    reaped: Duration,
    cpu: Option<Duration>,
    memory_peak_bytes: Option<u64>,
}

impl Meter {
    /// Looks at every process below this one. `kernel` is the one whose own peak is known to the system.
    pub(crate) fn sample(&mut self, kernel: u32) {
        let tree = descendants(std::process::id());
        if tree.is_empty() {
            return;
        }
        let cpu: Duration = tree.iter().map(|stat| stat.cpu).sum();
        let resident: u64 = tree.iter().map(|stat| stat.resident_bytes).sum();
        self.cpu = self.cpu.max(Some(cpu + self.reaped));
        let peak = self.memory_peak_bytes.max(resident_peak_bytes(kernel));
        self.memory_peak_bytes = peak.max(Some(resident));
    }

    /// Takes over what a process had used when it was reaped by this one.
    pub(crate) fn keep(&mut self, stat: ProcessStat) {
        self.reaped += stat.cpu;
        self.cpu = self.cpu.max(Some(self.reaped));
    }

    /// Takes over what the kernel had used, once it has ended.
    pub(crate) fn keep_child(&mut self, child: &Child) {
        if let Some(stat) = child.last_stat() {
            self.keep(stat);
        }
    }

    /// Returns the processor time, or `None` where it could not be read.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        self.cpu
    }

    /// Returns the most memory held at once as sampled, or `None` where it could not be read.
    pub(crate) fn memory_peak_bytes(&self) -> Option<u64> {
        self.memory_peak_bytes
    }
}

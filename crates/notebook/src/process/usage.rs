//! What the processes of an attempt use, sampled.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};

use super::{
    Child,
    proc_fs::{ProcessStat, descendants, proportional_bytes, resident_peak_bytes},
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
    largest_before: u64,
}

impl Meter {
    /// Takes note that the kernel is about to start: what was waited for until now is not the notebook's.
    pub(crate) fn begin(&mut self) {
        self.largest_before = largest_bytes();
    }

    /// Looks at every process below this one. `kernel` is the one whose own peak is known to the system.
    pub(crate) fn sample(&mut self, kernel: u32) {
        let tree = descendants(std::process::id());
        if tree.is_empty() {
            return;
        }
        let cpu: Duration = tree.iter().map(|stat| stat.cpu).sum();
        let resident = self.resident(&tree);
        self.cpu = self.cpu.max(Some(cpu + self.reaped));
        let peak = self.memory_peak_bytes.max(resident_peak_bytes(kernel));
        self.memory_peak_bytes = peak.max(Some(resident));
    }

    /// Returns how much memory processes hold together. What they share must not count for each of them, and is costly to ask
    /// for: so that is done only where it could make a new peak.
    fn resident(&self, tree: &[ProcessStat]) -> u64 {
        let apart: u64 = tree.iter().map(|stat| stat.resident_bytes).sum();
        if tree.len() < 2 || Some(apart) <= self.memory_peak_bytes {
            return apart;
        }
        let shared_out = |stat: &ProcessStat| proportional_bytes(stat.pid).unwrap_or(stat.resident_bytes);
        tree.iter().map(shared_out).sum()
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

    /// Returns the most memory held at once as sampled, or by one process that was gone before a sample; `None` where it could
    /// not be read. Of several such processes at once the largest alone is known.
    pub(crate) fn memory_peak_bytes(&self) -> Option<u64> {
        let largest = largest_bytes();
        let unseen = (largest > self.largest_before).then_some(largest);
        self.memory_peak_bytes.max(unseen)
    }
}

/// Returns the most that one process held of all that have been waited for, by this process or by one of them.
fn largest_bytes() -> u64 {
    let used = getrusage(UsageWho::RUSAGE_CHILDREN);
    let kibibytes = used.map_or(0, |used| used.max_rss());
    u64::try_from(kibibytes).unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn memory_that_processes_share_counts_once() {
        const SHARED: u64 = 64 << 20;
        let code = format!(
            "import os\nheld = b'x' * {SHARED}\nchildren = [os.fork() or os.read(0, 1) or os._exit(0) for _ in range(8)]\n\
             print('ready', flush=True)\nos.read(0, 1)\n"
        );
        let mut python = Command::new("python3")
            .args(["-c", &code])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it is on every system");
        let mut ready = [0; 6];
        std::io::Read::read_exact(python.stdout.as_mut().expect("it is piped"), &mut ready)
            .expect("it goes on");
        let mut tree = descendants(python.id());
        tree.extend(ProcessStat::read(python.id()));
        let resident = Meter::default().resident(&tree);
        drop(python.stdin.take());
        python.wait().expect("it ends");
        assert_eq!(tree.len(), 9);
        assert!((SHARED..3 * SHARED).contains(&resident), "{resident}");
    }
}

//! What `/proc` says of processes.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use blueproof_core::domain::Bytes;

/// A process as `/proc/PID/stat` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    /// Its id.
    pub(crate) pid: u32,
    /// Its parent's id.
    pub(crate) parent: u32,
    /// Whether it belongs to a terminal.
    pub(crate) has_terminal: bool,
    /// Whether it has ended and waits for its parent to notice.
    pub(crate) is_zombie: bool,
    /// Whether it is a thread of the operating system's own: it runs no program, and has no environment.
    pub(crate) is_system_thread: bool,
    /// Processor time of its own and of the children it has waited for.
    pub(crate) cpu: Duration,
    /// Resident memory.
    pub(crate) resident_bytes: u64,
    /// When it started, in clock ticks since the machine did: with the id, it names a process for good.
    pub(crate) started: u64,
}

impl ProcessStat {
    /// Returns the process of this id, or `None` when there is none.
    pub(crate) fn read(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(pid, &text)
    }

    fn parse(pid: u32, text: &str) -> Option<Self> {
        // The second field is the program's name in brackets, and may hold brackets and spaces of its own.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let ticks: u64 = (11..=14).map(number).sum::<Option<u64>>()?;
        Some(Self {
            pid,
            parent: u32::try_from(number(1)?).ok()?,
            has_terminal: fields.get(4) != Some(&"0"),
            is_zombie: fields.first() == Some(&"Z"),
            is_system_thread: number(6)? & SYSTEM_THREAD != 0,
            cpu: Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second()),
            resident_bytes: number(21)? * rustix::param::page_size() as u64,
            started: number(19)?,
        })
    }
}

/// Returns how much memory this machine has, where `/proc/meminfo` says so.
pub(crate) fn total_memory() -> Option<Bytes> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kibibytes << 10))
}

/// Among a process' flags: `PF_KTHREAD` of Linux' `sched.h`.
const SYSTEM_THREAD: u64 = 0x0020_0000;

/// Returns all processes that can be seen.
pub(crate) fn processes() -> Vec<ProcessStat> {
    all_pids().into_iter().filter_map(ProcessStat::read).collect()
}

/// Returns the ids of all processes that can be seen.
fn all_pids() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

/// Returns the processes below `root`, itself left out.
pub(crate) fn descendants(root: u32) -> Vec<ProcessStat> {
    below(root, &processes())
}

/// Returns those of `processes` that are below `root`, itself left out.
pub(crate) fn below(root: u32, processes: &[ProcessStat]) -> Vec<ProcessStat> {
    let mut children: BTreeMap<u32, Vec<ProcessStat>> = BTreeMap::new();
    for stat in processes {
        children.entry(stat.parent).or_default().push(*stat);
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            open.push(child.pid);
            found.push(child);
        }
    }
    found
}

/// Returns how much memory the process holds where what it shares with others is shared out among them: so what several hold
/// together counts once in their sum. `None` where the system does not tell.
pub(crate) fn proportional_bytes(pid: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    kibibytes(&rollup, "Pss:")
}

/// Returns the most resident memory that the process ever held.
pub(crate) fn resident_peak_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    kibibytes(&status, "VmHWM:")
}

fn kibibytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Returns whether the process was started with `variable=value` in its environment.
pub(crate) fn has_variable(pid: u32, variable: &str, value: &str) -> bool {
    let wanted = format!("{variable}={value}");
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment
        .split(|b| *b == 0)
        .any(|entry| entry == wanted.as_bytes())
}

/// Returns whether the process works in `folder` or below it.
pub(crate) fn works_in(pid: u32, folder: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|place| place.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_brackets_and_spaces_is_read_over() {
        let text = "7 (a) Z 9 (b) R 3 7 7 0 -1 0 0 0 0 0 100 50 30 20 20 0 1 0 555 4096 2 0 0 0 0";
        let stat = ProcessStat::parse(7, text).unwrap();
        assert_eq!((stat.parent, stat.is_zombie, stat.started), (3, false, 555));
        let ticks = rustix::param::clock_ticks_per_second();
        assert_eq!(stat.cpu, Duration::from_millis(200_000 / ticks));
        assert_eq!(stat.resident_bytes, 2 * rustix::param::page_size() as u64);
    }

    #[test]
    fn this_process_can_be_seen() {
        let pid = std::process::id();
        assert!(ProcessStat::read(pid).is_some_and(|stat| stat.resident_bytes > 0));
        assert!(resident_peak_bytes(pid).is_some_and(|peak| peak > 0));
        assert!(proportional_bytes(pid).is_none_or(|bytes| bytes > 0));
    }
}

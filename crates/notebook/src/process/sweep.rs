//! Ending everything that an attempt started, detached processes included.
//!
//! The agent adopts orphans, so that whatever its kernel started is below the agent for as long as both live. After a
//! crash of the agent the tree is gone; what is left is then known by the marker in its environment, or by working in
//! the attempt's own folder without a terminal. Where the attempt has a cgroup, nothing that it started is anywhere else.

use std::{
    io,
    path::Path,
    time::{Duration, Instant},
};

use blueproof_core::attempt::Cgroup;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

use super::{
    MARKER, Meter,
    proc_fs::{ProcessStat, below, has_variable, processes, works_in},
};

/// For how long a program may go on starting processes faster than they are ended.
const GIVE_UP_AFTER: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Makes this process the parent of orphans among its descendants.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(
        rustix::process::getpid(),
    ))?)
}

/// Ends every process below this one, every one with the marker and every one in the cgroup, and waits until they are gone.
///
/// They are asked first and killed after `grace`. Returns how many did not go.
pub(crate) fn sweep(marker: &str, cgroup: Option<&Cgroup>, grace: Duration, meter: &mut Meter) -> usize {
    let begun = Instant::now();
    let mut asked: Vec<(u32, u64)> = Vec::new();
    loop {
        let all = processes();
        reap(&all, meter);
        let left = living(marker, &all);
        let is_populated = cgroup.is_some_and(|cgroup| cgroup.is_populated().unwrap_or(false));
        if left.is_empty() && !is_populated || begun.elapsed() > GIVE_UP_AFTER {
            return left.len();
        }
        if begun.elapsed() >= grace {
            // All at once: those that start others faster than they are ended one by one go, too.
            let _ = cgroup.map(Cgroup::kill);
        }
        for stat in &left {
            if begun.elapsed() >= grace {
                signal(*stat, Signal::KILL);
            } else if !asked.contains(&(stat.pid, stat.started)) {
                signal(*stat, Signal::TERM);
                asked.push((stat.pid, stat.started));
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Kills what a killed agent left: every process that carries the marker, where it is known, and those that work in `folder`.
///
/// Returns how many did not go.
pub(crate) fn end_left(marker: Option<&str>, folder: &Path) -> usize {
    let begun = Instant::now();
    loop {
        let all = processes();
        let mut left = marker.map_or_else(Vec::new, |marker| marked(marker, &all));
        left.extend(working_in(folder, &all));
        if left.is_empty() || begun.elapsed() > GIVE_UP_AFTER {
            return left.len();
        }
        for stat in left {
            signal(stat, Signal::KILL);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Notices the end of every orphan that this process has adopted.
fn reap(all: &[ProcessStat], meter: &mut Meter) {
    let own = std::process::id();
    for stat in all.iter().filter(|stat| stat.parent == own && stat.is_zombie) {
        let pid = i32::try_from(stat.pid).ok().and_then(Pid::from_raw);
        if rustix::process::waitpid(pid, WaitOptions::NOHANG).is_ok_and(|ended| ended.is_some()) {
            meter.keep(*stat);
        }
    }
}

fn living(marker: &str, all: &[ProcessStat]) -> Vec<ProcessStat> {
    let mut left = below(std::process::id(), all);
    left.retain(|stat| !stat.is_zombie);
    let known: Vec<u32> = left.iter().map(|stat| stat.pid).collect();
    let marked = marked(marker, all).into_iter();
    left.extend(marked.filter(|stat| !known.contains(&stat.pid)));
    left
}

fn marked(marker: &str, all: &[ProcessStat]) -> Vec<ProcessStat> {
    let own = std::process::id();
    let is_marked =
        |stat: &&ProcessStat| stat.pid != own && runs(stat) && has_variable(stat.pid, MARKER, marker);
    all.iter().filter(is_marked).copied().collect()
}

fn working_in(folder: &Path, all: &[ProcessStat]) -> Vec<ProcessStat> {
    // A person may be looking around in there, with a shell.
    let is_inside = |stat: &&ProcessStat| runs(stat) && !stat.has_terminal && works_in(stat.pid, folder);
    all.iter().filter(is_inside).copied().collect()
}

fn runs(stat: &ProcessStat) -> bool {
    !stat.is_zombie && !stat.is_system_thread
}

/// Signals exactly the process that was seen, and no later one with its id.
fn signal(seen: ProcessStat, signal: Signal) {
    let Some(pid) = i32::try_from(seen.pid).ok().and_then(Pid::from_raw) else {
        return;
    };
    let Ok(fd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    if ProcessStat::read(seen.pid).is_some_and(|now| now.started == seen.started) {
        let _ = rustix::process::pidfd_send_signal(fd, signal);
    }
}

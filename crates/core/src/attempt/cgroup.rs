//! The cgroup of an attempt, by its folder in the cgroup v2 hierarchy: looked at, killed and removed.
//!
//! A process cannot leave its cgroup by detaching itself or by clearing its environment, so that a cgroup names all that an
//! attempt has started. Where a cgroup can be made, and what is limited there, is up to the agent; the driver only ends it.

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// For how long killed processes may stay: one that waits for a disk or a device cannot be killed.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A cgroup, which need not be there yet or any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// Names the cgroup of this folder; nothing is created.
    pub fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Returns its folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Moves the process that calls this into the cgroup.
    ///
    /// # Errors
    ///
    /// When the cgroup is not there, or may not be entered.
    pub fn enter(&self) -> io::Result<()> {
        write(&self.0.join("cgroup.procs"), "0")
    }

    /// Returns whether a process is directly in the cgroup.
    pub fn holds(&self, pid: u32) -> bool {
        members(&self.0).is_ok_and(|members| members.contains(&pid))
    }

    /// Returns whether a process lives in the cgroup, or below it.
    ///
    /// # Errors
    ///
    /// When that cannot be read. In a cgroup that is not there nothing lives.
    pub fn is_populated(&self) -> io::Result<bool> {
        match fs::read_to_string(self.0.join("cgroup.events")) {
            Ok(events) => Ok(count(&events, "populated") > 0),
            Err(error) if is_gone(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns how often what `event` names has happened, by the file of a controller such as `memory.events`. Where there is
    /// no such file, it has not.
    pub fn count(&self, controller: &str, event: &str) -> u64 {
        let events = fs::read_to_string(self.0.join(format!("{controller}.events")));
        count(&events.unwrap_or_default(), event)
    }

    /// Sends SIGKILL to every process in the cgroup and below it, and does not wait for their end.
    ///
    /// # Errors
    ///
    /// When that is not permitted. A cgroup that is not there has no processes.
    pub fn kill(&self) -> io::Result<()> {
        match write(&self.0.join("cgroup.kill"), "1") {
            Err(error) if is_gone(&error) && self.0.exists() => self.kill_one_by_one(),
            Err(error) if is_gone(&error) => Ok(()),
            killed => killed,
        }
    }

    /// Kills what is in the cgroup, waits until it is gone, and removes the cgroup. Doing so twice, or at the same time as
    /// another process, does no harm.
    ///
    /// # Errors
    ///
    /// When that is not permitted, or something in it stays.
    pub fn end(&self) -> io::Result<()> {
        let begun = Instant::now();
        loop {
            self.kill()?;
            let removed = if self.is_populated()? {
                Err(ErrorKind::ResourceBusy.into())
            } else {
                remove(&self.0)
            };
            match removed {
                Err(error) if error.kind() == ErrorKind::ResourceBusy && begun.elapsed() < GIVE_UP_AFTER => {
                    thread::sleep(LOOK_EVERY);
                }
                removed => return removed,
            }
        }
    }

    /// Does what `cgroup.kill` does since Linux 5.14. What is frozen starts nothing anew, and dies all the same.
    fn kill_one_by_one(&self) -> io::Result<()> {
        let _ = write(&self.0.join("cgroup.freeze"), "1");
        let killed = kill_below(&self.0);
        let _ = write(&self.0.join("cgroup.freeze"), "0");
        killed
    }
}

fn kill_below(folder: &Path) -> io::Result<()> {
    for pid in members(folder)? {
        let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
            continue;
        };
        let Ok(process) = pidfd_open(id, PidfdFlags::empty()) else {
            continue;
        };
        // Its id may have passed to another process before it was opened, and cannot any more.
        if members(folder)?.contains(&pid) {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }
    children(folder)?.iter().try_for_each(|child| kill_below(child))
}

/// Removes a cgroup and those below it: a notebook may make some, too.
fn remove(folder: &Path) -> io::Result<()> {
    for child in children(folder)? {
        remove(&child)?;
    }
    match fs::remove_dir(folder) {
        Err(error) if !is_gone(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Returns the processes that are directly in a cgroup; none are in one that is not there.
fn members(folder: &Path) -> io::Result<Vec<u32>> {
    match fs::read_to_string(folder.join("cgroup.procs")) {
        Ok(text) => Ok(text.lines().filter_map(|line| line.parse().ok()).collect()),
        Err(error) if is_gone(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn children(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if is_gone(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let folders = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    Ok(folders.map(|entry| entry.path()).collect())
}

/// Returns the number behind a word of a file such as `cgroup.events`.
fn count(events: &str, word: &str) -> u64 {
    let mut lines = events.lines().filter_map(|line| line.split_once(' '));
    let found = lines.find(|(name, _)| *name == word);
    found
        .and_then(|(_, number)| number.trim().parse().ok())
        .unwrap_or(0)
}

/// Writes to a file that must be there already.
fn write(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .open(path)?
        .write_all(text.as_bytes())
}

/// A cgroup that is removed while one of its files is read answers so.
fn is_gone(error: &io::Error) -> bool {
    const NO_SUCH_DEVICE: i32 = 19;
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(NO_SUCH_DEVICE)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    /// A folder that looks like a cgroup, with some of its files.
    fn looks_like(files: &[(&str, &str)]) -> (tempfile::TempDir, Cgroup) {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("a file");
        }
        let cgroup = Cgroup::new(folder.path().into());
        (folder, cgroup)
    }

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").spawn().expect("it starts")
    }

    #[test]
    fn a_cgroup_that_is_not_there_holds_nothing_and_has_ended() {
        let cgroup = Cgroup::new("/nowhere/at/all".into());
        assert!(!cgroup.is_populated().expect("nothing can be in it"));
        assert_eq!(cgroup.count("memory", "oom_kill"), 0);
        cgroup.kill().expect("nothing is in it");
        cgroup.end().expect("it has ended");
        cgroup.enter().expect_err("it is not there");
    }

    #[test]
    fn what_has_happened_in_it_is_read_from_the_line_of_that_very_name() {
        let events = "low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 1\n";
        let (_folder, cgroup) = looks_like(&[("memory.events", events), ("cgroup.events", "populated 1\n")]);
        assert_eq!(cgroup.count("memory", "oom_kill"), 3);
        assert_eq!(cgroup.count("pids", "max"), 0);
        assert!(cgroup.is_populated().expect("it can be read"));
    }

    #[test]
    fn all_of_it_is_killed_by_one_word_where_the_kernel_knows_that() {
        let mut other = sleeper();
        let procs = format!("{}\n", other.id());
        let (folder, cgroup) = looks_like(&[("cgroup.kill", ""), ("cgroup.procs", &procs)]);
        cgroup.kill().expect("it can be written");
        let written = fs::read_to_string(folder.path().join("cgroup.kill")).expect("a file");
        assert_eq!(written, "1");
        assert_eq!(other.try_wait().expect("it is ours"), None, "no signal was sent");
        other.kill().and_then(|()| other.wait()).expect("it ran");
    }

    #[test]
    fn where_the_kernel_does_not_each_process_in_it_and_below_it_is_killed() {
        use std::os::unix::process::ExitStatusExt;
        let mut killed = [sleeper(), sleeper()];
        let procs = |child: &Child| format!("{}\n0\n", child.id());
        let (folder, cgroup) = looks_like(&[("cgroup.procs", &procs(&killed[0])), ("cgroup.freeze", "0")]);
        fs::create_dir(folder.path().join("below")).expect("a folder");
        fs::write(folder.path().join("below/cgroup.procs"), procs(&killed[1])).expect("a file");
        cgroup.kill().expect("they are ours");
        for child in &mut killed {
            assert_eq!(child.wait().expect("it ran").signal(), Some(9));
        }
        let frozen = fs::read_to_string(folder.path().join("cgroup.freeze")).expect("a file");
        assert_eq!(frozen, "0", "nothing stays frozen");
    }
}

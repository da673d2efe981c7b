//! A program run to its end: how long it took, and how much memory each process below it held.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::Path,
    process::{Child, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;

use crate::process::Invocation;

/// How often memory is looked at. The system keeps each process' peak, so that only the end can be missed.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How a program went.
#[derive(Debug)]
pub(super) struct Timed {
    pub(super) began_at: Timestamp,
    pub(super) ended_at: Timestamp,
    pub(super) took: Duration,
    /// What it printed.
    pub(super) printed: String,
    pub(super) peaks: Peaks,
}

/// The most resident memory that each kind of process held, in bytes. What was not looked at is not there.
#[derive(Debug, Default)]
pub(super) struct Peaks(BTreeMap<Kind, u64>);

/// What a process is, by its command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The program itself.
    Program,
    /// blueproof's agent.
    Agent,
    /// The Jupyter kernel.
    Kernel,
    /// Anything else.
    Other,
}

/// Whether memory is looked at while a program runs: it takes time from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watch {
    Memory,
    Nothing,
}

/// Runs a program in `folder`, which must end well, and keeps what it says in files in `logs`.
pub(super) fn time(invocation: &Invocation, folder: &Path, logs: &Path, watch: Watch) -> Result<Timed> {
    let (printed, said) = (logs.join("printed.log"), logs.join("said.log"));
    let create =
        |path: &Path| File::create(path).with_context(|| format!("could not write `{}`", path.display()));
    let mut command = invocation.command(folder);
    command
        .stdout(create(&printed)?)
        .stderr(create(&said)?)
        .stdin(Stdio::null());
    let (began_at, begun) = (Timestamp::now(), Instant::now());
    let mut child = command
        .spawn()
        .with_context(|| format!("could not start `{invocation}`"))?;
    let (status, peaks) = match watch {
        Watch::Nothing => (child.wait(), Peaks::default()),
        Watch::Memory => wait_and_watch(&mut child),
    };
    let (took, ended_at) = (begun.elapsed(), Timestamp::now());
    let status = status.with_context(|| format!("could not wait for `{invocation}`"))?;
    let read = |path: &Path| {
        fs::read_to_string(path).with_context(|| format!("could not read `{}`", path.display()))
    };
    let printed = read(&printed)?;
    ensure!(
        status.success(),
        "`{invocation}` ended with {status}\n{printed}{}",
        read(&said)?
    );
    Ok(Timed {
        began_at,
        ended_at,
        took,
        printed,
        peaks,
    })
}

fn wait_and_watch(child: &mut Child) -> (std::io::Result<std::process::ExitStatus>, Peaks) {
    let (root, ended) = (child.id(), AtomicBool::new(false));
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut peaks = Peaks::default();
            while !ended.load(Ordering::Relaxed) {
                peaks.look(root);
                thread::sleep(LOOK_EVERY);
            }
            peaks
        });
        let status = child.wait();
        ended.store(true, Ordering::Relaxed);
        (status, watcher.join().expect("looking at memory does not panic"))
    })
}

impl Peaks {
    /// Returns the peak of the largest process of this kind.
    pub(super) fn of(&self, kind: Kind) -> Option<u64> {
        self.0.get(&kind).copied()
    }

    fn look(&mut self, root: u32) {
        for pid in tree(root) {
            let Some(peak) = peak_bytes(pid) else { continue };
            let kind = if pid == root {
                Kind::Program
            } else {
                Kind::of(&arguments(pid))
            };
            let known = self.0.entry(kind).or_default();
            *known = peak.max(*known);
        }
    }
}

impl Kind {
    fn of(arguments: &[String]) -> Self {
        if arguments.iter().any(|argument| argument == "ipykernel_launcher") {
            return Kind::Kernel;
        }
        match arguments.get(1).map(String::as_str) {
            Some("agent") => Kind::Agent,
            _ => Kind::Other,
        }
    }
}

/// Returns a process and all below it. Where there is no `/proc` that is nothing.
fn tree(root: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in pids {
        if let Some(parent) = parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut at = 0;
    while let Some(pid) = found.get(at) {
        found.extend(children.remove(pid).unwrap_or_default());
        at += 1;
    }
    found
}

fn parent(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name stands in brackets and may hold brackets and spaces of its own.
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn peak_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn arguments(pid: u32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let parts = line.split(|b| *b == 0).filter(|part| !part.is_empty());
    parts
        .map(|part| String::from_utf8_lossy(part).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_told_apart_by_their_command_lines() {
        let kind = |line: &str| Kind::of(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(kind("/t/blueproof agent /runs/r-1/attempts/1"), Kind::Agent);
        assert_eq!(kind("/e/python -m ipykernel_launcher -f c.json"), Kind::Kernel);
        assert_eq!(kind("/usr/bin/uv venv agent"), Kind::Other);
        assert_eq!(Kind::of(&[]), Kind::Other);
    }

    #[test]
    fn a_program_that_fails_is_an_error_with_what_it_said() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let invocation = Invocation::of("cargo", ["no-such-command"]);
        let error = time(&invocation, folder.path(), folder.path(), Watch::Nothing).expect_err("it fails");
        assert!(error.to_string().contains("no-such-command"), "{error}");
    }
}

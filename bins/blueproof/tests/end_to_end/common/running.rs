//! Commands that take their time, and what is waited for meanwhile.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use super::{Answer, Home};

/// Longer than anything that is waited for takes on a busy machine.
const BOUND: Duration = Duration::from_secs(120);

/// Longer than any command of a test takes, also one that has to make an environment first.
const BOUND_OF_A_COMMAND: Duration = Duration::from_secs(600);

/// A command that goes on, as the leader of a process group, as a shell starts it.
#[derive(Debug)]
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.process_group(0).spawn().expect("it starts"))
    }

    /// Sends what a terminal sends for Ctrl-C, to everything in its foreground.
    pub(crate) fn press_ctrl_c(&self) {
        kill_process_group(self.pid(), Signal::INT).expect("it is there");
    }

    /// Presses Ctrl-C until it has ended, from when on it listens.
    pub(crate) fn press_ctrl_c_until_it_ends(mut self) -> Answer {
        while self.0.try_wait().expect("it is ours").is_none() {
            if self.listens_to_ctrl_c() {
                self.press_ctrl_c();
            }
            thread::yield_now();
        }
        self.end()
    }

    fn listens_to_ctrl_c(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|caught| u64::from_str_radix(caught.trim(), 16).ok());
        caught.is_some_and(|caught| caught >> (Signal::INT.as_raw() - 1) & 1 == 1)
    }

    /// Sends what a supervisor or a CI job sends to end a command.
    pub(crate) fn terminate(&self) {
        kill_process(self.pid(), Signal::TERM).expect("it is there");
    }

    /// Sends what is sent when a terminal goes, to everything in its foreground.
    pub(crate) fn hang_up(&self) {
        kill_process_group(self.pid(), Signal::HUP).expect("it is there");
    }

    /// Kills the command and nothing that it started.
    pub(crate) fn kill_nine(&self) {
        kill_process(self.pid(), Signal::KILL).expect("it is there");
    }

    /// Stops it, as Ctrl-Z does; nothing of it goes on until it is woken.
    pub(crate) fn stop(&self) {
        kill_process(self.pid(), Signal::STOP).expect("it is there");
    }

    /// Lets it go on once it was stopped.
    pub(crate) fn wake(&self) {
        kill_process(self.pid(), Signal::CONT).expect("it is there");
    }

    /// Waits for the end, but not for ever: a command that hangs fails its test by name.
    pub(crate) fn end(self) -> Answer {
        let pid = self.pid();
        let (ended, end) = mpsc::channel();
        thread::spawn(move || ended.send(self.0.wait_with_output()));
        match end.recv_timeout(BOUND_OF_A_COMMAND) {
            Ok(output) => output.expect("it ends").into(),
            Err(_) => {
                let _ = kill_process_group(pid, Signal::KILL);
                panic!("a command has not ended within {BOUND_OF_A_COMMAND:?}");
            }
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }
}

impl Home {
    /// Starts the program, and lets it go on.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        Running::start(self.command(arguments))
    }

    /// Waits until the notebook of a run has printed a text.
    pub(crate) fn until_printed(&self, run: &str, text: &str) {
        eventually(&format!("{run} prints `{text}`"), || {
            let answer = self.blueproof(&["logs", run]);
            answer.stdout.contains(text).then_some(())
        });
    }

    /// Waits until a run waits in its queue for a reason.
    pub(crate) fn until_waits(&self, run: &str, reason: &str) {
        eventually(&format!("{run} waits: {reason}"), || {
            let why = self.blueproof(&["why", run, "-o", "json"]).json();
            (why["waits"]["reason"] == reason).then_some(())
        });
    }

    /// Waits until a run is in an attempt.
    pub(crate) fn until_attempted(&self, run: &str, attempt: usize) {
        eventually(&format!("{run} is in attempt {attempt}"), || {
            let run = self.blueproof(&["get", "run", run, "-o", "json"]).json();
            let attempts = run["attempts"].as_array().map_or(0, Vec::len);
            (attempts == attempt && run["state"] == "running").then_some(())
        });
    }

    /// Waits until nothing remains to be done for a run that others drive, and returns it.
    pub(crate) fn until_settled(&self, run: &str) -> Value {
        eventually(&format!("{run} is settled"), || {
            let run = self.blueproof(&["get", "run", run, "-o", "json"]).json();
            (run["settled"] == true).then_some(run)
        })
    }

    /// Sees that no process goes on which has this home in its command line or its environment.
    pub(crate) fn assert_nothing_goes_on(&self) {
        assert_eq!(self.going_on(), Vec::<String>::new());
    }

    /// Waits until those processes have ended too that were left behind to drive.
    pub(crate) fn until_nothing_goes_on(&self) {
        eventually("nothing goes on", || self.going_on().is_empty().then_some(()));
    }

    fn going_on(&self) -> Vec<String> {
        let marker = self.path().to_str().expect("temporary folders have plain names");
        let entries = fs::read_dir("/proc").expect("Linux has /proc");
        let processes = entries.filter_map(|entry| Some(entry.ok()?.path()));
        // The scheduler goes on, as it is to.
        let server = self
            .server_pid()
            .map(|pid| Path::new("/proc").join(pid.to_string()));
        processes
            .filter(|process| Some(process) != server.as_ref())
            .filter(|process| mentions(process, marker))
            .map(|process| fs::read_to_string(process.join("cmdline")).unwrap_or_default())
            .collect()
    }
}

/// Looks until there is something to be seen.
pub(crate) fn eventually<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begun.elapsed() < BOUND, "not within {BOUND:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn mentions(process: &Path, marker: &str) -> bool {
    ["cmdline", "environ"].iter().any(|file| {
        let bytes = fs::read(process.join(file)).unwrap_or_default();
        bytes
            .windows(marker.len())
            .any(|window| window == marker.as_bytes())
    })
}

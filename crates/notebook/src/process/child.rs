//! A child process that is waited for through a descriptor, so that its id cannot come to mean another one.

use std::{
    fmt, io,
    os::fd::{AsFd, OwnedFd},
    process::Command,
};

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};
use tokio::io::{Interest, unix::AsyncFd};

use super::proc_fs::{ProcessStat, processes};

/// What is added to the number of a signal to tell it as an exit status.
const SIGNALS: i32 = 128;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With this exit status.
    Exited(i32),
    /// Killed by this signal.
    Killed(i32),
}

/// What a started process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrapping {
    /// The program itself.
    Bare,
    /// One that made a sandbox and waits for the program in there: it passes no signal on, and ends as a shell would, with 128
    /// and the signal that ended the program.
    Sandboxed,
}

/// A process that this one started.
#[derive(Debug)]
pub(crate) struct Child {
    wrapping: Wrapping,
    pid: Pid,
    fd: AsyncFd<OwnedFd>,
    ended: Option<(End, Option<ProcessStat>)>,
}

impl Child {
    /// Starts `command`; the id is known to be its own until [`Child::wait`] has returned.
    pub(crate) fn spawn(mut command: Command, wrapping: Wrapping) -> io::Result<Self> {
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        let fd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
        #[expect(
            deprecated,
            reason = "the new way is unsafe code; an owned descriptor keeps its promise anyway"
        )]
        let fd = AsyncFd::with_interest(fd, Interest::READABLE)?;
        Ok(Self {
            wrapping,
            pid,
            fd,
            ended: None,
        })
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Returns a descriptor of the process for another thread.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.fd.get_ref().try_clone()
    }

    /// Returns how the process ended, once it has. It may be called again, and dropped at any point.
    pub(crate) async fn wait(&mut self) -> io::Result<End> {
        loop {
            if let Some(end) = self.try_wait()? {
                return Ok(end);
            }
            let mut ready = self.fd.readable().await?;
            ready.clear_ready();
        }
    }

    /// Returns how the process ended, or `None` while it runs.
    pub(crate) fn try_wait(&mut self) -> io::Result<Option<End>> {
        if let Some((end, _)) = self.ended {
            return Ok(Some(end));
        }
        // What it used can be read until it has been waited for.
        let last = ProcessStat::read(self.id());
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let Some(status) = rustix::process::waitid(WaitId::PidFd(self.fd.get_ref().as_fd()), options)? else {
            return Ok(None);
        };
        let end = match (status.exit_status(), status.terminating_signal()) {
            (_, Some(signal)) => End::Killed(signal),
            (Some(status), None) if self.wrapping == Wrapping::Sandboxed && status > SIGNALS => {
                End::Killed(status - SIGNALS)
            }
            (status, None) => End::Exited(status.unwrap_or_default()),
        };
        self.ended = Some((end, last));
        Ok(Some(end))
    }

    /// Returns what the process had used when it ended.
    pub(crate) fn last_stat(&self) -> Option<ProcessStat> {
        self.ended.and_then(|(_, last)| last)
    }

    /// Sends a signal; a process that has ended gets none, and that is no error.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = rustix::process::pidfd_send_signal(self.fd.get_ref(), signal);
    }

    /// Sends a signal to the process and to those of its group; in a sandbox, to the program and to those of its group.
    pub(crate) fn signal_group(&self, signal: Signal) {
        if self.ended.is_some() {
            return;
        }
        if let Some(inside) = self.inside() {
            let _ = rustix::process::kill_process_group(inside, signal);
            if signal != Signal::KILL {
                return;
            }
        }
        // Until it has been waited for, neither its id nor that of its group can be another's.
        if rustix::process::kill_process_group(self.pid, signal).is_err() {
            self.signal(signal);
        }
    }

    /// Returns the process that is the first one in the sandbox, once it is there. The program is of its group, and it heeds no
    /// signal from outside but the one that cannot be ignored.
    fn inside(&self) -> Option<Pid> {
        match self.wrapping {
            Wrapping::Bare => None,
            Wrapping::Sandboxed => {
                let all = processes();
                let first = all.iter().find(|stat| stat.parent == self.id())?;
                Pid::from_raw(i32::try_from(first.pid).ok()?)
            }
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Exited(status) => write!(f, "exit status {status}"),
            End::Killed(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "signal {signal} ({name})"),
                None => write!(f, "signal {signal}"),
            },
        }
    }
}

/// Returns the name of a signal that ends processes.
pub(crate) fn signal_name(signal: i32) -> Option<&'static str> {
    const NAMES: [(Signal, &str); 13] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
    ];
    let known = NAMES.iter().find(|(known, _)| known.as_raw() == signal);
    known.map(|(_, name)| *name)
}

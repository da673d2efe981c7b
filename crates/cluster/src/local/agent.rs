//! The agent's process: started, found again, signalled.

use std::{
    ffi::OsString,
    fs::{File, TryLockError},
    io,
    process::{ExitStatus, Stdio},
};

use blueproof_core::{
    attempt::AttemptLayout,
    diagnostic::{Code, Diagnostic},
    domain::{Failure, FailureClass, Outcome, Verdict},
    ports::CallError,
};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::process::{Child, Command};

/// How an agent is started: the program and its first arguments; the attempt's folder comes last.
#[derive(Debug, Clone)]
pub struct AgentCommand {
    /// The program.
    pub program: OsString,
    /// Its first arguments.
    pub arguments: Vec<OsString>,
}

/// Whether an agent lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Liveness {
    Alive,
    Gone,
}

impl AgentCommand {
    /// Starts an agent that does not depend on us: it has a process group of its own, so that a Ctrl-C in our terminal
    /// does not reach it, and it goes on when we are gone.
    pub(super) fn spawn(&self, layout: &AttemptLayout) -> io::Result<Child> {
        let said = File::options()
            .create(true)
            .append(true)
            .open(layout.agent_log())?;
        Command::new(&self.program)
            .args(&self.arguments)
            .arg(layout.root())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .process_group(0)
            .spawn()
    }

    pub(super) fn cannot_start(&self, error: &io::Error) -> CallError {
        let message = format!("could not start the agent `{}`", self.program.to_string_lossy());
        let diagnostic = Diagnostic::error(Code::AgentNotStarted, message).caused_by(error);
        CallError::later(
            diagnostic.hint("see that blueproof is installed whole, and that processes can be started"),
        )
    }

    /// An agent that ended before it had written anything could not even write.
    pub(super) fn said_nothing(&self, layout: &AttemptLayout, status: ExitStatus) -> CallError {
        let message = format!("the agent ended at once: {status}");
        CallError::later(with_last_words(
            Diagnostic::error(Code::AgentNotStarted, message),
            layout,
        ))
    }
}

/// Returns how an attempt ended whose agent is gone, and after it the one that should have written down how.
///
/// Nobody else will: most likely the disk is full, and a third agent would fare no better.
pub(super) fn lost(layout: &AttemptLayout, status: ExitStatus) -> Box<Outcome> {
    let message = format!("how the attempt ended could not be written down: its agent ended with {status}");
    let diagnostic = with_last_words(Diagnostic::error(Code::AgentLost, message), layout);
    Box::new(Outcome {
        verdict: Verdict::Failed(Box::new(Failure {
            class: FailureClass::Infrastructure,
            diagnostic: diagnostic.hint("see that the disk is not full"),
            cell: None,
        })),
        usage: None,
        metrics: Default::default(),
    })
}

fn with_last_words(diagnostic: Diagnostic, layout: &AttemptLayout) -> Diagnostic {
    let said = std::fs::read_to_string(layout.agent_log()).unwrap_or_default();
    let diagnostic = match said.lines().rfind(|line| !line.trim().is_empty()) {
        Some(last) => diagnostic.because(last),
        None => diagnostic,
    };
    diagnostic.hint(format!("what it said is in {}", layout.agent_log().display()))
}

/// Returns whether an agent lives in the folder: as long as one does it holds the lock, and only one can.
pub(super) fn liveness(layout: &AttemptLayout) -> io::Result<Liveness> {
    let file = match File::open(layout.lock()) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Liveness::Gone),
        Err(error) => return Err(error),
    };
    // Shared, so that two that look at the same time do not take each other for an agent.
    match file.try_lock_shared() {
        Ok(()) => Ok(Liveness::Gone),
        Err(TryLockError::WouldBlock) => Ok(Liveness::Alive),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Sends a signal to the folder's agent, whose process id is `pid`, if it still lives.
pub(super) fn signal(layout: &AttemptLayout, pid: u32, signal: Signal) -> io::Result<()> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Ok(());
    };
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    // The number may have passed to another process. Ours lives if the lock is held after the process was opened,
    // and then the opened one is ours.
    if liveness(layout)? == Liveness::Gone {
        return Ok(());
    }
    match pidfd_send_signal(&process, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

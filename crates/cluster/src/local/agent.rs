//! The agent's process: started, found again, signalled.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, TryLockError},
    io,
    os::unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    path::Path,
    process::{ExitStatus, Stdio},
};

use blueproof_core::{
    attempt::{AttemptLayout, Orders, Presence, ProcessName, UNFOLLOWED, open_regular, read_regular},
    domain::{Failure, FailureClass, Outcome, Verdict},
    ports::CallError,
};
use blueproof_diagnostic::{Code, Diagnostic};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, Command},
};

/// The most that is read of what an agent said.
const LAST_WORDS: u64 = 1 << 20;

/// How an agent is started: the program and its first arguments; the attempt's folder comes last.
#[derive(Debug, Clone)]
pub struct AgentCommand {
    /// The program.
    pub program: OsString,
    /// Its first arguments.
    pub arguments: Vec<OsString>,
}

/// Whether an attempt has an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Agent {
    /// It lives. A successor that has just come may wait for it.
    Alive(Vec<ProcessName>),
    /// It lives on another machine or in another PID namespace, where no signal reaches it.
    Elsewhere,
    /// It does not live.
    Gone,
}

impl AgentCommand {
    /// Starts an agent that does not depend on us: it has a process group of its own, so that a Ctrl-C in our terminal
    /// does not reach it, and it goes on when we are gone.
    pub(super) async fn spawn(&self, layout: &AttemptLayout, orders: &Orders) -> io::Result<Child> {
        let mut child = Command::new(&self.program)
            .args(self.arguments_for(layout)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(last_words(&layout.agent_log())?)
            .process_group(0)
            .spawn()?;
        let mut input = child.stdin.take().expect("it was asked for");
        // One that has ended already says why with its status.
        let _ = input.write_all(orders.to_line().as_bytes()).await;
        Ok(child)
    }

    /// Returns whether the attempt has an agent. The one that has begun last, as it says itself, is the first to be looked
    /// for; where it is not there, any process that was started as one.
    pub(super) fn find(&self, layout: &AttemptLayout, begun: Option<&ProcessName>) -> io::Result<Agent> {
        let presence = begun.map(|begun| (begun, begun.presence()));
        if let Some((begun, Presence::Alive)) = presence {
            return Ok(Agent::Alive(vec![begun.clone()]));
        }
        let found = self.processes(layout)?;
        if !found.is_empty() {
            return Ok(Agent::Alive(found));
        }
        let is_elsewhere = matches!(presence, Some((_, Presence::Elsewhere)));
        if is_elsewhere && is_locked(layout)? {
            return Ok(Agent::Elsewhere);
        }
        Ok(Agent::Gone)
    }

    /// Returns the processes that were started as agents of the attempt. Their arguments say so, which nobody else can change.
    fn processes(&self, layout: &AttemptLayout) -> io::Result<Vec<ProcessName>> {
        let arguments = self.arguments_for(layout)?;
        let arguments: Vec<&[u8]> = arguments.iter().map(|one| one.as_bytes()).collect();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = line.strip_suffix(b"\0").unwrap_or(&line);
            let mut words = line.split(|byte| *byte == 0).skip(1);
            let is_agent = arguments.iter().all(|one| words.next() == Some(*one)) && words.next().is_none();
            if is_agent {
                found.extend(ProcessName::of(pid));
            }
        }
        Ok(found)
    }

    fn arguments_for(&self, layout: &AttemptLayout) -> io::Result<Vec<OsString>> {
        let folder = std::path::absolute(layout.root())?;
        let folder: &OsStr = folder.as_os_str();
        let arguments = self.arguments.iter().map(OsString::as_os_str);
        Ok(arguments.chain([folder]).map(OsStr::to_owned).collect())
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
        notices: Vec::new(),
    })
}

fn with_last_words(diagnostic: Diagnostic, layout: &AttemptLayout) -> Diagnostic {
    let said = read_regular(&layout.agent_log(), LAST_WORDS).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let diagnostic = match said.lines().rfind(|line| !line.trim().is_empty()) {
        Some(last) => diagnostic.because(last),
        None => diagnostic,
    };
    diagnostic.hint(format!("what it said is in {}", layout.agent_log().display()))
}

/// Returns where an agent's own words go: to its file, or nowhere where something else lies in that place.
fn last_words(path: &Path) -> io::Result<Stdio> {
    if fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
        return Ok(Stdio::null());
    }
    let file = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(UNFOLLOWED)
        .open(path)?;
    Ok(file.into())
}

/// Returns whether somebody holds the attempt's lock, as an agent does as long as it lives.
pub(super) fn is_locked(layout: &AttemptLayout) -> io::Result<bool> {
    let file = match open_regular(&layout.lock()) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    // Shared, so that two that look at the same time do not take each other for an agent.
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

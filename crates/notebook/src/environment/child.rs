//! Runs an outside program: its lines as they come, its end when patience ends.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{Patience, Unprepared};

/// The most lines of a program's output that are kept, the newest ones.
const KEPT_LINES: usize = 400;
/// The most bytes of a line that are looked at.
const LINE_BYTES: u64 = 16 * 1024;
/// How often patience is looked at while a program says nothing.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// How long output may stay open once the program has ended, before what holds it open is killed.
const LINGER: Duration = Duration::from_millis(500);

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// How.
    pub(crate) status: ExitStatus,
    /// The last of what it printed, both streams in the order they came.
    pub(crate) lines: Vec<String>,
}

/// Why a program has not ended by itself.
#[derive(Debug)]
pub(crate) enum Unfinished {
    /// It could not be started.
    NotStarted(io::Error),
    /// It was killed, with all of its process group.
    Killed(Unprepared),
}

/// Runs `command` to its end and passes each line that it prints to `on_line`.
///
/// Its standard input stays as the caller set it.
pub(crate) fn run(
    mut command: Command,
    patience: Patience<'_>,
    on_line: &mut dyn FnMut(&str),
) -> Result<Ended, Unfinished> {
    command.process_group(0);
    run_leader(command, patience, on_line, &mut |_| {})
}

/// Does what [`run`] does with a program that makes a process group of its own. `started` is given the process.
pub(super) fn run_leader(
    mut command: Command,
    patience: Patience<'_>,
    on_line: &mut dyn FnMut(&str),
    started: &mut dyn FnMut(&Child),
) -> Result<Ended, Unfinished> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(Unfinished::NotStarted)?;
    started(&child);
    let lines = read_lines(&mut child);
    let followed = follow(&mut child, &lines, patience, on_line);
    if followed.is_err() {
        kill_group(&child);
        // It may not lead its group yet. An error says that it is gone already.
        let _ = child.kill();
        // A killed child is there to be waited for; an error here says that it is gone already.
        let _ = child.wait();
    }
    followed
}

fn follow(
    child: &mut Child,
    lines: &Receiver<String>,
    patience: Patience<'_>,
    on_line: &mut dyn FnMut(&str),
) -> Result<Ended, Unfinished> {
    let mut kept = VecDeque::new();
    let mut ended: Option<(ExitStatus, Instant)> = None;
    loop {
        match lines.recv_timeout(LOOK_EVERY) {
            Ok(line) => {
                on_line(&line);
                if kept.len() == KEPT_LINES {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        patience.check().map_err(Unfinished::Killed)?;
        match ended {
            None => {
                let status = child.try_wait().map_err(Unfinished::NotStarted)?;
                ended = status.map(|status| (status, Instant::now()));
            }
            // Something that it left behind still holds its output.
            Some((_, at)) if at.elapsed() > LINGER => {
                kill_group(child);
                break;
            }
            Some(_) => {}
        }
    }
    let status = match ended {
        Some((status, _)) => status,
        None => wait(child, patience)?,
    };
    Ok(Ended {
        status,
        lines: kept.into(),
    })
}

/// Waits for a child that has closed its output.
fn wait(child: &mut Child, patience: Patience<'_>) -> Result<ExitStatus, Unfinished> {
    loop {
        if let Some(status) = child.try_wait().map_err(Unfinished::NotStarted)? {
            return Ok(status);
        }
        patience.check().map_err(Unfinished::Killed)?;
        thread::sleep(Duration::from_millis(1));
    }
}

fn kill_group(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // Fails only where nobody of the group is left.
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

fn read_lines(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let stdout = child.stdout.take().expect("standard output is piped");
    let stderr = child.stderr.take().expect("standard error is piped");
    let other = sender.clone();
    thread::spawn(move || pass_lines(stdout, &sender));
    thread::spawn(move || pass_lines(stderr, &other));
    receiver
}

fn pass_lines(from: impl Read, to: &Sender<String>) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        match from.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if !text.is_empty() && to.send(text.to_owned()).is_err() {
            return;
        }
    }
}

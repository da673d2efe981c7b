//! A job that is one command.

use std::{
    ffi::OsString,
    fs,
    io::{self, IsTerminal as _},
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{ExitCode, ExitStatus},
    time::{Duration, Instant},
};

use blueproof_diagnostic::{Code, Diagnostic};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::{Child, Command},
    signal::unix::{SignalKind, signal},
};

use super::{publish::publish, used, watch};
use crate::{
    cli::{Job, Published},
    tell,
};

/// What a shell returns for a command that is not there, and for one that may not be run.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// Runs a command, with the terminal as it is, and publishes what it made of devices. Returns the command's exit code,
/// whatever becomes of the summary.
pub(super) fn run(job: &Job) -> Result<ExitCode, Diagnostic> {
    let Some((program, arguments)) = job.words.split_first() else {
        return Err(Diagnostic::error(Code::Usage, "there is no command to watch")
            .hint("write it behind two dashes: `blueproof-exporter job -- python train.py`"));
    };
    let first_word = Path::new(program).file_name().map(|name| name.to_string_lossy());
    let mut watch = watch(&job.watched, first_word.as_deref());
    let begun = Instant::now();
    let ended = wait_for(program, arguments);
    let took = begun.elapsed();
    watch.end();
    let status = match ended {
        Ok(status) => status,
        Err(error) => {
            tell(&not_run(program, &error));
            return Ok(ExitCode::from(as_shell(&error)));
        }
    };
    if let Some(summary) = watch.summary(&used(took, cpu_of_children())) {
        say(&summary, &job.published);
    }
    Ok(passed_on(status))
}

fn not_run(program: &OsString, error: &io::Error) -> Diagnostic {
    let message = format!("could not run `{}`", program.to_string_lossy());
    Diagnostic::error(Code::CommandNotRun, message)
        .because(error.to_string())
        .hint("see that it is there, and that it may be run")
}

/// Returns the exit code that a shell has for a command that could not be run.
fn as_shell(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::NotFound {
        NOT_FOUND
    } else {
        NOT_RUN
    }
}

/// Publishes a summary; a command's end is not changed by one that cannot be written.
fn say(summary: &blueproof_gpu::account::JobSummary, published: &Published) {
    if published.is_told {
        eprint!("\n{}", summary.to_markdown());
    }
    if let Err(diagnostic) = publish(summary, published) {
        tell(&diagnostic);
    }
}

/// Waits for a command's end, and hands on to it what this process is told meanwhile.
fn wait_for(program: &OsString, arguments: &[OsString]) -> io::Result<ExitStatus> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async { until_ended(Command::new(program).args(arguments).spawn()?).await })
}

async fn until_ended(mut child: Child) -> io::Result<ExitStatus> {
    let pid = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw);
    let hand_on = |signal| {
        if let Some(pid) = pid {
            // One that is gone needs none.
            let _ = kill_process(pid, signal);
        }
    };
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut ends = signal(SignalKind::terminate())?;
    let mut hang_ups = signal(SignalKind::hangup())?;
    loop {
        tokio::select! {
            status = child.wait() => return status,
            // A terminal has told the command, too.
            _ = interrupts.recv() => if !io::stdin().is_terminal() { hand_on(Signal::INT) },
            _ = ends.recv() => hand_on(Signal::TERM),
            _ = hang_ups.recv() => hand_on(Signal::HUP),
        }
    }
}

/// Returns an exit code as a shell has it.
fn passed_on(status: ExitStatus) -> ExitCode {
    let killed = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(killed);
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_RUN))
}

/// Returns the processor time of all processes that this one, or one that it waited for, has waited for: `proc_pid_stat(5)`.
fn cpu_of_children() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is a name, in parentheses, and may have anything in it.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(13);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    let ticks = ticks()? + ticks()?;
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    Some(Duration::from_secs_f64(ticks / per_second))
}

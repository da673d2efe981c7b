//! A job of several steps: a process in the background watches from `start` to `stop`, and keeps what it knows in a folder.
//!
//! Whoever watches holds a lock there for as long as it lives, and writes its summary every few seconds, so that what was
//! seen until a machine was taken away, or a process killed, is not lost.

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io::{self, Write as _},
    os::unix::{fs::DirBuilderExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use blueproof_gpu::account::JobSummary;
use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use super::{
    publish::{json, publish},
    used, watch,
};
use crate::{
    cli::{Report, ReportFormat, Start, State, Stop},
    files::{cannot, write_whole},
};

/// How often the summary is written while the job goes on.
const WRITE_EVERY: Duration = Duration::from_secs(5);

/// How long a driver and a watcher may take to begin, and to end.
const WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The files of one job.
struct Folder(PathBuf);

impl Folder {
    fn of(state: &State) -> Result<Self, Diagnostic> {
        let of_runner = || {
            let temporary = std::env::var_os("RUNNER_TEMP").filter(|path| !path.is_empty())?;
            Some(PathBuf::from(temporary).join("blueproof-gpu-job"))
        };
        let folder = state.folder.clone().or_else(of_runner);
        folder.map(Self).ok_or_else(|| {
            Diagnostic::error(
                Code::Usage,
                "it is not known where to keep what the job makes of its GPUs",
            )
            .hint("name a folder with `--state`; on a runner of GitHub it is below RUNNER_TEMP")
        })
    }

    fn summary(&self) -> PathBuf {
        self.0.join("summary.json")
    }

    fn pid(&self) -> PathBuf {
        self.0.join("pid")
    }

    fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    /// Takes the lock of whoever watches; `None` where somebody has it.
    fn lock(&self) -> Result<Option<File>, Diagnostic> {
        let path = self.0.join("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path);
        let file = file.map_err(|error| cannot("open", &path, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(cannot("lock", &path, &error)),
        }
    }

    fn is_watched(&self) -> Result<bool, Diagnostic> {
        Ok(self.0.exists() && self.lock()?.is_none())
    }

    fn read(&self) -> Result<JobSummary, Diagnostic> {
        let path = self.summary();
        let read = fs::read(&path).map_err(|error| not_started(&self.0, &error.to_string()))?;
        serde_json::from_slice(&read).map_err(|error| not_started(&self.0, &error.to_string()))
    }
}

/// Starts a process that watches, and returns when it does.
pub(super) fn start(start: &Start) -> Result<(), Diagnostic> {
    let folder = Folder::of(&start.state)?;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder.0);
    made.map_err(|error| cannot("make", &folder.0, &error))?;
    if folder.is_watched()? {
        let message = "a job is watched there already";
        return Err(Diagnostic::error(Code::JobState, message)
            .at(SourceLocation::file(folder.0.display().to_string()))
            .hint("end it with `blueproof-exporter job stop`, or name another folder with `--state`"));
    }
    for old in [folder.summary(), folder.pid()] {
        let _ = fs::remove_file(old);
    }
    let log = File::create(folder.log()).map_err(|error| cannot("write", &folder.log(), &error))?;
    let not_started = |error: &io::Error| cannot("start a process that watches in", &folder.0, error);
    let program = std::env::current_exe().map_err(|error| not_started(&error))?;
    let mut keeper = Command::new(program);
    keeper.args(["job", "keep", "--state"]).arg(&folder.0);
    if let Some(name) = &start.watched.name {
        keeper.arg("--name").arg(name);
    }
    if let Some(library) = &start.watched.library {
        keeper.arg("--library").arg(library);
    }
    keeper
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .process_group(0);
    let mut keeper = keeper.spawn().map_err(|error| not_started(&error))?;
    let until = Instant::now() + WITHIN;
    while !folder.summary().exists() {
        let ended = keeper.try_wait().map_err(|error| not_started(&error))?;
        if ended.is_some() || Instant::now() > until {
            let said = fs::read_to_string(folder.log()).unwrap_or_default();
            return Err(
                Diagnostic::error(Code::JobState, "nothing watches the job's GPUs")
                    .because(said.trim())
                    .hint("the job itself may go on; its summary will lack its GPUs"),
            );
        }
        thread::sleep(LOOK_EVERY);
    }
    let watched = what_is_watched(&folder.read()?);
    eprintln!("watching {watched} until `blueproof-exporter job stop`");
    Ok(())
}

fn what_is_watched(summary: &JobSummary) -> String {
    let devices = match summary.devices.len() {
        1 => "1 GPU".to_owned(),
        count => format!("{count} GPUs"),
    };
    match (&summary.devices_unknown, summary.devices.is_empty()) {
        (Some(why), true) => format!("GPUs, though it is not known which there are ({why}),"),
        (Some(why), false) => format!("{devices}, though it is not known whether these are all ({why}),"),
        (None, _) => devices,
    }
}

/// Watches until it is told to end.
pub(super) fn keep(start: &Start) -> Result<(), Diagnostic> {
    let folder = Folder::of(&start.state)?;
    let Some(_lock) = folder.lock()? else {
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let failed = |error: io::Error| cannot("watch in", &folder.0, &error);
    let runtime = runtime.map_err(failed)?;
    let mut told = runtime
        .block_on(async { signal(SignalKind::terminate()) })
        .map_err(failed)?;
    let mut watch = watch(&start.watched, None);
    let begun = Instant::now();
    write_whole(&folder.pid(), std::process::id().to_string().as_bytes())?;
    loop {
        // Nobody knows which processes are the job's, and so how long they worked.
        if let Some(summary) = watch.summary(&used(begun.elapsed(), None)) {
            write_whole(&folder.summary(), json(&summary).as_bytes())?;
        }
        let is_told =
            runtime.block_on(async { tokio::time::timeout(WRITE_EVERY, told.recv()).await.is_ok() });
        if is_told {
            break;
        }
    }
    let took = begun.elapsed();
    watch.end();
    match watch.summary(&used(took, None)) {
        Some(summary) => write_whole(&folder.summary(), json(&summary).as_bytes()),
        None => Ok(()),
    }
}

/// Ends the watching, and publishes what came of it. Repeating it publishes the same again.
pub(super) fn stop(stop: &Stop) -> Result<(), Diagnostic> {
    let folder = Folder::of(&stop.state)?;
    // Whoever was killed has left a summary that is some seconds old, and no end.
    folder.read()?;
    let until = Instant::now() + WITHIN;
    let mut is_told = false;
    while folder.is_watched()? {
        if !is_told {
            is_told = true;
            tell_to_end(&folder)?;
        }
        if Instant::now() > until {
            return Err(Diagnostic::error(Code::JobState, "whoever watches the job does not end")
                .at(SourceLocation::file(folder.pid().display().to_string()))
                .hint("a driver that hangs keeps it; what it wrote last is shown by `blueproof-exporter job report`"));
        }
        thread::sleep(LOOK_EVERY);
    }
    let mut summary = folder.read()?;
    if summary.until.is_none() {
        summary.cut_short(Some(Timestamp::now()));
        write_whole(&folder.summary(), json(&summary).as_bytes())?;
    }
    if stop.published.is_told {
        eprint!("{}", summary.to_markdown());
    }
    publish(&summary, &stop.published)
}

/// Prints what is known of a job.
pub(super) fn report(report: &Report) -> Result<(), Diagnostic> {
    let folder = Folder::of(&report.state)?;
    // Who may not look for the lock knows nothing of whoever watches.
    let is_watched = folder.is_watched().unwrap_or(true);
    let mut summary = folder.read()?;
    if summary.until.is_none() && !is_watched {
        summary.cut_short(None);
    }
    let text = match report.output {
        ReportFormat::Markdown => summary.to_markdown(),
        ReportFormat::Json => json(&summary),
    };
    // Whoever closed the pipe has seen enough.
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(())
}

fn tell_to_end(folder: &Folder) -> Result<(), Diagnostic> {
    let read = fs::read_to_string(folder.pid()).map_err(|error| cannot("read", &folder.pid(), &error))?;
    let pid = read.trim().parse().ok().and_then(Pid::from_raw);
    let told = pid.map_or(Ok(()), |pid| kill_process(pid, Signal::TERM));
    told.map_err(|error| cannot("end the process of", &folder.pid(), &error.into()))
}

fn not_started(folder: &Path, why: &str) -> Diagnostic {
    Diagnostic::error(Code::JobState, "no job was watched there")
        .at(SourceLocation::file(folder.display().to_string()))
        .because(why)
        .hint("begin with `blueproof-exporter job start`, and name the same folder with `--state` each time")
}

//! What one job makes of the GPUs of a machine that nobody scrapes: around a command, or from `start` to `stop`.
//!
//! The job is never in the way of what it watches: a machine without a driver, or with one that hangs, has a summary that
//! says so, and the command's exit code is passed on.

mod command;
mod kept;
mod publish;
mod push;

use std::{env, num::NonZero, process::ExitCode, thread, time::Duration};

use blueproof_core::{
    figures::RunUsage,
    ports::{ProbeError, ProbeErrorKind},
};
use blueproof_diagnostic::Diagnostic;
use blueproof_gpu::{account::Holder, visible::visible, watch::Watch};

use crate::{
    cli::{Job, JobCommand, Watched},
    exporter::open,
    tell,
};

/// Does what is asked, and returns the exit code.
pub(crate) fn job(job: &Job) -> Result<ExitCode, Diagnostic> {
    match &job.command {
        None => command::run(job),
        Some(JobCommand::Start(start)) => kept::start(start).map(|()| ExitCode::SUCCESS),
        Some(JobCommand::Keep(start)) => kept::keep(start).map(|()| ExitCode::SUCCESS),
        Some(JobCommand::Stop(stop)) => kept::stop(stop).map(|()| ExitCode::SUCCESS),
        Some(JobCommand::Report(report)) => kept::report(report).map(|()| ExitCode::SUCCESS),
    }
}

/// Begins to watch the devices that a job sees, and tells on the side why there are none, where that is no matter of course.
fn watch(watched: &Watched, first_word: Option<&str>) -> Watch {
    let name = watched.name.clone().or_else(|| first_word.map(str::to_owned));
    let holder = Holder(name.unwrap_or_else(|| "job".into()));
    let mut watch = Watch::start(open(watched.library.clone()), holder);
    let devices = match watch.inventory() {
        Ok(inventory) => visible(&inventory, env::var("CUDA_VISIBLE_DEVICES").ok().as_deref()),
        Err(error) => {
            tell_of(&error);
            Vec::new()
        }
    };
    watch.begin(&devices);
    watch
}

fn tell_of(error: &ProbeError) {
    match error.reason {
        // The summary says that it had none.
        ProbeErrorKind::LibraryMissing | ProbeErrorKind::NoDevices => {}
        ProbeErrorKind::DriverNotLoaded
        | ProbeErrorKind::NoPermission
        | ProbeErrorKind::VersionMismatch
        | ProbeErrorKind::DriverError
        | ProbeErrorKind::NotAnswering
        | ProbeErrorKind::Released => tell(&error.diagnostic),
    }
}

/// Returns what processors did in so long a time. `cpu` is `None` where it is not known.
fn used(took: Duration, cpu: Option<Duration>) -> RunUsage {
    let cores = thread::available_parallelism().ok().map(NonZero::get);
    RunUsage {
        cpu_seconds: cpu.map(|cpu| cpu.as_secs_f64()),
        allocated_cpu_seconds: cores.map(|cores| cores as f64 * took.as_secs_f64()),
        build_seconds: Some(took.as_secs_f64()),
        ..RunUsage::default()
    }
}

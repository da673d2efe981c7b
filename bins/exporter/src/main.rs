//! What the GPUs of this machine are and do, for Prometheus.
//!
//! Arguments in, pages or a job's summary out. Devices are read, and pages written, in `blueproof-gpu`.

mod attempts;
mod checkup;
mod cli;
mod connections;
mod exporter;
mod files;
mod gzip;
mod health;
mod job;
mod owners;
mod server;
mod web;

use std::{
    io::{self, Write as _},
    process::ExitCode,
    time::Duration,
};

use blueproof_core::{diagnostic::Diagnostic, metrics::Format};
use clap::Parser as _;

use self::{
    cli::{Cli, Command},
    exporter::{Coding, Exporter, Wanted},
    web::Web,
};

/// How long somebody waits who wants to see one page: as long as Prometheus does by default.
const ONCE_WITHIN: Duration = Duration::from_secs(10);

/// The exit code for what may go better another time, as everywhere in blueproof.
const INFRASTRUCTURE: u8 = 3;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match &cli.command {
        Some(Command::Job(arguments)) => job::job(arguments).map_err(|diagnostic| vec![diagnostic]),
        Some(Command::Health(arguments)) => checkup::run(arguments).map_err(|diagnostic| vec![diagnostic]),
        None => run(&cli).map(|()| ExitCode::SUCCESS),
    };
    match ended {
        Ok(code) => code,
        Err(diagnostics) => {
            diagnostics.iter().for_each(tell);
            ExitCode::from(INFRASTRUCTURE)
        }
    }
}

fn run(cli: &Cli) -> Result<(), Vec<Diagnostic>> {
    let web = cli.web_config.as_deref().map(Web::read).transpose()?;
    let exporter = Exporter::start(cli).map_err(|diagnostic| vec![diagnostic])?;
    let ended = if cli.once {
        once(&exporter, cli)
    } else {
        server::serve(exporter, &cli.listen, web)
    };
    ended.map_err(|diagnostic| vec![diagnostic])
}

/// Prints the page, also where it says that nothing can be read, and why on the side.
fn once(exporter: &Exporter, cli: &Cli) -> Result<(), Diagnostic> {
    let wanted = Wanted {
        page: cli.page,
        format: Format::Prometheus,
        coding: Coding::Identity,
    };
    let answer = exporter.answer(wanted, ONCE_WITHIN);
    let mut out = io::stdout().lock();
    // Whoever closed the pipe has seen enough.
    let _ = out.write_all(&answer.page).and_then(|()| out.flush());
    answer.silent.iter().chain(&answer.unread).for_each(tell);
    answer.blind.map_or(Ok(()), Err)
}

/// Tells a person what is wrong, on the side.
pub(crate) fn tell(diagnostic: &Diagnostic) {
    let _ = writeln!(io::stderr(), "{diagnostic:#}");
}

//! Holds the embedded queue to what Kueue decides: case files, and random scenarios with Kueue's own code as the judge.

mod bench;
mod cases;
mod decide;
mod diff;
mod format;
mod generate;
mod metrics;
mod on_purpose;
mod oracle;
mod progress;
mod retry;
mod scenario;
mod shrink;
mod world;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::cases::Tally;

#[derive(Parser)]
#[command(about, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run case files, and print each failure with what was expected and what came.
    Cases {
        /// The files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Ask both sides about random scenarios, and print each difference.
    Diff(diff::Arguments),
    /// Compare the names, kinds, labels and bounds of metrics with those that Kueue registers.
    Metrics(metrics::Arguments),
    /// Measure decisions a second on a load like that of the oracle's bench, and print a line of JSON.
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.task {
        Task::Cases { files } => cases(files),
        Task::Bench(arguments) => bench::run(arguments).map(|()| ExitCode::SUCCESS),
        Task::Diff(arguments) => diff::run(arguments).map(exit_code),
        Task::Metrics(arguments) => metrics::run(arguments).map(exit_code),
    }
}

fn exit_code(is_same: bool) -> ExitCode {
    if is_same {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn cases(files: &[PathBuf]) -> Result<ExitCode> {
    let mut tally = Tally::default();
    for path in files {
        tally.add(cases::run(&cases::read(path)?));
    }
    for failure in &tally.failures {
        println!("{failure}");
    }
    println!("{} passed, {} failed", tally.passed, tally.failed());
    Ok(if tally.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

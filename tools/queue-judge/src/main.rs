//! Holds the embedded queue to what Kueue decides: case files, and random scenarios with Kueue's own code as the judge.

mod cases;
mod decide;
mod format;
mod retry;
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

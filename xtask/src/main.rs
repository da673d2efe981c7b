//! The project's chores, `cargo xtask ci` first among them.
//!
//! A chore lives here when it must run the same on every machine; each is a module, and this file only chooses. xtask
//! uses none of our crates, so that it still builds, and can say what is wrong, when they do not.

mod bench;
mod ci;
mod corpus;
mod dashboards;
mod fake_github;
mod go;
mod kueue;
mod live;
mod mutants;
mod process;
mod python;
mod tidy;
mod tool;
mod workspace;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::{ci::Step, workspace::Workspace};

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run all that must pass before a change is merged; stops at the first step that fails.
    Ci {
        /// Only these steps, in this order; none is every one.
        #[arg(value_enum)]
        steps: Vec<Step>,
    },
    /// Check rules that no compiler checks: file headers, crate edges, lengths. The same as `ci tidy`.
    Tidy,
    /// Measure, beside papermill where there is a comparison, and fail where a limit is broken.
    Bench(bench::Arguments),
    /// Run `init` and `check` over some hundred notebooks from PyPI, and print what they find.
    Notebooks,
    /// Serve a GitHub with a memory on loopback, and do there what is typed: pull requests, comments, buttons.
    FakeGithub(fake_github::Arguments),
    /// Write the files in `monitoring/` from the tables of metrics.
    Dashboards(dashboards::Arguments),
    /// Run cases against the embedded queue, and print each failure with what was expected and what came.
    QueueCases {
        /// Files of cases; none is those of the repository.
        files: Vec<PathBuf>,
    },
    /// Ask the embedded queue and Kueue's own code about random scenarios, and print each difference.
    KueueDiff(kueue::DiffArguments),
    /// Try on a real machine what no test can, and write what was measured as CSV files.
    Live(live::Arguments),
    /// Change the queue's code in one place after the other, and print each change that no test notices.
    Mutants(mutants::Arguments),
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
    let workspace = Workspace::load()?;
    match &arguments.chore {
        Chore::Ci { steps } if steps.is_empty() => ci::run(&workspace, Step::ALL),
        Chore::Ci { steps } => ci::run(&workspace, steps),
        Chore::Tidy => ci::run(&workspace, &[Step::Tidy]),
        Chore::Bench(arguments) => bench::run(&workspace, arguments),
        Chore::Notebooks => corpus::run(&workspace),
        Chore::FakeGithub(arguments) => fake_github::run(&workspace, arguments),
        Chore::Dashboards(arguments) => dashboards::run(&workspace, arguments),
        Chore::QueueCases { files } => kueue::cases(&workspace, files),
        Chore::KueueDiff(arguments) => kueue::diff(&workspace, arguments),
        Chore::Live(arguments) => live::run(&workspace, arguments),
        Chore::Mutants(arguments) => mutants::run(&workspace, arguments),
    }
}

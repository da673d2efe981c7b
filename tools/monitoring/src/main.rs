//! Writes the files of `monitoring/` from the tables of metrics: dashboards, rules, alerts, and what a cluster wants.
//!
//! Each metric is named by its entry in a table, so a panel of a metric that is not there does not compile.

mod alerts;
mod dashboards;
mod expr;
mod files;
mod grafana;
mod keys;
mod kubernetes;
mod readme;
mod recorded;
mod rules;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;

#[derive(Parser)]
#[command(about)]
struct Arguments {
    /// Compare the files with what would be written, and write nothing.
    #[arg(long)]
    check: bool,
    /// The folder.
    folder: PathBuf,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let files = files::all();
    if arguments.check {
        return check(&files, &arguments);
    }
    match files::write(&files, &arguments.folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn check(files: &[files::File], arguments: &Arguments) -> ExitCode {
    let differ = files::differing(files, &arguments.folder);
    for name in &differ {
        eprintln!("error: `{name}` is not what the tables come to; write it with `cargo xtask dashboards`");
    }
    if differ.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

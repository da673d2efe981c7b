//! Dashboards, rules and alerts, written from the tables of metrics by a program of `tools/`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::{
    process::{Ended, Invocation},
    tool::built,
    workspace::Workspace,
};

/// What is done with the files.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Compare them with what would be written, and write nothing.
    #[arg(long)]
    check: bool,
}

/// Writes the files in `monitoring/`, or compares them.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<ExitCode> {
    let program = built(workspace, "blueproof-monitoring")?;
    let check = arguments.check.then_some("--check");
    let write = Invocation::of(program, check.into_iter().chain(["monitoring"]));
    Ok(match write.show(&workspace.root)? {
        Ended::Well => ExitCode::SUCCESS,
        Ended::Badly => ExitCode::FAILURE,
    })
}

//! A GitHub on loopback to try pull requests by hand: a program of `tools/`, which is talked to by lines.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::{
    process::{Ended, Invocation},
    tool::built,
    workspace::Workspace,
};

/// Where it lies, and whom it tells.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The folder for github.yaml, the key, the webhook's secret and the repository.
    #[arg(default_value = "target/fake-github")]
    folder: String,
    /// Where webhooks are sent.
    #[arg(long, default_value = "http://127.0.0.1:8790/webhooks/github")]
    webhook: String,
}

/// Runs it until it is told to quit.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<ExitCode> {
    let program = built(workspace, "blueproof-fake-github")?;
    let Arguments { folder, webhook } = arguments;
    let fake = Invocation::of(program, [folder.as_str(), "--webhook", webhook]);
    Ok(match fake.talk(&workspace.root)? {
        Ended::Well => ExitCode::SUCCESS,
        Ended::Badly => ExitCode::FAILURE,
    })
}

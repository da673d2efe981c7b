//! Experiments on a real machine, made by a program of `tools/`: what a driver says and costs, no test can know.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{Args, Subcommand};

use crate::{
    process::{Ended, Invocation},
    workspace::Workspace,
};

/// What is tried.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// NVIDIA's driver and cards. Without one it says so, and fails: nothing was tried.
    Gpu {
        /// How long each thing is watched, in seconds.
        #[arg(long, default_value = "20")]
        seconds: u32,
        /// The driver's library, if not the system's.
        #[arg(long, value_name = "PATH")]
        library: Option<String>,
        /// A command that keeps a GPU busy for as long as it runs; then devices are watched with it, too.
        #[arg(last = true, value_name = "LOAD")]
        load: Vec<String>,
    },
}

/// Builds what is measured as it is shipped, and makes the experiments.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<ExitCode> {
    let What::Gpu {
        seconds,
        library,
        load,
    } = &arguments.what;
    let packages = ["--package", "blueproof-live", "--package", "blueproof-exporter"];
    let build = Invocation::cargo(
        ["build", "--quiet", "--release", "--locked"]
            .into_iter()
            .chain(packages),
    );
    ensure!(build.show(&workspace.root)? == Ended::Well, "`{build}` failed");
    let built = |name| workspace.target.join("release").join(name);
    let out = workspace.target.join("live/gpu").display().to_string();
    let exporter = built("blueproof-exporter").display().to_string();
    let seconds = seconds.to_string();
    let mut words = vec![
        "gpu",
        "--out",
        &out,
        "--seconds",
        &seconds,
        "--exporter",
        &exporter,
    ];
    words.extend(library.iter().flat_map(|path| ["--library", path]));
    words.push("--");
    words.extend(load.iter().map(String::as_str));
    let experiments = Invocation::of(built("blueproof-live"), words);
    Ok(match experiments.show(&workspace.root)? {
        Ended::Well => ExitCode::SUCCESS,
        Ended::Badly => ExitCode::FAILURE,
    })
}

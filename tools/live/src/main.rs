//! Experiments on a real machine: what its driver and its cards do that no scenario can tell.
//!
//! Each writes a CSV file, so that every figure that is quoted goes back to one. What cannot be tried on a machine is said
//! to be so, and counts as nothing.

mod gpu;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// What NVIDIA's driver says and costs.
    Gpu(gpu::Arguments),
}

fn main() -> Result<ExitCode> {
    match &Cli::parse().what {
        What::Gpu(arguments) => gpu::run(arguments),
    }
}

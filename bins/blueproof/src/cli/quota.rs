//! What can be typed about queues and their quota.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::output::Format;

/// Show queues and their quota, and change them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  blueproof quota get\n  blueproof quota apply -f queues.yaml --dry-run")]
pub(crate) struct Quota {
    #[command(subcommand)]
    pub(crate) command: QuotaCommand,
}

/// What is done about queues.
#[derive(Debug, Subcommand)]
pub(crate) enum QuotaCommand {
    /// Replace all queues with those of these files
    Apply(QuotaApply),
    /// List ClusterQueues with their quota and the workloads that hold it
    Get(QuotaGet),
    /// Show one queue in full
    Describe(QuotaDescribe),
}

/// Replace all queues with those of these files.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  blueproof quota apply -f queues.yaml --dry-run\n  blueproof quota apply -f flavors.yaml -f queues.yaml"
)]
pub(crate) struct QuotaApply {
    /// A file with Kueue's objects, v1beta2 or v1beta1; `-` is standard input
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Print what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// List ClusterQueues with their quota and the workloads that hold it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  blueproof quota get\n  blueproof quota get -o yaml > queues.yaml")]
pub(crate) struct QuotaGet {
    /// The output format; JSON and YAML are Kueue's objects, which `apply` and a cluster take
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
}

/// Show one queue in full.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof quota describe local")]
pub(crate) struct QuotaDescribe {
    /// The name of a ClusterQueue, or of a LocalQueue that points to one
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

//! What can be typed to try queues out. Nothing here changes anything.

use std::path::PathBuf;

use blueproof_simulation::Baseline;
use clap::{Args, ValueEnum};
use jiff::SignedDuration;

use super::act::days;
use crate::output::DocumentFormat;

/// Simulate jobs and queues in virtual time.
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("jobs").required(true).args(["file", "generator"]),
    after_help = "Examples:\n  blueproof simulate -f examples/mlbatch.yaml --transcript\n  blueproof simulate -f jobs.yaml --policy fair.yaml --policy strict.yaml --chart"
)]
pub(crate) struct Simulate {
    /// A file of the kind Simulation, with the queues in it or named in it
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Built-in jobs and queues, by name
    #[arg(long, value_name = "NAME")]
    pub(crate) generator: Option<Generator>,
    /// A file with other queues for the same jobs, in Kueue's YAML, to compare with; may be repeated
    #[arg(long = "policy", value_name = "FILE", conflicts_with = "transcript")]
    pub(crate) policies: Vec<PathBuf>,
    /// The baselines to compare with; by default fifo and best-effort, unless there is another policy
    #[arg(long, value_name = "QUEUES", value_delimiter = ',')]
    pub(crate) against: Option<Vec<Plainer>>,
    /// Draw a chart of the usage over time below the figures
    #[arg(long, conflicts_with_all = ["transcript", "output"])]
    pub(crate) chart: bool,
    /// Print what happens in order, instead of the figures
    #[arg(long, conflicts_with = "output")]
    pub(crate) transcript: bool,
    /// Print on stderr how long the queues took to decide, on this machine
    #[arg(long)]
    pub(crate) timing: bool,
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}

/// Built-in jobs and queues, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Generator {
    /// The load of Kueue's own performance test: 30 queues in 5 cohorts, 15,000 jobs
    KueueBaseline,
}

/// Plainer queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Plainer {
    /// One queue with all the quota, in the order of arrival
    Fifo,
    /// One queue with all the quota, by priority; a workload that fits may overtake others
    BestEffort,
    /// The same queues without preemption
    NoPreemption,
}

impl From<Plainer> for Baseline {
    fn from(plainer: Plainer) -> Self {
        match plainer {
            Plainer::Fifo => Self::Fifo,
            Plainer::BestEffort => Self::BestEffort,
            Plainer::NoPreemption => Self::NoPreemption,
        }
    }
}

/// Replay recorded runs against other queues.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof whatif -f policy.yaml --since 30d")]
pub(crate) struct WhatIf {
    /// A file with the other queues, in Kueue's YAML; may be repeated
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// A file with further queues to compare with; may be repeated
    #[arg(long = "policy", value_name = "FILE")]
    pub(crate) policies: Vec<PathBuf>,
    /// Draw a chart of the usage over time below the figures
    #[arg(long, conflicts_with = "output")]
    pub(crate) chart: bool,
    /// Only runs that were requested within this span before the end of the log, such as 30d or 12h
    #[arg(long, value_name = "SPAN", value_parser = days)]
    pub(crate) since: Option<SignedDuration>,
    /// A log as lines of JSON, instead of the store's
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// A run that waits more than this many times the median counts as starving
    #[arg(long, value_name = "TIMES", default_value_t = 10.0)]
    pub(crate) starving: f64,
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}

/// Show how accurate estimates of starts and ends were: each run of the log is estimated from what was known when it was
/// asked for, and compared with what came.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof backtest --since 30d")]
pub(crate) struct Backtest {
    /// Only runs that were requested within this span before the end of the log, such as 30d or 12h
    #[arg(long, value_name = "SPAN", value_parser = days)]
    pub(crate) since: Option<SignedDuration>,
    /// A log as lines of JSON, instead of the store's
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}

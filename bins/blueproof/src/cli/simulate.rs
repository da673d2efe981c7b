//! What can be typed to try queues out. Nothing here changes anything.

use std::path::PathBuf;

use blueproof_simulation::Yardstick;
use clap::{Args, ValueEnum};
use jiff::SignedDuration;

use super::act::days;
use crate::output::DocumentFormat;

/// Play jobs against queues in virtual time.
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("jobs").required(true).args(["file", "generator"]),
    after_help = "Examples:\n  blueproof simulate -f examples/mlbatch.yaml --transcript\n  blueproof simulate -f jobs.yaml --policy fair.yaml --policy strict.yaml --chart"
)]
pub(crate) struct Simulate {
    /// A file of the kind Simulation, with the queues in it or named in it
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Jobs and queues that are known by a name
    #[arg(long, value_name = "NAME")]
    pub(crate) generator: Option<Generator>,
    /// A file with other queues for the same jobs, as Kueue's YAML, measured beside; may be given several times
    #[arg(long = "policy", value_name = "FILE", conflicts_with = "transcript")]
    pub(crate) policies: Vec<PathBuf>,
    /// The plainer queues to measure beside it; fifo and best-effort where nothing else is measured
    #[arg(long, value_name = "QUEUES", value_delimiter = ',')]
    pub(crate) against: Option<Vec<Plainer>>,
    /// Draw below the figures what was in use over time
    #[arg(long, conflicts_with_all = ["transcript", "output"])]
    pub(crate) chart: bool,
    /// Tell what happens, in place of the figures
    #[arg(long, conflicts_with = "output")]
    pub(crate) transcript: bool,
    /// Say on stderr how long the queues took to decide, on this machine
    #[arg(long)]
    pub(crate) timing: bool,
    /// How it is written
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}

/// Jobs and queues that are known by a name.
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
    /// One queue with all the quota, by priority; whoever fits may overtake
    BestEffort,
    /// The same queues, but nobody is evicted for another
    NoPreemption,
}

impl From<Plainer> for Yardstick {
    fn from(plainer: Plainer) -> Self {
        match plainer {
            Plainer::Fifo => Self::Fifo,
            Plainer::BestEffort => Self::BestEffort,
            Plainer::NoPreemption => Self::NoPreemption,
        }
    }
}

/// Replay what was recorded against other queues.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof whatif -f policy.yaml --since 30d")]
pub(crate) struct WhatIf {
    /// A file with the other queues, as Kueue's YAML; may be given several times
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// A file with yet other queues, measured beside; may be given several times
    #[arg(long = "policy", value_name = "FILE")]
    pub(crate) policies: Vec<PathBuf>,
    /// Draw below the figures what was in use over time
    #[arg(long, conflicts_with = "output")]
    pub(crate) chart: bool,
    /// Only runs that asked within this span before the end of the log, such as 30d or 12h
    #[arg(long, value_name = "SPAN", value_parser = days)]
    pub(crate) since: Option<SignedDuration>,
    /// A log as lines of JSON, in place of the store's
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// One who waits more than this many times the median is said to starve
    #[arg(long, value_name = "TIMES", default_value_t = 10.0)]
    pub(crate) starving: f64,
    /// How it is written
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}

/// Say how often estimates of starts and ends held: each run of the log is estimated from what was known when it was
/// asked for, and compared with what came.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof backtest --since 30d")]
pub(crate) struct Backtest {
    /// Only runs that asked within this span before the end of the log, such as 30d or 12h
    #[arg(long, value_name = "SPAN", value_parser = days)]
    pub(crate) since: Option<SignedDuration>,
    /// A log as lines of JSON, in place of the store's
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// How it is written
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}

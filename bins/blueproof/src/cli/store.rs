//! What can be typed about the store.

use blueproof_core::domain::Bytes;
use blueproof_host::Retention;
use clap::{Args, Subcommand};
use jiff::SignedDuration;

use super::act::days;
use crate::{
    exit::{Exit, FAILS, MISTAKE, help_saying},
    output::DocumentFormat,
};

/// Returns the codes of a command, of which one says that the store is not whole.
fn exits(done: &str) -> [(Exit, &str); 4] {
    [
        (Exit::Ok, done),
        (Exit::Failed, "the store is not whole"),
        (Exit::Usage, MISTAKE),
        (Exit::Infrastructure, FAILS),
    ]
}

/// Check the store, repair it, and remove old runs.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  blueproof store check\n  blueproof store prune --retention-age 90d --dry-run"
)]
pub(crate) struct StoreArguments {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

/// What is done with the store.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Compare the store with its log
    Check(StoreCheckArguments),
    /// Rewrite what differs from the log
    Repair(StoreRepair),
    /// Remove ended runs and their output beyond limits
    Prune(StorePrune),
}

/// Compare the store with its log.
///
/// It only reads, beside whatever goes on.
#[derive(Debug, Args)]
#[command(after_help = help_saying("Example:\n  blueproof store check", &exits("the store is whole")))]
pub(crate) struct StoreCheckArguments {}

/// Rewrite what differs from the log.
///
/// The log itself is not changed. It works while nothing else does with the store, and says so otherwise.
#[derive(Debug, Args)]
#[command(after_help = help_saying("Example:\n  blueproof store repair", &exits("the store was whole, or is again")))]
pub(crate) struct StoreRepair {}

/// Remove ended runs and their output beyond limits.
///
/// What goes on is never removed, nor is the log. A scheduler that is started with the same limits does this once an hour.
#[derive(Debug, Args)]
#[command(after_help = help_saying(
    "Examples:\n  blueproof store prune --retention-age 90d --retention-output 50Gi --dry-run\n  \
     blueproof store prune --retention-runs 10000",
    &[(Exit::Ok, "what is beyond the limits is removed"), (Exit::Usage, MISTAKE), (Exit::Infrastructure, FAILS)],
))]
pub(crate) struct StorePrune {
    #[command(flatten)]
    pub(crate) limits: Limits,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}

/// For how long runs that are over are kept.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Limits {
    /// Keep runs for this long after they ended, such as 90d
    #[arg(long, value_name = "DURATION", value_parser = days)]
    pub(crate) retention_age: Option<SignedDuration>,
    /// Keep this many runs: those that ended last
    #[arg(long, value_name = "N")]
    pub(crate) retention_runs: Option<usize>,
    /// Keep this much output of runs, such as 50Gi; the runs themselves stay
    #[arg(long, value_name = "BYTES")]
    pub(crate) retention_output: Option<Bytes>,
}

impl Limits {
    /// Returns the limits.
    pub(crate) fn retention(&self) -> Retention {
        Retention {
            age: self.retention_age,
            runs: self.retention_runs,
            output: self.retention_output,
        }
    }
}

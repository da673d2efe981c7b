//! What the API and its client agree on beside the types of the ports.

use serde::{Deserialize, Serialize};

/// The header that says after which fact a snapshot was made.
pub(crate) const SNAPSHOT_AT: &str = "blueproof-after";

/// How many runs, commands and deliveries are returned at once at most.
pub(crate) const RUNS_A_PAGE: u32 = 1_000;
pub(crate) const COMMANDS_A_PAGE: u32 = 1_000;
pub(crate) const DELIVERIES_A_PAGE: u32 = 1_000;

/// How many facts and records are returned at once at most.
pub(crate) const FACTS_A_PAGE: u32 = 4_096;
pub(crate) const RECORDS_A_PAGE: u32 = 4_096;

/// How many files of a run are listed at most.
pub(crate) const FILES_LISTED: u32 = 10_000;

/// The longest that somebody may wait for a change or for records, in seconds.
pub(crate) const WAITS_AT_MOST: u32 = 25;

/// The version that a store has now.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "api", derive(schemars::JsonSchema))]
pub(crate) struct Changed {
    pub(crate) version: u64,
}

/// A file that is kept.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "api", derive(schemars::JsonSchema))]
pub(crate) struct File {
    /// Its name, by which it is asked for.
    pub(crate) name: String,
    /// How many bytes it has.
    pub(crate) size: u64,
}

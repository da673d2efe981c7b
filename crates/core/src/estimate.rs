//! When runs are likely to start and to end.
//!
//! Two things are known: how long earlier attempts of a blueprint took, and how the queues stand.
//! [`Scheduler::estimates`](crate::scheduler::Scheduler::estimates) lets the queues go on a number of times, each time
//! with lengths drawn from that past, and looks when the run gets its quota: by `p50` in half of the courses, by `p90`
//! in nine of ten. Nothing is random about it, and nothing is decided by it.
//!
//! A course supposes that
//! - who has quota gets its place at once, and limits of time count from there;
//! - nobody comes from now on. Whoever does and goes first, by priority, by fair share or because their queue takes back
//!   what it lent, makes it later;
//! - what runs is not evicted after it started, nobody is cancelled, and no attempt is tried once more;
//! - who waits for an approval goes on waiting for it;
//! - the queues stay as they are, and next lengths are like the last ones.
//!
//! [`Backtest`](crate::backtest::Backtest) says how often estimates held all the same.

mod durations;
mod sample;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub(crate) use durations::Durations;
pub(crate) use sample::Sample;

/// When a run is likely to start and to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Estimate {
    /// When it gets its quota. `None` when it has it, or when nothing can be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<When>,
    /// When its attempt is over. `None` when nothing can be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<When>,
    /// What tells how long it takes.
    pub from: Basis,
    /// The longest of the earlier runs that count, or its limits of time where only these are known, where its attempt has
    /// taken longer than that already: when it ends is then anybody's guess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub longer_than: Option<SignedDuration>,
}

/// How long the next attempt of a run is likely to have its quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum LikelyDuration {
    /// From earlier runs of its blueprint.
    Likely {
        /// As likely as not it is no longer.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        p50: SignedDuration,
        /// In nine of ten cases it is no longer.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        p90: SignedDuration,
        /// How many earlier runs tell it.
        runs: usize,
    },
    /// From its limits of time alone.
    AtMost {
        /// The limit.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        limit: SignedDuration,
    },
}

/// When something is likely to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum When {
    /// From what was seen before.
    Likely {
        /// By then as likely as not.
        p50: Timestamp,
        /// By then in nine of ten cases.
        p90: Timestamp,
    },
    /// From limits of time, because for somebody on whom it depends there are no others to go by.
    AtLatest {
        /// By then, unless a limit is not kept.
        at: Timestamp,
    },
}

/// What tells how long a run takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Basis {
    /// Three or more earlier runs of its blueprint under its profile, with the same parameters.
    Blueprint {
        /// How many.
        runs: usize,
    },
    /// Nothing but its limits of time.
    Limits,
}

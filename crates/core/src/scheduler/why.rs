//! Why a run is where it is, and what would take it further.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::queue::Shortfall;

/// The one reason why a run waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all_fields = "camelCase")]
pub enum PendingReason {
    /// Nobody entitled has approved this head.
    AwaitingApproval,
    /// There is not enough quota left, or others are before it.
    WaitingForQuota(Shortfall),
    /// It was tried, and is tried again later.
    BackingOff {
        /// When it may be tried again.
        until: Timestamp,
    },
    /// It may be tried again once nothing is left of its last attempt.
    WaitingForRelease,
    /// Quota is promised and a place is being made.
    BeingPlaced,
    /// It has a place; environment and kernel are being started.
    BeingStarted,
}

impl PendingReason {
    /// Returns what would end the wait, in a sentence without a full stop.
    pub fn unblocked_by(&self) -> String {
        match self {
            PendingReason::AwaitingApproval => "a maintainer approves this head".into(),
            PendingReason::WaitingForQuota(shortfall) => unblock_quota(shortfall),
            PendingReason::BackingOff { until } => format!("it is tried again at {until}"),
            PendingReason::WaitingForRelease => "the last attempt's place is given back".into(),
            PendingReason::BeingPlaced => "the driver has made a place".into(),
            PendingReason::BeingStarted => "environment and kernel are ready".into(),
        }
    }
}

fn unblock_quota(shortfall: &Shortfall) -> String {
    if !shortfall.asked.fits(shortfall.quota) {
        return format!("the quota grows to at least {}", shortfall.asked);
    }
    match shortfall.after {
        Some(run) => format!(
            "{run}, which is before it, has been admitted, and {} are free",
            shortfall.asked
        ),
        None => format!("a running attempt ends, so that {} are free", shortfall.asked),
    }
}

impl fmt::Display for PendingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PendingReason::AwaitingApproval => f.write_str("no maintainer has approved this head yet"),
            PendingReason::WaitingForQuota(shortfall) if shortfall.asked.fits(shortfall.free) => {
                write!(f, "{} before it in the queue", shortfall.ahead)
            }
            PendingReason::WaitingForQuota(Shortfall {
                asked, free, ahead, ..
            }) => {
                write!(
                    f,
                    "asks for {asked}; free are {free}; {ahead} before it in the queue"
                )
            }
            PendingReason::BackingOff { until } => write!(f, "waits until {until} before the next attempt"),
            PendingReason::WaitingForRelease => f.write_str("its last attempt is being cleared away"),
            PendingReason::BeingPlaced => f.write_str("quota is promised; a place is being made"),
            PendingReason::BeingStarted => f.write_str("environment and kernel are being started"),
        }
    }
}

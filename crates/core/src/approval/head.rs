//! Whether a head may be carried out by what is no run, such as a runner of GitHub Actions.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::Actor;

/// Whether a head may be carried out now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum HeadStatus {
    /// It may: an approval of it counts.
    Approved {
        /// The open pull request that has it.
        pull_request: u64,
        /// Who approved it.
        by: Actor,
        /// When that stops counting.
        expires_at: Option<Timestamp>,
    },
    /// It may not.
    Refused(HeadRefusal),
}

/// Why a head may not be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HeadRefusal {
    /// No approval of it is known, or none counts any more.
    NotApproved,
    /// Its pull request is held.
    Held,
    /// Its pull request is closed, or has another head or base now.
    NoLongerHead,
}

impl fmt::Display for HeadRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotApproved => "no approval of this commit counts now",
            Self::Held => "its pull request is held",
            Self::NoLongerHead => "its pull request is closed, or has another head or base now",
        })
    }
}

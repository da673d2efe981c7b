//! What is asked of devices, and how sure one has to be. Every figure can be configured; the reasons for the defaults
//! stand beside them.

use std::collections::BTreeSet;

use blueproof_core::domain::Bytes;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::CheckId;

/// What checks hold against what they read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct CheckPolicy {
    /// How many devices there should be. Where nobody says, their count is unknown.
    pub expected_devices: Option<u32>,
    /// The checks that must be done and ok before anything is called ok. None at all makes nothing ok.
    pub counting: BTreeSet<CheckId>,
    /// How many of the last readings are looked at for slowdowns.
    pub slowdown_readings: usize,
    /// In how many of them a device must be slowed down to be a problem; never fewer than two.
    pub slowdown_problem_from: usize,
    /// From which share of the time a device counts as busy, so that its link should be at its best.
    pub busy_from: f64,
    /// How many transfers over PCI Express may be made again between the first reading and the last.
    pub replays_at_most: u32,
    /// How many pages of memory may be given up.
    pub retired_pages_at_most: u32,
    /// How much more memory than before may be in use after an attempt, in bytes.
    pub leftover_memory_at_most: Bytes,
}

/// How sure one has to be to change a node's labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct LabelPolicy {
    /// The checks that must be ok for a node to pass. None at all lets no node pass.
    pub counting: BTreeSet<CheckId>,
    /// How often and for how long a problem must be found to stand.
    pub problem: Streak,
    /// How often and for how long one must be found for which a node is to be emptied.
    pub evict: Streak,
    /// How often in a row and for how long a check must be ok, after it was not.
    pub ok: Streak,
    /// For how long a check that was ok is believed to be, where it is not done again.
    pub ok_holds: SignedDuration,
    /// How long a test may take; after that it is over, with nothing found.
    pub testing_at_most: SignedDuration,
}

/// How often, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Streak {
    /// How many times; none counts as once.
    pub times: u32,
    /// How much time there must be between the first and the last.
    pub lasting: SignedDuration,
}

impl CheckPolicy {
    /// Returns the default with a count of devices to expect.
    pub fn expecting(devices: u32) -> Self {
        Self {
            expected_devices: Some(devices),
            ..Self::default()
        }
    }
}

impl Default for CheckPolicy {
    fn default() -> Self {
        Self {
            expected_devices: None,
            counting: counting(),
            // A burst of work may slow a device down for a moment without anything being wrong.
            slowdown_readings: 5,
            slowdown_problem_from: 3,
            // Idle links are slow on purpose, and a single kernel in a second does not wake all of them.
            busy_from: 0.5,
            // A good link makes none for days; a handful may come with a device's start.
            replays_at_most: 16,
            // The driver has room for 64 on a card; NVIDIA takes cards back from 60 on.
            retired_pages_at_most: 59,
            // What a driver needs of its own changes by some MiB when programs come and go.
            leftover_memory_at_most: Bytes(64 << 20),
        }
    }
}

impl Default for LabelPolicy {
    fn default() -> Self {
        Self {
            counting: counting(),
            problem: Streak::times(2),
            evict: Streak::times(2),
            // Readers of the labels move work at each change, so a node has to stay well for a while.
            ok: Streak {
                times: 3,
                lasting: SignedDuration::from_mins(2),
            },
            ok_holds: SignedDuration::from_hours(1),
            // DCGM's third level takes about a quarter of an hour on eight devices.
            testing_at_most: SignedDuration::from_mins(45),
        }
    }
}

impl Streak {
    /// Returns so many times, however fast they follow each other.
    pub const fn times(times: u32) -> Self {
        Self {
            times,
            lasting: SignedDuration::ZERO,
        }
    }
}

/// Returns the checks that one reading of a healthy device of any age answers. The others need load or time, or more than
/// the driver's library; what they find counts as a problem all the same.
fn counting() -> BTreeSet<CheckId> {
    [
        CheckId::Driver,
        CheckId::DeviceCount,
        CheckId::Presence,
        CheckId::RemappedRows,
        CheckId::RetiredPages,
        CheckId::Slowdown,
        CheckId::Ecc,
        CheckId::PcieWidth,
        CheckId::Xids,
    ]
    .into()
}

//! Which checks there are, and what one may answer. How each is done is in `checks`.

use std::fmt;

use blueproof_core::{
    gpu::{Fault, FaultKind, Figure},
    ports::ProbeErrorKind,
};
use serde::{Deserialize, Serialize};

/// A question about a machine or a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CheckId {
    /// Driver and library are there, and of one version.
    Driver,
    /// There are as many devices as there should be.
    DeviceCount,
    /// The device answers.
    Presence,
    /// Rows of memory were replaced where they had to be.
    RemappedRows,
    /// Pages of memory were given up where they had to be; cards before Ampere have these instead of rows.
    RetiredPages,
    /// Its hardware does not slow it down.
    Slowdown,
    /// Its memory had no error that could not be corrected, since its driver was loaded.
    Ecc,
    /// It is connected over as many lanes as it could be.
    PcieWidth,
    /// It speaks the generation of PCI Express that it could, while it works.
    PcieGeneration,
    /// Transfers over PCI Express do not have to be made again.
    PcieReplays,
    /// Its driver reported nothing that is its fault.
    Xids,
    /// Copies to and from it are fast. Autopilot's `pciebw`.
    PcieBandwidth,
    /// Its memory and processors compute right and fast. Autopilot's `gpumem`.
    GpuMemory,
    /// It passes the long diagnosis of DCGM, for which it must be idle.
    DcgmLevel3,
}

/// What a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The machine: it answers once.
    Machine,
    /// A device: it answers for each.
    Device,
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Better use another one.
    Warn,
    /// Nothing may run there.
    Evict,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum Answer {
    /// It was done, and all is well.
    Ok {
        /// What was seen, in words with figures.
        evidence: String,
    },
    /// It was done, and something is wrong.
    Problem {
        /// How bad it is.
        severity: Severity,
        /// What was seen, in words with figures.
        evidence: String,
    },
    /// It could not be done, or decides nothing.
    Unknown {
        /// Why.
        why: Why,
    },
}

/// Why a check does not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "because")]
pub enum Why {
    /// The card, or its driver, does not tell a figure.
    NotTold {
        /// The figure.
        figure: Figure,
    },
    /// A figure could not be read now.
    Fault {
        /// The figure.
        figure: Figure,
        /// What came instead.
        fault: Fault,
    },
    /// Nobody asked for a figure.
    NotRead {
        /// The figure.
        figure: Figure,
    },
    /// A figure was told that cannot be.
    Absurd {
        /// The figure.
        figure: Figure,
        /// What was told.
        told: String,
    },
    /// What was read decides nothing.
    Undecided {
        /// What is missing, in words.
        words: String,
    },
    /// Nothing can be seen of any device.
    Blind {
        /// The reason, as in the label of metrics.
        reason: String,
    },
    /// This program does not do it: it needs more than the driver's library.
    NotDoneHere {
        /// What it needs.
        needs: String,
    },
}

/// How a machine or a device fares, all checks together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Health {
    /// Every check that counts was done, and is ok.
    Ok,
    /// Some check found a problem.
    Problem,
    /// No check found a problem, and not all that count could tell.
    Unknown,
}

impl CheckId {
    /// All checks, in the order in which they are listed.
    pub const ALL: [Self; 14] = [
        Self::Driver,
        Self::DeviceCount,
        Self::Presence,
        Self::RemappedRows,
        Self::RetiredPages,
        Self::Slowdown,
        Self::Ecc,
        Self::PcieWidth,
        Self::PcieGeneration,
        Self::PcieReplays,
        Self::Xids,
        Self::PcieBandwidth,
        Self::GpuMemory,
        Self::DcgmLevel3,
    ];

    /// Returns the checks of each device that are done here.
    pub(super) fn of_devices() -> impl Iterator<Item = Self> {
        let of_devices = |check: &Self| check.scope() == Scope::Device && check.needs().is_none();
        Self::ALL.into_iter().filter(of_devices)
    }

    /// Returns what it is about.
    pub fn scope(self) -> Scope {
        match self {
            Self::Driver | Self::DeviceCount | Self::DcgmLevel3 => Scope::Machine,
            Self::Presence
            | Self::RemappedRows
            | Self::RetiredPages
            | Self::Slowdown
            | Self::Ecc
            | Self::PcieWidth
            | Self::PcieGeneration
            | Self::PcieReplays
            | Self::Xids
            | Self::PcieBandwidth
            | Self::GpuMemory => Scope::Device,
        }
    }

    /// Returns what it needs beyond the driver's library. Such checks are not done here; others may tell of them.
    pub fn needs(self) -> Option<&'static str> {
        match self {
            Self::PcieBandwidth | Self::GpuMemory => Some("CUDA"),
            Self::DcgmLevel3 => Some("DCGM and an idle machine"),
            Self::Driver
            | Self::DeviceCount
            | Self::Presence
            | Self::RemappedRows
            | Self::RetiredPages
            | Self::Slowdown
            | Self::Ecc
            | Self::PcieWidth
            | Self::PcieGeneration
            | Self::PcieReplays
            | Self::Xids => None,
        }
    }

    /// Returns the check that asks the same of cards of another age, if there is one.
    pub fn substitute(self) -> Option<Self> {
        match self {
            Self::RemappedRows => Some(Self::RetiredPages),
            Self::RetiredPages => Some(Self::RemappedRows),
            Self::Driver
            | Self::DeviceCount
            | Self::Presence
            | Self::Slowdown
            | Self::Ecc
            | Self::PcieWidth
            | Self::PcieGeneration
            | Self::PcieReplays
            | Self::Xids
            | Self::PcieBandwidth
            | Self::GpuMemory
            | Self::DcgmLevel3 => None,
        }
    }

    /// Returns what people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::DeviceCount => "device count",
            Self::Presence => "presence",
            Self::RemappedRows => "remapped rows",
            Self::RetiredPages => "retired pages",
            Self::Slowdown => "slowdown",
            Self::Ecc => "ECC",
            Self::PcieWidth => "PCIe width",
            Self::PcieGeneration => "PCIe generation",
            Self::PcieReplays => "PCIe replays",
            Self::Xids => "XIDs",
            Self::PcieBandwidth => "bandwidth (pciebw)",
            Self::GpuMemory => "computing (gpumem)",
            Self::DcgmLevel3 => "DCGM level 3",
        }
    }
}

impl Answer {
    /// Returns that all is well.
    pub(super) fn ok(evidence: impl Into<String>) -> Self {
        Self::Ok {
            evidence: evidence.into(),
        }
    }

    /// Returns a problem.
    pub(super) fn problem(severity: Severity, evidence: impl Into<String>) -> Self {
        Self::Problem {
            severity,
            evidence: evidence.into(),
        }
    }

    /// Returns that what was read decides nothing.
    pub(super) fn undecided(words: impl Into<String>) -> Self {
        Self::Unknown {
            why: Why::Undecided { words: words.into() },
        }
    }

    /// Returns whether all is well.
    pub fn is_ok(&self) -> bool {
        match self {
            Self::Ok { .. } => true,
            Self::Problem { .. } | Self::Unknown { .. } => false,
        }
    }

    /// Returns whether the check was done, and told either.
    pub fn is_known(&self) -> bool {
        match self {
            Self::Ok { .. } | Self::Problem { .. } => true,
            Self::Unknown { .. } => false,
        }
    }

    /// Returns how bad it is, if it is a problem.
    pub fn severity(&self) -> Option<Severity> {
        match self {
            Self::Problem { severity, .. } => Some(*severity),
            Self::Ok { .. } | Self::Unknown { .. } => None,
        }
    }

    /// Returns whether it is that the card does not tell.
    pub fn is_not_told(&self) -> bool {
        matches!(
            self,
            Self::Unknown {
                why: Why::NotTold { .. }
            }
        )
    }

    /// Returns whether it is that this program does not do it.
    pub fn is_not_done_here(&self) -> bool {
        matches!(
            self,
            Self::Unknown {
                why: Why::NotDoneHere { .. }
            }
        )
    }
}

impl From<Why> for Answer {
    fn from(why: Why) -> Self {
        Self::Unknown { why }
    }
}

impl From<ProbeErrorKind> for Why {
    fn from(reason: ProbeErrorKind) -> Self {
        Self::Blind {
            reason: reason.as_str().to_owned(),
        }
    }
}

impl Why {
    /// Returns whether it is that the device is gone.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Fault { fault, .. } if fault.kind == FaultKind::Lost)
    }
}

impl fmt::Display for CheckId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warn => "warn",
            Self::Evict => "evict",
        })
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Problem => "problem",
            Self::Unknown => "unknown",
        })
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok { evidence } | Self::Problem { evidence, .. } => f.write_str(evidence),
            Self::Unknown { why } => why.fmt(f),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotTold { figure } => write!(f, "this card does not tell ({})", words_of(*figure)),
            Self::Fault { figure, fault } => {
                write!(f, "could not read {}: {}", words_of(*figure), fault.word)
            }
            Self::NotRead { figure } => write!(f, "nobody asked for {}", words_of(*figure)),
            Self::Absurd { figure, told } => write!(f, "{} cannot be {told}", words_of(*figure)),
            Self::Undecided { words } => f.write_str(words),
            Self::Blind { reason } => {
                let words = reason.replace('_', " ");
                write!(f, "nothing can be seen of any device: {words}")
            }
            Self::NotDoneHere { needs } => write!(f, "not done here: needs {needs}"),
        }
    }
}

/// Returns a figure's name as words: `RowRemapPending` is "row remap pending".
pub(super) fn words_of(figure: Figure) -> String {
    let mut words = String::new();
    for letter in format!("{figure:?}").chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

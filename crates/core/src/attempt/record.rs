//! What the agent says.

use std::{collections::BTreeMap, path::PathBuf};

use blueproof_diagnostic::Diagnostic;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Cgroup, ProcessName};
use crate::{
    domain::{Bytes, GpuUse, Outcome},
    gpu::DeviceUuid,
};

/// One line of an agent's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// When it happened, by the agent's clock.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub kind: RecordKind,
}

/// What happened in an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RecordKind {
    /// The agent has begun; always the first line.
    Begun {
        /// The agent's process.
        #[serde(flatten)]
        process: ProcessName,
        /// The agent's version.
        version: String,
        /// The value of the variable that marks every process of the attempt.
        marker: String,
        /// The folder with the kernel's sockets.
        sockets: PathBuf,
        /// The cgroup of everything that the notebook starts, where one can be made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cgroup: Option<Cgroup>,
    },
    /// A stage has begun.
    StageBegun {
        /// Which.
        stage: AttemptStage,
    },
    /// A stage is at a point worth telling, such as a package being installed.
    StageProgress {
        /// Which.
        stage: AttemptStage,
        /// How far it is, in a few words.
        message: String,
    },
    /// A stage has ended well.
    StageEnded {
        /// Which.
        stage: AttemptStage,
        /// What came of it, in a few words, such as `python 3.12 + numpy 2.5 (cached)`.
        detail: String,
        /// How long it took.
        took: SignedDuration,
    },
    /// The Python that runs the notebook is there.
    EnvironmentReady {
        /// What it is, in the notebook crate's own words: core passes it on unread.
        environment: serde_json::Value,
    },
    /// The kernel runs and has answered.
    KernelReady {
        /// The kernel's process id.
        pid: u32,
        /// How many code cells will run.
        cells: u32,
    },
    /// A code cell has begun.
    CellBegun {
        /// Its position in the notebook file, counted from one, cells of every type counted. Zero is the cell with
        /// the run's parameters, which is in no file.
        cell: u32,
        /// How many code cells began before it.
        nth: u32,
    },
    /// A cell printed text. Known secret values are already redacted.
    Text {
        /// The cell.
        cell: u32,
        /// Where to.
        stream: Stream,
        /// What, with its control characters as they came.
        text: String,
    },
    /// A cell showed something that is not plain printing, as the Jupyter output object that goes into the notebook.
    Display {
        /// The cell.
        cell: u32,
        /// The output object.
        output: serde_json::Value,
    },
    /// More was printed or shown than is kept. Of what is printed from here on the end is kept, and written when the
    /// cell is over.
    Truncated {
        /// The cell.
        cell: u32,
        /// The most that is kept.
        limit: Bytes,
    },
    /// Text is missing here; the end of what the cell printed follows.
    LeftOut {
        /// The cell.
        cell: u32,
        /// How much.
        bytes: Bytes,
    },
    /// A metric of the blueprint has a new value.
    Metric {
        /// The metric's name.
        name: String,
        /// The value; `None` is no finite number.
        value: Option<f64>,
    },
    /// A cell has ended.
    CellEnded {
        /// The cell.
        cell: u32,
        /// How.
        end: CellEnd,
        /// How long it took.
        took: SignedDuration,
    },
    /// What a cell made of the attempt's devices. It is told when all cells have ended: drivers are late.
    CellUsed {
        /// The cell.
        cell: u32,
        /// What it made of them.
        gpu: GpuUse,
    },
    /// These of the machine's devices and MIG instances are unhealthy until it is booted again or they are reset.
    #[serde(alias = "devicesUnfit")]
    DevicesUnhealthy {
        /// Each with its reason.
        devices: BTreeMap<DeviceUuid, String>,
    },
    /// Something that may explain a failure, or will cause one elsewhere.
    Noticed {
        /// What.
        diagnostic: Diagnostic,
    },
    /// All cells have run, and it was looked whether what is expected holds.
    ExpectationsChecked {
        /// What was found of each, in order.
        found: Vec<Checked>,
    },
    /// On what it ran.
    MachineSeen {
        /// The machine.
        machine: Machine,
    },
    /// What is kept beside the log is whole, and not written to any more.
    FilesKept {
        /// The executed notebook, where there is one.
        notebook: Option<KeptFile>,
        /// What the blueprint declares as artifacts, by path.
        artifacts: Vec<KeptFile>,
    },
    /// The attempt is over, everything it started is gone, and nothing follows.
    Finished {
        /// How it ended.
        outcome: Box<Outcome>,
    },
}

/// The machine that an attempt ran on, as far as it could be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// What it calls itself.
    pub host: String,
    /// Its operating system and architecture, such as `Linux 6.12.8 x86_64`.
    pub system: String,
    /// The model of its processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// The models of the devices that the attempt had, in their maker's words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// The version of their driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
}

/// What was found of an expectation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Checked {
    /// It holds.
    Met {
        /// What there is, in a few words, where that says more than that it holds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actual: Option<String>,
    },
    /// It does not.
    Unmet(Diagnostic),
    /// Nobody can look here; this is why.
    NotLookedAt(String),
}

/// A file that is kept of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct KeptFile {
    /// Its path, below the folder where files of its kind are kept.
    pub path: PathBuf,
    /// How long it is.
    pub size: Bytes,
    /// The SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
}

/// The stages of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum AttemptStage {
    /// Python and its packages are found or made.
    Env,
    /// The kernel starts and the cells run.
    Run,
    /// Expectations are checked and artifacts collected.
    Collect,
}

impl AttemptStage {
    /// Returns what people call it.
    pub fn as_str(self) -> &'static str {
        match self {
            AttemptStage::Env => "env",
            AttemptStage::Run => "run",
            AttemptStage::Collect => "collect",
        }
    }
}

/// Where a cell printed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a cell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum CellEnd {
    /// Without an exception.
    Ok,
    /// With an exception that its `raises-exception` tag allows.
    RaisedAsAllowed,
    /// With an exception.
    Raised,
    /// It was interrupted, by a limit or on request.
    Interrupted,
    /// The kernel died in it.
    KernelDied,
    /// What the kernel told of it could not be read.
    Unknown,
}

impl CellEnd {
    /// Returns whether the next cell may run.
    pub fn is_good(self) -> bool {
        matches!(self, CellEnd::Ok | CellEnd::RaisedAsAllowed)
    }
}

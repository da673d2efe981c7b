//! How an attempt ended, and who or what is the culprit.

use std::collections::BTreeMap;

use blueproof_diagnostic::Diagnostic;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::domain::{Bytes, Cpus};

/// How an attempt ended, with what it used and measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// Whether it passed, and if not, why.
    pub verdict: Verdict,
    /// What it used. Absent where nothing ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The blueprint's metrics, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, MetricResult>,
    /// What was asked for and not done, and what else whoever goes by the verdict must know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Diagnostic>,
}

/// Whether an attempt passed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// Every cell ran and everything that the blueprint expects holds.
    Passed,
    /// It did not pass.
    Failed(Box<Failure>),
    /// It was stopped on request, before it could pass or fail.
    Stopped,
}

/// Why an attempt did not pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Who or what is to blame.
    pub class: FailureClass,
    /// What happened: its message is the causal line, its hints are what to do.
    pub diagnostic: Diagnostic,
    /// The cell in which it happened, where it happened in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<CellPlace>,
}

impl Failure {
    /// Returns a failure that happened in no cell.
    pub fn outside_cells(class: FailureClass, diagnostic: Diagnostic) -> Self {
        Self {
            class,
            diagnostic,
            cell: None,
        }
    }
}

/// Who or what is to blame for a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum FailureClass {
    /// An exception left a cell, or the kernel came to its end.
    Notebook,
    /// A process or TrainJob that the notebook started.
    Workload,
    /// Every cell ran, but what the blueprint declares is missing or wrong.
    Expectation,
    /// A limit of time was reached.
    Timeout(TimeLimit),
    /// Something that only a retry elsewhere could mend. Nothing else is retried.
    Infrastructure,
    /// It could not be started as it is written.
    Config,
}

/// Which of the blueprint's limits of time was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum TimeLimit {
    /// Waiting for quota took too long.
    Queue,
    /// Environment and kernel took too long.
    Startup,
    /// One cell took too long.
    Cell,
    /// All cells together took too long.
    Run,
    /// It had quota for too long, over all attempts.
    Execution,
}

/// A line of a notebook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CellPlace {
    /// The cell's position in the notebook file, counted from one, cells of every type counted.
    pub cell: u32,
    /// The line within the cell, counted from one, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The text of that line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The notebook, relative to the folder of the job's source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of that file, counted from one; where the line within the cell is not known, that on which the cell begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_line: Option<u32>,
}

/// What an attempt used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// From the kernel's start to the end of all that it started: the span of all that stands here.
    pub duration: SignedDuration,
    /// What it was granted.
    pub cpu_granted: Cpus,
    /// Processor time of the kernel and all that it started. `None` where it could not be read.
    pub cpu_time: Option<SignedDuration>,
    /// The most resident memory that the kernel and all that it started held at once, as sampled. `None` where
    /// it could not be read.
    pub memory_peak: Option<Bytes>,
    /// What it made of its devices; absent where it had none, or nobody could look at them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuUse>,
}

impl Usage {
    /// Returns how many processors worked on average, which may be more than it was granted where that is no limit.
    pub fn average_cores(&self) -> Option<f64> {
        let seconds = self.duration.as_secs_f64();
        (seconds > 0.0).then_some(self.cpu_time?.as_secs_f64() / seconds)
    }

    /// Returns for how long its processors were there for it, in processor-seconds.
    pub fn allocated_cpu_seconds(&self) -> f64 {
        self.cpu_granted.as_cores() * self.duration.as_secs_f64()
    }
}

/// What was made of the accelerators that somebody had for a time.
///
/// What was not seen is in no figure, so that those which are there may be of less time than the devices were held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GpuUse {
    /// How many devices, or parts of devices.
    pub devices: u32,
    /// For how long they were there for it, in GPU-seconds.
    pub allocated_seconds: f64,
    /// Of how much of that it is known how busy they were, in GPU-seconds.
    pub seen_seconds: f64,
    /// How long they were busy, in GPU-seconds of what was seen; `None` where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_seconds: Option<f64>,
    /// What they drew, in joules; `None` where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joules: Option<f64>,
    /// How busy one of them was at most in one of the driver's periods, between 0 and 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_utilization: Option<f64>,
    /// How much memory of one of them was used at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<Bytes>,
}

impl GpuUse {
    /// Returns in which share of the time that was seen they were busy; `None` where none was.
    pub fn busy_ratio(&self) -> Option<f64> {
        let busy = self.busy_seconds?;
        (self.seen_seconds > 0.0).then(|| busy / self.seen_seconds)
    }
}

/// What was seen of one of the blueprint's metrics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MetricResult {
    /// The last value. `None` is a value that is no finite number; it satisfies nothing.
    pub last: Option<f64>,
    /// How many values were seen.
    pub count: u64,
    /// At most a few dozen of the values, in order, for a sparkline.
    pub trace: Vec<f64>,
}

//! What sees everything that cells print and show, and says at the end what was measured.

use std::{collections::BTreeMap, path::Path};

use blueproof_core::{
    attempt::{Checked, KeptFile, Stream},
    domain::{Failure, MetricResult},
    gpu::DeviceUuid,
    ports::{GpuMeter, GpuUsed},
};
use blueproof_diagnostic::Diagnostic;
use serde_json::Value;

use crate::plan::Plan;

/// Sees what cells print and show, before any limit cuts it and after secrets are redacted.
pub trait Observer {
    /// Looks at the folder that the notebook will run in, before anything runs there.
    fn begin(&mut self, plan: &Plan, folder: &Path);

    /// Takes in printed text and returns the new values of metrics. Text comes in pieces that may end anywhere.
    fn printed(&mut self, cell: u32, stream: Stream, text: &str) -> Vec<(String, Option<f64>)>;

    /// Takes in an output as a notebook has it, and returns the new values of metrics.
    fn shown(&mut self, cell: u32, output: &Value) -> Vec<(String, Option<f64>)>;

    /// Says what was measured and, where every cell ran, whether what is expected holds.
    fn conclude(&mut self, collect: &Collect<'_>) -> Conclusion;
}

/// Where an attempt's files are once its cells have ended.
pub struct Collect<'a> {
    /// What was to be done.
    pub plan: &'a Plan,
    /// The folder that the notebook ran in.
    pub folder: &'a Path,
    /// Where declared files are kept.
    pub artifacts: &'a Path,
}

/// What was measured.
#[derive(Debug, Default)]
pub struct Conclusion {
    /// Metrics by name.
    pub metrics: BTreeMap<String, MetricResult>,
    /// What is missing or wrong. Not looked at where the cells did not all run.
    pub failure: Option<Box<Failure>>,
    /// What was found of each expectation, in order.
    pub expectations: Option<Vec<Checked>>,
    /// The declared files that were kept, in order.
    pub artifacts: Vec<KeptFile>,
    /// What else there is to say, such as of files that were not kept.
    pub notices: Vec<Diagnostic>,
    /// What was collected, in a few words.
    pub detail: String,
}

/// Measures nothing and expects nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NothingMeasured;

impl Observer for NothingMeasured {
    fn begin(&mut self, _: &Plan, _: &Path) {}

    fn printed(&mut self, _: u32, _: Stream, _: &str) -> Vec<(String, Option<f64>)> {
        Vec::new()
    }

    fn shown(&mut self, _: u32, _: &Value) -> Vec<(String, Option<f64>)> {
        Vec::new()
    }

    fn conclude(&mut self, _: &Collect<'_>) -> Conclusion {
        Conclusion::default()
    }
}

impl GpuMeter for NothingMeasured {
    fn begin(&mut self, _: &[DeviceUuid]) {}

    fn turn_to(&mut self, _: u32) {}

    fn end(&mut self) -> GpuUsed {
        GpuUsed::default()
    }
}

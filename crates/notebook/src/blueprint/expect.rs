//! What must hold once every cell has run.

use blueproof_diagnostic::{
    Code, Diagnostic,
    yaml::{Decode, Entry, Located, Problems, Value, YamlNode, choice, described, nullable, record},
};
use serde_json::json;

use super::value::Glob;

/// Keys of `expect` that are no names of metrics.
pub(crate) const RESERVED: [&str; 4] = ["trainJobs", "artifacts", "output", "gpuBusy"];

/// What must hold once every cell has run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expect {
    /// What is said of TrainJobs. That they complete is the rule anyway.
    pub train_jobs: Option<TrainJobs>,
    /// Files that must be there and not be empty.
    pub artifacts: Vec<Glob>,
    /// Texts that some cell must print.
    pub output: Vec<String>,
    /// Bounds of metrics, by name, in the order of the file.
    pub metrics: Vec<(Located<String>, MetricBounds)>,
}

choice! {
    /// How TrainJobs must end.
    pub enum TrainJobs {
        /// Each TrainJob that the notebook creates completes. This holds for every blueprint, said or not.
        Complete = "Complete",
    }
}

record! {
    /// Bounds of a metric's values. A metric without values satisfies nothing.
    pub struct MetricBounds {
        /// Of the first value.
        first: Option<Located<Bounds>>,
        /// Of the last value.
        last: Option<Located<Bounds>>,
        /// Of the smallest value.
        min: Option<Located<Bounds>>,
        /// Of the largest value.
        max: Option<Located<Bounds>>,
        /// Of every value.
        every: Option<Located<Bounds>>,
    }
    later {
        "regression": "comparing with the base comes with the history of runs; bound `last` for now",
    }
}

record! {
    /// Bounds of a number, both included.
    pub struct Bounds {
        /// The least that is allowed.
        min: Option<f64>,
        /// The most that is allowed.
        max: Option<f64>,
    }
}

impl Decode for Expect {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let Some(entries) = node.entries() else {
            problems.wrong_type(node, "a mapping");
            return None;
        };
        let mut expect = Expect::default();
        let mut whole = true;
        for entry in entries.iter().filter(|entry| entry.node.value != Value::Null) {
            whole &= expect.take(entry, problems).is_some();
        }
        whole.then_some(expect)
    }

    fn schema() -> serde_json::Value {
        let property = |schema, about| nullable(described(schema, about));
        json!({
            "type": "object",
            "properties": {
                "trainJobs": property(TrainJobs::schema(), "How TrainJobs must end. Complete is the rule anyway."),
                "artifacts": property(
                    Vec::<Glob>::schema(),
                    "Globs relative to the notebook's folder; each must match a file that is not empty.",
                ),
                "output": property(
                    json!({ "type": "array", "items": { "type": "string", "minLength": 1 } }),
                    "Texts; each must be printed by some cell.",
                ),
            },
            "additionalProperties": property(MetricBounds::schema(), "Bounds of the metric of this name."),
        })
    }

    fn absent() -> Option<Self> {
        Some(Self::default())
    }
}

impl Expect {
    fn take(&mut self, entry: &Entry, problems: &mut Problems<'_>) -> Option<()> {
        match entry.key.as_str() {
            "trainJobs" => self.train_jobs = Some(TrainJobs::decode(&entry.node, problems)?),
            "artifacts" => self.artifacts = Decode::decode(&entry.node, problems)?,
            "output" => self.output = texts(&entry.node, problems)?,
            "gpuBusy" => {
                problems.report(
                    entry.spot,
                    Diagnostic::error(Code::NotSupportedYet, "`gpuBusy` is not supported yet")
                        .because("a request that is silently not kept is worse than none")
                        .hint("how busy GPUs were comes with the GPU probe; leave the key out"),
                );
                return None;
            }
            metric => {
                let bounds = MetricBounds::decode(&entry.node, problems)?;
                let name = Located {
                    value: metric.to_owned(),
                    spot: entry.spot,
                };
                self.metrics.push((name, bounds));
            }
        }
        Some(())
    }
}

/// Reads the texts that must be printed. An empty one stands in whatever is printed, and in what is not.
fn texts(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Vec<String>> {
    let texts: Vec<Located<String>> = Decode::decode(node, problems)?;
    let empty: Vec<_> = texts.iter().filter(|text| text.value.is_empty()).collect();
    for text in &empty {
        let hint = "write what some cell prints: output: [\"accuracy: \"]";
        problems.bad_value(
            text.spot,
            "nothing is expected of the output: the text is empty",
            hint,
        );
    }
    let is_whole = empty.is_empty();
    is_whole.then(|| texts.into_iter().map(|text| text.value).collect())
}

//! What an agent is to do: a blueprint with its profile and parameters applied, and nothing left to decide.
//!
//! A plan is made once, when a run is requested, and is kept with the request: a retry does exactly the same. It
//! travels as `AttemptSpec::work`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
};

use blueproof_diagnostic::{Code, Diagnostic};
use serde::{Deserialize, Serialize};

use crate::text::Redactor;

/// A blueprint with its profile and parameters applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The notebook, relative to the checkout.
    pub notebook: PathBuf,
    /// The Python that runs it.
    pub environment: Environment,
    /// Values for the injected parameters cell, in the order of their names.
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// What to do about cells that install packages themselves.
    pub shell_install: ShellInstall,
    /// Which hosts it may reach.
    pub network: Network,
    /// Environment variables that hold secrets. Their values are not in the plan.
    pub secrets: Vec<Secret>,
    /// What is measured.
    pub metrics: Vec<Metric>,
    /// What must hold once every cell has run.
    pub expectations: Vec<Expectation>,
    /// Files to keep, as globs relative to the notebook's folder.
    pub artifacts: Vec<String>,
    /// Whether it may pass though nothing of it runs.
    #[serde(default)]
    pub allow_empty: bool,
    /// Files in the checkout that are not part of it, relative to it: the output of whoever asked is written there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub left_out: BTreeSet<PathBuf>,
}

/// The Python that runs a notebook. `ipykernel` is always there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Environment {
    /// The version, such as `3.12`; `None` is whichever is found first.
    pub python: Option<String>,
    /// Requirements, as pip writes them.
    pub requirements: Vec<String>,
    /// A file with every version pinned, relative to the checkout: `uv.lock` or a requirements file.
    pub lock: Option<PathBuf>,
}

/// What to do about cells that install packages themselves, such as `!pip install -U kubeflow`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ShellInstall {
    /// Leave them out where the environment already satisfies them; run them where it does not.
    #[default]
    Skip,
    /// Run them, and say so in the report.
    Record,
    /// Run them.
    Allow,
}

/// Which hosts a notebook may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Network {
    /// Any.
    #[default]
    Any,
    /// None.
    None,
    /// These; `*.` in front stands for any subdomain.
    Hosts(Vec<String>),
}

/// An environment variable that holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Secret {
    /// The secret's name.
    pub name: String,
    /// The variable that the notebook reads.
    pub env: String,
}

/// Something that is measured while the notebook runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// Where its values come from.
    pub from: MetricSource,
}

/// Where a metric's values come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MetricSource {
    /// The first group of each match in what cells print.
    Regex(String),
    /// The number under the metric's name in display data of this name: a JSON object shown with the MIME type
    /// `application/vnd.blueproof.NAME+json`.
    Display(String),
}

/// Something that must hold once every cell has run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Expectation {
    /// A metric's value lies within bounds, both included. A metric without values satisfies nothing.
    Metric {
        /// The metric's name.
        name: String,
        /// Which of its values.
        which: Which,
        /// The least that is allowed.
        min: Option<f64>,
        /// The most that is allowed.
        max: Option<f64>,
    },
    /// At least one file matches the glob, relative to the notebook's folder, and is not empty.
    Artifact(String),
    /// The printed text of some cell contains this.
    Output(String),
    /// Each TrainJob that the notebook creates completes.
    TrainJobs,
}

/// Which of a metric's values an expectation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Which {
    /// The first one.
    First,
    /// The last one.
    Last,
    /// The smallest one.
    Min,
    /// The largest one.
    Max,
    /// Every one.
    Every,
}

impl Secret {
    /// Returns why nothing is run with this value of it.
    pub fn refused(&self, value: Option<&str>) -> Option<Diagnostic> {
        let (what, hint) = match value {
            None => ("is not set here", "set"),
            Some(value) if value.trim().is_empty() => ("is empty here", "give a value to"),
            Some(_) => return None,
        };
        let message = format!("the secret `{}` {what}", self.name);
        let refused = Diagnostic::error(Code::SecretMissing, message);
        let refused = refused.hint(format!("{hint} {} where blueproof is started", self.env));
        Some(refused.hint(
            "the environment is that of the process that leads the store, which may be another than the one that asked: \
             let that end, or start the scheduler with it",
        ))
    }

    /// Says that this value of it is too short to be taken out of texts.
    pub fn too_short(&self, value: &str) -> Option<Diagnostic> {
        let is_short = Redactor::new([value]).too_short() > 0;
        is_short.then(|| {
            let message = format!(
                "the secret `{}` has fewer than four characters: it is not taken out of what is stored and shown",
                self.name
            );
            Diagnostic::warning(Code::SecretShown, message)
                .hint("give it a longer value, or make it a parameter if it is none")
        })
    }
}

impl fmt::Display for Expectation {
    /// Writes an expectation as people would: `last final_loss from 0.1 to 0.498`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expectation::Metric {
                name,
                which,
                min,
                max,
            } => {
                write!(f, "{} {name}", which.word())?;
                match (min, max) {
                    (Some(min), Some(max)) => write!(f, " from {min} to {max}"),
                    (Some(min), None) => write!(f, " at least {min}"),
                    (None, Some(max)) => write!(f, " at most {max}"),
                    (None, None) => write!(f, " is a number"),
                }
            }
            Expectation::Artifact(pattern) => write!(f, "a file {pattern}"),
            Expectation::Output(text) => write!(f, "a cell prints {text:?}"),
            Expectation::TrainJobs => f.write_str("each TrainJob completes"),
        }
    }
}

impl Which {
    fn word(self) -> &'static str {
        match self {
            Which::First => "first",
            Which::Last => "last",
            Which::Min => "smallest",
            Which::Max => "largest",
            Which::Every => "every",
        }
    }
}

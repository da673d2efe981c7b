//! What people read when a run is over: a page, and the same for machines as JSON and as JUnit XML.
//!
//! Everything in it may be a stranger's text. The page is one file without a script and without an address of anything
//! outside it; `docs/design/report.md` says how that is kept and why.

mod ansi;
mod cells;
mod chart;
mod comparison;
mod failed_line;
mod html;
mod image;
mod json;
mod junit;
mod left;
mod markdown;
mod markup;
mod output;
mod reporter;
mod table;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use blueproof_core::{
    attempt::Machine,
    domain::{
        Actor, AttemptId, BlueprintName, Bytes, Head, MetricResult, ProfileName, Revision, RunId, Usage,
        Verdict,
    },
    figures::Figures,
    ports::{AttemptOutput, ReportKind},
    view::RunView,
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use cells::{Cell, cells};
pub use comparison::{CellChange, CellEdit, Change, Comparison, FactChange, MetricChange, PackageChange};
pub use failed_line::FailedLine;
pub use reporter::{FolderReporter, assemble};

use crate::environment::EnvironmentReport;

/// All that is known of a run that is over, and of its last attempt. Known secrets must be redacted already.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The run.
    pub run: RunId,
    /// Its last attempt; `None` where it was over before it had one.
    pub attempt: Option<AttemptId>,
    /// The earlier attempts of the same run, in order.
    pub earlier: Vec<EarlierAttempt>,
    /// The blueprint.
    pub blueprint: BlueprintName,
    /// The profile under which it was tested.
    pub profile: Option<ProfileName>,
    /// The content that was tested.
    pub head: Head,
    /// The pull request that it came with.
    #[serde(default, alias = "change", skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<u64>,
    /// The commit that its folder was checked out from, where that lies in a git repository.
    pub revision: Option<Revision>,
    /// The values that were given to the blueprint's parameters.
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// Who asked for it.
    pub requested_by: Actor,
    /// The machine that it ran on. `None` where it ran on none, or nobody came to look.
    pub machine: Option<Machine>,
    /// The version of blueproof that carried it out.
    pub version: Option<String>,
    /// The notebook, relative to the checkout.
    pub notebook: PathBuf,
    /// When the attempt began, or where there is none, when the run was asked for.
    pub began_at: Timestamp,
    /// From its beginning to its end.
    pub took: SignedDuration,
    /// How it ended.
    pub verdict: Verdict,
    /// The notebook's file and the line in it that failed, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_line: Option<FailedLine>,
    /// What may explain the verdict, or will matter elsewhere.
    pub notices: Vec<Diagnostic>,
    /// What the run went through, in order.
    pub stages: Vec<StageReport>,
    /// The notebook's cells of every type, in order.
    pub cells: Vec<Cell>,
    /// What was measured, by name.
    pub metrics: BTreeMap<String, MetricResult>,
    /// What the blueprint expects.
    pub expectations: Vec<ExpectationReport>,
    /// What it used. `None` where nothing ran.
    pub usage: Option<Usage>,
    /// What people compare runs by, of this one.
    #[serde(default)]
    pub figures: Figures,
    /// The Python that ran it. `None` where there was none.
    pub environment: Option<EnvironmentReport>,
    /// What is kept beside the report, relative to its folder: the executed notebook and the kernel's own log.
    pub files: Vec<FileReport>,
    /// The folder of the artifacts, relative to the report's. `None` where there was no attempt.
    pub artifacts_folder: Option<PathBuf>,
    /// The files that the blueprint declares as artifacts.
    pub artifacts: Vec<ArtifactReport>,
    /// Commands that do the same again, one an item.
    pub reproduce: Vec<String>,
    /// What a reader must know before trusting a figure, such as that a cluster was emulated.
    pub caveats: Vec<String>,
    /// What is different from the attempt of the same blueprint that had passed last; `None` where none had.
    pub comparison: Option<Comparison>,
}

/// Returns what whoever goes by the verdict on a run must know, and what else the agent of its last attempt noticed, as its
/// signed log tells.
pub async fn notices(view: &RunView, output: &Arc<dyn AttemptOutput>) -> Vec<Diagnostic> {
    let Some(last) = view.attempts.last() else {
        return Vec::new();
    };
    let outcome = last.outcome.as_ref();
    let mut notices: Vec<Diagnostic> = late(view).into_iter().collect();
    notices.extend(
        outcome
            .into_iter()
            .flat_map(|outcome| outcome.notices.iter().cloned()),
    );
    let noticed = left::Left::by(last.id, output).await.notices();
    notices.extend(noticed.into_iter().filter(|notice| {
        let outcome = outcome.map(|outcome| &outcome.notices);
        outcome.is_none_or(|told| !told.contains(notice))
    }));
    notices
}

/// Returns that a run passed only after it had failed.
fn late(view: &RunView) -> Option<Diagnostic> {
    let late = view.passed_late()?;
    let diagnostic = Diagnostic::warning(Code::PassedLate, format!("it passed {late}"));
    Some(
        diagnostic
            .hint("one of the two was by chance: look for a seed, a race, or what differs between hosts"),
    )
}

/// An earlier attempt of the same run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierAttempt {
    /// Which.
    pub attempt: AttemptId,
    /// How it ended.
    pub verdict: Verdict,
}

/// A stage that an attempt went through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StageReport {
    /// Its name, such as `quota`.
    pub name: String,
    /// What came of it, in a few words.
    pub detail: String,
    /// How long it took; `None` where it did not end.
    pub took: Option<SignedDuration>,
}

/// Something that the blueprint expects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpectationReport {
    /// What is expected, such as `final_loss <= 0.629`.
    pub text: String,
    /// Whether it holds.
    pub result: ExpectationResult,
    /// Between which values it expects a metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
}

/// Between which values a metric is expected, both included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bounds {
    /// The metric's name.
    pub metric: String,
    /// The least that is allowed.
    pub min: Option<f64>,
    /// The most that is allowed.
    pub max: Option<f64>,
}

/// Whether an expectation holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExpectationResult {
    /// It does.
    Met {
        /// What there is, in a few words, where that says more than that it holds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actual: Option<String>,
    },
    /// It does not.
    Unmet(Diagnostic),
    /// The attempt ended before it was looked at.
    Unchecked,
    /// Nobody looks at it, for this reason: that it holds is not known.
    NotLookedAt(String),
}

/// A file that is kept beside the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileReport {
    /// Where it lies, relative to the report's folder.
    pub path: PathBuf,
    /// How large it is.
    pub size: Bytes,
}

/// A file that the blueprint declares as an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactReport {
    /// Where it lies, relative to the folder of artifacts.
    pub path: PathBuf,
    /// How large it is.
    pub size: Bytes,
    /// The SHA-256 of its content, in hexadecimal digits.
    #[serde(default)]
    pub sha256: String,
}

/// Returns a report as its kinds of files would hold it.
pub fn render(report: &Report, kind: ReportKind) -> String {
    match kind {
        ReportKind::Html => html::render(report),
        ReportKind::Json => json::render(report),
        ReportKind::Junit => junit::render(report),
    }
}

//! A run beside the attempt of the same blueprint that had passed last.
//!
//! Everything is from the store and from signed logs, so that no notebook can change what another is compared with. What
//! one side does not have is not compared, and said to be unknown.

mod cells;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use blueproof_core::{
    attempt::Machine,
    domain::{AttemptId, Head, MetricResult, Revision},
    ports::AttemptOutput,
    view::{AttemptView, ParameterChange, RunView},
};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::left::Left;
use crate::environment::EnvironmentReport;

pub use cells::{CellChange, CellEdit};

/// Times that differ by less, or by a smaller factor, are as good as equal.
const NOTABLE_DIFFERENCE: SignedDuration = SignedDuration::from_millis(500);
const NOTABLE_FACTOR: f64 = 1.5;

/// Values of a metric that differ by a smaller part are as good as equal.
const NOTABLE_PERCENT: f64 = 5.0;

/// What is different from the attempt that passed last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// The attempt that passed.
    pub attempt: AttemptId,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The commit that its folder was checked out from.
    pub revision: Option<Revision>,
    /// The content that it tested.
    pub head: Head,
    /// Whether this one tested the same content.
    pub is_same_content: bool,
    /// The parameters whose values differ.
    pub parameters: Vec<ParameterChange>,
    /// How long the attempts took; `now` is absent where there was none.
    pub took: Change<SignedDuration>,
    /// The code cells, in order; `None` where one of the executed notebooks is not there.
    pub cells: Option<Vec<CellChange>>,
    /// The metrics that either had.
    pub metrics: Vec<MetricChange>,
    /// The packages that differ, by name; `None` where one of the environments is not known.
    pub packages: Option<Vec<PackageChange>>,
    /// What else differs of the environments and machines.
    pub environment: Vec<FactChange>,
}

/// What was and what is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change<T> {
    /// In the attempt that passed.
    pub then: Option<T>,
    /// In this one.
    pub now: Option<T>,
}

/// A metric in both attempts. `None` is no finite number, or no value at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricChange {
    /// Its name.
    pub name: String,
    /// Its last value in the attempt that passed.
    pub then: Option<f64>,
    /// Its last value in this one.
    pub now: Option<f64>,
    /// By how much it is larger now.
    pub difference: Option<f64>,
    /// The difference in percent of what it was.
    pub percent: Option<f64>,
}

/// A package of which another version is installed, or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageChange {
    /// Its name.
    pub name: String,
    /// Its version then; absent where it was not installed.
    pub then: Option<String>,
    /// Its version now; absent where it is not installed.
    pub now: Option<String>,
}

/// A fact of the environment or the machine that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FactChange {
    /// What, such as `python`.
    pub name: String,
    /// What it was.
    pub then: String,
    /// What it is.
    pub now: String,
}

impl Comparison {
    /// Compares a run that has ended with `passed`, the run of its last pass. `None` where none had passed.
    ///
    /// Logs and executed notebooks of both are read.
    pub async fn of(view: &RunView, passed: &RunView, output: &Arc<dyn AttemptOutput>) -> Option<Self> {
        let now = match view.attempts.last() {
            Some(attempt) => Some(Left::by(attempt.id, output).await),
            None => None,
        };
        Self::with(view, now.as_ref(), passed, output).await
    }

    /// Compares a run, of whose last attempt `now` was left.
    pub(super) async fn with(
        view: &RunView,
        now: Option<&Left>,
        passed: &RunView,
        output: &Arc<dyn AttemptOutput>,
    ) -> Option<Self> {
        let pass = view.last_pass.as_ref()?;
        let then = passed.attempts.iter().find(|then| then.id == pass.attempt)?;
        let then_left = Left::by(then.id, output).await;
        let last = view.attempts.last();
        let environments = (
            then_left.environment.as_ref(),
            now.and_then(|now| now.environment.as_ref()),
        );
        let machines = (
            then_left.machine.as_ref(),
            now.and_then(|now| now.machine.as_ref()),
        );
        Some(Self {
            attempt: then.id,
            ended_at: then.ended_at?,
            revision: passed.revision.clone(),
            head: passed.subject.head.clone(),
            is_same_content: passed.subject.head == view.subject.head,
            parameters: pass.parameters.clone(),
            took: Change {
                then: took(then),
                now: last.and_then(took),
            },
            cells: now.and_then(|now| cells::changes(&then_left.cells(), &now.cells())),
            metrics: metrics(&measured(Some(then)), &measured(last)),
            packages: environments
                .0
                .zip(environments.1)
                .map(|(then, now)| packages(then, now)),
            environment: facts(environments, machines),
        })
    }

    /// Returns the cells of which it matters how long they took, the largest difference first.
    pub fn notable_cells(&self) -> Vec<&CellChange> {
        let cells = self.cells.iter().flatten();
        let mut notable: Vec<_> = cells.filter(|cell| cell.took.is_notable()).collect();
        notable.sort_by_key(|cell| std::cmp::Reverse(cell.took.distance()));
        notable
    }

    /// Returns the metrics whose values differ by more than they do by chance.
    pub fn notable_metrics(&self) -> impl Iterator<Item = &MetricChange> {
        self.metrics.iter().filter(|metric| metric.is_notable())
    }

    /// Returns whether anything of what was tested, and in which surroundings, is known to differ.
    pub fn is_same_question(&self) -> bool {
        self.is_same_content
            && self.parameters.is_empty()
            && self.environment.is_empty()
            && self.packages.as_ref().is_some_and(Vec::is_empty)
    }
}

impl Change<SignedDuration> {
    /// Returns whether the times differ by more than they do by chance.
    pub fn is_notable(&self) -> bool {
        let (Some(then), Some(now)) = (self.then, self.now) else {
            return false;
        };
        let (short, long) = (then.min(now).as_secs_f64(), then.max(now).as_secs_f64());
        self.distance() >= NOTABLE_DIFFERENCE && long >= short * NOTABLE_FACTOR
    }

    fn distance(&self) -> SignedDuration {
        match (self.then, self.now) {
            (Some(then), Some(now)) => (then - now).abs(),
            (Some(_), None) | (None, Some(_)) | (None, None) => SignedDuration::ZERO,
        }
    }
}

impl MetricChange {
    fn is_notable(&self) -> bool {
        match (self.then, self.now) {
            (Some(then), Some(_)) => match self.percent {
                Some(percent) => percent.abs() >= NOTABLE_PERCENT,
                None => self.now != Some(then),
            },
            (Some(_), None) | (None, Some(_)) | (None, None) => false,
        }
    }
}

fn took(attempt: &AttemptView) -> Option<SignedDuration> {
    Some(attempt.took(attempt.ended_at?))
}

/// Metrics by name.
type Measured<'a> = BTreeMap<&'a str, &'a MetricResult>;

fn measured(attempt: Option<&AttemptView>) -> Measured<'_> {
    let outcome = attempt.and_then(|attempt| attempt.outcome.as_ref());
    let metrics = outcome.into_iter().flat_map(|outcome| &outcome.metrics);
    metrics.map(|(name, metric)| (name.as_str(), metric)).collect()
}

fn last_of(metrics: &Measured<'_>, name: &str) -> Option<f64> {
    metrics.get(name)?.last
}

fn metrics(then: &Measured<'_>, now: &Measured<'_>) -> Vec<MetricChange> {
    let names: BTreeSet<_> = then.keys().chain(now.keys()).copied().collect();
    let change = |name: &str| {
        let (then, now) = (last_of(then, name), last_of(now, name));
        let difference = then.zip(now).map(|(then, now)| now - then);
        let percent = difference
            .zip(then)
            .map(|(difference, then)| difference / then.abs() * 100.0);
        MetricChange {
            name: name.to_owned(),
            then,
            now,
            difference: difference.filter(|difference| difference.is_finite()),
            percent: percent.filter(|percent| percent.is_finite()),
        }
    };
    names.into_iter().map(change).collect()
}

fn packages(then: &EnvironmentReport, now: &EnvironmentReport) -> Vec<PackageChange> {
    let (then, now) = (versions(then), versions(now));
    let names: BTreeSet<_> = then.keys().chain(now.keys()).copied().collect();
    let changes = names.into_iter().map(|name| PackageChange {
        name: name.to_owned(),
        then: then.get(name).map(|version| (*version).to_owned()),
        now: now.get(name).map(|version| (*version).to_owned()),
    });
    changes.filter(|change| change.then != change.now).collect()
}

fn versions(environment: &EnvironmentReport) -> BTreeMap<&str, &str> {
    let packages = environment.packages.iter();
    packages
        .map(|package| (package.name.as_str(), package.version.as_str()))
        .collect()
}

/// Returns what differs of what both sides know.
fn facts(
    environments: (Option<&EnvironmentReport>, Option<&EnvironmentReport>),
    machines: (Option<&Machine>, Option<&Machine>),
) -> Vec<FactChange> {
    let mut changes = Vec::new();
    let mut compare = |name: &str, then: &str, now: &str| {
        if then != now {
            changes.push(FactChange {
                name: name.to_owned(),
                then: or_none(then),
                now: or_none(now),
            });
        }
    };
    if let (Some(then), Some(now)) = environments {
        compare("python", &then.python, &now.python);
    }
    if let (Some(then), Some(now)) = machines {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        compare("machine", &then.host, &now.host);
        compare("system", &then.system, &now.system);
        compare("processor", &text(&then.processor), &text(&now.processor));
        compare("gpu", &then.devices.join(", "), &now.devices.join(", "));
        compare("gpu driver", &text(&then.driver), &text(&now.driver));
    }
    changes
}

fn or_none(text: &str) -> String {
    if text.is_empty() {
        "none".into()
    } else {
        text.into()
    }
}

//! Holds the table of metrics to what Kueue's own code registers, so that one that is renamed there is noticed here.
//!
//! Each metric of Kueue's is either in our table, with the same kind, labels and bounds, or among those left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use blueproof_core::metrics::{Family, KUEUE, Kind, LEFT_OUT};
use clap::Args;
use serde::Deserialize;

/// What to compare.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Kueue's own code.
    #[arg(long, value_name = "PATH", default_value = "target/tools/kueue-oracle")]
    oracle: PathBuf,
}

/// A metric, as either side has it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Metric {
    name: String,
    kind: String,
    labels: BTreeSet<String>,
    #[serde(default)]
    bounds: Vec<f64>,
}

/// Compares, prints each difference, and returns whether there is none.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let theirs = registered(&arguments.oracle)?;
    ensure!(!theirs.is_empty(), "the oracle lists no metric");
    let differences = compare(&theirs, &ours());
    for difference in &differences {
        println!("{difference}");
    }
    let failed = differences.len();
    println!("{} passed, {failed} failed", theirs.len().saturating_sub(failed));
    Ok(differences.is_empty())
}

/// Returns what Kueue registers.
fn registered(oracle: &Path) -> Result<Vec<Metric>> {
    let listed = Command::new(oracle).arg("metrics").output();
    let listed = listed.with_context(|| {
        let oracle = oracle.display();
        format!("could not start the oracle `{oracle}`; `cargo xtask kueue-diff` builds it")
    })?;
    ensure!(
        listed.status.success(),
        "the oracle failed: {}",
        String::from_utf8_lossy(&listed.stderr)
    );
    let lines = serde_json::Deserializer::from_slice(&listed.stdout).into_iter();
    lines
        .collect::<Result<_, _>>()
        .context("the oracle lists metrics in another form")
}

fn ours() -> Vec<Metric> {
    KUEUE.iter().copied().map(Metric::from).collect()
}

impl From<&Family> for Metric {
    fn from(family: &Family) -> Self {
        let constant = family.constant.iter().map(|(label, _)| label);
        Self {
            name: family.name.to_owned(),
            kind: family.kind.as_str().to_owned(),
            labels: family
                .labels
                .iter()
                .chain(constant)
                .map(ToString::to_string)
                .collect(),
            bounds: match family.kind {
                Kind::Counter | Kind::Gauge => Vec::new(),
                Kind::Histogram(bounds) => bounds.to_vec(),
            },
        }
    }
}

fn compare(theirs: &[Metric], ours: &[Metric]) -> Vec<String> {
    let left_out: BTreeSet<&str> = LEFT_OUT.iter().map(|(name, _)| *name).collect();
    let mut known: BTreeMap<&str, &Metric> = ours.iter().map(|ours| (ours.name.as_str(), ours)).collect();
    let mut unused = left_out.clone();
    let mut differences = Vec::new();
    for theirs in theirs {
        let name = theirs.name.as_str();
        let is_left_out = unused.remove(name);
        match known.remove(name) {
            Some(ours) if ours == theirs => {}
            Some(ours) => differences.push(format!(
                "{name} differs:\n  Kueue's {theirs:?}\n  ours    {ours:?}"
            )),
            None if is_left_out => {}
            None => differences.push(format!(
                "{name} is Kueue's, and neither in our table nor left out"
            )),
        }
    }
    let gone = known.into_keys().chain(unused);
    differences.extend(gone.map(|name| format!("{name} is in our tables, and not Kueue's")));
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kueues() -> Vec<Metric> {
        let left_out = LEFT_OUT.iter().map(|(name, _)| Metric {
            name: (*name).to_owned(),
            kind: "gauge".into(),
            labels: BTreeSet::new(),
            bounds: Vec::new(),
        });
        ours().into_iter().chain(left_out).collect()
    }

    #[test]
    fn what_is_renamed_changed_new_or_gone_is_a_difference() {
        assert_eq!(compare(&kueues(), &ours()), [""; 0]);
        let mut renamed = kueues();
        renamed[0].name = "kueue_tries_total".into();
        assert_eq!(
            compare(&renamed, &ours()),
            [
                "kueue_tries_total is Kueue's, and neither in our table nor left out",
                "kueue_admission_attempts_total is in our tables, and not Kueue's"
            ]
        );
        let mut changed = kueues();
        changed[1].labels.insert("pod".into());
        let [difference] = &compare(&changed, &ours())[..] else {
            panic!("one differs");
        };
        assert!(
            difference.starts_with("kueue_pending_workloads differs:"),
            "{difference}"
        );
        let mut gone = kueues();
        gone.pop();
        assert_eq!(
            compare(&gone, &ours()),
            ["multikueue_workloads_dispatched_total is in our tables, and not Kueue's"]
        );
    }
}

//! What GitHub is answered, and how soon: a decision of the gate, a webhook, a runner for a job; how soon a lost session is made good, and
//! what scale sets cost.
//!
//! The benches of `blueproof-core`, `blueproof-scheduler` and `blueproof-runners` print the figures. For the last the service is its model with
//! 50 ms for each answer, in the same process.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{
    figures::{Quantity, Row, Table, grouped},
    inside,
};
use crate::workspace::Workspace;

/// GitHub's own controller took 15 seconds from 0 to 30 runners (ARC #3276).
const LATENCY_AT_MOST: f64 = 0.25;
const RECOVERY_AT_MOST: f64 = 5.0;
const DECISION_AT_MOST: f64 = 0.005;
/// A webhook is answered within a second.
const ACKNOWLEDGED_WITHIN: f64 = 1.0;
const MEMORY_AT_MOST: u64 = 64 << 20;
/// The number of jobs, and that of scale sets, that the limits are about.
const LIMITED: (f64, usize) = (400.0, 100);

/// One line of the bench. Times are in seconds.
#[derive(Debug, Deserialize)]
struct Figure {
    name: String,
    #[serde(default)]
    jobs: f64,
    #[serde(default)]
    p50: f64,
    #[serde(default)]
    p95: f64,
    #[serde(default)]
    p99: f64,
    #[serde(default)]
    calls: f64,
    #[serde(default)]
    waiting: f64,
    #[serde(default)]
    mean: Option<f64>,
    #[serde(default)]
    sets: usize,
    #[serde(default)]
    bytes: Option<u64>,
}

/// Measures all of it.
pub(super) fn measure(workspace: &Workspace) -> Result<Vec<Table>> {
    let mut gate = figures(workspace, ("blueproof-core", "scheduler"), &[])?;
    gate.retain(|figure| figure.name == "one approval");
    let webhooks = figures(workspace, ("blueproof-scheduler", "webhooks"), &[])?;
    let runners = ("blueproof-runners", "github");
    let mut runner_figures = figures(workspace, runners, &[])?;
    for sets in ["1", "100", "500"] {
        runner_figures.extend(figures(workspace, runners, &["memory", sets])?);
    }
    Ok(vec![
        approvals(&gate),
        answers(&webhooks),
        latency(&runner_figures),
        costs(&runner_figures)?,
    ])
}

/// Returns the lines of a bench, by its package and name.
fn figures(workspace: &Workspace, (package, bench): (&str, &str), arguments: &[&str]) -> Result<Vec<Figure>> {
    let lines = inside::lines(workspace, package, bench, arguments)?;
    let figures = lines
        .iter()
        .map(|line| serde_json::from_str(line).with_context(|| format!("not a figure: {line}")));
    figures.collect()
}

/// What the gate takes to decide about one approval.
fn approvals(figures: &[Figure]) -> Table {
    let row = |figure: &Figure| {
        let values = [figure.p99, figure.p50].map(|time| Some(Quantity::seconds(time)));
        let name = format!("{} runs that wait", grouped(figure.waiting));
        Row::of(name, values.into()).seconds_at_most(DECISION_AT_MOST)
    };
    Table {
        title: "one decision of the gate".into(),
        columns: vec!["p99".into(), "p50".into()],
        rows: figures.iter().map(row).collect(),
        notes: vec![
            "an approval of a run that waits for one, up to its place in the queue; without the store".into(),
        ],
    }
}

/// How soon webhooks are answered.
fn answers(figures: &[Figure]) -> Table {
    let timed = figures.iter().filter(|figure| figure.mean.is_none());
    let row = |figure: &Figure| {
        let values = [figure.p95, figure.p50, figure.p99].map(|time| Some(Quantity::seconds(time)));
        let row = Row::of(figure.name.clone(), values.into());
        match figure.name.ends_with("acknowledgement") {
            true => row.seconds_at_most(ACKNOWLEDGED_WITHIN),
            false => row,
        }
    };
    let counted = figures
        .iter()
        .filter_map(|figure| Some((&figure.name, figure.mean?)));
    let mut notes: Vec<String> = counted.map(|(name, mean)| format!("{name}: {mean:.1}")).collect();
    notes.push(
        "GitHub is a fake that answers at once; the commit is fetched with git from this machine".into(),
    );
    Table {
        title: "webhooks".into(),
        columns: vec!["p95".into(), "p50".into(), "p99".into()],
        rows: timed.map(row).collect(),
        notes,
    }
}

/// One row a number of jobs. The limit is of the first column, so that the 95th percentile stands there.
fn latency(figures: &[Figure]) -> Table {
    let row = |figure: &Figure| {
        let values = [figure.p95, figure.p50, figure.p99].map(|time| Some(Quantity::seconds(time)));
        let row = Row::of(format!("{} jobs at once", figure.jobs), values.into());
        match figure.jobs >= LIMITED.0 {
            true => row.seconds_at_most(LATENCY_AT_MOST),
            false => row,
        }
    };
    let measured = || figures.iter().filter(|figure| figure.name == "latency");
    let calls = measured().map(|figure| format!("{:.1} for {}", figure.calls, figure.jobs));
    Table {
        title: "message received to runner handed over".into(),
        columns: vec!["p95".into(), "p50".into(), "p99".into()],
        rows: measured().map(row).collect(),
        notes: vec![
            "each answer of the service takes 50 ms, and one of them is the registration".into(),
            format!(
                "calls to GitHub for each job, polls among them: {}",
                calls.collect::<Vec<_>>().join(", ")
            ),
        ],
    }
}

fn costs(figures: &[Figure]) -> Result<Table> {
    let mut rows = Vec::new();
    for figure in figures {
        match figure.name.as_str() {
            "recovery" => {
                // The slowest of the rounds.
                let values = vec![Some(Quantity::seconds(figure.p99))];
                rows.push(
                    Row::of("lost session, with 10 jobs queued", values).seconds_at_most(RECOVERY_AT_MOST),
                );
            }
            "memory" => {
                let bytes = figure
                    .bytes
                    .context("the memory of a process cannot be read here")?;
                let name = format!("memory with {} scale sets", figure.sets);
                let row = Row::of(name, vec![Some(Quantity::bytes(bytes))]);
                rows.push(match figure.sets == LIMITED.1 {
                    true => row.bytes_at_most(MEMORY_AT_MOST),
                    false => row,
                });
            }
            _ => {}
        }
    }
    Ok(Table {
        title: "scale sets".into(),
        columns: vec!["one process".into()],
        rows,
        notes: vec![
            "recovery is the slowest of five, until the last of the jobs has its runner".into(),
            "memory has the fake service in it, and no connections with TLS".into(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(line: &str) -> Figure {
        serde_json::from_str(line).expect("a figure")
    }

    #[test]
    fn what_is_slower_or_larger_than_it_may_be_breaks_its_limit() {
        let lines = [
            r#"{"name":"latency","jobs":1,"p50":0.9,"p95":0.9,"p99":0.9,"calls":9.0}"#,
            r#"{"name":"latency","jobs":400,"p50":0.1,"p95":0.26,"p99":0.3,"calls":2.2}"#,
            r#"{"name":"recovery","p50":0.5,"p99":5.1}"#,
            r#"{"name":"memory","sets":100,"bytes":67108865}"#,
            r#"{"name":"memory","sets":500,"bytes":99999999}"#,
        ];
        let figures = lines.map(figure);
        let within = |table: Table| table.rows.iter().map(Row::is_within).collect::<Vec<_>>();
        assert_eq!(within(latency(&figures)), [true, false]);
        assert_eq!(within(costs(&figures).expect("a table")), [false, false, true]);
    }
}

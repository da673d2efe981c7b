//! What is measured inside a process of the crates themselves: the benches of `blueproof-core` print a line of JSON
//! for each figure, and here they become tables.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::figures::{Quantity, Row, Table, grouped};
use crate::{
    process::{Ended, Invocation, print_line},
    workspace::Workspace,
};

/// How much the cost of one event may grow from 10 to 100,000 waiting runs: the logarithm grows fivefold.
const GROWTH_AT_MOST: f64 = 5.0;

/// One line of a bench. Times are in seconds.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Figure {
    name: String,
    p50: f64,
    p99: f64,
    per_second: f64,
    #[serde(default)]
    waiting: Option<f64>,
    #[serde(default)]
    events: Option<f64>,
}

/// Measures the scheduler with few and with many runs that wait.
pub(super) fn scheduler(workspace: &Workspace) -> Result<Vec<Table>> {
    Ok(vec![scheduler_table(&figures(workspace, "scheduler")?)?])
}

/// Measures the SQLite store.
pub(super) fn store(workspace: &Workspace) -> Result<Vec<Table>> {
    Ok(vec![store_table(&figures(workspace, "store")?)?])
}

fn figures(workspace: &Workspace, bench: &str) -> Result<Vec<Figure>> {
    let lines = lines(workspace, "blueproof-core", bench, &[])?;
    let figures = lines
        .iter()
        .map(|line| serde_json::from_str(line).with_context(|| format!("not a figure: {line}")));
    figures.collect()
}

/// Runs a bench of a package, and returns the lines of JSON that it prints.
pub(super) fn lines(
    workspace: &Workspace,
    package: &str,
    bench: &str,
    arguments: &[&str],
) -> Result<Vec<String>> {
    let invocation = Invocation::cargo([
        "bench",
        "--quiet",
        "--locked",
        "--package",
        package,
        "--bench",
        bench,
        "--",
    ]);
    let invocation = invocation.with(arguments.iter().copied());
    print_line(&format!("$ {invocation}"));
    let mut lines = Vec::new();
    let ended = invocation.run(&workspace.root, |line| lines.push(line.to_owned()))?;
    ensure!(
        ended == Ended::Well,
        "`{invocation}` failed\n{}",
        lines.join("\n")
    );
    lines.retain(|line| line.starts_with('{'));
    Ok(lines)
}

/// One row an event, one column a number of waiting runs.
fn scheduler_table(figures: &[Figure]) -> Result<Table> {
    let mut waiting: Vec<f64> = figures.iter().filter_map(|figure| figure.waiting).collect();
    waiting.sort_by(f64::total_cmp);
    waiting.dedup();
    let mut names: Vec<&str> = Vec::new();
    for figure in figures {
        if !names.contains(&figure.name.as_str()) {
            names.push(&figure.name);
        }
    }
    let row = |name: &&str| {
        let of = |waiting: &f64| {
            let is_it = |figure: &&Figure| figure.name == **name && figure.waiting == Some(*waiting);
            figures.iter().find(is_it).map(|figure| figure.p50)
        };
        let times: Vec<Option<f64>> = waiting.iter().map(of).collect();
        let (fewest, most) = (times.first().copied().flatten(), times.last().copied().flatten());
        let (fewest, most) = fewest
            .zip(most)
            .context("a number of waiting runs was not measured")?;
        let values = times.iter().map(|time| time.map(Quantity::seconds)).collect();
        Ok(Row::of(*name, values)
            .ratio(most / fewest)
            .ratio_at_most(GROWTH_AT_MOST))
    };
    let slowest = figures
        .iter()
        .map(|figure| figure.per_second)
        .fold(f64::INFINITY, f64::min);
    Ok(Table {
        title: "scheduler, runs that wait".into(),
        columns: waiting.iter().map(|waiting| grouped(*waiting)).collect(),
        rows: names.iter().map(row).collect::<Result<_>>()?,
        notes: vec![
            format!(
                "medians; the slowest event of all goes {} times into a second",
                grouped(slowest)
            ),
            "the ratio is the most waiting to the fewest; the logarithm alone grows fivefold".into(),
        ],
    })
}

fn store_table(figures: &[Figure]) -> Result<Table> {
    let row = |figure: &Figure| {
        let (name, events) = match figure.events {
            Some(events) if figure.name == "replay" => (format!("replay of {}", grouped(events)), events),
            Some(events) => (format!("append of {}", grouped(events)), events),
            None => (figure.name.clone(), 1.0),
        };
        let values = [
            Quantity::seconds(figure.p50),
            Quantity::seconds(figure.p99),
            Quantity::per_second(figure.per_second * events),
        ];
        Row::of(name, values.map(Some).into())
    };
    ensure!(!figures.is_empty(), "the store's bench printed nothing");
    Ok(Table {
        title: "store, events".into(),
        columns: vec!["p50".into(), "p99".into(), "events".into()],
        rows: figures.iter().map(row).collect(),
        notes: vec!["an append has returned when it outlives a power cut (WAL, synchronous=FULL)".into()],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(line: &str) -> Figure {
        serde_json::from_str(line).expect("a figure")
    }

    #[test]
    fn what_grows_with_the_number_of_waiting_runs_breaks_its_limit() {
        let figures = [
            r#"{"name":"flat","waiting":10.0,"p50":1e-6,"p99":2e-6,"perSecond":9e5}"#,
            r#"{"name":"steep","waiting":10.0,"p50":1e-6,"p99":2e-6,"perSecond":9e5}"#,
            r#"{"name":"flat","waiting":1000.0,"p50":2e-6,"p99":3e-6,"perSecond":4e5}"#,
            r#"{"name":"steep","waiting":1000.0,"p50":1e-4,"p99":3e-4,"perSecond":9e3}"#,
        ];
        let table = scheduler_table(&figures.map(figure)).expect("a table");
        assert_eq!(table.columns, ["10", "1,000"]);
        let within: Vec<_> = table.rows.iter().map(Row::is_within).collect();
        assert_eq!(within, [true, false]);
    }

    #[test]
    fn a_batch_counts_with_all_of_its_events() {
        let line = r#"{"name":"append","events":16.0,"p50":0.002,"p99":0.004,"perSecond":500.0}"#;
        let text = store_table(&[figure(line)]).expect("a table").to_string();
        assert!(text.contains("append of 16"), "{text}");
        assert!(text.contains("8,000/s"), "{text}");
    }
}

//! A store of 1,000,000 facts and 50,000 settled runs: what opening it costs, and what a command on it takes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::{
    PROGRAMS, build,
    figures::{Quantity, Row, Table, grouped, median},
    inside,
    timed::{Watch, time},
};
use crate::{process::Invocation, workspace::Workspace};

/// How many runs the store has: settled ones, and ones that have quota or wait for it.
const SETTLED: u64 = 50_000;
const UNSETTLED: u64 = 20;
/// How many facts it has at least.
const FACTS: f64 = 1e6;

/// The longest and largest that opening may be: a command that leads opens the store first.
const OPENED_WITHIN: f64 = 0.1;
const BYTES_AT_MOST: u64 = 64 << 20;
/// The longest that a command may take, from the start of the process to its end.
const ANSWERED_WITHIN: f64 = 0.02;

/// How often each is done; the median counts.
const ROUNDS: usize = 15;

/// What one opening comes to.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Opened {
    seconds: f64,
    peak_bytes: Option<u64>,
    facts: f64,
    runs: f64,
}

/// A store with the command that is asked about it.
struct Asked {
    program: PathBuf,
    folder: PathBuf,
    store: PathBuf,
}

/// Makes the store, opens it, and asks about it.
pub(super) fn measure(workspace: &Workspace) -> Result<Vec<Table>> {
    build(workspace, &PROGRAMS)?;
    let folder = workspace.target.join("bench/large-store");
    let store = make(workspace, &folder, SETTLED, UNSETTLED)?;
    let opened = (0..ROUNDS).map(|_| open(workspace, &store));
    let opened: Vec<Opened> = opened.collect::<Result<_>>()?;
    let first = opened.first().context("it was opened")?;
    ensure!(first.facts >= FACTS, "the store has {} facts", first.facts);
    let seconds = median(opened.iter().map(|opened| opened.seconds).collect());
    let peak = opened.iter().filter_map(|opened| opened.peak_bytes).max();
    let mut rows = vec![
        Row::of("open, as a leader does", vec![seconds.map(Quantity::seconds)])
            .seconds_at_most(OPENED_WITHIN),
        Row::of("peak memory of the process", vec![peak.map(Quantity::bytes)]).bytes_at_most(BYTES_AT_MOST),
    ];
    let asked = Asked {
        program: workspace.target.join("release/blueproof"),
        folder,
        store,
    };
    let (oldest, newest) = ("r-7".to_owned(), format!("r-{}", SETTLED + UNSETTLED));
    let version = median(asked.times(&["--version"])?);
    rows.push(Row::of("--version", vec![version.map(Quantity::seconds)]));
    for words in [
        &["get", "runs"][..],
        &["why", &newest],
        &["describe", "run", &oldest],
    ] {
        let took = median(asked.times(&[words, &["--store", &shown(&asked.store)]].concat())?);
        let row = Row::of(words.join(" "), vec![took.map(Quantity::seconds)]);
        rows.push(row.seconds_at_most(ANSWERED_WITHIN));
    }
    Ok(vec![table(first, rows, &asked.store)])
}

/// Makes a store in a folder that is empty then.
pub(super) fn make(workspace: &Workspace, folder: &Path, settled: u64, unsettled: u64) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("could not remove `{}`", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("could not make `{}`", folder.display()))?;
    let store = folder.join("blueproof.db");
    let arguments = [
        "make",
        &shown(&store),
        &settled.to_string(),
        &unsettled.to_string(),
    ];
    inside::lines(workspace, "blueproof-core", "large_store", &arguments)?;
    Ok(store)
}

fn open(workspace: &Workspace, store: &Path) -> Result<Opened> {
    let lines = inside::lines(
        workspace,
        "blueproof-core",
        "large_store",
        &["open", &shown(store)],
    )?;
    let line = lines.first().context("the bench printed nothing")?;
    serde_json::from_str(line).with_context(|| format!("not a figure: {line}"))
}

impl Asked {
    /// Returns how long each whole process takes.
    fn times(&self, arguments: &[&str]) -> Result<Vec<f64>> {
        let invocation =
            Invocation::of(&self.program, arguments.iter().copied()).env("HOME", &shown(&self.folder));
        let took = (0..ROUNDS).map(|_| {
            let timed = time(&invocation, &self.folder, &self.folder, Watch::Nothing)?;
            Ok(timed.took.as_secs_f64())
        });
        took.collect()
    }
}

fn table(opened: &Opened, rows: Vec<Row>, store: &Path) -> Table {
    let size = fs::metadata(store).map_or(0, |about| about.len());
    Table {
        title: format!(
            "store of {} facts, {} runs",
            grouped(opened.facts),
            grouped(opened.runs)
        ),
        columns: vec!["blueproof".into()],
        rows,
        notes: vec![
            format!(
                "medians of {ROUNDS}, each in a process of its own; the file has {:.0} MB",
                size as f64 / 1e6
            ),
            "opening takes up a snapshot of 1,000 settled runs and applies 4,000 facts".into(),
        ],
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

//! `cargo xtask bench`: how fast and how large we are, beside what people use today.
//!
//! Everything is measured side by side in one run, since a figure from another day or machine compares with nothing.
//! A limit that is broken fails the command; no test depends on time.

mod api;
mod check;
mod figures;
mod flood;
mod github;
mod gpu;
mod inside;
mod large_store;
mod memory;
mod queue;
mod run;
mod sides;
mod timed;
mod timeline;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;

use self::{
    figures::{Row, Table},
    sides::Sides,
};
use crate::{
    process::{Ended, Invocation, print_line},
    workspace::Workspace,
};

/// What to measure, how often, and where to keep it.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only these, in this order; none is every one.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// How often each side runs, by turns.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Where the figures are kept as JSON; else below `target/bench`.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The programs that most parts measure. Each part builds both: cargo builds libraries anew where other features are asked for.
const PROGRAMS: [&str; 2] = ["blueproof", "blueproof-scheduler"];

/// Something that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// `blueproof run nano-lm`, the whole process, against papermill on the same notebook.
    Run,
    /// Durable events a second, and how fast they are replayed.
    Store,
    /// What opening a store of 1,000,000 facts costs, and how long commands on it take.
    LargeStore,
    /// Requests a second of the scheduler's API with 200 followers, and memory of an idle scheduler.
    Api,
    /// Memory and time while a notebook prints 200,000 lines.
    Flood,
    /// Time and memory of `check` on a notebook of 5 MB.
    Check,
    /// What one event costs with 10, 1,000 and 100,000 runs that wait.
    Scheduler,
    /// Decisions of the embedded queue a second, beside Kueue's own code on the same load.
    Queue,
    /// Scrapes of the GPU exporter, beside exporters in Python and Go on the same driver.
    Gpu,
    /// How fast jobs of a runner scale set get their runners, and what scale sets cost.
    #[value(name = "github")]
    GitHub,
}

/// All that was measured, and on what.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Measured {
    at: Timestamp,
    commit: Option<String>,
    cores: usize,
    /// How many processes wanted to run, on average of a minute: before and after.
    load: [Option<f64>; 2],
    tables: Vec<Table>,
}

/// Measures, prints a table, and keeps the figures.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<ExitCode> {
    let parts = match arguments.parts.as_slice() {
        [] => Part::value_variants(),
        some => some,
    };
    let before = load();
    let tables = measure(workspace, parts, arguments.rounds.into())?;
    let measured = Measured {
        at: Timestamp::now(),
        commit: commit(&workspace.root),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        load: [before, load()],
        tables,
    };
    let path = match &arguments.json {
        Some(path) => path.clone(),
        None => workspace.target.join("bench/figures.json"),
    };
    keep(&measured, &path)?;
    print_line(&measured.to_string());
    print_line(&format!("kept in {}", path.display()));
    let holds = measured
        .tables
        .iter()
        .flat_map(|table| &table.rows)
        .all(Row::is_within);
    Ok(if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn measure(workspace: &Workspace, parts: &[Part], rounds: usize) -> Result<Vec<Table>> {
    let mut sides = None;
    let mut tables = Vec::new();
    for part in parts {
        if sides.is_none() && matches!(part, Part::Run | Part::Flood) {
            sides = Some(Sides::prepare(workspace)?);
        }
        tables.extend(match (part, &sides) {
            (Part::Run, Some(sides)) => run::measure(workspace, sides, rounds)?,
            (Part::Flood, Some(sides)) => flood::measure(sides)?,
            (Part::Run | Part::Flood, None) => unreachable!("prepared above"),
            (Part::Check, _) => check::measure(workspace)?,
            (Part::Store, _) => inside::store(workspace)?,
            (Part::Api, _) => api::measure(workspace)?,
            (Part::LargeStore, _) => large_store::measure(workspace)?,
            (Part::Scheduler, _) => inside::scheduler(workspace)?,
            (Part::Queue, _) => queue::measure(workspace)?,
            (Part::Gpu, _) => gpu::measure(workspace, rounds)?,
            (Part::GitHub, _) => github::measure(workspace)?,
        });
    }
    Ok(tables)
}

/// Builds packages for release.
fn build(workspace: &Workspace, packages: &[&str]) -> Result<()> {
    let packages = packages.iter().flat_map(|package| ["--package", package]);
    let build = Invocation::cargo(["build", "--release", "--locked"].into_iter().chain(packages));
    print_line(&format!("$ {build}"));
    ensure!(build.show(&workspace.root)? == Ended::Well, "`{build}` failed");
    Ok(())
}

fn keep(measured: &Measured, path: &Path) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("could not make `{}`", folder.display()))?;
    }
    let text = serde_json::to_vec_pretty(measured).expect("plain data");
    fs::write(path, text).with_context(|| format!("could not write `{}`", path.display()))
}

fn commit(root: &Path) -> Option<String> {
    let head = Invocation::of("git", ["rev-parse", "HEAD"]).ask(root)?;
    Some(head.trim().to_owned())
}

fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for table in &self.tables {
            write!(f, "\n{table}")?;
        }
        let [before, after] = self
            .load
            .map(|load| load.map_or("?".into(), |load| format!("{load:.1}")));
        write!(f, "\n{} cores; load {before} before, {after} after", self.cores)
    }
}

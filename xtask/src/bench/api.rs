//! A scheduler that serves its API on loopback: memory while idle, requests a second with 200 followers of a run's records,
//! and how soon news reach a follower.
//!
//! Every load is bounded in requests and in time, and asks nothing but the process that this starts.

mod followers;
mod load;
mod scheduler;

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use serde_json::json;

use self::{
    followers::{Followers, Stream},
    load::Load,
    scheduler::Scheduler,
};
use super::{
    PROGRAMS, build,
    figures::{Quantity, Row, Table, percentile},
    large_store,
    memory::Memory,
};
use crate::workspace::Workspace;

/// How many settled runs the store has.
const RUNS: u64 = 400;

/// How many follow the records of an attempt, and how many the log of facts.
const OF_RECORDS: usize = 200;
const OF_FACTS: usize = 20;

/// The most that an idle scheduler may hold: it runs beside the notebooks on a small machine.
const IDLE_AT_MOST: u64 = 30 << 20;

/// How long nothing is asked before memory is read.
const IDLE_FOR: Duration = Duration::from_secs(5);

const BLUEPRINT: &str = "\
apiVersion: blueproof.dev/v1alpha1
kind: Blueprint
metadata: {name: printing}
spec:
  notebook: printing.ipynb
  driver: {cpu: 1, memory: 512Mi}
";

/// Prints ten lines a second for longer than all loads take; the run is cancelled after them.
const CODE: &str = "import time\nfor n in range(1200):\n    print('line', n)\n    time.sleep(0.1)";

/// Memory at three times.
struct Held {
    idle: Memory,
    followed: Memory,
}

/// Starts a scheduler on a store of some hundred runs, and asks it without and with followers.
pub(super) fn measure(workspace: &Workspace) -> Result<Vec<Table>> {
    build(workspace, &PROGRAMS)?;
    let folder = workspace.target.join("bench/api");
    let store = large_store::make(workspace, &folder, RUNS, 0)?;
    let blueprint = write_blueprint(&folder.join("printing"))?;
    let scheduler = Scheduler::start(workspace, &folder, &store)?;
    thread::sleep(IDLE_FOR);
    let idle = scheduler.memory()?;
    let alone = ask(&scheduler)?;
    let run = scheduler.run(&blueprint)?;
    let followers = Followers::start(
        &scheduler,
        &[
            (Stream::Records { run: run.clone() }, OF_RECORDS),
            (Stream::Facts { after: RUNS * 20 }, OF_FACTS),
        ],
    )?;
    followers.await_news()?;
    let followed = ask(&scheduler)?;
    let held = Held {
        idle,
        followed: scheduler.memory()?,
    };
    scheduler.cancel(&run)?;
    let news = followers.end()?;
    let loads = [alone, followed];
    Ok(vec![requests(&loads), reached(&news), memory(&held)])
}

fn write_blueprint(folder: &Path) -> Result<PathBuf> {
    let notebook = json!({
        "nbformat": 4, "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "cells": [{
            "cell_type": "code", "id": "print", "metadata": {}, "execution_count": null, "outputs": [],
            "source": CODE,
        }],
    });
    let blueprint = folder.join("blueprint.yaml");
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(folder.join("printing.ipynb"), notebook.to_string()))
        .and_then(|()| fs::write(&blueprint, BLUEPRINT))
        .with_context(|| format!("could not write into `{}`", folder.display()))?;
    Ok(blueprint)
}

/// Asks for one run, and for a page of a hundred.
fn ask(scheduler: &Scheduler) -> Result<[Load; 2]> {
    let of = |path: &str| Load::of(&scheduler.address, &scheduler.token, path);
    Ok([of("/api/v1/runs/r-200")?, of("/api/v1/runs?limit=100")?])
}

fn requests(loads: &[[Load; 2]; 2]) -> Table {
    let mut rows = Vec::new();
    for (followed, loads) in ["", ", followers"].into_iter().zip(loads) {
        for (what, load) in ["GET a run", "GET 100 runs"].into_iter().zip(loads) {
            let time = |percent| percentile(&load.seconds, percent).map(Quantity::seconds);
            let values = vec![time(50), time(99), Some(Quantity::per_second(load.per_second))];
            rows.push(Row::of(format!("{what}{followed}"), values));
        }
    }
    Table {
        title: "API, requests".into(),
        columns: vec!["p50".into(), "p99".into(), "requests".into()],
        rows,
        notes: vec![
            format!(
                "{} connections that ask without a pause, over loopback, with a token; {RUNS} runs",
                load::CONNECTIONS
            ),
            format!("followers: {OF_RECORDS} of the records of an attempt that prints 10 lines a second,"),
            format!("and {OF_FACTS} of the facts; they and the client share the cores with the scheduler"),
        ],
    }
}

fn reached(news: &[followers::News]) -> Table {
    let rows = news.iter().map(|news| {
        let time = |percent| percentile(&news.seconds, percent).map(Quantity::seconds);
        let count = format!("{}, {} of them", news.what, news.seconds.len());
        Row::of(count, vec![time(50), time(99)])
    });
    Table {
        title: "API, news to a follower".into(),
        columns: vec!["p50".into(), "p99".into()],
        rows: rows.collect(),
        notes: vec!["from the time in a record or fact to its arrival, while requests are made".into()],
    }
}

fn memory(held: &Held) -> Table {
    let row = |name: &str, bytes| Row::of(name, vec![Some(Quantity::bytes(bytes))]);
    Table {
        title: "scheduler, resident memory".into(),
        columns: vec!["blueproof".into()],
        rows: vec![
            row("idle", held.idle.resident).bytes_at_most(IDLE_AT_MOST),
            row("idle, its own part", held.idle.anonymous),
            row("with followers and requests", held.followed.resident),
        ],
        notes: vec![format!(
            "a store of {RUNS} settled runs; idle is five seconds after it leads"
        )],
    }
}

//! `blueproof check` on a notebook of 5 MB: how long it takes, and how much memory.

use std::fs;

use anyhow::{Context, Result};
use serde_json::json;

use super::{
    PROGRAMS, build,
    figures::{Quantity, Row, Table},
    timed::{Kind, Watch, time},
};
use crate::{process::Invocation, workspace::Workspace};

/// How many cells the notebook has: some 5 MB.
const CELLS: u32 = 32_000;
/// The most memory and time that it may take: it is run before each commit, on anybody's machine.
const BYTES_AT_MOST: u64 = 100 << 20;
const SECONDS_AT_MOST: f64 = 1.0;

/// Measures time and memory in two runs: looking at memory takes time.
pub(super) fn measure(workspace: &Workspace) -> Result<Vec<Table>> {
    build(workspace, &PROGRAMS)?;
    let folder = workspace.target.join("bench/check");
    fs::create_dir_all(&folder).with_context(|| format!("could not make `{}`", folder.display()))?;
    let text = notebook_text();
    fs::write(folder.join("large.ipynb"), &text).context("could not write the notebook")?;
    let program = workspace.target.join("release/blueproof");
    let check = Invocation::of(program, ["check", "large.ipynb"]).env("HOME", &folder.to_string_lossy());
    let quick = time(&check, &folder, &folder, Watch::Nothing)?;
    let watched = time(&check, &folder, &folder, Watch::Memory)?;
    let took = quick.took.as_secs_f64();
    Ok(vec![Table {
        title: format!("check of a notebook of {:.1} MB", text.len() as f64 / 1e6),
        columns: vec!["blueproof".into()],
        rows: vec![
            Row::of("whole process", vec![Some(Quantity::seconds(took))]).seconds_at_most(SECONDS_AT_MOST),
            Row::of(
                "peak memory",
                vec![watched.peaks.of(Kind::Program).map(Quantity::bytes)],
            )
            .bytes_at_most(BYTES_AT_MOST),
        ],
        notes: vec![format!("{CELLS} cells of code, without outputs")],
    }])
}

fn notebook_text() -> String {
    let cell = |n: u32| {
        json!({
            "cell_type": "code", "metadata": {}, "execution_count": null, "outputs": [],
            "source": format!("x_{n} = compute(first, {n}, 'text')\nprint(x_{n} + {n})\n"),
        })
    };
    let cells: Vec<_> = (0..CELLS).map(cell).collect();
    json!({ "nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells }).to_string()
}

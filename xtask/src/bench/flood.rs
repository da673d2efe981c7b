//! A notebook that prints 200,000 lines: what the agent holds in memory, and how long it takes.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde_json::json;

use super::{
    figures::{Quantity, Row, Table, grouped},
    sides::Sides,
    timed::{Kind, Watch},
};

/// How many lines are printed.
const LINES: u32 = 200_000;

/// The most memory that the agent may hold: it is there beside the notebook, on a machine that is somebody's.
const AGENT_AT_MOST: u64 = 64 << 20;

const BLUEPRINT: &str = "\
apiVersion: blueproof.dev/v1alpha1
kind: Blueprint
metadata: {name: flood}
spec:
  notebook: flood.ipynb
  driver: {cpu: 1, memory: 512Mi}
";

/// Measures each side once: what counts here is memory, and that hardly varies.
pub(super) fn measure(sides: &Sides) -> Result<Vec<Table>> {
    let folder = sides.folder("flood")?;
    let notebook = folder.join("flood.ipynb");
    write(&notebook, &notebook_text())?;
    write(&folder.join("blueprint.yaml"), BLUEPRINT)?;
    let blueprint = folder.join("blueprint.yaml");
    let papermill = sides.papermill(&sides.prove(&blueprint, Watch::Nothing)?)?;
    let ours = sides.prove(&blueprint, Watch::Memory)?.timed;
    let theirs = papermill.execute(&notebook, Watch::Memory)?;
    let (took, papermill_took) = (ours.took.as_secs_f64(), theirs.took.as_secs_f64());
    let peak = |kind| {
        vec![
            ours.peaks.of(kind).map(Quantity::bytes),
            theirs.peaks.of(kind).map(Quantity::bytes),
        ]
    };
    Ok(vec![Table {
        title: format!("flood of {} lines", grouped(LINES.into())),
        columns: vec!["blueproof".into(), "papermill".into()],
        rows: vec![
            Row::of("peak memory of the agent", peak(Kind::Agent)).bytes_at_most(AGENT_AT_MOST),
            Row::of("peak memory of the program", peak(Kind::Program)),
            Row::of("peak memory of the kernel", peak(Kind::Kernel)),
            Row::of(
                "whole process",
                vec![
                    Some(Quantity::seconds(took)),
                    Some(Quantity::seconds(papermill_took)),
                ],
            )
            .ratio(took / papermill_took),
        ],
        notes: vec!["blueproof keeps 1 MiB of what a cell prints and says so; papermill keeps all".into()],
    }])
}

fn notebook_text() -> String {
    let code = format!("for n in range({LINES}):\n    print('line', n, 'of a notebook that says a lot')");
    let notebook = json!({
        "nbformat": 4, "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "cells": [{
            "cell_type": "code", "id": "flood", "metadata": {}, "execution_count": null, "outputs": [],
            "source": code,
        }],
    });
    notebook.to_string()
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("could not write `{}`", path.display()))
}

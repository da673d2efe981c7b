//! `blueproof run nano-lm` against papermill on the same notebook, whole process against whole process.

use anyhow::{Context, Result};

use super::{
    figures::{Quantity, Row, Table, median},
    sides::{Papermill, Sides},
    timed::{Kind, Peaks, Watch},
    timeline::Timeline,
};
use crate::{process::print_line, workspace::Workspace};

/// The most of papermill's time that the whole pipeline may take: store, stages and report included.
const RATIO_AT_MOST: f64 = 0.7;

/// Measures by turns, so that whatever else the machine does falls on both.
pub(super) fn measure(workspace: &Workspace, sides: &Sides, rounds: usize) -> Result<Vec<Table>> {
    let blueprint = workspace.root.join("examples/nano-lm/blueprint.yaml");
    let notebook = workspace.root.join("examples/nano-lm/nano-lm.ipynb");
    let papermill = sides.papermill(&sides.prove(&blueprint, Watch::Nothing)?)?;
    let peaks = (
        sides.prove(&blueprint, Watch::Memory)?.timed.peaks,
        papermill.execute(&notebook, Watch::Memory)?.peaks,
    );
    let (mut ours, mut theirs, mut timelines) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=rounds {
        let proof = sides.prove(&blueprint, Watch::Nothing)?;
        let executed = papermill.execute(&notebook, Watch::Nothing)?;
        ours.push(proof.timed.took.as_secs_f64());
        theirs.push(executed.took.as_secs_f64());
        timelines.push(Timeline::of(&proof, &sides.newest_run()?)?);
        print_line(&format!(
            "run: round {round} of {rounds}: {:.2} s and {:.2} s",
            proof.timed.took.as_secs_f64(),
            executed.took.as_secs_f64()
        ));
    }
    let whole = compared(&ours, &theirs)?;
    Ok(vec![
        table(whole, rounds, &peaks, &papermill),
        Timeline::table(&timelines)?,
    ])
}

fn compared(ours: &[f64], theirs: &[f64]) -> Result<Row> {
    let pairs = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs);
    let ratio = median(pairs.collect()).context("there was no round")?;
    let middle = |times: &[f64]| median(times.to_vec()).map(Quantity::seconds);
    let row = Row::of("whole process, median", vec![middle(ours), middle(theirs)]);
    Ok(row.ratio(ratio).ratio_at_most(RATIO_AT_MOST))
}

fn table(whole: Row, rounds: usize, peaks: &(Peaks, Peaks), papermill: &Papermill) -> Table {
    let peak = |kind| {
        let (ours, theirs) = peaks;
        vec![
            ours.of(kind).map(Quantity::bytes),
            theirs.of(kind).map(Quantity::bytes),
        ]
    };
    Table {
        title: "run nano-lm".into(),
        columns: vec!["blueproof".into(), "papermill".into()],
        rows: vec![
            whole,
            Row::of("peak memory of the program", peak(Kind::Program)),
            Row::of("peak memory of the agent", peak(Kind::Agent)),
            Row::of("peak memory of the kernel", peak(Kind::Kernel)),
        ],
        notes: vec![
            format!("{rounds} rounds by turns after a warm-up; the ratio is the median of the pairs'"),
            papermill.described.clone(),
        ],
    }
}

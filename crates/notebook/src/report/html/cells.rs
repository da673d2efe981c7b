//! The notebook's cells, and the ways to them.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_core::{
    attempt::CellEnd,
    domain::{Failure, GpuUse},
};

use super::words::{duration, percent};
use crate::{
    ipynb::CellKind,
    report::{
        Cell, CellChange, Comparison,
        markdown::markdown,
        markup::{self, Html},
        output::output,
    },
};

/// The most markup that the outputs of one cell may become: a cell can show any number of them.
const CELL_BYTES: usize = 16 * 1024 * 1024;

/// Longer code and longer outputs are folded, in lines and in bytes.
const FOLDED_LINES: usize = 60;
const FOLDED_BYTES: usize = 24 * 1024;

/// Pages with fewer code cells need no index.
const INDEXED_CELLS: usize = 9;

/// A step of the index.
pub(super) struct IndexEntry {
    pub(super) position: u32,
    pub(super) label: String,
    pub(super) class: &'static str,
    /// What became of the cell, for who sees no colours.
    pub(super) state: String,
}

/// A bar of the overview.
pub(super) struct TimeView {
    pub(super) position: u32,
    pub(super) label: String,
    pub(super) first_line: String,
    pub(super) took: String,
    /// How long it took in the attempt that passed last, where that matters.
    pub(super) before: Option<String>,
    pub(super) percent: String,
    pub(super) class: &'static str,
}

pub(super) struct CellView {
    pub(super) position: u32,
    pub(super) label: String,
    pub(super) class: &'static str,
    pub(super) state: Option<&'static str>,
    pub(super) took: Option<String>,
    pub(super) gpu: Option<String>,
    pub(super) source: Source,
    /// What is said of code that is folded.
    pub(super) folded_code: Option<String>,
    pub(super) outputs: Vec<Html>,
    /// What is said of outputs that are folded.
    pub(super) folded_outputs: Option<String>,
    pub(super) omitted: usize,
    /// The next cell with an error, for one that has an error itself.
    pub(super) next_error: Option<u32>,
}

pub(super) enum Source {
    Code(Vec<CodeLine>),
    Prose(Html),
    Raw(String),
}

pub(super) struct CodeLine {
    pub(super) text: String,
    pub(super) class: &'static str,
}

/// Returns the code cells as steps that lead to them; none where the page is short.
pub(super) fn index(cells: &[Cell]) -> Vec<IndexEntry> {
    let code: Vec<&Cell> = code(cells).collect();
    if code.len() < INDEXED_CELLS {
        return Vec::new();
    }
    let entry = |cell: &Cell| {
        let (class, said) = state(cell.end);
        let said = said.unwrap_or(if class == "skip" { "did not run" } else { "ran" });
        IndexEntry {
            position: cell.position,
            label: match cell.position {
                0 => "p".into(),
                position => position.to_string(),
            },
            class,
            state: format!("{}: {said}", cell.label()),
        }
    };
    code.into_iter().map(entry).collect()
}

/// Returns how long each code cell took.
pub(super) fn times(cells: &[Cell], comparison: Option<&Comparison>) -> Vec<TimeView> {
    let longest = code(cells).filter_map(|cell| cell.took).max();
    let longest = longest.unwrap_or_default().as_secs_f64();
    let notable = comparison.map(Comparison::notable_cells).unwrap_or_default();
    let before: BTreeMap<u32, &CellChange> =
        notable.into_iter().map(|change| (change.cell, change)).collect();
    let view = |cell: &Cell| {
        let took = cell.took.unwrap_or_default().as_secs_f64();
        let share = if longest > 0.0 { took / longest } else { 0.0 };
        let first = cell.first_line().unwrap_or_default();
        let before = before.get(&cell.position).and_then(|change| change.took.then);
        TimeView {
            position: cell.position,
            label: cell.label(),
            first_line: markup::source(first).chars().take(100).collect(),
            took: cell.took.map_or_else(|| "did not run".to_owned(), duration),
            before: before.map(duration),
            percent: format!("{:.1}", (share * 100.0).clamp(0.0, 100.0)),
            class: state(cell.end).0,
        }
    };
    code(cells).map(view).collect()
}

/// Returns the cells, each as it is shown.
pub(super) fn views(cells: &[Cell], failure: Option<&Failure>) -> Vec<CellView> {
    let failed = failure.and_then(|failure| failure.cell.as_ref());
    let errors: BTreeSet<u32> = cells
        .iter()
        .filter(|cell| has_error(cell) || failed.is_some_and(|place| place.cell == cell.position))
        .map(|cell| cell.position)
        .collect();
    let views = cells.iter().map(|cell| view(cell, failure, &errors));
    views.collect()
}

fn code(cells: &[Cell]) -> impl Iterator<Item = &Cell> {
    cells.iter().filter(|cell| cell.kind == CellKind::Code)
}

fn has_error(cell: &Cell) -> bool {
    let is_error = |output: &serde_json::Value| output["output_type"] == "error";
    state(cell.end).0 == "fail" || cell.outputs.iter().any(is_error)
}

fn state(end: Option<CellEnd>) -> (&'static str, Option<&'static str>) {
    match end {
        Some(CellEnd::Ok) => ("pass", None),
        Some(CellEnd::RaisedAsAllowed) => ("pass", Some("raised, as its tag allows")),
        Some(CellEnd::Raised) => ("fail", Some("raised")),
        Some(CellEnd::Interrupted) => ("fail", Some("interrupted")),
        Some(CellEnd::KernelDied) => ("fail", Some("the kernel died")),
        Some(CellEnd::Unknown) => ("fail", Some("not known how it ended")),
        None => ("skip", None),
    }
}

fn view(cell: &Cell, failure: Option<&Failure>, errors: &BTreeSet<u32>) -> CellView {
    let (class, said) = state(cell.end);
    let here = failure
        .and_then(|failure| failure.cell.as_ref())
        .filter(|place| place.cell == cell.position);
    let source = match cell.kind {
        CellKind::Code => Source::Code(code_lines(&cell.source, here.and_then(|place| place.line))),
        CellKind::Markdown => Source::Prose(markdown(&cell.source)),
        CellKind::Raw => Source::Raw(markup::source(&cell.source)),
    };
    let is_error = errors.contains(&cell.position);
    let (outputs, omitted) = outputs(cell);
    CellView {
        position: cell.position,
        label: cell.label(),
        class: match (cell.kind, here) {
            (CellKind::Code, Some(_)) => "fail",
            (CellKind::Code, None) => class,
            (CellKind::Markdown | CellKind::Raw, _) => "text",
        },
        state: match (cell.kind, cell.end) {
            (CellKind::Code, None) => Some("did not run"),
            _ => said,
        },
        took: cell.took.map(duration),
        gpu: cell.gpu.as_ref().and_then(gpu_of_cell),
        folded_code: folded_code(cell).filter(|_| !is_error),
        folded_outputs: folded_outputs(&outputs).filter(|_| !is_error),
        source,
        outputs,
        omitted,
        next_error: is_error
            .then(|| errors.range(cell.position + 1..).next().copied())
            .flatten(),
    }
}

/// Returns a cell's outputs as far as there is room for them, and how many are left out.
fn outputs(cell: &Cell) -> (Vec<Html>, usize) {
    let mut outputs = Vec::new();
    let mut room = CELL_BYTES;
    for shown in cell.outputs.iter().map(output).filter(|shown| !shown.is_empty()) {
        if shown.len() > room {
            break;
        }
        room -= shown.len();
        outputs.push(shown);
    }
    let left_out = cell.outputs.len().saturating_sub(outputs.len());
    let omitted = if room < CELL_BYTES / 2 { left_out } else { 0 };
    (outputs, omitted)
}

fn folded_code(cell: &Cell) -> Option<String> {
    let lines = cell.source.lines().count();
    (cell.kind == CellKind::Code && lines > FOLDED_LINES).then(|| format!("{lines} lines of code"))
}

/// What is large because of an image is not long to read.
fn folded_outputs(outputs: &[Html]) -> Option<String> {
    let texts = outputs.iter().filter(|output| !output.is_image());
    let (mut lines, mut bytes) = (0, 0);
    for text in texts {
        lines += text.lines();
        bytes += text.len();
    }
    (lines > FOLDED_LINES || bytes > FOLDED_BYTES).then(|| format!("output, {lines} lines shown"))
}

fn code_lines(source: &str, marked: Option<u32>) -> Vec<CodeLine> {
    let source = markup::source(source);
    let line = |(nth, text): (u32, &str)| CodeLine {
        text: text.to_owned(),
        class: if Some(nth) == marked { "here" } else { "" },
    };
    (1..).zip(source.split('\n')).map(line).collect()
}

/// Returns what a cell made of devices, in a word or two.
fn gpu_of_cell(gpu: &GpuUse) -> Option<String> {
    Some(format!("gpu {}", percent(gpu.busy_ratio()?)))
}

//! A notebook's cells with what came of them: from the executed notebook and the agent's log.

use std::collections::BTreeMap;

use blueproof_core::{
    attempt::{CellEnd, Record, RecordKind},
    diagnostic::{Code, Diagnostic},
};
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{executor::INJECTED_ID, ipynb::joined};

/// A cell of a notebook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cell {
    /// Its position in the notebook file, counted from one, cells of every type counted; zero is the cell with the
    /// run's parameters, which is in no file.
    pub position: u32,
    /// Its type.
    pub kind: CellKind,
    /// Its text.
    #[serde(skip)]
    pub source: String,
    /// Its Jupyter output objects.
    #[serde(skip)]
    pub outputs: Vec<Value>,
    /// How it ended; `None` where it did not run, or not to its end.
    pub end: Option<CellEnd>,
    /// How long it took.
    pub took: Option<SignedDuration>,
}

/// A cell's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CellKind {
    /// It can run.
    Code,
    /// It is prose.
    Markdown,
    /// It is neither.
    Raw,
}

#[derive(Deserialize)]
struct Notebook {
    cells: Vec<NotebookCell>,
}

#[derive(Deserialize)]
struct NotebookCell {
    #[serde(default)]
    id: String,
    cell_type: String,
    #[serde(default)]
    source: Value,
    #[serde(default)]
    outputs: Vec<Value>,
}

/// Returns the cells of an executed notebook in nbformat 4, with how they ended as the log tells.
///
/// # Errors
/// The text is no such notebook.
pub fn cells<'r>(
    executed: &str,
    log: impl IntoIterator<Item = &'r Record>,
) -> Result<Vec<Cell>, Box<Diagnostic>> {
    let notebook: Notebook = serde_json::from_str(executed).map_err(|error| {
        Box::new(
            Diagnostic::error(Code::ExecutedNotebook, "the executed notebook cannot be read")
                .caused_by(&error),
        )
    })?;
    let mut ends = BTreeMap::new();
    for record in log {
        if let RecordKind::CellEnded { cell, end, took } = record.kind {
            ends.insert(cell, (end, took));
        }
    }
    let cell = |(position, cell): (u32, NotebookCell)| {
        let end = ends.get(&position);
        Cell {
            position,
            kind: match cell.cell_type.as_str() {
                "code" => CellKind::Code,
                "markdown" => CellKind::Markdown,
                _ => CellKind::Raw,
            },
            source: joined(&cell.source),
            outputs: cell.outputs,
            end: end.map(|(end, _)| *end),
            took: end.map(|(_, took)| *took),
        }
    };
    Ok(positions(&notebook.cells)
        .into_iter()
        .zip(notebook.cells)
        .map(cell)
        .collect())
}

/// Returns each cell's position in the file that was executed, where an injected cell has none.
fn positions(cells: &[NotebookCell]) -> Vec<u32> {
    let mut last = 0;
    let number = |cell: &NotebookCell| {
        if cell.id == INJECTED_ID {
            return 0;
        }
        last += 1;
        last
    };
    cells.iter().map(number).collect()
}

impl Cell {
    /// Returns what people call it.
    pub fn label(&self) -> String {
        match self.position {
            0 => "parameters".into(),
            position => format!("cell {position}"),
        }
    }
}

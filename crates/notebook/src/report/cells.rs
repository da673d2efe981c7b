//! A notebook's cells with what came of them: from the executed notebook and the agent's log.

use std::collections::BTreeMap;

use blueproof_core::{
    attempt::{CellEnd, Record, RecordKind},
    domain::GpuUse,
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    executor::INJECTED_ID,
    ipynb::{self, CellKind, Notebook},
    text::without_tokens,
};

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
    /// What it made of the attempt's devices; absent where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuUse>,
}

/// Returns the cells of an executed notebook in nbformat 4, with how they ended as the log tells.
///
/// # Errors
/// The text is no such notebook.
pub fn cells<'r>(
    executed: &str,
    log: impl IntoIterator<Item = &'r Record>,
) -> Result<Vec<Cell>, Box<Diagnostic>> {
    let notebook = Notebook::parse("executed.ipynb", executed.to_owned()).map_err(|problems| {
        let refused = Diagnostic::error(Code::ExecutedNotebook, "the executed notebook cannot be read");
        let causes = problems.into_iter().map(|problem| problem.message);
        Box::new(causes.fold(refused, Diagnostic::because))
    })?;
    let (mut ends, mut uses) = (BTreeMap::new(), BTreeMap::new());
    for record in log {
        if let RecordKind::CellEnded { cell, end, took } = record.kind {
            ends.insert(cell, (end, took));
        }
        if let RecordKind::CellUsed { cell, gpu } = record.kind {
            uses.insert(cell, gpu);
        }
    }
    let cell = |(position, cell): (u32, &ipynb::Cell)| {
        let end = ends.get(&position);
        Ok(Cell {
            position,
            kind: cell.kind,
            source: without_tokens(&cell.source),
            outputs: outputs(&notebook, cell)?,
            end: end.map(|(end, _)| *end),
            took: end.map(|(_, took)| *took),
            gpu: uses.get(&position).copied(),
        })
    };
    positions(&notebook.cells)
        .into_iter()
        .zip(&notebook.cells)
        .map(cell)
        .collect()
}

fn outputs(notebook: &Notebook, cell: &ipynb::Cell) -> Result<Vec<Value>, Box<Diagnostic>> {
    let outputs = notebook.outputs(cell).map(serde_json::from_str);
    outputs.collect::<Result<_, _>>().map_err(|error| {
        let message = format!("an output of cell {} cannot be read", cell.number);
        Box::new(Diagnostic::error(Code::ExecutedNotebook, message).caused_by(&error))
    })
}

/// Returns each cell's position in the file that was executed, where an injected cell has none.
fn positions(cells: &[ipynb::Cell]) -> Vec<u32> {
    let mut last = 0;
    let number = |cell: &ipynb::Cell| {
        if cell.id.as_deref() == Some(INJECTED_ID) {
            return 0;
        }
        last += 1;
        last
    };
    cells.iter().map(number).collect()
}

impl Cell {
    /// Returns the first line that says something, if there is one.
    pub(super) fn first_line(&self) -> Option<&str> {
        self.source.lines().map(str::trim).find(|line| !line.is_empty())
    }

    /// Returns what people call it.
    pub fn label(&self) -> String {
        match self.position {
            0 => "parameters".into(),
            position => format!("cell {position}"),
        }
    }
}

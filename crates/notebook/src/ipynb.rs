//! Reading notebook files. Nothing here writes one: the user's file stays as it is.
//!
//! The model is small and our own. What we do not need is not looked at, so that a notebook with an output or a
//! field that nobody has heard of is read like any other; outputs and such fields stay the JSON text that they are.

mod foreign;
mod lines;
mod read;
mod shape;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ops::Range};

use blueproof_diagnostic::{
    Code, Diagnostic, SourceLocation,
    yaml::{Source, Spot, YamlNode},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::text::counted;

pub use foreign::ForeignKernel;
pub(crate) use read::{LARGEST_NOTEBOOK, read_text, readable};

/// The tag of the cell that holds a notebook's parameters.
pub const PARAMETERS_TAG: &str = "parameters";
/// The tag of the cell into which values of parameters were put; papermill gives it, too.
pub(crate) const INJECTED_TAG: &str = "injected-parameters";
/// The tag of a cell that may raise.
pub const RAISES_TAG: &str = "raises-exception";

/// Fields that are kept for whoever writes a notebook, as the JSON that stands in the file.
pub(crate) type Undecoded = BTreeMap<String, Box<RawValue>>;

/// A notebook file of format 4, as it was read.
#[derive(Debug, Clone)]
pub struct Notebook {
    /// The minor version of the format: 4 of 4.4.
    pub minor: u32,
    /// The language of the kernel, where the file tells it.
    pub language: Option<String>,
    /// What people call the kernel, where the file tells it.
    pub kernel: Option<String>,
    /// The name of the kernelspec, where the file tells it.
    pub kernel_name: Option<String>,
    /// All cells, in order.
    pub cells: Vec<Cell>,
    pub(crate) blueprint: Option<YamlNode>,
    /// Its metadata, and what else is not told by the other fields.
    pub(crate) undecoded: Undecoded,
    pub(crate) source: Source,
}

/// A cell of a notebook.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Its position in the file, counted from one, cells of every type counted.
    pub number: u32,
    /// Its type.
    pub kind: CellKind,
    /// Its id; formats before 4.5 have none.
    pub id: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its text.
    pub source: String,
    /// The count that an earlier execution left in the file.
    pub execution_count: Option<u64>,
    /// Its metadata, and what else is not told by the other fields.
    pub(crate) undecoded: Undecoded,
    outputs: Vec<Range<usize>>,
    lines: Vec<u32>,
}

/// The type of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CellKind {
    /// It is run.
    Code,
    /// Text for people.
    Markdown,
    /// Text for tools.
    Raw,
}

impl Notebook {
    /// Returns the cells that are run, in order.
    pub fn code(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| cell.kind == CellKind::Code)
    }

    /// Returns the outputs that are stored in a cell, as the JSON text that stands in the file.
    pub fn outputs<'n>(&'n self, cell: &'n Cell) -> impl Iterator<Item = &'n str> {
        cell.outputs
            .iter()
            .filter_map(|range| self.source.text.get(range.clone()))
    }

    /// Returns what is wrong where no cell has anything to run.
    pub fn nothing_runs(&self) -> Option<Diagnostic> {
        // What a comment is, only Python's are known by.
        let is_foreign = self.foreign_kernel().is_some();
        let says = |cell: &Cell| is_foreign && !cell.source.trim().is_empty();
        if self.code().any(|cell| says(cell) || runs(&cell.source)) {
            return None;
        }
        let message = match self.code().count() {
            0 => "the notebook has no code: nothing would run".to_owned(),
            cells => format!(
                "nothing would run: of {} of code, each is empty, a comment or switched off",
                counted(cells, "cell")
            ),
        };
        Some(
            Diagnostic::error(Code::NothingRan, message)
                .hint("if that is meant, say so with `allowEmpty: true` under `spec`"),
        )
    }

    /// Returns the path that the notebook was read from, as it was given.
    pub fn file(&self) -> &str {
        &self.source.file
    }

    /// Returns the place in the file of a line of a cell, both counted from one, with the text of the cell's line.
    ///
    /// A source that is stored as a single string has all its lines on one line of the file.
    pub fn place(&self, cell: u32, line: u32) -> SourceLocation {
        let mut place = SourceLocation::file(&self.source.file);
        // Cells are numbered as they stand.
        let found = (cell as usize)
            .checked_sub(1)
            .and_then(|index| self.cells.get(index));
        if let Some(cell) = found {
            let index = line.max(1) as usize - 1;
            place.line = line_of(&cell.lines, line);
            place.source = cell.source.lines().nth(index).map(str::to_owned);
        }
        place
    }

    /// Returns where the lines of its cells stand in the file, for whoever asks once it is gone.
    pub fn lines(&self) -> FileLines {
        FileLines(self.cells.iter().map(|cell| cell.lines.clone()).collect())
    }
}

/// Where the lines of a notebook's cells stand in its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileLines(Vec<Vec<u32>>);

impl FileLines {
    /// Returns the line of the file of a line of a cell, all counted from one.
    pub fn line(&self, cell: u32, line: u32) -> Option<u32> {
        let index = (cell as usize).checked_sub(1)?;
        line_of(self.0.get(index)?, line)
    }
}

/// Returns the line of the file of a line of a cell, or the last one of the cell where it has fewer.
fn line_of(lines: &[u32], line: u32) -> Option<u32> {
    let index = line.max(1) as usize - 1;
    lines.get(index).or(lines.last()).copied()
}

impl Cell {
    /// Returns whether the cell carries `tag`.
    pub fn is_tagged(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own == tag)
    }

    /// Returns whether an earlier execution left something in the file.
    pub fn is_stale(&self) -> bool {
        !self.outputs.is_empty() || self.execution_count.is_some()
    }
}

/// Returns whether a cell of code runs anything: more than comments, and nothing that only shows text or is switched off.
fn runs(source: &str) -> bool {
    const SHOWN: [&str; 8] = [
        "html",
        "javascript",
        "js",
        "latex",
        "markdown",
        "svg",
        "skip",
        "comment",
    ];
    const DOES_NOTHING: [&str; 4] = ["false", "true", ":", "echo"];
    let says = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let mut lines = source.lines().map(str::trim).filter(says);
    let Some(first) = lines.next() else { return false };
    let Some(magic) = first.strip_prefix("%%") else {
        return true;
    };
    let mut words = magic.split_whitespace().filter(|word| !word.starts_with("--"));
    let name = words.next().unwrap_or_default().to_lowercase();
    let program = words
        .next()
        .and_then(|word| word.rsplit('/').next())
        .unwrap_or_default();
    let is_off = name == "script" && DOES_NOTHING.contains(&program);
    let has_body = lines.next().is_some();
    !is_off && !SHOWN.contains(&name.as_str()) && (has_body || name == "run")
}

/// Returns a text that Jupyter writes whole or as its lines.
pub(crate) fn joined(text: &Value) -> String {
    match text {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Returns the spot of a part of `text` that serde_json borrowed from it.
fn spot_of(index: &lines::LineIndex<'_>, part: &str) -> Spot {
    index.spot(index.offset_of(part))
}

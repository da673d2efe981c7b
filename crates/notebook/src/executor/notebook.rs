//! The notebook that is executed: its code cells, and where their outputs go.
//!
//! It is worked on as plain JSON, so that what is not understood stays as it is. The user's file is only read.

use std::{collections::BTreeMap, fs, io, io::Write, path::Path};

use serde_json::{Map, Value, json};

use super::probe::python_string;

/// A notebook in format 4.
#[derive(Debug)]
pub(crate) struct Notebook {
    document: Value,
}

/// A cell of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Its place among the cells of the executed notebook.
    pub(crate) index: usize,
    /// Its position in the user's file, counted from one; 0 is the cell with the injected parameters.
    pub(crate) position: u32,
    /// Its code, as it stands in the notebook.
    pub(crate) source: String,
    /// Its tags.
    pub(crate) tags: Vec<String>,
}

/// Why a file is no notebook that can be executed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotebookError {
    /// It cannot be read.
    #[error("could not read the notebook")]
    Read(#[source] io::Error),
    /// It is not JSON.
    #[error("the notebook is not JSON")]
    Json(#[source] serde_json::Error),
    /// It is JSON, and no notebook.
    #[error("the file is not a notebook of format 4: {0}")]
    Shape(&'static str),
}

/// The tag that papermill gives to such a cell, too.
const INJECTED: &str = "injected-parameters";

/// The id of a cell that was put in and has no place in the user's file.
pub(crate) const INJECTED_ID: &str = "blueproof-parameters";

impl Notebook {
    /// Reads a notebook.
    pub(crate) fn read(path: &Path) -> Result<Self, NotebookError> {
        let bytes = fs::read(path).map_err(NotebookError::Read)?;
        let document = serde_json::from_slice(&bytes).map_err(NotebookError::Json)?;
        Self::from_json(document)
    }

    fn from_json(mut document: Value) -> Result<Self, NotebookError> {
        if document.get("nbformat").and_then(Value::as_u64) != Some(4) {
            return Err(NotebookError::Shape("`nbformat` is not 4"));
        }
        let Some(cells) = document.get_mut("cells").and_then(Value::as_array_mut) else {
            return Err(NotebookError::Shape("it has no list of cells"));
        };
        if !cells
            .iter()
            .all(|cell| cell.get("cell_type").is_some_and(Value::is_string))
        {
            return Err(NotebookError::Shape("a cell has no type"));
        }
        let mut ids = Vec::new();
        for (at, cell) in cells.iter_mut().enumerate() {
            upgrade(cell, at, &mut ids);
        }
        document["nbformat_minor"] = json!(5);
        if !document["metadata"].is_object() {
            document["metadata"] = json!({});
        }
        Ok(Self { document })
    }

    /// Puts a cell with the parameters after the one tagged `parameters`, or at the top where there is none.
    ///
    /// One that an earlier execution injected is replaced.
    pub(crate) fn inject(&mut self, parameters: &BTreeMap<String, Value>) {
        if parameters.is_empty() {
            return;
        }
        let mut source = "# Parameters\n".to_owned();
        for (name, value) in parameters {
            source += &format!("{name} = {}\n", python_literal(value));
        }
        let mut cell = json!({
            "cell_type": "code", "id": INJECTED_ID, "metadata": {"tags": [INJECTED]},
            "execution_count": null, "outputs": [], "source": source.trim_end(),
        });
        let cells = self.cells_mut();
        let tagged =
            |cells: &[Value], tag: &str| cells.iter().position(|cell| tags(cell).iter().any(|t| t == tag));
        if let Some(at) = tagged(cells, INJECTED) {
            // It has its place in the user's file, and keeps it.
            cell["id"] = cells[at]["id"].take();
            cells[at] = cell;
        } else {
            let at = tagged(cells, "parameters").map_or(0, |at| at + 1);
            cells.insert(at, cell);
        }
    }

    /// Returns the cells of code that have any, in order.
    pub(crate) fn code_cells(&self) -> Vec<Cell> {
        let mut found = Vec::new();
        let mut position = 0;
        for (index, cell) in self.cells().iter().enumerate() {
            let is_ours = cell["id"] == INJECTED_ID;
            position += u32::from(!is_ours);
            let source = text_of(&cell["source"]);
            if cell["cell_type"] != "code" || source.trim().is_empty() {
                continue;
            }
            found.push(Cell {
                index,
                position: if is_ours { 0 } else { position },
                source,
                tags: tags(cell),
            });
        }
        found
    }

    /// Sets what a cell shows.
    pub(crate) fn set_outputs(&mut self, index: usize, outputs: Vec<Value>) {
        self.cells_mut()[index]["outputs"] = Value::Array(outputs);
    }

    /// Sets the number that the kernel gave a cell.
    pub(crate) fn set_count(&mut self, index: usize, count: u64) {
        self.cells_mut()[index]["execution_count"] = json!(count);
    }

    /// Writes the notebook so that whoever opens `path` sees either the last version or this one.
    pub(crate) fn save(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        let mut buffered = io::BufWriter::new(&mut file);
        serde_json::to_writer(&mut buffered, &self.document)?;
        buffered.write_all(b"\n")?;
        buffered.flush()?;
        drop(buffered);
        file.persist(path)?;
        Ok(())
    }

    fn cells(&self) -> &[Value] {
        self.document["cells"]
            .as_array()
            .expect("checked when it was read")
    }

    fn cells_mut(&mut self) -> &mut Vec<Value> {
        self.document["cells"]
            .as_array_mut()
            .expect("checked when it was read")
    }
}

/// Makes a cell what format 4.5 asks for, and takes away what an earlier execution left.
fn upgrade(cell: &mut Value, at: usize, ids: &mut Vec<String>) {
    if !cell["metadata"].is_object() {
        cell["metadata"] = json!({});
    }
    cell["source"] = Value::String(text_of(&cell["source"]));
    let fits = |id: &str| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        (1..=64).contains(&id.len()) && id.bytes().all(plain)
    };
    let id = match cell["id"].as_str() {
        Some(id) if fits(id) && !ids.iter().any(|taken| taken == id) => id.to_owned(),
        Some(_) | None => (0..)
            .map(|n| format!("cell-{at}-{n}"))
            .find(|id| !ids.contains(id))
            .expect("there are more names than cells"),
    };
    cell["id"] = json!(id);
    ids.push(id);
    if cell["cell_type"] == "code" {
        cell["outputs"] = json!([]);
        cell["execution_count"] = Value::Null;
    } else if let Some(fields) = cell.as_object_mut() {
        fields.remove("outputs");
        fields.remove("execution_count");
    }
}

fn tags(cell: &Value) -> Vec<String> {
    let tags = cell.pointer("/metadata/tags").and_then(Value::as_array);
    let texts = tags.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// Returns a text that may be stored as a list of lines.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn python_literal(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    let pair = |(key, value): (&String, &Value)| format!("{}: {}", python_string(key), python_literal(value));
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => python_string(text),
        Value::Array(items) => format!("[{}]", joined(items.iter().map(python_literal).collect())),
        Value::Object(fields) => {
            let fields: &Map<String, Value> = fields;
            format!("{{{}}}", joined(fields.iter().map(pair).collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notebook(cells: &Value) -> Notebook {
        Notebook::from_json(json!({"nbformat": 4, "nbformat_minor": 4, "cells": cells})).unwrap()
    }

    #[test]
    fn parameters_come_after_the_tagged_cell_and_move_no_position() {
        let mut notebook = notebook(&json!([
            {"cell_type": "markdown", "source": "# Title"},
            {"cell_type": "code", "source": ["n = 1\n", "m = 2"], "metadata": {"tags": ["parameters"]}},
            {"cell_type": "code", "source": "print(n)"},
        ]));
        notebook.inject(&BTreeMap::from([
            ("n".to_owned(), json!(3)),
            ("name".to_owned(), json!("a\"b\n")),
            ("deep".to_owned(), json!({"a": [true, null, 0.5]})),
        ]));
        let cells = notebook.code_cells();
        let places: Vec<_> = cells.iter().map(|cell| (cell.index, cell.position)).collect();
        assert_eq!(places, [(1, 2), (2, 0), (3, 3)]);
        let expected = "# Parameters\ndeep = {\"a\": [True, None, 0.5]}\nn = 3\nname = \"a\\\"b\\n\"";
        assert_eq!(cells[1].source, expected);
    }

    #[test]
    fn without_a_tagged_cell_parameters_come_first() {
        let mut notebook = notebook(&json!([{"cell_type": "code", "source": "x"}]));
        notebook.inject(&BTreeMap::from([("n".to_owned(), json!(3))]));
        assert_eq!(notebook.code_cells()[0].position, 0);
    }

    #[test]
    fn every_cell_has_an_id_of_its_own() {
        let notebook = notebook(&json!([
            {"cell_type": "code", "source": "a", "id": "same"},
            {"cell_type": "code", "source": "b", "id": "same"},
            {"cell_type": "code", "source": "c", "id": "no spaces please"},
        ]));
        let ids: Vec<_> = notebook.cells().iter().map(|cell| cell["id"].clone()).collect();
        assert_eq!(ids, ["same", "cell-1-0", "cell-2-0"]);
    }
}

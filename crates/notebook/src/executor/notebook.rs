//! The notebook that is executed: its code cells, and where their outputs go.
//!
//! It is made of the user's notebook, whose file is only read: `ipynb` does that. What is not understood is written as
//! it was read.

use std::{collections::BTreeMap, io, io::Write, path::Path};

use blueproof_core::attempt::{KeptFile, clear_folder_away};
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::probe::python_string;
use crate::{
    files::Digesting,
    ipynb::{self, CellKind, INJECTED_TAG, PARAMETERS_TAG, Undecoded},
};

/// A notebook that is executed, in format 4.5.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Notebook {
    nbformat: u32,
    nbformat_minor: u32,
    cells: Vec<Written>,
    #[serde(flatten)]
    undecoded: Undecoded,
}

/// A cell of any type, as it is written.
#[derive(Debug, Clone, Serialize)]
struct Written {
    cell_type: CellKind,
    id: String,
    source: String,
    #[serde(skip)]
    tags: Vec<String>,
    #[serde(flatten)]
    shown: Option<Shown>,
    #[serde(flatten)]
    undecoded: Undecoded,
}

/// What only a cell of code has.
#[derive(Debug, Clone, Default, Serialize)]
struct Shown {
    execution_count: Option<u64>,
    outputs: Vec<Value>,
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

/// The id of a cell that was put in and has no place in the user's file.
pub(crate) const INJECTED_ID: &str = "blueproof-parameters";

impl Notebook {
    /// Makes a user's notebook one that can be executed, without what an earlier execution left in it.
    pub(crate) fn new(read: ipynb::Notebook) -> Self {
        let mut cells = Vec::with_capacity(read.cells.len());
        for cell in read.cells {
            let id = own_id(cell.id, &cells);
            cells.push(Written {
                cell_type: cell.kind,
                id,
                source: cell.source,
                tags: cell.tags,
                shown: (cell.kind == CellKind::Code).then(Shown::default),
                undecoded: with_metadata(cell.undecoded),
            });
        }
        Self {
            nbformat: 4,
            nbformat_minor: 5,
            cells,
            undecoded: with_metadata(read.undecoded),
        }
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
        let mut cell = Written {
            cell_type: CellKind::Code,
            id: INJECTED_ID.to_owned(),
            source: source.trim_end().to_owned(),
            tags: vec![INJECTED_TAG.to_owned()],
            shown: Some(Shown::default()),
            undecoded: BTreeMap::from([("metadata".to_owned(), raw(&json!({"tags": [INJECTED_TAG]})))]),
        };
        let tagged = |tag: &str| {
            self.cells
                .iter()
                .position(|cell| cell.tags.iter().any(|own| own == tag))
        };
        if let Some(at) = tagged(INJECTED_TAG) {
            // It has its place in the user's file, and keeps it.
            cell.id.clone_from(&self.cells[at].id);
            self.cells[at] = cell;
        } else {
            let at = tagged(PARAMETERS_TAG).map_or(0, |at| at + 1);
            self.cells.insert(at, cell);
        }
    }

    /// Returns the cells of code that have any, in order.
    pub(crate) fn code_cells(&self) -> Vec<Cell> {
        let mut found = Vec::new();
        let mut position = 0;
        for (index, cell) in self.cells.iter().enumerate() {
            let is_ours = cell.id == INJECTED_ID;
            position += u32::from(!is_ours);
            if cell.cell_type != CellKind::Code || cell.source.trim().is_empty() {
                continue;
            }
            found.push(Cell {
                index,
                position: if is_ours { 0 } else { position },
                source: cell.source.clone(),
                tags: cell.tags.clone(),
            });
        }
        found
    }

    /// Sets what a cell of code shows.
    pub(crate) fn set_outputs(&mut self, index: usize, outputs: Vec<Value>) {
        if let Some(shown) = &mut self.cells[index].shown {
            shown.outputs = outputs;
        }
    }

    /// Sets the number that the kernel gave a cell of code.
    pub(crate) fn set_count(&mut self, index: usize, count: u64) {
        if let Some(shown) = &mut self.cells[index].shown {
            shown.execution_count = Some(count);
        }
    }

    /// Writes the notebook so that whoever opens `path` sees either the last version or this one, and returns what was
    /// written. A folder that stands in the way is removed.
    pub(crate) fn save(&self, path: &Path) -> io::Result<KeptFile> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut file = Digesting::new(io::BufWriter::new(tempfile::NamedTempFile::new_in(folder)?));
        serde_json::to_writer(&mut file, self)?;
        file.write_all(b"\n")?;
        let (buffered, size, sha256) = file.finish();
        clear_folder_away(path)?;
        buffered.into_inner()?.persist(path)?;
        Ok(KeptFile {
            path: path.file_name().unwrap_or_default().into(),
            size,
            sha256,
        })
    }
}

/// Returns the id that a cell has, or one that can be told from those of the cells before it.
fn own_id(id: Option<String>, before: &[Written]) -> String {
    let is_taken = |id: &str| before.iter().any(|cell| cell.id == id);
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let fits = |id: &String| (1..=64).contains(&id.len()) && id.bytes().all(is_plain) && !is_taken(id);
    id.filter(fits).unwrap_or_else(|| {
        (0..)
            .map(|n| format!("cell-{}-{n}", before.len()))
            .find(|id| !is_taken(id))
            .expect("there are more names than cells")
    })
}

/// Puts in the metadata that format 4.5 asks for, where there is none.
fn with_metadata(mut fields: Undecoded) -> Undecoded {
    let metadata = fields.entry("metadata".to_owned()).or_default();
    if !metadata.get().starts_with('{') {
        *metadata = raw(&json!({}));
    }
    fields
}

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("a value is JSON")
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
        let text = json!({"nbformat": 4, "nbformat_minor": 4, "cells": cells}).to_string();
        Notebook::new(ipynb::Notebook::parse("n.ipynb", text).unwrap())
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
        let ids: Vec<_> = notebook.cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(ids, ["same", "cell-1-0", "cell-2-0"]);
    }

    #[test]
    fn what_is_not_understood_is_written_as_it_was_read() {
        let text = r#"{
            "nbformat": 4, "nbformat_minor": 9, "later": 1e999, "metadata": {"deep": {"x": 1.10}},
            "cells": [
                {"cell_type": "raw", "source": "r", "attachments": {"a": 1e999}, "outputs": [], "execution_count": 1},
                {"cell_type": "code", "source": ["a\n", "b"], "metadata": null, "outputs": [1e999], "execution_count": 7}
            ]
        }"#;
        let notebook = Notebook::new(ipynb::Notebook::parse("n.ipynb", text.to_owned()).unwrap());
        let expected = concat!(
            r#"{"nbformat":4,"nbformat_minor":5,"cells":["#,
            r#"{"cell_type":"raw","id":"cell-0-0","source":"r","attachments":{"a": 1e999},"metadata":{}},"#,
            r#"{"cell_type":"code","id":"cell-1-0","source":"a\nb","execution_count":null,"outputs":[],"metadata":{}}"#,
            r#"],"later":1e999,"metadata":{"deep": {"x": 1.10}}}"#,
        );
        assert_eq!(serde_json::to_string(&notebook).unwrap(), expected);
    }
}

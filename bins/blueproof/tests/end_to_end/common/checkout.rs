//! A folder with a blueprint and its notebook, made for one test.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

/// A checkout that is removed with this.
#[derive(Debug)]
pub(crate) struct Checkout {
    folder: tempfile::TempDir,
    notebook: String,
}

impl Checkout {
    /// Makes a checkout whose notebook has these code cells; `spec` is YAML below `spec:`, each line indented by two.
    pub(crate) fn new(cells: &[&str], spec: &str) -> Self {
        let checkout = Self {
            folder: tempfile::tempdir().expect("a folder"),
            notebook: "nb.ipynb".into(),
        };
        let cells: Vec<Value> = cells.iter().enumerate().map(code_cell).collect();
        checkout
            .write_notebook(&json!({ "cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5 }));
        checkout.write_blueprint(&format!(
            "apiVersion: blueproof.dev/v1alpha1\nkind: Blueprint\nmetadata: {{name: story}}\nspec:\n  notebook: nb.ipynb\n{spec}"
        ));
        checkout
    }

    /// Copies a sample.
    pub(crate) fn of_sample(name: &str) -> Self {
        let checkout = Self {
            folder: tempfile::tempdir().expect("a folder"),
            notebook: format!("{name}.ipynb"),
        };
        for file in ["blueprint.yaml", &checkout.notebook] {
            fs::copy(sample(name).join(file), checkout.path().join(file)).expect("a copy");
        }
        checkout
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path as it is typed.
    pub(crate) fn typed(&self) -> &str {
        self.path().to_str().expect("temporary folders have plain names")
    }

    /// Puts a cell before the first one that computes: behind the parameters.
    pub(crate) fn insert_cell(&self, source: &str) {
        let mut notebook = self.read_notebook();
        let cells = notebook["cells"].as_array_mut().expect("cells");
        let parameters = cells
            .iter()
            .position(|cell| cell["metadata"]["tags"][0] == "parameters");
        let behind = parameters.expect("samples mark their parameters") + 1;
        cells.insert(behind, code_cell((behind, &source)));
        self.write_notebook(&notebook);
    }

    /// Puts a markdown cell before all others.
    pub(crate) fn insert_markdown(&self, source: &str) {
        let mut notebook = self.read_notebook();
        let cell = json!({ "cell_type": "markdown", "id": "made-text", "metadata": {}, "source": source });
        notebook["cells"].as_array_mut().expect("cells").insert(0, cell);
        self.write_notebook(&notebook);
    }

    /// Replaces a text of the blueprint, which must be there.
    pub(crate) fn edit_blueprint(&self, from: &str, to: &str) {
        let path = self.path().join("blueprint.yaml");
        let text = fs::read_to_string(path).expect("a file");
        assert!(text.contains(from), "the blueprint has no `{from}`: {text}");
        self.write_blueprint(&text.replace(from, to));
    }

    pub(crate) fn write_blueprint(&self, text: &str) {
        fs::write(self.path().join("blueprint.yaml"), text).expect("a file");
    }

    fn read_notebook(&self) -> Value {
        let text = fs::read_to_string(self.path().join(&self.notebook)).expect("a file");
        serde_json::from_str(&text).expect("a notebook")
    }

    fn write_notebook(&self, notebook: &Value) {
        fs::write(self.path().join(&self.notebook), notebook.to_string()).expect("a file");
    }
}

/// Returns the folder of a sample.
fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name)
}

fn code_cell((number, source): (usize, &&str)) -> Value {
    json!({
        "cell_type": "code", "id": format!("made-{number}"), "metadata": {}, "outputs": [],
        "execution_count": null, "source": source,
    })
}

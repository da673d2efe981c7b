//! A folder with a blueprint and its notebook, made for one test.

use std::{
    fs,
    path::{Path, PathBuf},
};

use blueproof_core::domain::{Actor, Priority, RequestKey, RunRequest};
use blueproof_notebook::blueprint::Blueprint;
use serde_json::json;

/// A checkout that is removed with this.
#[derive(Debug)]
pub struct Checkout {
    folder: tempfile::TempDir,
}

impl Checkout {
    /// Makes a checkout whose notebook has these code cells; `spec` is YAML below `spec:`, each line indented by two.
    ///
    /// # Panics
    /// When the disk refuses.
    pub fn new(cells: &[&str], spec: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let cells: Vec<_> = cells
            .iter()
            .enumerate()
            .map(|(number, source)| cell(number, source))
            .collect();
        let notebook = json!({ "cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5 });
        fs::write(folder.path().join("nb.ipynb"), notebook.to_string()).expect("a file");
        let blueprint = format!(
            "apiVersion: blueproof.dev/v1alpha1\nkind: Blueprint\nmetadata: {{name: story}}\nspec:\n  notebook: nb.ipynb\n{spec}"
        );
        fs::write(folder.path().join("blueprint.yaml"), blueprint).expect("a file");
        Self { folder }
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the request for a run of what is here.
    ///
    /// # Panics
    /// When the blueprint has mistakes.
    pub fn request(&self, key: &str) -> RunRequest {
        let loaded = Blueprint::load(self.path()).unwrap_or_else(|why| panic!("{why:?}"));
        let resolved = loaded.resolve(None, &[]).unwrap_or_else(|why| panic!("{why:?}"));
        let tester = Actor::Local("tester".into());
        let queue = "local".parse().expect("a name");
        let request = resolved.request(RequestKey(key.into()), tester, queue, Priority(0));
        request.expect("it can be read")
    }
}

/// Returns a folder for Python environments that all tests share: they take long to make.
pub fn environments() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-environments")
}

fn cell(number: usize, source: &str) -> serde_json::Value {
    json!({
        "cell_type": "code", "id": format!("c{number}"), "metadata": {}, "outputs": [],
        "execution_count": null, "source": source,
    })
}

//! The line of the notebook's file that a run failed at: where tools that annotate a checkout put their mark.

use std::path::{Path, PathBuf};

use blueproof_core::{
    attempt::{AttemptSpec, RunsFolder, read_regular},
    view::RunView,
};
use serde::{Deserialize, Serialize};

use crate::{ipynb::Notebook, plan::Plan};

/// A line of a notebook's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedLine {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from one.
    pub line: u32,
}

impl FailedLine {
    /// Returns the line at which the last attempt of a run failed. `None` where it failed at none, or where the notebook
    /// cannot be read any more. Blocks.
    pub fn of(run: &RunView, runs: &RunsFolder) -> Option<Self> {
        let cell = run.failure.as_ref()?.cell.as_ref()?;
        let attempt = runs.attempt(run.attempts.last()?.id);
        let spec = read_regular(&attempt.spec(), AttemptSpec::LONGEST).ok()?;
        let spec: AttemptSpec = serde_json::from_slice(&spec).ok()?;
        let plan: Plan = serde_json::from_value(spec.work).ok()?;
        let file = spec.checkout.join(plan.notebook);
        let notebook = Notebook::read(&file).ok()?;
        let line = notebook.place(cell.cell, cell.line.unwrap_or(1)).line?;
        Some(Self { file, line })
    }

    /// Returns the file's path within the git repository that it lies in, or its whole path where it lies in none.
    pub fn file_in_repository(&self) -> &Path {
        let repository = self
            .file
            .ancestors()
            .skip(1)
            .find(|folder| folder.join(".git").exists());
        let inside = repository.and_then(|repository| self.file.strip_prefix(repository).ok());
        inside.unwrap_or(&self.file)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_named_within_its_repository_and_wholly_outside_of_any() {
        let folder = tempfile::tempdir().expect("a folder");
        let failed = FailedLine {
            file: folder.path().join("examples/a/nb.ipynb"),
            line: 1,
        };
        assert_eq!(failed.file_in_repository(), failed.file);
        fs::create_dir(folder.path().join(".git")).expect("a folder");
        assert_eq!(failed.file_in_repository(), Path::new("examples/a/nb.ipynb"));
    }
}

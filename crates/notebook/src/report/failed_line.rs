//! The notebook's file, and the line of it that a run failed at where there is one: where tools that annotate a checkout put their
//! mark.

use std::path::{Path, PathBuf};

use blueproof_core::{
    domain::{RunRequest, Source},
    ports::{AttemptOutput, OutputName, ReportKind, whole},
    view::RunView,
};
use serde::{Deserialize, Serialize};

use crate::{ipynb::Notebook, plan::Plan};

/// The file of the notebook of a run that failed, and the line where one is to blame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedLine {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from one, where a line is to blame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl FailedLine {
    /// Returns the file of the notebook that a run was asked for which failed, and at which line, if it did in a cell and the
    /// notebook can still be read. `None` where the run did not fail. Blocks.
    pub fn of(run: &RunView, request: &RunRequest) -> Option<Self> {
        let failure = run.failure.as_ref()?;
        let plan: Plan = serde_json::from_value(request.job.work.clone()).ok()?;
        let folder = match &request.job.source {
            Source::Folder(folder) => folder,
            // Within the repository, of which nothing is here.
            Source::Git(git) => {
                let (file, line) = (git.folder.join(plan.notebook), None);
                return Some(Self { file, line });
            }
        };
        let file = folder.join(plan.notebook);
        let line = failure.cell.as_ref().and_then(|cell| {
            let notebook = Notebook::read(&file).ok()?;
            notebook.place(cell.cell, cell.line.unwrap_or(1)).line
        });
        Some(Self { file, line })
    }

    /// Returns what the report of a run says of it, as it was when the run ended.
    pub async fn in_report(run: &RunView, output: &dyn AttemptOutput) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Written {
            failed_line: Option<FailedLine>,
        }
        const LONGEST: u64 = 64 << 20;
        let report = OutputName::Report(run.id, ReportKind::Json);
        let report = whole(output, &report, LONGEST).await.ok()?;
        serde_json::from_slice::<Written>(&report).ok()?.failed_line
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
            line: Some(1),
        };
        assert_eq!(failed.file_in_repository(), failed.file);
        fs::create_dir(folder.path().join(".git")).expect("a folder");
        assert_eq!(failed.file_in_repository(), Path::new("examples/a/nb.ipynb"));
    }
}

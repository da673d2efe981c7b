//! Which file of an attempt's folder is which.

use std::path::{Path, PathBuf};

use crate::domain::{AttemptId, RunId};

/// Returns what is kept of a run below the folder of all runs: its report, and its attempts.
pub fn run_folder(run: RunId, runs: &Path) -> PathBuf {
    runs.join(run.to_string())
}

/// The name of the file that marks a folder as something that can be made again, as many tools have it:
/// <https://bford.info/cachedir/>. Folders so marked are no part of a checkout's content.
pub const CACHE_TAG: &str = "CACHEDIR.TAG";

/// What stands in a file called [`CACHE_TAG`].
pub const CACHE_TAG_TEXT: &str = "Signature: 8a477f597d28d172789f06886806bc55\n# Made by blueproof.\n";

/// SQLite's application id in the header of a store's file: "BPrf". A store is no part of a checkout's content either.
pub const STORE_ID: i32 = 0x4250_7266;

/// The files of one attempt's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptLayout {
    root: PathBuf,
}

impl AttemptLayout {
    /// Describes the folder at `root`; nothing is created.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Describes the folder of `attempt` below the folder of all runs: `RUNS/r-41/attempts/2`.
    pub fn of(attempt: AttemptId, runs: &Path) -> Self {
        Self::new(
            run_folder(attempt.run, runs)
                .join("attempts")
                .join(attempt.number.to_string()),
        )
    }

    /// Returns the folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the file with the [`AttemptSpec`](super::AttemptSpec) as JSON.
    pub fn spec(&self) -> PathBuf {
        self.root.join("spec.json")
    }

    /// Returns the agent's log: one [`Record`](super::Record) a line, appended only.
    pub fn log(&self) -> PathBuf {
        self.root.join("log.ndjson")
    }

    /// Returns the file that a living agent holds an exclusive lock on.
    pub fn lock(&self) -> PathBuf {
        self.root.join("agent.lock")
    }

    /// Returns the file with what the agent itself printed, which is nothing unless something is wrong with it.
    pub fn agent_log(&self) -> PathBuf {
        self.root.join("agent.log")
    }

    /// Returns the notebook with its outputs, written as they come and complete at the end.
    pub fn executed_notebook(&self) -> PathBuf {
        self.root.join("executed.ipynb")
    }

    /// Returns the folder of the files that the blueprint declares as artifacts.
    pub fn artifacts(&self) -> PathBuf {
        self.root.join("artifacts")
    }

    /// Returns the file with what the kernel itself printed, shown only when it dies.
    pub fn kernel_log(&self) -> PathBuf {
        self.root.join("kernel.log")
    }
}

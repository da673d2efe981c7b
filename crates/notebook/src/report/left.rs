//! What an attempt's agent has left behind, as far as it is the agent's: the signed log, and files whose digest stands in it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use blueproof_core::{
    attempt::{AttemptLayout, Checked, KeptFile, Machine, Record, RecordKind, RunsFolder, read_regular},
    domain::{AttemptId, Bytes},
};
use blueproof_diagnostic::Diagnostic;

use super::{ArtifactReport, Cell, FileReport, cells};
use crate::{environment::EnvironmentReport, files::digest_of};

/// The largest executed notebook that is read: what is kept of outputs takes 16 MiB, and the user's own cells come to it.
const LARGEST_NOTEBOOK: u64 = 256 << 20;

/// What an attempt's agent has left behind, and nobody has changed since.
pub(super) struct Left {
    pub(super) log: Vec<Record>,
    /// The executed notebook's text; empty where there is none.
    pub(super) executed: String,
    pub(super) environment: Option<EnvironmentReport>,
    /// The machine, where the agent came to tell of it.
    pub(super) machine: Option<Machine>,
    /// The agent's version.
    pub(super) version: Option<String>,
    pub(super) artifacts: Vec<ArtifactReport>,
    /// The attempt's folder, relative to that of its run.
    pub(super) folder: PathBuf,
    /// What lies there for people to read, relative to the run's folder.
    pub(super) files: Vec<FileReport>,
    /// Of each expectation, in order, whether it holds.
    pub(super) expectations: Vec<Checked>,
}

impl Left {
    /// Reads it; what is gone, or is not the agent's, is left out.
    pub(super) fn by(attempt: AttemptId, runs: &RunsFolder) -> Self {
        let layout = runs.attempt(attempt);
        let log = runs.log(attempt).read_to_foreign();
        let mut left = Self {
            log: Vec::new(),
            executed: String::new(),
            environment: None,
            machine: None,
            version: None,
            artifacts: Vec::new(),
            expectations: Vec::new(),
            files: files(attempt, runs),
            folder: relative(layout.root(), attempt, runs),
        };
        for record in &log {
            if let RecordKind::EnvironmentReady { environment } = &record.kind {
                left.environment = serde_json::from_value(environment.clone()).ok();
            }
            if let RecordKind::Begun { version, .. } = &record.kind {
                left.version = Some(version.clone());
            }
            if let RecordKind::MachineSeen { machine } = &record.kind {
                left.machine = Some(machine.clone());
            }
            if let RecordKind::ExpectationsChecked { found } = &record.kind {
                left.expectations.clone_from(found);
            }
            if let RecordKind::FilesKept { notebook, artifacts } = &record.kind {
                let notebook = notebook.as_ref();
                left.executed = notebook
                    .and_then(|kept| unchanged(&layout, kept))
                    .unwrap_or_default();
                left.artifacts = artifacts.iter().map(ArtifactReport::of).collect();
            }
        }
        Self { log, ..left }
    }

    /// Returns the notebook's cells with what came of them.
    pub(super) fn cells(&self) -> Vec<Cell> {
        cells(&self.executed, &self.log).unwrap_or_default()
    }

    /// Returns what the agent noticed.
    pub(super) fn notices(&self) -> Vec<Diagnostic> {
        self.log.iter().filter_map(notice).collect()
    }
}

/// Returns a path of an attempt's folder, relative to that of its run.
fn relative(path: &Path, attempt: AttemptId, runs: &RunsFolder) -> PathBuf {
    let run = runs.run(attempt.run);
    path.strip_prefix(run).unwrap_or(path).to_path_buf()
}

/// Returns the executed notebook and the kernel's log, where something is in them.
fn files(attempt: AttemptId, runs: &RunsFolder) -> Vec<FileReport> {
    let layout = runs.attempt(attempt);
    let file = |path: PathBuf| {
        let found = fs::symlink_metadata(&path).ok()?;
        (found.is_file() && found.len() > 0).then(|| FileReport {
            path: relative(&path, attempt, runs),
            size: Bytes(found.len()),
        })
    };
    [layout.executed_notebook(), layout.kernel_log()]
        .into_iter()
        .filter_map(file)
        .collect()
}

/// Returns the text of the executed notebook, if it is still what the agent wrote.
fn unchanged(layout: &AttemptLayout, kept: &KeptFile) -> Option<String> {
    let text = read_regular(&layout.executed_notebook(), LARGEST_NOTEBOOK).ok()?;
    if digest_of(&text) != kept.sha256 {
        return None;
    }
    String::from_utf8(text).ok()
}

impl ArtifactReport {
    fn of(kept: &KeptFile) -> Self {
        Self {
            path: kept.path.clone(),
            size: kept.size,
            sha256: kept.sha256.clone(),
        }
    }
}

fn notice(record: &Record) -> Option<Diagnostic> {
    if let RecordKind::Noticed { diagnostic } = &record.kind {
        Some(diagnostic.clone())
    } else {
        None
    }
}

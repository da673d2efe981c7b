//! What an attempt's agent has left behind, as far as it is the agent's: the signed log, and files whose digest stands in it.

use std::{path::PathBuf, sync::Arc};

use blueproof_core::{
    attempt::{Checked, KeptFile, Machine, Record, RecordKind},
    domain::{AttemptId, Bytes},
    ports::{AttemptOutput, OutputName, RecordFollower, whole},
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
    /// Where the artifacts are, relative to the report.
    pub(super) artifacts_folder: PathBuf,
    /// What there is for people to read, relative to the report.
    pub(super) files: Vec<FileReport>,
    /// Of each expectation, in order, whether it holds.
    pub(super) expectations: Vec<Checked>,
}

impl Left {
    /// Reads it; what is gone, or is not the agent's, is left out.
    pub(super) async fn by(attempt: AttemptId, output: &Arc<dyn AttemptOutput>) -> Self {
        let mut left = Self {
            log: records(attempt, output).await,
            executed: String::new(),
            environment: None,
            machine: None,
            version: None,
            artifacts: Vec::new(),
            expectations: Vec::new(),
            files: files(attempt, &**output).await,
            artifacts_folder: output.artifacts_link(attempt),
        };
        let mut executed = None;
        for record in &left.log {
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
                executed.clone_from(notebook);
                left.artifacts = artifacts.iter().map(ArtifactReport::of).collect();
            }
        }
        if let Some(kept) = executed {
            left.executed = unchanged(attempt, &**output, &kept).await.unwrap_or_default();
        }
        left
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

/// Returns what the agent wrote down before anything else was written there, as far as it can be read.
async fn records(attempt: AttemptId, output: &Arc<dyn AttemptOutput>) -> Vec<Record> {
    let mut all = Vec::new();
    let mut follower = RecordFollower::new(output.clone(), attempt);
    while let Ok(records) = follower.ready().await
        && !records.is_empty()
    {
        all.extend(records);
    }
    all
}

/// Returns the executed notebook and the kernel's log, where something is in them.
async fn files(attempt: AttemptId, output: &dyn AttemptOutput) -> Vec<FileReport> {
    let mut files = Vec::new();
    for name in [
        OutputName::ExecutedNotebook(attempt),
        OutputName::KernelLog(attempt),
    ] {
        let found = output.file(&name).await.ok().flatten();
        files.extend(
            found
                .filter(|found| found.size > Bytes(0))
                .map(|found| FileReport {
                    path: found.link,
                    size: found.size,
                }),
        );
    }
    files
}

/// Returns the text of the executed notebook, if it is still what the agent wrote.
async fn unchanged(attempt: AttemptId, output: &dyn AttemptOutput, kept: &KeptFile) -> Option<String> {
    let name = OutputName::ExecutedNotebook(attempt);
    let text = whole(output, &name, LARGEST_NOTEBOOK).await.ok()?;
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

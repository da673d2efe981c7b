//! What attempts of this machine have left in their folders.
//!
//! A notebook runs as the user who owns these folders, and can have put anything there. No link on the way to a file is
//! followed, and nothing but a regular file is read.

mod below;
mod listing;
mod removal;

use std::{
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use blueproof_core::{
    attempt::{AttemptLayout, LogCursor, LogError, RunsFolder},
    domain::{AttemptId, Bytes, RunId},
    ports::{
        ArtifactName, AttemptOutput, OutputError, OutputFile, OutputName, RecordChanges, RecordPosition,
        Records, RemovableOutput, ReportKind, ReportOutput, RunFiles,
    },
};

use super::{changes::Changes, files};

/// What the attempts of one store have left on this machine.
#[derive(Debug, Clone)]
pub struct LocalOutput {
    runs: RunsFolder,
}

impl LocalOutput {
    /// Returns what is below the folder of a store's runs.
    pub fn new(runs: RunsFolder) -> Self {
        Self { runs }
    }

    fn layout(&self, attempt: AttemptId) -> AttemptLayout {
        self.runs.attempt(attempt)
    }

    fn path(&self, name: &OutputName) -> PathBuf {
        match name {
            OutputName::ExecutedNotebook(attempt) => self.layout(*attempt).executed_notebook(),
            OutputName::KernelLog(attempt) => self.layout(*attempt).kernel_log(),
            OutputName::Artifact(attempt, name) => self.layout(*attempt).artifacts().join(name.path()),
            OutputName::Report(run, kind) => self.runs.run(*run).join(kind.file_name()),
        }
    }

    /// Returns a path below the folder of a run, relative to it.
    fn link(&self, run: RunId, path: &Path) -> PathBuf {
        path.strip_prefix(self.runs.run(run)).unwrap_or(path).into()
    }

    /// Returns a path below the folder of the store's runs, relative to it.
    fn below_runs(&self, path: &Path) -> PathBuf {
        path.strip_prefix(self.runs.path()).unwrap_or(path).into()
    }

    fn found(&self, name: OutputName, size: u64) -> OutputFile {
        let run = match &name {
            OutputName::ExecutedNotebook(attempt)
            | OutputName::KernelLog(attempt)
            | OutputName::Artifact(attempt, _) => attempt.run,
            OutputName::Report(run, _) => *run,
        };
        let path = self.path(&name);
        OutputFile {
            name,
            size: Bytes(size),
            link: self.link(run, &path),
            location: Some(path),
        }
    }
}

#[async_trait]
impl AttemptOutput for LocalOutput {
    async fn records(
        &self,
        attempt: AttemptId,
        after: &RecordPosition,
        limit: usize,
    ) -> Result<Records, OutputError> {
        let cursor = if after.is_start() {
            LogCursor::default()
        } else {
            let unknown = |_| OutputError::Position {
                attempt,
                position: after.clone(),
            };
            after.0.parse().map_err(unknown)?
        };
        let (reader, folder) = (self.runs.log(attempt), self.layout(attempt));
        let read = blocking(move || {
            if !folder.root().is_dir() {
                return Ok(None);
            }
            Ok(Some(reader.read_some(cursor, limit)))
        });
        let failed = |source| OutputError::Log { attempt, source };
        match read.await.map_err(failed)? {
            None if after.is_start() => Err(OutputError::Missing(attempt)),
            None => Err(OutputError::Removed(attempt)),
            Some(Ok((records, next))) => {
                let next = match next == cursor {
                    true => after.clone(),
                    false => RecordPosition(next.to_string()),
                };
                Ok(Records { records, next })
            }
            Some(Err(LogError::Foreign { at })) => Err(OutputError::Disturbed { attempt, at }),
            Some(Err(LogError::Io(source))) => Err(failed(source)),
        }
    }

    fn changes(&self, attempt: AttemptId) -> Box<dyn RecordChanges> {
        Box::new(Changes::of(self.layout(attempt).log()))
    }

    async fn artifacts(&self, attempt: AttemptId) -> Result<Vec<OutputFile>, OutputError> {
        let layout = self.layout(attempt);
        let below = self.below_runs(&layout.artifacts());
        let root = self.runs.path();
        let listed = blocking(move || {
            if !layout.root().is_dir() {
                return Ok(None);
            }
            listing::artifacts(&root, &below).map(Some)
        });
        let listed = listed
            .await
            .map_err(|source| OutputError::Artifacts { attempt, source })?;
        let listed = listed.ok_or(OutputError::Missing(attempt))?;
        let name = |path: PathBuf| Some(OutputName::Artifact(attempt, ArtifactName::try_from(path).ok()?));
        Ok(listed
            .into_iter()
            .filter_map(|(path, size)| Some(self.found(name(path)?, size)))
            .collect())
    }

    fn artifacts_link(&self, attempt: AttemptId) -> PathBuf {
        self.link(attempt.run, &self.layout(attempt).artifacts())
    }

    async fn file(&self, name: &OutputName) -> Result<Option<OutputFile>, OutputError> {
        let (root, path) = (self.runs.path(), self.below_runs(&self.path(name)));
        match blocking(move || below::size(&root, &path)).await {
            Ok(size) => Ok(Some(self.found(name.clone(), size))),
            Err(error) if below::is_no_file(&error) => Ok(None),
            Err(error) => Err(failed("look for", name, error)),
        }
    }

    async fn read(&self, name: &OutputName, offset: u64, limit: usize) -> Result<Vec<u8>, OutputError> {
        let (root, path) = (self.runs.path(), self.below_runs(&self.path(name)));
        let read = blocking(move || {
            let file = below::open(&root, &path)?;
            // No more than there is: whoever asks for all does not know how little that may be.
            let rest = file.metadata()?.len().saturating_sub(offset);
            let mut bytes = vec![0; usize::try_from(rest).unwrap_or(usize::MAX).min(limit)];
            let mut filled = 0;
            while filled < bytes.len() {
                match file.read_at(&mut bytes[filled..], offset + filled as u64)? {
                    0 => break,
                    read => filled += read,
                }
            }
            bytes.truncate(filled);
            Ok(bytes)
        });
        read.await.map_err(|error| match below::is_no_file(&error) {
            true => OutputError::NoFile(name.clone()),
            false => failed("read", name, error),
        })
    }

    async fn kept(&self, run: RunId, limit: usize) -> Result<RunFiles, OutputError> {
        let folder = self.runs.run(run);
        let listed = blocking(move || Ok(listing::run(&folder, limit)));
        listed.await.map_err(|source| of_run("list", run, source))
    }
}

#[async_trait]
impl ReportOutput for LocalOutput {
    async fn put_report(&self, run: RunId, kind: ReportKind, content: &[u8]) -> Result<(), OutputError> {
        let name = OutputName::Report(run, kind);
        let (folder, path, content) = (self.runs.run(run), self.path(&name), content.to_vec());
        let written = blocking(move || {
            files::make(&folder)?;
            files::write_whole(&path, &content)
        });
        written.await.map_err(|error| failed("write", &name, error))
    }
}

#[async_trait]
impl RemovableOutput for LocalOutput {
    async fn size(&self, run: RunId) -> Result<Bytes, OutputError> {
        let folder = self.runs.run(run);
        let measured = blocking(move || removal::size(&folder));
        let measured = measured.await.map_err(|source| of_run("measure", run, source));
        measured.map(Bytes)
    }

    async fn remove(&self, run: RunId, attempts: u32) -> Result<(), OutputError> {
        let (root, folder) = (self.runs.path(), self.below_runs(&self.runs.run(run)));
        let ours = (1..=attempts).map(|number| self.below_runs(self.layout(run.attempt(number)).root()));
        let reports = ReportKind::ALL.map(|kind| folder.join(kind.file_name()));
        let ours: Vec<PathBuf> = ours.chain(reports).collect();
        let removed = blocking(move || removal::remove(&root, &folder, &ours));
        removed.await.map_err(|source| of_run("remove", run, source))
    }
}

fn of_run(doing: &'static str, run: RunId, source: io::Error) -> OutputError {
    OutputError::Run { doing, run, source }
}

fn failed(doing: &'static str, name: &OutputName, source: io::Error) -> OutputError {
    let name = name.clone();
    OutputError::File { doing, name, source }
}

/// Does what waits for a disk elsewhere.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|stopped| Err(io::Error::other(stopped)))
}

#[cfg(test)]
mod tests;

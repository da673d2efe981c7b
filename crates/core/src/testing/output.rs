//! Output of attempts that is kept in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use tokio::sync::watch;

use super::contract::OutputWriter;
use crate::{
    attempt::Record,
    domain::{AttemptId, Bytes, RunId},
    ports::{
        ArtifactName, AttemptOutput, OutputError, OutputFile, OutputName, RecordChanges, RecordPosition,
        Records, RemovableOutput, ReportKind, ReportOutput, RunFiles,
    },
};

/// Output of attempts in memory, to be written by a test.
#[derive(Debug, Default)]
pub struct FakeOutput {
    kept: Mutex<Kept>,
    next_failure: Mutex<Option<String>>,
    written: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Kept {
    logs: BTreeMap<AttemptId, Log>,
    files: BTreeMap<OutputName, Vec<u8>>,
    links: BTreeSet<OutputName>,
}

#[derive(Debug, Default)]
struct Log {
    records: Vec<Record>,
    /// How many of them are the agent's, where others follow or some are missing.
    disturbed_at: Option<usize>,
}

struct FakeChanges(watch::Receiver<()>);

impl FakeOutput {
    /// Lets the next report that is put fail, for this reason.
    pub fn fail_next_write(&self, why: &str) {
        *self.next_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.into());
    }

    /// Has only the first `records` of an attempt be its agent's from now on; all of them where it is `None`.
    pub fn disturb(&self, attempt: AttemptId, records: Option<usize>) {
        self.write(|kept| kept.log(attempt).disturbed_at = records);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, write: impl FnOnce(&mut Kept)) {
        write(&mut self.kept());
        self.written.send_replace(());
    }
}

impl Kept {
    fn log(&mut self, attempt: AttemptId) -> &mut Log {
        self.logs.entry(attempt).or_default()
    }

    fn file(&self, name: &OutputName) -> Option<OutputFile> {
        let content = self.files.get(name)?;
        Some(OutputFile {
            name: name.clone(),
            size: Bytes(content.len() as u64),
            link: link(name),
            location: None,
        })
    }

    fn of_run(&self, run: RunId) -> impl Iterator<Item = OutputFile> {
        let is_of_run = move |name: &&OutputName| run_of(name) == run;
        self.files
            .keys()
            .filter(is_of_run)
            .filter_map(|name| self.file(name))
    }
}

fn run_of(name: &OutputName) -> RunId {
    match name {
        OutputName::ExecutedNotebook(attempt)
        | OutputName::KernelLog(attempt)
        | OutputName::Artifact(attempt, _) => attempt.run,
        OutputName::Report(run, _) => *run,
    }
}

fn link(name: &OutputName) -> PathBuf {
    match name {
        OutputName::ExecutedNotebook(attempt) => folder(*attempt).join("executed.ipynb"),
        OutputName::KernelLog(attempt) => folder(*attempt).join("kernel.log"),
        OutputName::Artifact(attempt, name) => folder(*attempt).join("artifacts").join(name.path()),
        OutputName::Report(_, kind) => kind.file_name().into(),
    }
}

fn folder(attempt: AttemptId) -> PathBuf {
    PathBuf::from("attempts").join(attempt.number.to_string())
}

#[async_trait]
impl AttemptOutput for FakeOutput {
    async fn records(
        &self,
        attempt: AttemptId,
        after: &RecordPosition,
        limit: usize,
    ) -> Result<Records, OutputError> {
        let kept = self.kept();
        let unknown = || OutputError::Position {
            attempt,
            position: after.clone(),
        };
        let from = match after.0.parse::<usize>() {
            _ if after.is_start() => 0,
            parsed => parsed.map_err(|_| unknown())?,
        };
        let Some(log) = kept.logs.get(&attempt) else {
            return Err(match after.is_start() {
                true => OutputError::Missing(attempt),
                false => OutputError::Removed(attempt),
            });
        };
        let disturbed = |at: usize| OutputError::Disturbed {
            attempt,
            at: at as u64,
        };
        let end = log.disturbed_at.unwrap_or(log.records.len());
        let rest = log.records.get(from..end).ok_or_else(|| disturbed(end))?;
        if rest.is_empty()
            && let Some(at) = log.disturbed_at
        {
            return Err(disturbed(at));
        }
        let records: Vec<_> = rest.iter().take(limit).cloned().collect();
        let next = match records.len() {
            0 => after.clone(),
            read => RecordPosition((from + read).to_string()),
        };
        Ok(Records { records, next })
    }

    fn changes(&self, _attempt: AttemptId) -> Box<dyn RecordChanges> {
        Box::new(FakeChanges(self.written.subscribe()))
    }

    async fn artifacts(&self, attempt: AttemptId) -> Result<Vec<OutputFile>, OutputError> {
        let kept = self.kept();
        let is_artifact =
            |file: &OutputFile| matches!(file.name, OutputName::Artifact(of, _) if of == attempt);
        let artifacts: Vec<_> = kept.of_run(attempt.run).filter(is_artifact).collect();
        if artifacts.is_empty() && !kept.logs.contains_key(&attempt) {
            return Err(OutputError::Missing(attempt));
        }
        Ok(artifacts)
    }

    fn artifacts_link(&self, attempt: AttemptId) -> PathBuf {
        folder(attempt).join("artifacts")
    }

    async fn file(&self, name: &OutputName) -> Result<Option<OutputFile>, OutputError> {
        Ok(self.kept().file(name))
    }

    async fn read(&self, name: &OutputName, offset: u64, limit: usize) -> Result<Vec<u8>, OutputError> {
        let kept = self.kept();
        let content = kept.files.get(name).filter(|_| !kept.links.contains(name));
        let content = content.ok_or_else(|| OutputError::NoFile(name.clone()))?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        Ok(content.iter().skip(from).take(limit).copied().collect())
    }

    async fn kept(&self, run: RunId, limit: usize) -> Result<RunFiles, OutputError> {
        let kept = self.kept();
        let mut files: Vec<_> = kept.of_run(run).map(|file| (file.link, file.size)).collect();
        files.sort();
        let more = files.len().saturating_sub(limit);
        files.truncate(limit);
        Ok(RunFiles {
            location: "memory".into(),
            files,
            more,
        })
    }
}

#[async_trait]
impl ReportOutput for FakeOutput {
    async fn put_report(&self, run: RunId, kind: ReportKind, content: &[u8]) -> Result<(), OutputError> {
        let name = OutputName::Report(run, kind);
        if let Some(why) = self
            .next_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            let (doing, source) = ("write", io::Error::other(why));
            return Err(OutputError::File { doing, name, source });
        }
        self.put(&name, content);
        Ok(())
    }
}

#[async_trait]
impl RemovableOutput for FakeOutput {
    async fn size(&self, run: RunId) -> Result<Bytes, OutputError> {
        let kept = self.kept();
        Ok(Bytes(kept.of_run(run).map(|file| file.size.0).sum()))
    }

    async fn remove(&self, run: RunId, attempts: u32) -> Result<(), OutputError> {
        let is_meant = |attempt: &AttemptId| attempt.run == run && attempt.number <= attempts;
        self.write(|kept| {
            kept.logs.retain(|attempt, _| !is_meant(attempt));
            kept.files.retain(|name, _| match name {
                OutputName::ExecutedNotebook(attempt)
                | OutputName::KernelLog(attempt)
                | OutputName::Artifact(attempt, _) => !is_meant(attempt),
                OutputName::Report(of, _) => *of != run,
            });
        });
        Ok(())
    }
}

#[async_trait]
impl RecordChanges for FakeChanges {
    async fn next(&mut self, _after: &RecordPosition) {
        // Where nobody writes any more, nothing will come.
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl OutputWriter for FakeOutput {
    fn begin(&self, attempt: AttemptId) {
        self.write(|kept| {
            kept.log(attempt);
        });
    }

    fn append(&self, attempt: AttemptId, records: &[Record]) {
        self.write(|kept| kept.log(attempt).records.extend_from_slice(records));
    }

    fn append_part(&self, attempt: AttemptId, _record: &Record) {
        self.begin(attempt);
    }

    fn append_foreign(&self, attempt: AttemptId, record: &Record) {
        self.write(|kept| {
            let log = kept.log(attempt);
            log.disturbed_at = Some(log.records.len());
            log.records.push(record.clone());
        });
    }

    fn cut(&self, attempt: AttemptId) {
        self.write(|kept| drop(kept.log(attempt).records.pop()));
    }

    fn put(&self, name: &OutputName, content: &[u8]) {
        self.write(|kept| drop(kept.files.insert(name.clone(), content.into())));
    }

    fn put_link(&self, attempt: AttemptId, name: &ArtifactName) {
        self.write(|kept| {
            kept.links.insert(OutputName::Artifact(attempt, name.clone()));
        });
    }

    fn remove(&self, run: RunId) {
        self.write(|kept| {
            kept.logs.retain(|attempt, _| attempt.run != run);
            kept.files.retain(|name, _| run_of(name) != run);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing::contract::{
        output_keeps_its_promises, removal_keeps_its_promises, reports_keep_their_promises,
    };

    #[tokio::test]
    async fn the_fake_keeps_the_contract() {
        let output = Arc::new(FakeOutput::default());
        output_keeps_its_promises(output.clone(), &*output).await;
        reports_keep_their_promises(&*output).await;
        removal_keeps_its_promises(&*output, &*output).await;
    }
}

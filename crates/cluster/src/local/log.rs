//! An attempt's log as its driver goes by it: every line its agent's.

use std::{path::PathBuf, time::Duration};

use blueproof_core::{
    attempt::{Cgroup, LogCursor, LogError, LogReader, ProcessName, Record, RecordKind, RunsFolder},
    domain::AttemptId,
    ports::CallError,
};

use super::{attempts::cannot, changes::Changes};

/// An attempt's log, read on from where it was read to.
pub(super) struct Log {
    reader: LogReader,
    path: PathBuf,
    cursor: LogCursor,
    begun: Option<ProcessName>,
    cgroup: Option<Cgroup>,
    changes: Option<Changes>,
}

/// What was read.
pub(super) struct News {
    /// What the agent wrote since it was last looked.
    pub(super) records: Vec<Record>,
    /// Whether something follows that it did not write, or something is missing. It is read from the beginning next time.
    pub(super) is_disturbed: bool,
}

impl Log {
    pub(super) fn of(attempt: AttemptId, runs: &RunsFolder) -> Self {
        Self {
            reader: runs.log(attempt),
            path: runs.attempt(attempt).log(),
            cursor: LogCursor::default(),
            begun: None,
            cgroup: None,
            changes: None,
        }
    }

    /// Returns once the log was written to since it was last asked, or after `at_most`. It may be dropped at any point.
    pub(super) async fn changed(&mut self, at_most: Duration) {
        let changes = self.changes.get_or_insert_with(|| Changes::of(&self.path));
        changes.next(at_most).await;
    }

    /// Returns the process of the agent that has begun last, as far as it was read.
    pub(super) fn begun(&self) -> Option<&ProcessName> {
        self.begun.as_ref()
    }

    /// Returns the cgroup of the attempt, as far as it was read.
    pub(super) fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }

    /// Returns what is new.
    pub(super) async fn news(&mut self) -> Result<News, CallError> {
        let (reader, mut cursor) = (self.reader.clone(), self.cursor);
        let read = tokio::task::spawn_blocking(move || {
            let mut records = Vec::new();
            loop {
                match reader.read_from(cursor) {
                    Ok((_, next)) if next == cursor => return Ok((records, Some(cursor))),
                    Ok((more, next)) => {
                        records.extend(more);
                        cursor = next;
                    }
                    Err(LogError::Foreign { .. }) => return Ok((records, None)),
                    Err(LogError::Io(error)) => return Err(error),
                }
            }
        });
        let read = read.await.expect("reading a file does not panic");
        let (records, cursor) = read.map_err(|error| cannot("read", &self.path, &error))?;
        self.cursor = cursor.unwrap_or_default();
        self.begun = records.iter().rev().find_map(begun).or(self.begun.take());
        self.cgroup = records.iter().rev().find_map(cgroup).or(self.cgroup.take());
        Ok(News {
            records,
            is_disturbed: cursor.is_none(),
        })
    }
}

impl News {
    /// Returns whether an agent has written down how its attempt ended.
    pub(super) fn is_finished(&self) -> bool {
        is_finished(&self.records)
    }
}

/// Returns whether an agent has written down how its attempt ended.
pub(super) fn is_finished(records: &[Record]) -> bool {
    let finished = |record: &Record| matches!(record.kind, RecordKind::Finished { .. });
    records.iter().any(finished)
}

/// Returns the process of an agent that says that it has begun.
pub(super) fn begun(record: &Record) -> Option<ProcessName> {
    if let RecordKind::Begun { process, .. } = &record.kind {
        Some(process.clone())
    } else {
        None
    }
}

fn cgroup(record: &Record) -> Option<Cgroup> {
    if let RecordKind::Begun { cgroup, .. } = &record.kind {
        cgroup.clone()
    } else {
        None
    }
}

//! An attempt's log as its driver goes by it: every line its agent's.

use std::{sync::Arc, time::Duration};

use blueproof_core::{
    attempt::{Cgroup, ProcessName, Record, RecordKind},
    domain::AttemptId,
    ports::{AttemptOutput, CallError, OutputError, RecordFollower},
};

/// An attempt's log, read on from where it was read to.
pub(super) struct Log {
    records: RecordFollower,
    begun: Option<ProcessName>,
    cgroup: Option<Cgroup>,
}

/// What was read.
pub(super) struct News {
    /// What the agent wrote since it was last looked and the driver goes by, which is little however long the log is.
    pub(super) records: Vec<Record>,
    /// Whether something follows that it did not write, or something is missing. It is read from the beginning next time.
    pub(super) is_disturbed: bool,
}

impl Log {
    pub(super) fn of(attempt: AttemptId, output: Arc<dyn AttemptOutput>) -> Self {
        Self {
            records: RecordFollower::new(output, attempt),
            begun: None,
            cgroup: None,
        }
    }

    /// Returns once there may be news, or after `at_most`. It may be dropped at any point.
    pub(super) async fn changed(&mut self, at_most: Duration) {
        // That time is up is as good as a change: whoever asks looks again.
        let _ = tokio::time::timeout(at_most, self.records.changed()).await;
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
        let mut records = Vec::new();
        let is_disturbed = loop {
            match self.records.ready().await {
                Ok(more) if more.is_empty() => break false,
                Ok(more) => records.extend(more.into_iter().filter(is_for_the_driver)),
                Err(OutputError::Disturbed { .. } | OutputError::Removed(_)) => {
                    self.records.restart();
                    break true;
                }
                Err(error) => return Err(error.into()),
            }
        };
        self.begun = records.iter().rev().find_map(begun).or(self.begun.take());
        self.cgroup = records.iter().rev().find_map(cgroup).or(self.cgroup.take());
        Ok(News {
            records,
            is_disturbed,
        })
    }
}

/// Returns whether a driver goes by a record: by all that says how an attempt stands, and by none of what it printed.
fn is_for_the_driver(record: &Record) -> bool {
    matches!(
        record.kind,
        RecordKind::Begun { .. }
            | RecordKind::KernelReady { .. }
            | RecordKind::DevicesUnhealthy { .. }
            | RecordKind::Finished { .. }
    )
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

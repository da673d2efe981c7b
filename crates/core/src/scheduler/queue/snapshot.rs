//! The queue as it is written down and taken up again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use blueproof_queue::{AdmissionQueue, AdmissionSnapshot, UnknownQueue};
use serde::{Deserialize, Serialize};

use super::{Entry, Queue};
use crate::domain::{AttemptId, RunId, RunRequest};

/// The queue as plain data; what the runs ask for is written down with them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct QueueSnapshot {
    admission: AdmissionSnapshot,
    applied: bool,
    attempts: Vec<AttemptId>,
}

impl Queue {
    pub(in super::super) fn snapshot(&self) -> QueueSnapshot {
        QueueSnapshot {
            admission: self.admission.snapshot(),
            applied: self.applied,
            attempts: self.entries.values().map(|entry| entry.attempt).collect(),
        }
    }

    /// Returns the queue of a snapshot, given what each run asks for, or how it fails that nothing is known of a run.
    pub(in super::super) fn from_snapshot<E: From<UnknownQueue>>(
        saved: QueueSnapshot,
        request: impl Fn(RunId) -> Result<Arc<RunRequest>, E>,
    ) -> Result<Self, E> {
        let mut entries = BTreeMap::new();
        for attempt in saved.attempts {
            let request = request(attempt.run)?;
            entries.insert(attempt.run, Entry { attempt, request });
        }
        let mut queue = Self {
            admission: AdmissionQueue::from_snapshot(saved.admission)?,
            applied: saved.applied,
            entries,
            unrequested: BTreeSet::new(),
        };
        queue.note_external();
        Ok(queue)
    }
}

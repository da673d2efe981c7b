//! The whole state as it is written down, so that what comes after it is all that has to be replayed.
//!
//! It is a cache: what cannot be read is left aside, and the log is replayed from its beginning. What is left out follows
//! from the rest (which runs are of one pull request, which wait at the gate), or is tried anew as after a replay (in which
//! order those who wait are tried).

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc};

use blueproof_queue::UnknownQueue;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    Scheduler,
    gate::{self, Gate},
    passes::Passes,
    queue::{Queue, QueueSnapshot},
    run::{Phase, Run},
    tally::Tally,
    timers::Timer,
};
use crate::{
    domain::{ClusterName, Inventory, RunId},
    estimate::Durations,
    policy::{Policy, RetryPolicy},
    view::FailingCall,
};

/// The shape in which a state is written down. A snapshot of another one is not read: whoever changes what is written raises
/// this, of which a test reminds them.
pub const SNAPSHOT_VERSION: u32 = 5;

/// The whole state of a scheduler, after a fact.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    now: Timestamp,
    gate: Gate,
    retry: RetryPolicy,
    configured: Option<Policy>,
    inventories: BTreeMap<ClusterName, Inventory>,
    timers: Vec<(Timer, Timestamp)>,
    runs: Vec<Run>,
    last_run: RunId,
    remembered_runs: NonZeroU32,
    failing_calls: Vec<FailingCall>,
    durations: Durations,
    passes: Passes,
    tally: Tally,
    queue: QueueSnapshot,
}

/// A snapshot that cannot be taken up.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// It is no snapshot, or of another shape.
    #[error("a snapshot cannot be understood")]
    Unreadable(#[source] serde_json::Error),
    /// A run is in the queue of which it says nothing.
    #[error("a snapshot has {0} in its queue and nowhere else")]
    UnknownRun(RunId),
    /// A run is in a queue that it does not have.
    #[error("a snapshot has a run in a queue that is not there")]
    UnknownQueue(#[from] UnknownQueue),
}

impl Snapshot {
    /// Returns it as a store keeps it.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain data with texts for keys")
    }

    /// Reads one of this version.
    ///
    /// # Errors
    /// When it is something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
        serde_json::from_slice(bytes).map_err(SnapshotError::Unreadable)
    }
}

impl Scheduler {
    /// Returns the whole state, as it is between two inputs.
    pub fn snapshot(&self) -> Snapshot {
        let failing_calls = self.failing_calls.values().flat_map(BTreeMap::values);
        Snapshot {
            now: self.now,
            gate: self.gate.clone(),
            retry: self.retry,
            configured: self.configured.clone(),
            inventories: self.inventories.clone(),
            timers: self.timers.iter().collect(),
            runs: self.runs.values().cloned().collect(),
            last_run: self.last_run,
            remembered_runs: self.settled.remembered(),
            failing_calls: failing_calls.cloned().collect(),
            durations: self.durations.clone(),
            passes: self.passes.clone(),
            tally: self.tally.clone(),
            queue: self.queue.snapshot(),
        }
    }

    /// Returns the scheduler of a snapshot, in which nothing was tried yet.
    pub(super) fn from_snapshot(snapshot: Snapshot) -> Result<Self, SnapshotError> {
        let mut scheduler = Self::new(Policy::local(Default::default()));
        scheduler.now = snapshot.now;
        scheduler.gate = snapshot.gate;
        scheduler.retry = snapshot.retry;
        scheduler.configured = snapshot.configured;
        scheduler.inventories = snapshot.inventories;
        for (timer, at) in snapshot.timers {
            scheduler.timers.set(timer, at);
        }
        scheduler.settled.remember(snapshot.remembered_runs);
        scheduler.last_run = snapshot.last_run;
        for run in snapshot.runs {
            scheduler.take_up(run);
        }
        for trouble in snapshot.failing_calls {
            let of_run = scheduler.failing_calls.entry(trouble.call.run()).or_default();
            of_run.insert(trouble.call, trouble);
        }
        scheduler.durations = snapshot.durations;
        scheduler.passes = snapshot.passes;
        scheduler.tally = snapshot.tally;
        let runs = &scheduler.runs;
        let request = |id: RunId| {
            let run = runs.get(&id).ok_or(SnapshotError::UnknownRun(id));
            run.map(|run| Arc::clone(&run.request))
        };
        scheduler.queue = Queue::from_snapshot(snapshot.queue, request)?;
        scheduler.withdraw_misdirected();
        Ok(scheduler)
    }

    /// Puts a run where it is found.
    fn take_up(&mut self, run: Run) {
        let (id, origin) = (run.id, gate::origin(&run.request.subject));
        self.by_key.insert(run.request.key.clone(), id);
        if let Phase::AwaitingApproval { .. } = run.phase {
            self.awaiting.entry(origin.clone()).or_default().insert(id);
        }
        self.by_origin.entry(origin).or_default().insert(id);
        match run.is_settled() {
            true => self.settled.insert(&run),
            false => {
                self.unsettled.insert(id);
            }
        }
        self.runs.insert(id, run);
    }
}

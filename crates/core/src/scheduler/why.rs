//! What would take runs further, and who waits in no queue: what is asked of the queues as they stand.

use std::collections::BTreeMap;

use super::Scheduler;
use crate::{
    domain::RunId,
    pending::{InactiveQueue, RunRemedy},
};

impl Scheduler {
    /// Returns changes each of which would get a run that waits for quota admitted, the nearest first.
    ///
    /// They are found by trying, which takes time in proportion to who else is there.
    pub fn unblocked_by(&self, run: RunId) -> Vec<RunRemedy> {
        self.queue.unblocked_by(run)
    }

    /// Returns who waits behind each LocalQueue that is stopped: as in Kueue they are in no ClusterQueue meanwhile. One with
    /// nobody behind it is there too.
    pub fn behind_stopped(&self) -> BTreeMap<&str, Vec<RunId>> {
        self.queue.behind_stopped()
    }

    /// Returns who waits in no ClusterQueue because their LocalQueue is not there, or names one that is not.
    pub fn lost(&self) -> Vec<Lost<'_>> {
        self.queue.lost()
    }
}

/// Runs that wait in no ClusterQueue, because an object is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost<'a> {
    /// The LocalQueue that they name.
    pub local_queue: &'a str,
    /// The ClusterQueue that is missing, or that they waited in last.
    pub cluster_queue: &'a str,
    /// What is missing.
    pub missing: InactiveQueue,
    /// Which runs.
    pub runs: Vec<RunId>,
}

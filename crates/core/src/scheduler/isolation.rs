//! The part of the gate that asks where something would run: content of strangers starts on no cluster that does not keep it
//! apart.
//!
//! What a driver says last counts, at each of the moments at which approvals are compared. Nothing is stored: what a cluster has
//! is known anyway.

use super::Scheduler;
use crate::{
    domain::{ApprovedHead, ClusterName, Isolation, RunId, RunRequest},
    pending::IsolationPending,
};

impl Scheduler {
    /// Returns the approved head, if the run may start now where it would.
    pub(super) fn approved_head(&self, run: RunId, request: &RunRequest) -> Option<ApprovedHead> {
        let head = self.gate.check(run, request, self.now)?;
        self.isolation_pending(request).is_none().then_some(head)
    }

    /// Returns what keeps content of strangers from the cluster of a run; `None` where it is no stranger's, or may run there.
    pub(super) fn isolation_pending(&self, request: &RunRequest) -> Option<IsolationPending> {
        if !request.subject.is_of_stranger() {
            return None;
        }
        let cluster = self.queue.cluster_of(&request.queue);
        let isolation = self.inventory(&cluster).map(|inventory| &inventory.isolation);
        if isolation.is_some_and(Isolation::admits_strangers) {
            return None;
        }
        let why = match isolation {
            Some(Isolation::Missing { diagnostic }) => Some((**diagnostic).clone()),
            Some(Isolation::Unknown | Isolation::Sandboxed | Isolation::Disposable) | None => None,
        };
        Some(IsolationPending { cluster, why })
    }

    /// Sends through the gate what waits there and may run now that a cluster has said something else.
    pub(super) fn on_inventory_changed(&mut self, cluster: &ClusterName) {
        let admits = self
            .inventory(cluster)
            .is_some_and(|inventory| inventory.isolation.admits_strangers());
        if !admits {
            return;
        }
        let awaiting = self.awaiting.values().flatten().copied();
        let there = awaiting.filter(|run| {
            let request = &self.runs[run].request;
            request.subject.is_of_stranger() && self.queue.cluster_of(&request.queue) == *cluster
        });
        for run in there.collect::<Vec<_>>() {
            self.pass_gate(run);
        }
    }
}

//! The state that a cycle works on: a tree from which admitted workloads are removed to see whether another fits, and put
//! back.

use jiff::Timestamp;

use super::{
    objects::FairSharing,
    quotas::{NodeId, Quotas},
    terms::Shape,
    tree::{Holder, Queue, Tree},
    workload::{PreemptionReason, WorkloadId},
};

/// The request of a workload for which flavors or victims are searched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) queue: usize,
    /// How often the workload was evicted before.
    pub(super) evictions: u32,
    pub(super) priority: i32,
    pub(super) queued_at: Timestamp,
    pub(super) shape: &'a Shape,
}

/// A tree during a cycle: usage may be removed and put back, and nothing else changes.
pub(super) struct CycleState<'a> {
    pub(super) quotas: &'a mut Quotas,
    pub(super) queues: &'a [Queue],
    pub(super) rules: Rules<'a>,
}

/// A workload that is to be preempted, and the rule that allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Victim {
    pub(super) queue: usize,
    pub(super) id: WorkloadId,
    pub(super) reason: PreemptionReason,
}

/// What counts beside quotas when victims are searched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'a> {
    /// Victims are searched by share, and not only by priority and borrowing.
    pub(super) fair: Option<&'a FairSharing>,
    /// A workload that was admitted after this is protected from workloads that were evicted before: else the two could
    /// preempt each other for ever.
    pub(super) safe_since: Option<Timestamp>,
}

impl Rules<'_> {
    /// Returns whether the holder may not be preempted for the request, whatever the queues' policies say.
    pub(super) fn protect(&self, holder: &Holder, request: &Request<'_>) -> bool {
        request.evictions > 0 && self.safe_since.is_some_and(|since| holder.reserved_at > since)
    }
}

impl Tree {
    /// Returns the tree as the state of a cycle.
    pub(super) fn cycle_state<'a>(&'a mut self, rules: Rules<'a>) -> CycleState<'a> {
        CycleState {
            quotas: &mut self.quotas,
            queues: &self.queues,
            rules,
        }
    }
}

impl CycleState<'_> {
    /// Returns the number of the queue at a node.
    pub(super) fn queue_at(&self, node: NodeId) -> usize {
        node.0 + self.queues.len() - self.quotas.n_nodes()
    }

    /// Removes the usage of a victim.
    pub(super) fn remove(&mut self, victim: &Victim) {
        let queue = &self.queues[victim.queue];
        self.quotas.remove(queue.node, &queue.holders[&victim.id].usage);
    }

    /// Puts back the usage of a victim.
    pub(super) fn add(&mut self, victim: &Victim) {
        let queue = &self.queues[victim.queue];
        self.quotas.add(queue.node, &queue.holders[&victim.id].usage);
    }

    pub(super) fn remove_all(&mut self, victims: &[Victim]) {
        for victim in victims {
            self.remove(victim);
        }
    }

    pub(super) fn add_all(&mut self, victims: &[Victim]) {
        for victim in victims {
            self.add(victim);
        }
    }
}

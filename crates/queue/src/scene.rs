//! What is looked at when somebody asks: a tree from which holders are taken away to see whether it helps, and put back.

use jiff::Timestamp;

use super::{
    objects::FairSharing,
    quotas::{NodeId, Quotas},
    terms::Shape,
    tree::{Holder, Queue, Tree},
    workload::{PreemptionReason, WorkloadId},
};

/// What one who asks wants, while it is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) queue: usize,
    /// How often it was evicted before.
    pub(super) evictions: u32,
    pub(super) priority: i32,
    pub(super) queued_at: Timestamp,
    pub(super) shape: &'a Shape,
}

/// A tree while it is looked at: usage may be taken away and put back, nothing else changes.
pub(super) struct Scene<'a> {
    pub(super) quotas: &'a mut Quotas,
    pub(super) queues: &'a [Queue],
    pub(super) rules: Rules<'a>,
}

/// Who is to be evicted, and why they may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Victim {
    pub(super) queue: usize,
    pub(super) id: WorkloadId,
    pub(super) reason: PreemptionReason,
}

/// What counts beside quotas when somebody is to be evicted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'a> {
    /// Shares, and not only priorities and who borrows.
    pub(super) fair: Option<&'a FairSharing>,
    /// Whoever got quota after this is safe from those who were evicted before: they would take turns for ever.
    pub(super) safe_since: Option<Timestamp>,
}

impl Rules<'_> {
    /// Returns whether the one who asks may not evict the holder, whatever the queues' terms say.
    pub(super) fn protect(&self, holder: &Holder, ask: &Ask<'_>) -> bool {
        ask.evictions > 0 && self.safe_since.is_some_and(|since| holder.reserved_at > since)
    }
}

impl Tree {
    /// Returns the tree to be looked at.
    pub(super) fn scene<'a>(&'a mut self, rules: Rules<'a>) -> Scene<'a> {
        Scene {
            quotas: &mut self.quotas,
            queues: &self.queues,
            rules,
        }
    }
}

impl Scene<'_> {
    /// Returns the number of the queue at a node.
    pub(super) fn queue_at(&self, node: NodeId) -> usize {
        node.0 + self.queues.len() - self.quotas.n_nodes()
    }

    /// Takes away what a holder uses.
    pub(super) fn remove(&mut self, victim: &Victim) {
        let queue = &self.queues[victim.queue];
        self.quotas.remove(queue.node, &queue.holders[&victim.id].usage);
    }

    /// Puts back what a holder uses.
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

//! What clusters have, and which of them an attempt is on.
//!
//! A run is carried out on the cluster of its ClusterQueue; an attempt stays where it began, whatever the queue says later. Quota
//! that an admin applied stands whatever there is, as in Kueue. Where nobody applied any it is what the policy says, and no more
//! than the machine has. What is unhealthy is counted there, as in a node's capacity: a run that asks for it is not refused as one
//! that can never fit, and its cluster's driver says what is wrong.

use super::Scheduler;
use crate::domain::{AttemptId, ClusterName, Inventory, Resources};

impl Scheduler {
    /// Returns what a cluster said last that it has; `None` while it has said nothing.
    pub fn inventory(&self, cluster: &ClusterName) -> Option<&Inventory> {
        self.inventories.get(cluster)
    }

    /// Returns the cluster that an attempt is on, or would be if it came to it; `None` where its run is not known. What another
    /// cluster says of it is about something else.
    pub fn cluster_of(&self, id: AttemptId) -> Option<ClusterName> {
        let run = self.runs.get(&id.run)?;
        let attempt = run.attempt(id.number).map(|attempt| &attempt.cluster);
        let requested = self.requested_cluster(id);
        let known = requested.or(attempt).cloned();
        Some(known.unwrap_or_else(|| self.queue.cluster_of(&run.request.queue)))
    }

    /// Notes what a cluster has, and returns whether that is something else than before.
    pub(super) fn note_inventory(&mut self, cluster: &ClusterName, inventory: &Inventory) -> bool {
        let before = self.inventories.insert(cluster.clone(), inventory.clone());
        if before.as_ref() == Some(inventory) {
            return false;
        }
        self.set_quota();
        true
    }

    /// Sets what may be promised where nobody applied quota: what the policy says, and no more than there is.
    pub(super) fn set_quota(&mut self) {
        let Some(policy) = &self.configured else {
            return;
        };
        let there = self.inventory(&ClusterName::default());
        let quota = there.map_or(policy.quota, |there| lesser(policy.quota, there.capacity()));
        self.queue.set_quota(quota);
        self.withdraw_misdirected();
    }
}

fn lesser(one: Resources, other: Resources) -> Resources {
    Resources {
        cpu: one.cpu.min(other.cpu),
        memory: one.memory.min(other.memory),
        gpu: one.gpu.min(other.gpu),
    }
}

//! Which workloads a stop policy of `HoldAndDrain` evicts.

use super::{Inactive, Queues, StopPolicy, WorkloadId};

/// The queue whose stop policy evicts a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// The LocalQueue that the workload came through; as in Kueue it is looked at first.
    LocalQueue,
    /// The ClusterQueue of which the workload holds quota.
    ClusterQueue,
}

impl Queues {
    /// Returns the workloads that hold quota through a queue that is to be drained, and were not evicted yet.
    pub fn to_drain(&self) -> Vec<(WorkloadId, Drained)> {
        let mut drained = Vec::new();
        let any_local = self.drains_local_queues();
        for queue in self.trees.iter().flat_map(|tree| &tree.queues) {
            let all = queue.inactive == Some(Inactive::Stopped(StopPolicy::HoldAndDrain));
            if !all && !any_local {
                continue;
            }
            for (id, holder) in queue.holders.iter().filter(|(_, holder)| !holder.evicted) {
                let (local_queue, _) = queue.users.name(holder.entry.user);
                if any_local && self.drains_local_queue(local_queue) {
                    drained.push((*id, Drained::LocalQueue));
                } else if all {
                    drained.push((*id, Drained::ClusterQueue));
                }
            }
        }
        drained
    }

    fn drains_local_queues(&self) -> bool {
        let mut all = self.objects.local_queues.values();
        all.any(|local| local.stop_policy == StopPolicy::HoldAndDrain)
    }

    fn drains_local_queue(&self, name: &str) -> bool {
        let local = self.local_queue(name);
        local.is_some_and(|(_, local)| local.stop_policy == StopPolicy::HoldAndDrain)
    }
}

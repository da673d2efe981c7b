//! What has to be written down of the queues so that they can be taken up again.
//!
//! In which order pending workloads are tried, and which of them were tried in vain, is left out: they are tried anew, as
//! after a replay. Which workloads there are is written down by [`AdmissionQueue`](super::AdmissionQueue).

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    PodSetAssignment, Queues, UnknownQueue, Workload, WorkloadId, forest::Held, objects::Objects,
    users::UsersSnapshot,
};

/// The queues without their workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueuesSnapshot {
    objects: Objects,
    /// What is held that no object makes any more.
    held: Held,
    /// What the names of LocalQueues led to that are not there any more.
    known_before: BTreeMap<String, (String, String)>,
    now: Timestamp,
    protected_for: Option<SignedDuration>,
    cluster_queues: Vec<ClusterQueueSnapshot>,
}

/// What a ClusterQueue knows beside its workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClusterQueueSnapshot {
    name: String,
    /// The workload that last had others evicted for it.
    preemptor: Option<WorkloadId>,
    /// Whether it stays the head.
    is_sticky: bool,
    users: UsersSnapshot,
}

impl Queues {
    pub(crate) fn snapshot(&self) -> QueuesSnapshot {
        let queues = self.trees.iter().flat_map(|tree| &tree.queues);
        let cluster_queues = queues.map(|queue| {
            let (preemptor, is_sticky) = queue.pending.preemptor();
            ClusterQueueSnapshot {
                name: queue.name.clone(),
                preemptor,
                is_sticky,
                users: queue.users.snapshot(),
            }
        });
        QueuesSnapshot {
            objects: self.objects.clone(),
            held: self.held.clone(),
            known_before: self.known_before.clone(),
            now: self.now,
            protected_for: self.protected_for,
            cluster_queues: cluster_queues.collect(),
        }
    }

    /// Returns the queues of a snapshot, to which their workloads are still to be given; [`Self::complete`] comes then.
    pub(crate) fn begin(snapshot: &QueuesSnapshot) -> Result<Self, UnknownQueue> {
        let mut queues = Self::grow(snapshot.objects.clone(), snapshot.held.clone());
        queues.known_before.clone_from(&snapshot.known_before);
        queues.now = snapshot.now;
        queues.protected_for = snapshot.protected_for;
        for saved in &snapshot.cluster_queues {
            let at = queues.at(&saved.name)?;
            let Self { objects, trees, .. } = &mut queues;
            trees[at.tree].queues[at.queue]
                .users
                .number_all(&saved.users, objects);
        }
        Ok(queues)
    }

    /// Gives a workload quota that it has already; whether it fits is not asked. `pod_sets` is what its sets have, in their
    /// order.
    pub(crate) fn take_up(
        &mut self,
        workload: &Workload,
        pod_sets: &[PodSetAssignment],
        reserved_at: Timestamp,
        is_evicted: bool,
    ) -> Result<(), UnknownQueue> {
        self.restore(workload, pod_sets, reserved_at)?;
        if is_evicted {
            self.evict(workload.id);
        }
        Ok(())
    }

    /// Sets what the queues knew beside their workloads, which are all there now.
    pub(crate) fn complete(&mut self, snapshot: QueuesSnapshot) -> Result<(), UnknownQueue> {
        for saved in snapshot.cluster_queues {
            let at = self.at(&saved.name)?;
            let queue = self.queue_mut(at);
            let preemptor = saved.preemptor.filter(|id| queue.pending.entry(*id).is_some());
            queue.pending.restore_preemptor(preemptor, saved.is_sticky);
            queue.users.restore(saved.users);
        }
        Ok(())
    }
}

//! The queue as it is written down and taken up again.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AdmissionEntry, AdmissionQueue, AdmissionStatus, Origin};
use crate::{
    PodSetAssignment, Queues, UnknownQueue, Workload, WorkloadStatus, objects::Objects,
    snapshot::QueuesSnapshot,
};

/// A queue as plain data: the objects, the workloads, and the usage of each user, to the bit.
///
/// A queue that is made of it decides as one does that heard of the same decisions: pending workloads are tried anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionSnapshot {
    queues: QueuesSnapshot,
    workloads: Vec<WorkloadSnapshot>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkloadSnapshot {
    workload: Workload,
    origin: Origin,
    status: AdmissionStatus,
    /// Whether it was told to give its quota back, and has not done so yet.
    is_evicted: bool,
    backs_off_until: Option<Timestamp>,
    entered_at: Timestamp,
    reserved_at: Timestamp,
    pod_sets: Vec<PodSetAssignment>,
}

impl AdmissionQueue {
    /// Returns the queue as plain data.
    pub fn snapshot(&self) -> AdmissionSnapshot {
        let workloads = self.entries.values().map(|entry| WorkloadSnapshot {
            workload: (*entry.workload).clone(),
            origin: (*entry.origin).clone(),
            status: entry.status,
            is_evicted: self.queues.standing(entry.workload.id) == Some(WorkloadStatus::Evicted),
            backs_off_until: entry.backs_off_until,
            entered_at: entry.entered_at,
            reserved_at: entry.reserved_at,
            pod_sets: entry.pod_sets.clone(),
        });
        AdmissionSnapshot {
            queues: self.queues.snapshot(),
            workloads: workloads.collect(),
        }
    }

    /// Returns the queue that a snapshot is of.
    ///
    /// # Errors
    /// When the snapshot contradicts itself: a workload is in a ClusterQueue that is not there.
    pub fn from_snapshot(snapshot: AdmissionSnapshot) -> Result<Self, UnknownQueue> {
        let mut queue = Self::new(Objects::default());
        queue.queues = Queues::begin(&snapshot.queues)?;
        for workload in snapshot.workloads {
            queue.take_up(workload)?;
        }
        queue.queues.complete(snapshot.queues)?;
        // Whether the objects were new when it was written is not known. Draining twice evicts nobody twice.
        queue.drains = true;
        Ok(queue)
    }

    fn take_up(&mut self, saved: WorkloadSnapshot) -> Result<(), UnknownQueue> {
        let (id, status) = (saved.workload.id, saved.status);
        match status {
            AdmissionStatus::Inactive => {}
            AdmissionStatus::External => {
                if let Some(until) = saved.backs_off_until {
                    self.external_back_offs.set(id, until);
                }
            }
            AdmissionStatus::Pending => {
                self.queues.submit(&saved.workload)?;
                if let Some(until) = saved.backs_off_until {
                    self.queues.back_off(id, until);
                }
            }
            AdmissionStatus::QuotaReserved | AdmissionStatus::Admitted => {
                let (pod_sets, at) = (&saved.pod_sets, saved.reserved_at);
                self.queues
                    .take_up(&saved.workload, pod_sets, at, saved.is_evicted)?;
            }
        }
        let entry = AdmissionEntry {
            workload: Arc::new(saved.workload),
            origin: Arc::new(saved.origin),
            status,
            backs_off_until: saved.backs_off_until,
            entered_at: saved.entered_at,
            reserved_at: saved.reserved_at,
            pod_sets: saved.pod_sets,
        };
        self.entries.insert(id, entry);
        self.set_status(id, status);
        Ok(())
    }
}

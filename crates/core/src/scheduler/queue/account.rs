//! By which names and times a run's way through the queue is counted.

use blueproof_queue::AdmissionStatus;
use jiff::Timestamp;

use super::{Queue, workload_id};
use crate::domain::RunId;

/// The namespace of every LocalQueue: there are none here.
pub(in super::super) const NAMESPACE: &str = "";

/// By what a run's way through the queue is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Account {
    pub(in super::super) cluster_queue: String,
    pub(in super::super) local_queue: String,
    /// The only priority class with the run's priority; empty where there is none, or several.
    pub(in super::super) priority_class: String,
    /// The cohorts that the queue is in.
    pub(in super::super) cohorts: Vec<String>,
}

impl Queue {
    /// Returns by what a run that is in the queue, or has quota, is counted.
    pub(in super::super) fn account(&self, run: RunId) -> Option<Account> {
        let workload = self.admission.get(workload_id(run))?.workload();
        let classes = self.objects().priority_classes.iter();
        let mut same = classes.filter(|(_, value)| **value == workload.priority);
        let class = same.next().filter(|_| same.next().is_none());
        let cohorts = self.queues().cohorts_of(&workload.cluster_queue);
        let cohorts = cohorts.unwrap_or_default();
        Some(Account {
            cluster_queue: workload.cluster_queue.clone(),
            local_queue: workload.local_queue.clone(),
            priority_class: class.map(|(name, _)| name.clone()).unwrap_or_default(),
            cohorts: cohorts.into_iter().map(str::to_owned).collect(),
        })
    }

    /// Returns whether a run has quota that its victims still use.
    pub(in super::super) fn is_quota_reserved(&self, run: RunId) -> bool {
        self.admission.status(workload_id(run)) == Some(AdmissionStatus::QuotaReserved)
    }

    /// Returns when a run entered the queue, this time, and when it got its quota.
    pub(in super::super) fn times(&self, run: RunId) -> Option<(Timestamp, Timestamp)> {
        let entry = self.admission.get(workload_id(run))?;
        Some((entry.entered_at(), entry.reserved_at()))
    }
}

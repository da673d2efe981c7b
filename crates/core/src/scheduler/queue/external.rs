//! Runs in queues whose admission is external: nothing is decided about them here.

use std::collections::BTreeMap;

use blueproof_queue::{AdmissionStatus, Assignment};

use super::{Queue, run_id, workload_id};
use crate::{
    action::QuotaRequest,
    domain::{AttemptId, Priority, RunId},
};

/// The most characters of the name of a flavor: a DNS subdomain.
const MOST_OF_NAME: usize = 253;

impl Queue {
    /// Returns the ClusterQueue that a run waits in, if its admission is external.
    pub(in super::super) fn external_queue(&self, run: RunId) -> Option<&str> {
        let entry = self.admission.get(workload_id(run))?;
        let is_external = entry.status() == AdmissionStatus::External;
        is_external.then_some(entry.workload().cluster_queue.as_str())
    }

    /// Returns the attempts for which quota is to be requested now.
    pub(in super::super) fn unrequested(&self) -> Vec<AttemptId> {
        let due = self.unrequested.iter().filter(|run| {
            let entry = self.admission.get(workload_id(**run));
            entry.is_some_and(|entry| entry.backs_off_until().is_none())
        });
        due.map(|run| self.entries[run].attempt).collect()
    }

    /// Notes that quota was requested for a run.
    pub(in super::super) fn note_requested(&mut self, run: RunId) {
        self.unrequested.remove(&run);
    }

    /// Notes that quota is to be requested for a run, if its cluster decides.
    pub(in super::super) fn forget_requested(&mut self, run: RunId) {
        if self.external_queue(run).is_some() {
            self.unrequested.insert(run);
        }
    }

    /// Finds out anew about which runs clusters decide, and takes it that quota was requested for none of them.
    pub(super) fn note_external(&mut self) {
        let entries = self.admission.entries();
        let external = entries.filter(|entry| entry.status() == AdmissionStatus::External);
        self.unrequested = external.map(|entry| run_id(entry.workload().id)).collect();
    }

    /// Returns what the cluster of a run is asked for.
    pub(in super::super) fn quota_request(&self, attempt: AttemptId) -> Option<QuotaRequest> {
        self.entry_of(attempt)?;
        let entry = self.admission.get(workload_id(attempt.run))?;
        let workload = entry.workload();
        (entry.status() == AdmissionStatus::External).then(|| QuotaRequest {
            local_queue: workload.local_queue.clone(),
            cluster_queue: workload.cluster_queue.clone(),
            priority: Priority(workload.priority),
        })
    }

    /// Returns the quota that an attempt has by what its cluster says: of these flavors, by pod set, as much as it asked for
    /// and no more. What was not asked for, and what can be no flavor, is left out.
    pub(in super::super) fn assignment_of(
        &self,
        attempt: AttemptId,
        flavors: &BTreeMap<String, BTreeMap<String, String>>,
    ) -> Option<Assignment> {
        let QuotaRequest {
            local_queue,
            cluster_queue,
            priority: _,
        } = self.quota_request(attempt)?;
        let entry = self.admission.get(workload_id(attempt.run))?;
        let assigned = entry.workload().pod_sets.iter().map(|set| {
            let said = flavors.get(&set.name).into_iter().flatten();
            let said = said.filter(|(resource, flavor)| {
                set.requests.contains_key(*resource) && (1..=MOST_OF_NAME).contains(&flavor.len())
            });
            let said = said.map(|(resource, flavor)| (resource.clone(), flavor.clone()));
            set.assigned(set.count, said.collect())
        });
        Some(Assignment {
            cluster_queue,
            local_queue,
            pod_sets: assigned.collect(),
        })
    }
}

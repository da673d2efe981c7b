//! From a workload's submission to its admission: the layer around the rules.
//!
//! [`Queues`] decides which workload gets quota, and a victim of the same cycle may still use that quota. [`AdmissionQueue`]
//! keeps it for the workload until the victim is gone: a workload is pending, its quota is reserved, and it is admitted. It also resolves LocalQueues, ends back-offs, drains queues that are stopped, and bounds how many cycles one
//! decision takes. As [`Queues`] it is plain data that is told what time it is.
//!
//! Where the admission of a ClusterQueue is [external](Admission::External), its workloads are in no cycle: they wait until
//! [`AdmissionQueue::reserve`] and [`AdmissionQueue::admit`] say what was decided elsewhere.
//!
//! [`AdmissionQueue::decide`] returns decisions that hold already. [`AdmissionQueue::reserve`], [`AdmissionQueue::admit`],
//! [`AdmissionQueue::evict`] and [`AdmissionQueue::advance`] bring another queue to the same state, as a replay does.
//!
//! ```
//! use blueproof_queue::{AdmissionQueue, AdmissionStatus, Origin, PodSet, Quantity, Workload, WorkloadId, manifest};
//! use jiff::Timestamp;
//!
//! let text = "
//! {apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: h200}}
//! ---
//! apiVersion: kueue.x-k8s.io/v1beta2
//! kind: ClusterQueue
//! metadata: {name: vision}
//! spec:
//!   namespaceSelector: {}
//!   resourceGroups:
//!   - coveredResources: [nvidia.com/gpu]
//!     flavors: [{name: h200, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]
//! ---
//! apiVersion: kueue.x-k8s.io/v1beta2
//! kind: LocalQueue
//! metadata: {name: vision, namespace: default}
//! spec: {clusterQueue: vision}";
//! let file = manifest::File { name: "queues.yaml".into(), text: text.into() };
//! let mut queue = AdmissionQueue::new(manifest::read([file])?.objects);
//! let (id, now) = (WorkloadId(1), Timestamp::UNIX_EPOCH);
//! let training = PodSet {
//!     count: 2,
//!     requests: [("nvidia.com/gpu".into(), Quantity(2))].into(),
//!     ..PodSet::default()
//! };
//! let origin = Origin { local_queue: "vision".into(), ..Origin::default() };
//! queue.submit(now, Workload::new(id, now, vec![training]), origin);
//! assert_eq!(queue.decide(now).admitted, [id]);
//! assert_eq!(queue.status(id), Some(AdmissionStatus::Admitted));
//! // Its pods are gone.
//! queue.release(id);
//! assert_eq!(queue.status(id), None);
//! # Ok::<(), Vec<blueproof_diagnostic::Diagnostic>>(())
//! ```

mod apply;
mod decide;
mod snapshot;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    PodSetAssignment, Queues, StopPolicy, Workload, WorkloadId,
    objects::{Admission, Objects},
    timers::Timers,
};
pub use decide::{DecisionRound, DecisionStep, Decisions, Eviction, QuotaDecision, Reservation};
pub use snapshot::AdmissionSnapshot;

/// Workloads on their way from submission to admission.
#[derive(Debug, Clone)]
pub struct AdmissionQueue {
    queues: Queues,
    entries: BTreeMap<WorkloadId, AdmissionEntry>,
    /// The workloads whose quota is reserved: each decision looks at all of them, however many are pending.
    reserved: BTreeSet<WorkloadId>,
    /// The pending workloads that were evicted before.
    requeued: BTreeSet<WorkloadId>,
    /// When those may be admitted that back off and wait for an external admission.
    external_back_offs: Timers<WorkloadId>,
    /// Whether the objects are new, so that there may be queues to be drained.
    drains: bool,
}

/// How far a workload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum AdmissionStatus {
    /// It is in no ClusterQueue: its LocalQueue does not exist, or is stopped.
    Inactive,
    /// It waits for quota in a ClusterQueue.
    Pending,
    /// It waits for quota in a ClusterQueue whose admission is external: it is in no cycle here.
    External,
    /// It has quota that its victims still use.
    QuotaReserved,
    /// Its quota is free for it.
    Admitted,
}

/// Where a workload comes from, by which its ClusterQueue and its user are found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The LocalQueue that it names.
    pub local_queue: String,
    /// Its author, who is the user where the LocalQueue distinguishes authors.
    pub author: String,
    /// Its repository, which is the user where the LocalQueue tells repositories apart.
    pub repository: String,
}

/// The quota that a workload has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Assignment {
    /// The ClusterQueue that gives it.
    pub cluster_queue: String,
    /// The LocalQueue that it came through.
    pub local_queue: String,
    /// What each pod set has.
    pub pod_sets: Vec<PodSetAssignment>,
}

/// A workload in the queue.
#[derive(Debug, Clone)]
pub struct AdmissionEntry {
    workload: Arc<Workload>,
    origin: Arc<Origin>,
    status: AdmissionStatus,
    /// Before when it is not tried, if it backs off.
    backs_off_until: Option<Timestamp>,
    /// When it became pending, this time.
    entered_at: Timestamp,
    reserved_at: Timestamp,
    pod_sets: Vec<PodSetAssignment>,
}

impl AdmissionQueue {
    /// Returns a queue without workloads.
    pub fn new(objects: Objects) -> Self {
        Self {
            queues: Queues::new(objects),
            entries: BTreeMap::new(),
            reserved: BTreeSet::new(),
            requeued: BTreeSet::new(),
            external_back_offs: Timers::default(),
            drains: false,
        }
    }

    /// Sets the minimum run time; see [`Queues::protect_for`].
    pub fn protect_for(&mut self, span: Option<SignedDuration>) {
        self.queues.protect_for(span);
    }

    /// Applies other objects. A workload keeps the quota that it has; a pending one moves to the ClusterQueue that its
    /// LocalQueue names now.
    pub fn set_objects(&mut self, objects: Objects) {
        self.queues.set_objects(objects);
        self.drains = true;
        let entries = self.entries.iter();
        let movable = entries.filter(|(_, entry)| match entry.status {
            AdmissionStatus::Inactive | AdmissionStatus::Pending | AdmissionStatus::External => true,
            AdmissionStatus::QuotaReserved | AdmissionStatus::Admitted => false,
        });
        for id in movable.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.enqueue(id);
        }
    }

    /// Submits a workload, in place of one with the same id. Its ClusterQueue, LocalQueue and user follow from its origin.
    pub fn submit(&mut self, now: Timestamp, workload: Workload, origin: Origin) {
        let id = workload.id;
        self.remove(id);
        let local_queue = origin.local_queue.clone();
        let entry = AdmissionEntry {
            workload: Arc::new(Workload {
                cluster_queue: String::new(),
                local_queue,
                user: None,
                ..workload
            }),
            origin: Arc::new(origin),
            status: AdmissionStatus::Inactive,
            backs_off_until: None,
            entered_at: now,
            reserved_at: now,
            pod_sets: Vec::new(),
        };
        self.entries.insert(id, entry);
        self.enqueue(id);
    }

    /// Puts a workload without quota into the ClusterQueue that its LocalQueue names, if that takes any.
    fn enqueue(&mut self, id: WorkloadId) {
        let entry = &self.entries[&id];
        let origin = Arc::clone(&entry.origin);
        let found = self.queues.local_queue(&origin.local_queue);
        let local_queue = found
            .map_or(origin.local_queue.as_str(), |(name, _)| name)
            .to_owned();
        let user = found.and_then(|(_, local)| {
            let (author, repository) = (|| origin.author.clone(), || origin.repository.clone());
            local.users.tell_apart(author, repository)
        });
        let cluster_queue = self.cluster_queue_of(&origin.local_queue).map(str::to_owned);
        let stays = cluster_queue.as_ref() == Some(&entry.workload.cluster_queue)
            && local_queue == entry.workload.local_queue
            && user == entry.workload.user;
        let external = cluster_queue
            .as_ref()
            .is_some_and(|queue| is_external(self.queues.objects(), queue));
        let same = match entry.status {
            AdmissionStatus::Pending => !external,
            AdmissionStatus::External => external,
            AdmissionStatus::Inactive | AdmissionStatus::QuotaReserved | AdmissionStatus::Admitted => false,
        };
        if stays && same {
            return;
        }
        self.queues.remove(id);
        self.external_back_offs.cancel(id);
        let entry = self.entries.get_mut(&id).expect("just looked up");
        let workload = Arc::make_mut(&mut entry.workload);
        workload.local_queue = local_queue;
        let mut status = AdmissionStatus::Inactive;
        if let Some(cluster_queue) = cluster_queue {
            workload.cluster_queue = cluster_queue;
            workload.user = user;
            if external {
                status = AdmissionStatus::External;
                if let Some(until) = entry.backs_off_until {
                    self.external_back_offs.set(id, until);
                }
            } else if self.queues.submit(&entry.workload).is_ok() {
                status = AdmissionStatus::Pending;
                if let Some(until) = entry.backs_off_until {
                    self.queues.back_off(id, until);
                }
            }
        }
        self.set_status(id, status);
    }

    fn set_status(&mut self, id: WorkloadId, status: AdmissionStatus) {
        let entry = self.entries.get_mut(&id).expect("known to the caller");
        entry.status = status;
        let is_requeued = status == AdmissionStatus::Pending && entry.workload.evictions > 0;
        let is_reserved = status == AdmissionStatus::QuotaReserved;
        for (set, is_member) in [
            (&mut self.reserved, is_reserved),
            (&mut self.requeued, is_requeued),
        ] {
            if is_member {
                set.insert(id);
            } else {
                set.remove(&id);
            }
        }
    }

    /// Returns the ClusterQueue that a LocalQueue names, unless the LocalQueue does not exist or is stopped.
    pub fn cluster_queue_of(&self, local_queue: &str) -> Option<&str> {
        let (_, local) = self.queues.local_queue(local_queue)?;
        (local.stop_policy == StopPolicy::None).then_some(&local.cluster_queue)
    }

    /// Keeps a pending workload from being tried before a time, and counts its wait from then; see [`Queues::back_off`].
    pub fn back_off(&mut self, id: WorkloadId, until: Timestamp) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.backs_off_until = Some(until);
            entry.entered_at = entry.entered_at.max(until);
            if entry.status == AdmissionStatus::External {
                self.external_back_offs.set(id, until);
            }
            self.queues.back_off(id, until);
        }
    }

    /// Removes a workload that is not admitted; an admitted or unknown one is no mistake.
    pub fn withdraw(&mut self, id: WorkloadId) -> Option<Workload> {
        self.waiting(id)?;
        self.remove(id)
    }

    /// Removes an admitted workload, of which nothing runs any more; another or unknown one is no mistake.
    pub fn release(&mut self, id: WorkloadId) -> Option<Workload> {
        let entry = self.entries.get(&id)?;
        let is_admitted = entry.status == AdmissionStatus::Admitted;
        is_admitted.then(|| self.remove(id)).flatten()
    }

    /// Removes a workload, however far it is, and returns it as it was; an unknown one is no mistake.
    pub fn remove(&mut self, id: WorkloadId) -> Option<Workload> {
        let entry = self.entries.remove(&id)?;
        self.reserved.remove(&id);
        self.requeued.remove(&id);
        self.external_back_offs.cancel(id);
        self.queues.remove(id);
        Some(Arc::unwrap_or_clone(entry.workload))
    }

    /// Has every pending workload tried again.
    pub fn wake(&mut self) {
        self.queues.wake();
    }

    /// Returns when [`Self::wake`] may lead to another decision, if nothing happens before: a holder's minimum run time is
    /// over, or usage has decayed so that another workload is the head of its queue.
    pub fn try_again_at(&self) -> Option<Timestamp> {
        let has_requeued = !self.requeued.is_empty();
        let protected = has_requeued.then(|| self.queues.protected_until()).flatten();
        protected.into_iter().chain(self.queues.reordered_at()).min()
    }

    /// Returns when the next back-off is over.
    pub fn next_back_off_ends(&self) -> Option<Timestamp> {
        let ends = [
            self.queues.next_back_off_ends(),
            self.external_back_offs.earliest(),
        ];
        ends.into_iter().flatten().min()
    }

    /// Returns the queues with their workloads, for explanations of what was decided.
    pub fn queues(&self) -> &Queues {
        &self.queues
    }

    /// Returns the queues alone, to try on them what would be.
    pub fn into_queues(self) -> Queues {
        self.queues
    }

    /// Returns the objects in force.
    pub fn objects(&self) -> &Objects {
        self.queues.objects()
    }

    /// Returns a workload.
    pub fn get(&self, id: WorkloadId) -> Option<&AdmissionEntry> {
        self.entries.get(&id)
    }

    /// Returns a workload that is not admitted.
    pub fn waiting(&self, id: WorkloadId) -> Option<&AdmissionEntry> {
        self.get(id)
            .filter(|entry| entry.status != AdmissionStatus::Admitted)
    }

    /// Returns how far a workload is.
    pub fn status(&self, id: WorkloadId) -> Option<AdmissionStatus> {
        self.get(id).map(AdmissionEntry::status)
    }

    /// Returns all workloads, by their ids.
    pub fn entries(&self) -> impl Iterator<Item = &AdmissionEntry> {
        self.entries.values()
    }

    /// Panics when the queue contradicts itself.
    ///
    /// # Panics
    /// When a workload is in one place and its status says another.
    pub fn check(&self) {
        self.queues.check();
        for (id, entry) in &self.entries {
            assert_eq!(*id, entry.workload.id, "an entry is of its workload");
            let is = |status| entry.status == status;
            let reserved = is(AdmissionStatus::QuotaReserved);
            assert_eq!(self.reserved.contains(id), reserved, "{id}: reserved where it is");
            let requeued = is(AdmissionStatus::Pending) && entry.workload.evictions > 0;
            assert_eq!(self.requeued.contains(id), requeued, "{id}: requeued where it is");
            let known = self.queues.standing(*id).is_some();
            let active = !is(AdmissionStatus::Inactive) && !is(AdmissionStatus::External);
            assert_eq!(
                known, active,
                "{id}: in the queues unless it is inactive, or its admission external"
            );
            let backs_off = is(AdmissionStatus::External) && entry.backs_off_until.is_some();
            let is_set = self.external_back_offs.get(*id).is_some();
            assert_eq!(is_set, backs_off, "{id}: a back-off has an end");
        }
    }
}

/// Returns whether the admission of a ClusterQueue is external. One that is stopped gives nothing to anybody, whoever
/// decides.
fn is_external(objects: &Objects, cluster_queue: &str) -> bool {
    let queue = objects.cluster_queues.get(cluster_queue);
    queue.is_some_and(|queue| queue.admission == Admission::External && queue.stop_policy == StopPolicy::None)
}

impl AdmissionEntry {
    /// Returns the workload, with the ClusterQueue, the LocalQueue and the user that it has now.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Returns where it comes from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns how far it is.
    pub fn status(&self) -> AdmissionStatus {
        self.status
    }

    /// Returns when it became pending, this time: after its back-off, if it has one.
    pub fn entered_at(&self) -> Timestamp {
        self.entered_at
    }

    /// Returns before when it is not tried, if it backs off.
    pub fn backs_off_until(&self) -> Option<Timestamp> {
        self.backs_off_until
    }

    /// Returns when its quota was reserved, if it has any.
    pub fn reserved_at(&self) -> Timestamp {
        self.reserved_at
    }

    /// Returns the quota that it has, if any.
    pub fn assignment(&self) -> Assignment {
        Assignment {
            cluster_queue: self.workload.cluster_queue.clone(),
            local_queue: self.workload.local_queue.clone(),
            pod_sets: self.pod_sets.clone(),
        }
    }
}

//! Runs in the queue: each is one workload, by its number.
//!
//! [`AdmissionQueue`] decides by Kueue's rules. Here a run's next attempt becomes a workload, and what is decided about the
//! workload is told of the attempt.

mod account;
mod apply;
mod external;
mod gauges;
mod snapshot;
mod why;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use blueproof_queue::{
    self as rules, AdmissionEntry, AdmissionQueue, AdmissionStatus, Assignment, Origin, Queues, Workload,
    WorkloadId,
    objects::{Objects, ResourceFlavor},
};
use jiff::{SignedDuration, Timestamp};

use super::run::Evictions;
use crate::{
    action::ReservedQuota,
    domain::{
        AttemptId, ClusterName, DEFAULT, EvictionReason, QueueName, Resources, RunId, RunRequest,
        default_objects, resources,
    },
};
pub(super) use account::{Account, NAMESPACE};
pub(super) use snapshot::QueueSnapshot;
pub(super) use why::LinePlace;

/// The runs that ask for quota or have it.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    admission: AdmissionQueue,
    /// Whether an admin applied the objects; else they are the default ones.
    applied: bool,
    entries: BTreeMap<RunId, Entry>,
    /// The runs for which quota is to be requested of their cluster.
    unrequested: BTreeSet<RunId>,
}

/// A run in the queue.
#[derive(Debug, Clone)]
struct Entry {
    attempt: AttemptId,
    request: Arc<RunRequest>,
}

/// What was decided, which the queue itself has applied already.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    /// What was decided about quota, in order.
    pub(super) quota: Vec<QuotaDecision>,
    /// Attempts whose quota is free for them now.
    pub(super) admitted: Vec<AttemptId>,
    /// Runs whose back-off is over.
    pub(super) retried: Vec<RunId>,
    /// How many cycles in which a workload was tried gave quota to any, and how many did not.
    pub(super) cycles_admitted: u32,
    pub(super) cycles_inadmissible: u32,
}

/// What was decided about quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum QuotaDecision {
    Reserved {
        attempt: AttemptId,
        assignment: Assignment,
        /// How long it had waited.
        waited: SignedDuration,
    },
    Evicted(Eviction),
    /// A run goes first in its queue, and waits for the quota of others that were evicted before.
    PreemptionAwaited(RunId),
}

/// That an attempt has to give its quota back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Eviction {
    pub(super) attempt: AttemptId,
    pub(super) reason: EvictionReason,
    /// For which run, if for one.
    pub(super) by: Option<RunId>,
    /// Whether that one had been evicted for this one.
    pub(super) reversal: bool,
    /// Whether the attempt was admitted, and so has to end first; else it is pending again already.
    pub(super) was_admitted: bool,
    /// What its cluster says of it, where its cluster decided.
    pub(super) message: Option<String>,
}

impl Decisions {
    /// Returns the attempts that were admitted and have to give their quota back.
    pub(super) fn evicted(&self) -> Vec<&Eviction> {
        let evicted = self.quota.iter().filter_map(|decision| match decision {
            QuotaDecision::Evicted(evicted) => Some(evicted),
            QuotaDecision::Reserved { .. } | QuotaDecision::PreemptionAwaited(_) => None,
        });
        evicted.filter(|evicted| evicted.was_admitted).collect()
    }
}

impl Queue {
    pub(super) fn new(quota: Resources) -> Self {
        Self {
            admission: AdmissionQueue::new(default_objects(quota)),
            applied: false,
            entries: BTreeMap::new(),
            unrequested: BTreeSet::new(),
        }
    }

    /// Sets the minimum run time; see [`Queues::protect_for`].
    pub(super) fn protect_for(&mut self, span: SignedDuration) {
        self.admission.protect_for((!span.is_zero()).then_some(span));
    }

    /// Returns when another decision may be due, if nothing happens before; see [`AdmissionQueue::try_again_at`].
    pub(super) fn try_again_at(&self) -> Option<Timestamp> {
        self.admission.try_again_at()
    }

    /// Returns when the next back-off is over.
    pub(super) fn next_back_off_ends(&self) -> Option<Timestamp> {
        self.admission.next_back_off_ends()
    }

    /// Has every pending run tried again.
    pub(super) fn wake(&mut self) {
        self.admission.wake();
    }

    /// Keeps a pending run from being tried before a time, and counts its wait from then.
    pub(super) fn back_off(&mut self, run: RunId, until: Timestamp) {
        self.admission.back_off(workload_id(run), until);
    }

    /// Changes how much there is where no admin applied queues. What is promised already stays promised.
    pub(super) fn set_quota(&mut self, quota: Resources) {
        if !self.applied {
            self.admission.set_objects(default_objects(quota));
            self.note_external();
        }
    }

    /// Applies an admin's queues. What is promised already stays promised.
    pub(super) fn apply(&mut self, objects: Objects) {
        self.admission.set_objects(objects);
        self.applied = true;
        self.note_external();
    }

    pub(super) fn queues(&self) -> &Queues {
        self.admission.queues()
    }

    /// Returns the objects in force.
    pub(super) fn objects(&self) -> &Objects {
        self.admission.objects()
    }

    /// Returns the cluster that the runs of a queue are carried out on.
    pub(super) fn cluster_of(&self, queue: &QueueName) -> ClusterName {
        let cluster_queue = self.admission.cluster_queue_of(queue.as_str());
        let found = cluster_queue.and_then(|name| self.objects().cluster_queues.get(name));
        let named = found.and_then(|found| found.cluster.as_deref());
        named.map_or_else(ClusterName::default, ClusterName::from)
    }

    /// Returns whether a request could ever be admitted, everything else gone; one whose queue does not exist could.
    pub(super) fn can_ever_fit(&self, request: &RunRequest) -> bool {
        let Some(queue) = self.admission.cluster_queue_of(request.queue.as_str()) else {
            return true;
        };
        let workload = Workload {
            cluster_queue: queue.to_owned(),
            ..workload(RunId(0), request, Timestamp::UNIX_EPOCH, Evictions::default())
        };
        self.queues().can_ever_fit(&workload).unwrap_or(true)
    }

    /// Returns all that there is where no admin applied queues, which is of one flavor; else `None`.
    pub(super) fn default_quota(&self) -> Option<Resources> {
        let most = |resource: &str| {
            let potential = self.queues().potential(DEFAULT, DEFAULT, resource);
            potential.unwrap_or_default()
        };
        (!self.applied).then(|| resources(most))
    }

    /// Puts an attempt into its queue, where it is as old as `since`.
    pub(super) fn submit(
        &mut self,
        now: Timestamp,
        attempt: AttemptId,
        request: &Arc<RunRequest>,
        since: Timestamp,
        evictions: Evictions,
    ) {
        let origin = Origin {
            local_queue: request.queue.to_string(),
            author: request.requested_by.to_string(),
            repository: request.subject.repository.to_string(),
        };
        let entry = Entry {
            attempt,
            request: Arc::clone(request),
        };
        self.entries.insert(attempt.run, entry);
        let workload = workload(attempt.run, request, since, evictions);
        self.admission.submit(now, workload, origin);
        self.forget_requested(attempt.run);
    }

    /// Takes a run's waiting attempt out of the queue; one that does not wait is no mistake.
    pub(super) fn withdraw(&mut self, run: RunId) {
        if self.admission.withdraw(workload_id(run)).is_some() {
            self.entries.remove(&run);
            self.unrequested.remove(&run);
        }
    }

    /// Takes an attempt out of the queue that does not begin, whether it waits or has quota already.
    pub(super) fn drop_attempt(&mut self, attempt: AttemptId) {
        if self.entry_of(attempt).is_some() {
            self.admission.remove(workload_id(attempt.run));
            self.entries.remove(&attempt.run);
            self.unrequested.remove(&attempt.run);
        }
    }

    /// Decides which attempts get quota now, and which have to give theirs back.
    pub(super) fn decide(&mut self, now: Timestamp) -> Decisions {
        let decided = self.admission.decide(now);
        for decision in &decided.quota {
            if let rules::QuotaDecision::Evicted(evicted) = decision {
                // It may be in a queue now whose admission has become external.
                self.forget_requested(run_id(evicted.workload));
            }
        }
        let quota = decided.quota.into_iter().map(|decision| match decision {
            rules::QuotaDecision::Reserved(reserved) => QuotaDecision::Reserved {
                attempt: self.attempt(reserved.workload),
                assignment: reserved.assignment,
                waited: reserved.waited,
            },
            rules::QuotaDecision::Evicted(eviction) => QuotaDecision::Evicted(self.eviction(eviction)),
            rules::QuotaDecision::PreemptionAwaited(id) => QuotaDecision::PreemptionAwaited(run_id(id)),
        });
        Decisions {
            quota: quota.collect(),
            admitted: decided.admitted.into_iter().map(|id| self.attempt(id)).collect(),
            retried: decided.retried.into_iter().map(run_id).collect(),
            cycles_admitted: decided.cycles_admitted,
            cycles_inadmissible: decided.cycles_inadmissible,
        }
    }

    /// Returns whether nothing is to be decided now, and takes it that everything was tried.
    pub(super) fn try_all(&mut self, now: Timestamp) -> bool {
        self.admission.decide(now).is_empty()
    }

    fn attempt(&self, id: WorkloadId) -> AttemptId {
        let entry = self.entries.get(&run_id(id));
        entry
            .expect("each workload is of a run that is known here")
            .attempt
    }

    fn eviction(&self, eviction: rules::Eviction) -> Eviction {
        Eviction {
            attempt: self.attempt(eviction.workload),
            reason: eviction.reason.into(),
            by: eviction.by.map(run_id),
            reversal: eviction.reversal,
            was_admitted: eviction.was_admitted,
            message: None,
        }
    }

    /// Takes back what was promised to an attempt; one without a promise is no mistake.
    pub(super) fn release(&mut self, attempt: AttemptId) {
        if self.promised(attempt).is_some() {
            self.drop_attempt(attempt);
        }
    }

    fn entry_of(&self, attempt: AttemptId) -> Option<&Entry> {
        let entry = self.entries.get(&attempt.run)?;
        (entry.attempt == attempt).then_some(entry)
    }

    /// Returns a run and its workload, if it is not admitted.
    fn waiting(&self, run: RunId) -> Option<(&Entry, &AdmissionEntry)> {
        Some((self.entries.get(&run)?, self.admission.waiting(workload_id(run))?))
    }

    /// Returns what was promised to an attempt.
    pub(super) fn promised(&self, attempt: AttemptId) -> Option<Resources> {
        let entry = self.entry_of(attempt)?;
        let status = self.admission.status(workload_id(attempt.run));
        (status == Some(AdmissionStatus::Admitted)).then(|| entry.asked())
    }

    /// Returns the quota that was reserved for an attempt.
    pub(super) fn assignment(&self, attempt: AttemptId) -> Option<Assignment> {
        self.promised(attempt)?;
        self.admission
            .get(workload_id(attempt.run))
            .map(AdmissionEntry::assignment)
    }

    /// Returns the flavors of which quota was assigned, as they are now. One that was taken away meanwhile is not among them.
    pub(super) fn flavors_of(&self, quota: &ReservedQuota) -> BTreeMap<String, ResourceFlavor> {
        let ReservedQuota::Assigned(assignment) = quota else {
            return BTreeMap::new();
        };
        let names = assignment.pod_sets.iter().flat_map(|set| set.flavors.values());
        let known = &self.objects().flavors;
        let flavors = names.filter_map(|name| Some((name.clone(), known.get(name)?.clone())));
        flavors.collect()
    }

    /// Returns every attempt that holds a promise.
    pub(super) fn holders(&self) -> impl Iterator<Item = AttemptId> {
        let entries = self.admission.entries();
        let admitted = entries.filter(|entry| entry.status() == AdmissionStatus::Admitted);
        admitted.map(|entry| self.attempt(entry.workload().id))
    }

    /// Returns whether the run's attempt waits here.
    pub(super) fn holds_waiting(&self, run: RunId) -> bool {
        self.waiting(run).is_some()
    }

    /// Panics when the queue contradicts itself.
    pub(super) fn check(&self) {
        self.admission.check();
        let workloads = self.admission.entries().map(|entry| entry.workload().id);
        let runs = self.entries.keys().map(|run| workload_id(*run));
        assert!(workloads.eq(runs), "each run is a workload");
        for (run, entry) in &self.entries {
            assert_eq!(*run, entry.attempt.run, "an entry is of its run");
        }
        for run in &self.unrequested {
            assert!(self.external_queue(*run).is_some(), "{run}: its cluster decides");
        }
    }
}

impl Entry {
    /// Returns what it asks for.
    fn asked(&self) -> Resources {
        self.request.job.gang()
    }
}

fn workload_id(run: RunId) -> WorkloadId {
    WorkloadId(run.0)
}

fn run_id(id: WorkloadId) -> RunId {
    RunId(id.0)
}

/// Returns a run as the queues see it, before it is known in which of them it is.
fn workload(run: RunId, request: &RunRequest, queued_at: Timestamp, evictions: Evictions) -> Workload {
    Workload {
        priority: request.priority.0,
        evictions: evictions.count,
        evicted_by: evictions.last_by.map(workload_id),
        ..Workload::new(
            workload_id(run),
            queued_at,
            request.job.pod_sets.as_slice().to_vec(),
        )
    }
}

#[cfg(test)]
mod tests;

//! Between runs and queues: which attempt is next, and who has to go for it.
//!
//! [`blueproof_queue`] decides by Kueue's rules; it knows workloads, and a run is one workload, by its number. What stands
//! around those rules stands here: an attempt that was admitted into room that others are still leaving waits until they
//! are gone, and a round of decisions has an end even where Kueue's would not.

mod account;
mod eviction;
mod gang;
mod gauges;
mod replay;
mod why;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use blueproof_queue::{Cycle, PodSetAssignment, Queues, StopPolicy, Workload, WorkloadId, objects::Objects};
use jiff::{SignedDuration, Timestamp};

use super::run::Evictions;
use crate::{
    domain::{AttemptId, QueueName, Resources, RunId, RunRequest},
    fact::Assignment,
};
pub(super) use account::{Account, NAMESPACE};
pub use eviction::EvictionReason;
pub use gang::pod_sets;
use gang::{CPU, DEFAULT};
pub(crate) use gang::{default_objects, resources};

/// How many cycles one event may lead to. With fair sharing Kueue's rules can go round for ever; whatever is left is
/// decided on after the next event.
const CYCLES_AT_MOST: usize = 1_000;

/// Who waits for quota, and who has it.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    queues: Queues,
    /// Whether the queues are somebody's, and not the one that holds where nobody applied any.
    applied: bool,
    entries: BTreeMap<RunId, Entry>,
    /// Those who are held, and those who wait again: looked at after each event, however many wait beside them.
    held: BTreeSet<RunId>,
    returning: BTreeSet<RunId>,
    /// Whether there may be queues to be drained.
    drain: bool,
}

/// A run in the queues.
#[derive(Debug, Clone)]
struct Entry {
    attempt: AttemptId,
    request: Arc<RunRequest>,
    workload: Arc<Workload>,
    place: Place,
    /// Before when it is not tried, if it backs off.
    not_before: Option<Timestamp>,
    /// When it entered the queue, this time.
    entered_at: Timestamp,
    /// When it got its quota.
    reserved_at: Timestamp,
    /// What its pod sets have, while it has quota.
    pod_sets: Vec<PodSetAssignment>,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// No queue takes it: its LocalQueue is not there, or is stopped.
    Outside,
    /// It waits for quota.
    Waiting,
    /// It has quota that others are still leaving.
    Held,
    /// Its attempt was told of its quota.
    Given,
}

/// What was decided, which the queue itself has applied already.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    /// Whose quota was reserved and whose was taken, in order.
    pub(super) quota: Vec<QuotaDecision>,
    /// Attempts whose quota is free for them now.
    pub(super) admitted: Vec<AttemptId>,
    /// Runs whose back-off is over.
    pub(super) tried_again: Vec<RunId>,
    /// How many cycles in which a workload was tried gave quota to any, and how many did not.
    pub(super) successes: u32,
    pub(super) failures: u32,
}

/// That quota was given or taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum QuotaDecision {
    Reserved {
        attempt: AttemptId,
        assignment: Assignment,
        /// How long it had waited.
        waited: SignedDuration,
    },
    Evicted(Evicted),
}

/// Whose quota is taken, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Evicted {
    pub(super) attempt: AttemptId,
    pub(super) reason: EvictionReason,
    pub(super) by: Option<RunId>,
    /// Whether that one had been evicted for this one.
    pub(super) reversal: bool,
    /// Whether the attempt was admitted, and so has to end first; else it waits again already.
    pub(super) was_admitted: bool,
}

impl Decisions {
    /// Returns whether nothing was decided about any quota.
    pub(super) fn is_empty(&self) -> bool {
        self.quota.is_empty() && self.admitted.is_empty() && self.tried_again.is_empty()
    }

    /// Returns the attempts that were admitted and have to give their quota back.
    pub(super) fn evicted(&self) -> Vec<Evicted> {
        let evicted = self.quota.iter().filter_map(|decision| match decision {
            QuotaDecision::Evicted(evicted) => Some(*evicted),
            QuotaDecision::Reserved { .. } => None,
        });
        evicted.filter(|evicted| evicted.was_admitted).collect()
    }
}

impl Queue {
    pub(super) fn new(quota: Resources) -> Self {
        Self {
            queues: Queues::new(default_objects(quota)),
            applied: false,
            entries: BTreeMap::new(),
            held: BTreeSet::new(),
            returning: BTreeSet::new(),
            drain: false,
        }
    }

    /// Goes by another minimum run time; see [`Queues::protect_for`].
    pub(super) fn protect_for(&mut self, span: SignedDuration) {
        self.queues.protect_for((!span.is_zero()).then_some(span));
    }

    /// Returns when it is worth while to try again, if nothing happens before.
    pub(super) fn try_again_at(&self) -> Option<Timestamp> {
        let returning = !self.returning.is_empty();
        let protected = returning.then(|| self.queues.protected_until()).flatten();
        protected.into_iter().chain(self.queues.reordered_at()).min()
    }

    /// Returns when the next back-off is over.
    pub(super) fn next_back_off_ends(&self) -> Option<Timestamp> {
        self.queues.next_back_off_ends()
    }

    /// Lets everybody who waits try again.
    pub(super) fn wake(&mut self) {
        self.queues.wake();
    }

    /// Keeps a waiting run from being tried before a time, as of which it is in the queue; see [`Queues::back_off`].
    pub(super) fn back_off(&mut self, run: RunId, until: Timestamp) {
        if let Some(entry) = self.entries.get_mut(&run) {
            entry.not_before = Some(until);
            entry.entered_at = entry.entered_at.max(until);
            self.queues.back_off(entry.workload.id, until);
        }
    }

    /// Changes how much there is where nobody applied other queues. What is already promised stays promised.
    pub(super) fn set_quota(&mut self, quota: Resources) {
        if !self.applied {
            self.set_objects(default_objects(quota));
        }
    }

    /// Goes by these queues from now on. What is already promised stays promised.
    pub(super) fn apply(&mut self, objects: Objects) {
        self.set_objects(objects);
        self.applied = true;
    }

    fn set_objects(&mut self, objects: Objects) {
        self.queues.set_objects(objects);
        self.drain = true;
        let movable = self
            .entries
            .iter()
            .filter(|(_, entry)| matches!(entry.place, Place::Outside | Place::Waiting));
        for run in movable.map(|(run, _)| *run).collect::<Vec<_>>() {
            self.let_in(run);
        }
    }

    pub(super) fn queues(&self) -> &Queues {
        &self.queues
    }

    /// Returns what holds.
    pub(super) fn objects(&self) -> &Objects {
        self.queues.objects()
    }

    /// Returns whether a request could ever be admitted, everything else gone; one whose queue is not there could.
    pub(super) fn can_ever_fit(&self, request: &RunRequest) -> bool {
        let Some(queue) = self.cluster_queue(&request.queue) else {
            return true;
        };
        let workload = Workload {
            cluster_queue: queue,
            ..workload(RunId(0), request, Timestamp::UNIX_EPOCH)
        };
        self.queues.can_ever_fit(&workload).unwrap_or(true)
    }

    /// Returns all that there is where nobody applied queues, which is of one flavor; else `None`.
    pub(super) fn default_quota(&self) -> Option<Resources> {
        let most = |resource: &str| {
            self.queues
                .potential(DEFAULT, DEFAULT, resource)
                .unwrap_or_default()
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
        self.withdraw(attempt.run);
        let entry = Entry {
            attempt,
            request: Arc::clone(request),
            workload: Arc::new(Workload {
                evictions: evictions.count,
                evicted_by: evictions.last_by.map(|run| WorkloadId(run.0)),
                ..workload(attempt.run, request, since)
            }),
            place: Place::Outside,
            not_before: None,
            entered_at: now,
            reserved_at: now,
            pod_sets: Vec::new(),
        };
        self.entries.insert(attempt.run, entry);
        if evictions.count > 0 {
            self.returning.insert(attempt.run);
        }
        self.let_in(attempt.run);
    }

    /// Lets a waiting run into the ClusterQueue behind its LocalQueue, as things are now.
    fn let_in(&mut self, run: RunId) {
        let request = &self.entries[&run].request;
        let behind = self.cluster_queue(&request.queue);
        let user = self.user(request);
        let through = self.queues.local_queue(request.queue.as_str());
        let through = through.map_or_else(|| request.queue.to_string(), |(name, _)| name.to_owned());
        let entry = self.entries.get_mut(&run).expect("just looked up");
        let is_there = behind.as_ref() == Some(&entry.workload.cluster_queue)
            && through == entry.workload.local_queue
            && user == entry.workload.user;
        if is_there && entry.place == Place::Waiting {
            return;
        }
        self.queues.remove(entry.workload.id);
        entry.place = Place::Outside;
        let workload = Arc::make_mut(&mut entry.workload);
        workload.local_queue = through;
        let Some(behind) = behind else { return };
        workload.cluster_queue = behind;
        workload.user = user;
        if self.queues.submit(&entry.workload).is_ok() {
            entry.place = Place::Waiting;
            if let Some(until) = entry.not_before {
                self.queues.back_off(entry.workload.id, until);
            }
        }
    }

    /// Returns the ClusterQueue behind a LocalQueue that lets anybody through.
    fn cluster_queue(&self, queue: &QueueName) -> Option<String> {
        let (_, local) = self.queues.local_queue(queue.as_str())?;
        (local.stop_policy == StopPolicy::None).then(|| local.cluster_queue.clone())
    }

    /// Returns whose a request is of those who come through its LocalQueue, if these are told apart.
    fn user(&self, request: &RunRequest) -> Option<String> {
        let (_, local) = self.queues.local_queue(request.queue.as_str())?;
        let author = || request.requested_by.to_string();
        local
            .users
            .tell_apart(author, || request.subject.repository.to_string())
    }

    /// Takes a run's waiting attempt out of the queue; one that does not wait is no mistake.
    pub(super) fn withdraw(&mut self, run: RunId) {
        if self.holds_waiting(run) {
            self.forget(run);
        }
    }

    /// Takes an attempt out of the queue that does not begin, whether it waits or has quota already.
    pub(super) fn drop_attempt(&mut self, attempt: AttemptId) {
        if self
            .entries
            .get(&attempt.run)
            .is_some_and(|entry| entry.attempt == attempt)
        {
            self.forget(attempt.run);
        }
    }

    fn forget(&mut self, run: RunId) {
        self.entries.remove(&run);
        self.held.remove(&run);
        self.returning.remove(&run);
        self.queues.remove(WorkloadId(run.0));
    }

    /// Decides who gets quota now, and who has to give theirs back.
    pub(super) fn decide(&mut self, now: Timestamp) -> Decisions {
        let mut decisions = Decisions {
            tried_again: self.end_back_offs(now),
            ..Decisions::default()
        };
        if std::mem::take(&mut self.drain) {
            self.drain(now, &mut decisions);
        }
        for _ in 0..CYCLES_AT_MOST {
            if !self.queues.is_restless() {
                break;
            }
            let cycle = self.queues.cycle(now);
            self.take_in(now, &cycle, &mut decisions);
        }
        decisions.admitted = self.give_out();
        decisions
    }

    /// Ends the back-offs whose time has come, and returns the runs that may be tried again.
    fn end_back_offs(&mut self, now: Timestamp) -> Vec<RunId> {
        let over = self.queues.end_back_offs(now);
        for id in &over {
            self.entry_mut(*id).not_before = None;
        }
        over.into_iter().map(|id| RunId(id.0)).collect()
    }

    fn take_in(&mut self, now: Timestamp, cycle: &Cycle, decisions: &mut Decisions) {
        let gave = !cycle.admitted.is_empty();
        decisions.successes += u32::from(gave);
        decisions.failures += u32::from(cycle.tried > 0 && !gave);
        for admission in &cycle.admitted {
            let waited = self.hold(now, admission.workload, admission.pod_sets.clone());
            let entry = &self.entries[&RunId(admission.workload.0)];
            decisions.quota.push(QuotaDecision::Reserved {
                attempt: entry.attempt,
                assignment: entry.assignment(),
                waited,
            });
        }
        for preempted in &cycle.preempted {
            let (run, by) = (RunId(preempted.workload.0), Some(RunId(preempted.by.0)));
            let evicted = self.take_back(now, run, preempted.reason.into(), by);
            decisions.quota.push(QuotaDecision::Evicted(Evicted {
                reversal: preempted.reversal,
                ..evicted
            }));
        }
    }

    /// Takes a run's quota back, for another or to drain the queue: at once where its attempt was not admitted yet.
    fn take_back(
        &mut self,
        now: Timestamp,
        run: RunId,
        reason: EvictionReason,
        by: Option<RunId>,
    ) -> Evicted {
        let entry = self.entry_mut(WorkloadId(run.0));
        if let Some(by) = by {
            Arc::make_mut(&mut entry.workload).evicted_by = Some(WorkloadId(by.0));
        }
        let evicted = Evicted {
            attempt: entry.attempt,
            reason,
            by,
            reversal: false,
            was_admitted: entry.place == Place::Given,
        };
        if !evicted.was_admitted {
            self.wait_again(now, run);
        }
        evicted
    }

    /// Evicts whoever holds quota through a queue that is to be drained.
    fn drain(&mut self, now: Timestamp, decisions: &mut Decisions) {
        for (id, drained) in self.queues.to_drain() {
            self.queues.evict(id);
            let evicted = self.take_back(now, RunId(id.0), drained.into(), None);
            decisions.quota.push(QuotaDecision::Evicted(evicted));
        }
    }

    /// Keeps quota for a workload until it is admitted, and returns how long it had waited.
    fn hold(&mut self, now: Timestamp, id: WorkloadId, pod_sets: Vec<PodSetAssignment>) -> SignedDuration {
        let entry = self.entry_mut(id);
        entry.place = Place::Held;
        entry.not_before = None;
        entry.reserved_at = now;
        entry.pod_sets = pod_sets;
        let waited = now.duration_since(entry.entered_at);
        self.held.insert(RunId(id.0));
        self.returning.remove(&RunId(id.0));
        waited
    }

    /// Sends one back of whom nothing runs yet, so that it is gone at once: into its queue, if that still takes it.
    fn wait_again(&mut self, now: Timestamp, run: RunId) {
        let entry = self.entry_mut(WorkloadId(run.0));
        entry.place = Place::Waiting;
        entry.entered_at = now;
        entry.pod_sets.clear();
        Arc::make_mut(&mut entry.workload).evictions += 1;
        self.held.remove(&run);
        self.returning.insert(run);
        self.queues.requeue(WorkloadId(run.0));
        self.let_in(run);
    }

    /// Gives quota out, to those for whom there is room beside all who have not left yet.
    fn give_out(&mut self) -> Vec<AttemptId> {
        let mut given = Vec::new();
        for run in self.held.iter().copied().collect::<Vec<_>>() {
            let has_it = |id: WorkloadId| self.entries[&RunId(id.0)].place == Place::Given;
            if self.queues.has_room_beside(WorkloadId(run.0), has_it) {
                let entry = self.entries.get_mut(&run).expect("just listed");
                entry.place = Place::Given;
                given.push(entry.attempt);
                self.held.remove(&run);
            }
        }
        given
    }

    fn entry_mut(&mut self, id: WorkloadId) -> &mut Entry {
        self.entries
            .get_mut(&RunId(id.0))
            .expect("the queues know only runs that are known here")
    }

    /// Takes back what was promised to an attempt; one without a promise is no mistake.
    pub(super) fn release(&mut self, attempt: AttemptId) {
        if self.promised(attempt).is_some() {
            self.forget(attempt.run);
        }
    }

    fn waiting(&self, run: RunId) -> Option<&Entry> {
        self.entries.get(&run).filter(|entry| entry.place != Place::Given)
    }

    /// Returns what was promised to an attempt.
    pub(super) fn promised(&self, attempt: AttemptId) -> Option<Resources> {
        let entry = self.entries.get(&attempt.run)?;
        (entry.attempt == attempt && entry.place == Place::Given).then(|| entry.asked())
    }

    /// Returns every attempt that holds a promise.
    pub(super) fn holders(&self) -> impl Iterator<Item = AttemptId> {
        let given = self.entries.values().filter(|entry| entry.place == Place::Given);
        given.map(|entry| entry.attempt)
    }

    /// Returns whether the run's attempt waits here.
    pub(super) fn holds_waiting(&self, run: RunId) -> bool {
        self.waiting(run).is_some()
    }

    /// Panics when the queue contradicts itself.
    pub(super) fn check(&self) {
        self.queues.check();
        for (run, entry) in &self.entries {
            assert_eq!(*run, entry.attempt.run, "an entry is of its run");
            let held = self.held.contains(run);
            assert_eq!(held, entry.place == Place::Held, "{run}: held where it is held");
            let known = self.queues.standing(entry.workload.id).is_some();
            assert_eq!(
                known,
                entry.place != Place::Outside,
                "{run}: in the queues unless it is outside"
            );
        }
    }
}

impl Entry {
    /// Returns what it asks for.
    fn asked(&self) -> Resources {
        self.request.job.gang()
    }

    /// Returns the quota that it has, if any.
    fn assignment(&self) -> Assignment {
        Assignment {
            cluster_queue: self.workload.cluster_queue.clone(),
            local_queue: self.workload.local_queue.clone(),
            pod_sets: self.pod_sets.clone(),
        }
    }
}

/// Returns a run as the queues see it, before it is known behind which of them it is.
fn workload(run: RunId, request: &RunRequest, queued_at: Timestamp) -> Workload {
    Workload {
        id: WorkloadId(run.0),
        cluster_queue: String::new(),
        local_queue: request.queue.to_string(),
        user: None,
        priority: request.priority.0,
        queued_at,
        evictions: 0,
        evicted_by: None,
        pod_sets: pod_sets(&request.job),
    }
}

#[cfg(test)]
mod tests;

//! Kueue's queueing without a cluster: which workload gets quota, in which order, and at whose expense.
//!
//! The rules are those of Kueue 0.19.2 at its default feature gates, and Kueue's own code is the judge
//! (`tools/kueue-oracle`). All is plain data: no clock, no I/O, no runtime, exact integers. Workloads are all that is known
//! here: what becomes of an admission or a preemption is the caller's matter.
//!
//! [`manifest`] reads ClusterQueues, Cohorts, LocalQueues, ResourceFlavors and WorkloadPriorityClasses from Kueue's YAML,
//! [`Queues`] takes [`Workload`]s, and each [`Queues::cycle`] is one of Kueue's scheduling cycles. [`AdmissionQueue`] is the
//! layer around them that a scheduler needs: it keeps quota for a workload until its victims are gone, and admits it then.
//!
//! ```
//! use blueproof_queue::{PodSet, Quantity, Queues, Workload, WorkloadId, manifest};
//! use jiff::Timestamp;
//!
//! // Two teams with four GPUs each, in one cohort: what one does not use, the other may borrow.
//! let queue = |name: &str| format!("
//! apiVersion: kueue.x-k8s.io/v1beta2
//! kind: ClusterQueue
//! metadata: {{name: {name}}}
//! spec:
//!   cohortName: research
//!   namespaceSelector: {{}}
//!   resourceGroups:
//!   - coveredResources: [nvidia.com/gpu]
//!     flavors: [{{name: h200, resources: [{{name: nvidia.com/gpu, nominalQuota: 4}}]}}]
//! ---
//! apiVersion: kueue.x-k8s.io/v1beta2
//! kind: LocalQueue
//! metadata: {{name: {name}, namespace: default}}
//! spec: {{clusterQueue: {name}}}
//! ---");
//! let flavor = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: h200}}";
//! let text = [&queue("vision"), &queue("language"), "\n", flavor].concat();
//! let file = manifest::File { name: "queues.yaml".into(), text };
//! let mut queues = Queues::new(manifest::read([file])?.objects);
//!
//! // A training on two nodes with three GPUs each comes first, then one on a single node with four.
//! let workload = |id, queue: &str, pods, gpus| Workload {
//!     id: WorkloadId(id),
//!     cluster_queue: queue.into(),
//!     local_queue: queue.into(),
//!     user: None,
//!     priority: 0,
//!     queued_at: Timestamp::UNIX_EPOCH,
//!     evictions: 0,
//!     evicted_by: None,
//!     pod_sets: vec![PodSet {
//!         name: "node".into(),
//!         count: pods,
//!         requests: [("nvidia.com/gpu".into(), Quantity(gpus))].into(),
//!         ..PodSet::default()
//!     }],
//! };
//! // The first is admitted, with two GPUs that `vision` borrows. The second finds two.
//! let now = Timestamp::UNIX_EPOCH;
//! queues.submit(&workload(1, "vision", 2, 3)).expect("the ClusterQueue is there");
//! let admitted = queues.cycle(now).admitted;
//! assert_eq!(admitted[0].workload, WorkloadId(1));
//! assert_eq!(admitted[0].pod_sets[0].flavors["nvidia.com/gpu"], "h200");
//! queues.submit(&workload(2, "language", 1, 4)).expect("the ClusterQueue is there");
//! assert_eq!(queues.cycle(now).admitted, []);
//! assert_eq!(
//!     queues.wait(WorkloadId(2)).expect("it waits").to_string(),
//!     "WaitingForQuota: flavor h200: 2 nvidia.com/gpu missing: 2 free of at most 8, its cohort has no more"
//! );
//! assert_eq!(queues.unblocked_by(WorkloadId(2))[0].to_string(), "workload 1 ends");
//!
//! // The first has ended, and the second is admitted in the next cycle.
//! queues.remove(WorkloadId(1));
//! assert_eq!(queues.cycle(now).admitted[0].workload, WorkloadId(2));
//! # Ok::<(), Vec<blueproof_diagnostic::Diagnostic>>(())
//! ```
//!
//! `examples/admit.rs` does the same with files.
//!
//! Left out on purpose, and refused where it is configured: topologies, admission checks, MultiKueue, elastic and
//! concurrent variants of workloads.

mod admission;
mod assign;
mod change;
mod cycle;
mod cycle_state;
mod drain;
mod eviction;
mod explain;
mod figures;
mod forest;
pub mod manifest;
pub mod names;
pub mod objects;
mod pending_queue;
mod progress;
mod quantity;
mod quotas;
mod restore;
mod share;
pub mod slack;
pub(crate) mod snapshot;
mod terms;
#[cfg(test)]
mod tests;
pub mod timers;
mod times;
mod tree;
mod usage;
mod users;
mod victims;
pub mod words;
mod workload;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

pub use admission::{
    AdmissionEntry, AdmissionQueue, AdmissionSnapshot, AdmissionStatus, Assignment, DecisionRound,
    DecisionStep, Decisions, Eviction, Origin, QuotaDecision, Reservation,
};
pub use drain::Drained;
pub use eviction::EvictionReason;
pub use explain::{Obstacle, ObstacleReason, QuotaIncrease, QuotaLimit, Remedy, Wait, WaitReason};
pub use figures::{CohortFigures, CohortResource};
pub use forest::root_cohort;
pub use objects::StopPolicy;
pub use quantity::{Quantity, amount_in_words};
pub use terms::{Mismatch, mismatch};
pub use tree::Inactive;
pub use usage::{UsageOrder, UserUsage};
pub use workload::{
    Admission, ExecutionTime, PodSet, PodSetAssignment, Preempted, PreemptionReason, Workload, WorkloadId,
};

use assign::Mode;
use cycle_state::{CycleState, Request, Rules};
use forest::Held;
use objects::Objects;
use pending_queue::{Class, Entry};
use terms::Shape;
use tree::{Holder, Queue, Tree};

use timers::Timers;

/// All queues, the workloads that hold their quota, and those that are pending.
///
/// An evicted workload keeps its quota until it is put back with [`Queues::requeue`], or forgotten with
/// [`Queues::remove`]: that its pods are gone is the caller's to say.
#[derive(Debug, Clone)]
pub struct Queues {
    objects: Objects,
    trees: Vec<Tree>,
    /// The tree and the number in it, by name.
    queues: BTreeMap<String, At>,
    workloads: BTreeMap<WorkloadId, At>,
    /// The queues in which usage counts.
    by_usage: Vec<At>,
    /// The trees in which a cycle could bring anything.
    restless: BTreeSet<usize>,
    /// When the last cycle was.
    now: Timestamp,
    protected_for: Option<SignedDuration>,
    /// The workloads that back off.
    back_offs: Timers<WorkloadId>,
    /// What the trees have places for though no object makes it.
    held: Held,
    /// Names of LocalQueues that are not there any more: what a cluster had by them, namespace and name.
    known_before: BTreeMap<String, (String, String)>,
}

/// What counts for a workload that is alone.
const NO_RULES: Rules<'static> = Rules {
    fair: None,
    safe_since: None,
};

/// A ClusterQueue's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    tree: usize,
    queue: usize,
}

/// What a cycle decided.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cycle {
    /// The workloads that got quota.
    pub admitted: Vec<Admission>,
    /// The workloads that are evicted. Each holds its quota until it is requeued or finished.
    pub preempted: Vec<Preempted>,
    /// The workloads that go first in their queues from now on, and wait for others that were evicted in earlier cycles.
    pub preemptors: Vec<WorkloadId>,
    /// How many were looked at.
    pub tried: usize,
}

/// Where a workload stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadStatus {
    /// It waits, and is tried in the next cycles.
    Queued,
    /// It waits, and is not tried again until something in its cohort changes.
    Inadmissible,
    /// It waits, and is not tried before a time.
    BackingOff,
    /// It has quota.
    Admitted,
    /// It was evicted, and has its quota still.
    Evicted,
}

/// A name that is not configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no ClusterQueue `{0}`")]
pub struct UnknownQueue(pub String);

impl Queues {
    /// Makes the queues, without workloads.
    pub fn new(objects: Objects) -> Self {
        Self::grow(objects, Held::new())
    }

    fn grow(objects: Objects, held: Held) -> Self {
        let trees = forest::grow(&objects, &held);
        let (mut queues, mut by_usage) = (BTreeMap::new(), Vec::new());
        for (tree, grown) in trees.iter().enumerate() {
            for (queue, known) in grown.queues.iter().enumerate() {
                let at = At { tree, queue };
                queues.insert(known.name.clone(), at);
                by_usage.extend(known.users.by_usage().then_some(at));
            }
        }
        Self {
            objects,
            trees,
            queues,
            workloads: BTreeMap::new(),
            by_usage,
            restless: BTreeSet::new(),
            now: Timestamp::MIN,
            protected_for: None,
            back_offs: Timers::default(),
            held,
            known_before: BTreeMap::new(),
        }
    }

    /// Returns what is configured.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Lets all inadmissible workloads be tried again.
    pub fn wake(&mut self) {
        for (number, tree) in self.trees.iter_mut().enumerate() {
            tree.wake();
            self.restless.insert(number);
        }
    }

    fn rules(&self, now: Timestamp) -> Rules<'_> {
        Rules {
            fair: self.objects.fair_sharing.as_ref(),
            safe_since: self.safe_since(now),
        }
    }

    /// Puts a workload into its queue. One that is known already stays as it is.
    pub fn submit(&mut self, workload: &Workload) -> Result<(), UnknownQueue> {
        let at = self.at(&workload.cluster_queue)?;
        if self.workloads.contains_key(&workload.id) {
            return Ok(());
        }
        let entry = self.entry(at, workload);
        self.queue_mut(at).pending.push(workload.id, entry);
        self.workloads.insert(workload.id, at);
        self.trees[at.tree].searched.clear();
        self.restless.insert(at.tree);
        Ok(())
    }

    /// Forgets a workload, whether it is pending or holds quota; an unknown one is no mistake. In both cases all workloads of the
    /// tree are tried again: a pending one may have been the reason that others were held back.
    pub fn remove(&mut self, id: WorkloadId) {
        let Some(at) = self.workloads.remove(&id) else {
            return;
        };
        self.back_offs.cancel(id);
        if self.queue_mut(at).pending.remove(id).is_some() {
            self.trees[at.tree].wake();
        }
        self.release(at, id);
        self.restless.insert(at.tree);
    }

    /// Puts a workload that held quota back into its queue, where it has the age that it had.
    pub fn requeue(&mut self, id: WorkloadId) {
        let Some(at) = self.workloads.get(&id).copied() else {
            return;
        };
        if let Some(holder) = self.release(at, id) {
            let entry = Entry {
                evictions: holder.entry.evictions + 1,
                ..holder.entry
            };
            self.queue_mut(at).pending.push(id, entry);
            self.restless.insert(at.tree);
        }
    }

    /// Notes that a workload was evicted; it holds its quota until it is requeued or removed.
    pub fn evict(&mut self, id: WorkloadId) {
        let Some(at) = self.workloads.get(&id).copied() else {
            return;
        };
        let queue = self.queue_mut(at);
        if let Some(holder) = queue.holders.get_mut(&id) {
            holder.evicted = true;
            queue.generation += 1;
        }
    }

    fn release(&mut self, at: At, id: WorkloadId) -> Option<Holder> {
        let tree = &mut self.trees[at.tree];
        let queue = &mut tree.queues[at.queue];
        let holder = queue.holders.remove(&id)?;
        queue.generation += 1;
        tree.quotas.remove(queue.node, &holder.usage);
        for (of, amount) in &holder.usage {
            let change = Quantity::ZERO.minus(*amount);
            queue.users.note(holder.entry.user, &tree.places[of.0].1, change);
        }
        tree.wake();
        Some(holder)
    }

    /// Returns whether a cycle could bring anything.
    pub fn has_work(&self) -> bool {
        !self.restless.is_empty()
    }

    /// Runs one scheduling cycle: looks at the head of each queue in which anything could have changed.
    pub fn cycle(&mut self, now: Timestamp) -> Cycle {
        self.now = self.now.max(now);
        let mut result = Cycle::default();
        for number in std::mem::take(&mut self.restless) {
            let rules = Rules {
                fair: self.objects.fair_sharing.as_ref(),
                safe_since: self.safe_since(now),
            };
            let tree = &mut self.trees[number];
            let decided = tree.cycle(now, rules);
            if decided.changed {
                self.restless.insert(number);
            }
            result.tried += decided.tried;
            result.preempted.extend(decided.preempted);
            result.preemptors.extend(decided.preemptors);
            let admissions = decided.admitted.into_iter();
            result.admitted.extend(
                admissions.map(|(queue, id, assignment)| assignment.admission(&tree.queues[queue], id)),
            );
        }
        result
    }

    /// Returns whether a workload could be admitted if there were no other.
    pub fn can_ever_fit(&self, workload: &Workload) -> Result<bool, UnknownQueue> {
        let at = self.at(&workload.cluster_queue)?;
        let shape = self
            .queue(at)
            .terms
            .shape(&workload.pod_sets, &self.objects.flavors);
        let request = Request {
            queue: at.queue,
            evictions: workload.evictions,
            priority: workload.priority,
            queued_at: workload.queued_at,
            shape: &shape,
        };
        Ok(self.fits_empty(at, &request))
    }

    fn fits_empty(&self, at: At, request: &Request<'_>) -> bool {
        let tree = &self.trees[at.tree];
        let mut empty = tree.quotas.clone();
        empty.settle();
        let mut state = CycleState {
            quotas: &mut empty,
            queues: &tree.queues,
            rules: NO_RULES,
        };
        assign::assign_with_victims(&mut state, request, None).0.mode == Mode::Fit
    }

    /// Requeues all evicted workloads.
    pub fn drain_evicted(&mut self) {
        let leaving = self
            .workloads
            .keys()
            .filter(|id| self.standing(**id) == Some(WorkloadStatus::Evicted));
        for id in leaving.copied().collect::<Vec<_>>() {
            self.requeue(id);
        }
    }

    /// Runs cycles until nothing changes, as if evicted workloads ended at once. Where the rules go round for ever it
    /// stops somewhere.
    pub fn settle(&mut self) {
        self.settle_with_ends(BTreeSet::new());
    }

    /// Runs cycles as [`Self::settle`] does, and lets each of these end as soon as it has quota.
    fn settle_with_ends(&mut self, mut ending: BTreeSet<WorkloadId>) {
        const CYCLES_AT_MOST: usize = 1_000;
        for _ in 0..CYCLES_AT_MOST {
            // Before the next cycle, in which it could be evicted: two that take turns for ever would never end.
            for id in ending
                .extract_if(.., |id| self.holds_quota(*id))
                .collect::<Vec<_>>()
            {
                self.remove(id);
            }
            self.drain_evicted();
            if !self.has_work() {
                return;
            }
            self.cycle(self.now);
        }
    }

    /// Returns whether a workload holds quota, also if it was evicted.
    fn holds_quota(&self, id: WorkloadId) -> bool {
        matches!(
            self.standing(id),
            Some(WorkloadStatus::Admitted | WorkloadStatus::Evicted)
        )
    }

    /// Returns whether there is room for a workload's quota beside that of the workloads that really have theirs.
    ///
    /// As in Kueue, one may be admitted in the cycle that evicts others, into room that they have not left yet.
    pub fn has_room_beside(&self, id: WorkloadId, has_it: impl Fn(WorkloadId) -> bool) -> bool {
        let Some(at) = self.workloads.get(&id) else {
            return false;
        };
        let tree = &self.trees[at.tree];
        let Some(own) = tree.queues[at.queue].holders.get(&id) else {
            return false;
        };
        own.usage.iter().all(|(of, amount)| {
            let holders = tree.queues.iter().flat_map(|queue| &queue.holders);
            let others = holders.filter(|(other, _)| **other != id && has_it(**other));
            let used = others
                .flat_map(|(_, holder)| &holder.usage)
                .filter(|(at, _)| at == of);
            let sum = used.fold(*amount, |sum, (_, amount)| sum.plus(*amount));
            sum <= tree.quotas.total(*of)
        })
    }

    /// Returns the head of a queue.
    pub fn head(&self, queue: &str) -> Option<WorkloadId> {
        let queue = self.queue(self.at(queue).ok()?);
        let (head, _) = queue.pending.head(&queue.users)?;
        Some(head)
    }

    /// Panics when the queues contradict themselves.
    ///
    /// # Panics
    /// When somebody waits for what they have, or a cohort does not use what those in it use beyond their own.
    pub fn check(&self) {
        for tree in &self.trees {
            tree.quotas.check_sums();
            for queue in &tree.queues {
                for id in queue.pending.ids() {
                    let backs_off = self.back_offs.get(id).is_some();
                    assert_eq!(
                        backs_off,
                        queue.pending.backs_off(id),
                        "{id} steps aside until a time"
                    );
                    assert!(
                        !queue.holders.contains_key(&id),
                        "{id} does not wait for what it has"
                    );
                }
            }
        }
    }

    /// Returns where a workload stands, or `None` when it is not known.
    pub fn standing(&self, id: WorkloadId) -> Option<WorkloadStatus> {
        let queue = self.queue(*self.workloads.get(&id)?);
        if let Some(holder) = queue.holders.get(&id) {
            return Some(if holder.evicted {
                WorkloadStatus::Evicted
            } else {
                WorkloadStatus::Admitted
            });
        }
        Some(if queue.pending.backs_off(id) {
            WorkloadStatus::BackingOff
        } else if queue.pending.is_inadmissible(id) {
            WorkloadStatus::Inadmissible
        } else {
            WorkloadStatus::Queued
        })
    }

    /// Returns whom a workload of these flavors would have evicted, were it next; `contested` are those that others have
    /// to give up. Nothing changes.
    pub fn victims(
        &mut self,
        workload: &Workload,
        usage: &[(&str, &str, Quantity)],
        contested: &[(&str, &str)],
    ) -> Result<Vec<Preempted>, UnknownQueue> {
        let at = self.at(&workload.cluster_queue)?;
        let rules = Rules {
            fair: self.objects.fair_sharing.as_ref(),
            safe_since: None,
        };
        let tree = &mut self.trees[at.tree];
        let place = |flavor: &str, resource: &str| tree.place(flavor, resource);
        let known = usage
            .iter()
            .filter_map(|(f, r, amount)| Some((place(f, r)?, *amount)));
        let usage: Vec<_> = known.collect();
        let needs: Vec<_> = contested.iter().filter_map(|(f, r)| place(f, r)).collect();
        let request = Request {
            queue: at.queue,
            evictions: workload.evictions,
            priority: workload.priority,
            queued_at: workload.queued_at,
            shape: &Shape { sets: Vec::new() },
        };
        let victims = victims::find(&mut tree.cycle_state(rules), &request, &usage, &needs);
        let preempted = victims.into_iter().map(|victim| Preempted {
            workload: victim.id,
            reason: victim.reason,
            by: workload.id,
            reversal: workload.evicted_by == Some(victim.id),
        });
        Ok(preempted.collect())
    }

    fn at(&self, queue: &str) -> Result<At, UnknownQueue> {
        self.queues
            .get(queue)
            .copied()
            .ok_or_else(|| UnknownQueue(queue.to_owned()))
    }

    fn queue(&self, at: At) -> &Queue {
        &self.trees[at.tree].queues[at.queue]
    }

    fn queue_mut(&mut self, at: At) -> &mut Queue {
        &mut self.trees[at.tree].queues[at.queue]
    }

    fn entry(&mut self, at: At, workload: &Workload) -> Entry {
        let queue = &mut self.trees[at.tree].queues[at.queue];
        let shape = queue.shape_number(&workload.pod_sets, &self.objects.flavors);
        let user = queue.users.number(workload, &self.objects);
        Entry {
            class: Class {
                priority: workload.priority,
                shape,
            },
            user,
            queued_at: workload.queued_at,
            evictions: workload.evictions,
            evicted_by: workload.evicted_by,
        }
    }
}

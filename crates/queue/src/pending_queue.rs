//! The pending workloads of one ClusterQueue, and which of them is the head.
//!
//! Under admission fair sharing the workload of the user with the least usage comes first; then the workload with the
//! higher priority, then the one that was queued earlier. Workloads are kept by class: those of the same shape and priority
//! have the same chances, so when one of them cannot be admitted in a BestEffortFIFO queue, its whole class is inadmissible
//! and is not tried again before something changes. Marking a class and queueing it again cost the same however many
//! workloads it has. Under admission fair sharing each user has a list of its own: only users are compared to find the
//! head, and nothing is reordered when their usage changes.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use jiff::Timestamp;

use super::{
    objects::QueueingStrategy,
    progress::Progress,
    users::{Usage, Users},
    workload::WorkloadId,
};

/// A pending workload, or one that could be requeued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) class: Class,
    /// The number of its user in the queue.
    pub(super) user: usize,
    pub(super) queued_at: Timestamp,
    /// How often the workload was evicted.
    pub(super) evictions: u32,
    /// The workload that preempted it last.
    pub(super) evicted_by: Option<WorkloadId>,
}

/// Workloads with the same chances of admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Class {
    pub(super) priority: i32,
    /// The number of its shape in the queue.
    pub(super) shape: usize,
}

/// The position of the first workload of a class in a list: the least is the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct HeadKey {
    priority: Reverse<i32>,
    queued_at: Timestamp,
    id: WorkloadId,
    class: Class,
}

/// The pending workloads of a class, by list.
#[derive(Debug, Clone, Default)]
struct Members {
    by_age: BTreeMap<usize, BTreeSet<(Timestamp, WorkloadId)>>,
    inadmissible: bool,
}

/// The order of pending workloads: by usage, then a preemptor that stays the head, then by priority and queueing time.
type SortKey = (Usage, bool, Reverse<i32>, Timestamp, WorkloadId);

/// The pending workloads of one ClusterQueue.
#[derive(Debug, Clone)]
pub(super) struct PendingQueue {
    strategy: QueueingStrategy,
    /// Whether each user has a list of its own; else all workloads are in one.
    by_usage: bool,
    entries: BTreeMap<WorkloadId, Entry>,
    classes: BTreeMap<Class, Members>,
    /// For each list with workloads to be tried, the first workload of each class that is not inadmissible.
    heads: BTreeMap<usize, BTreeSet<HeadKey>>,
    /// Workloads that are requeued with backoff, and are not tried yet.
    backing_off: BTreeSet<WorkloadId>,
    /// The workload that last preempted others, until it is admitted.
    preemptor: Option<WorkloadId>,
    /// Whether the preemptor stays the head: by the queue's strategy when it preempted, which may have changed since.
    is_sticky: bool,
    progress: BTreeMap<WorkloadId, Progress>,
}

impl PendingQueue {
    pub(super) fn new(strategy: QueueingStrategy, by_usage: bool) -> Self {
        Self {
            strategy,
            by_usage,
            entries: BTreeMap::new(),
            classes: BTreeMap::new(),
            heads: BTreeMap::new(),
            backing_off: BTreeSet::new(),
            preemptor: None,
            is_sticky: false,
            progress: BTreeMap::new(),
        }
    }

    /// Takes over the workloads of an earlier version of the queue; all may be tried again.
    pub(super) fn adopt(&mut self, old: Self) {
        if self.by_usage == old.by_usage {
            let strategy = self.strategy;
            *self = Self { strategy, ..old };
            return self.queue_inadmissible();
        }
        (self.preemptor, self.is_sticky) = (old.preemptor, old.is_sticky);
        self.progress = old.progress;
        for (id, entry) in old.entries {
            self.insert(id, entry);
        }
        for id in old.backing_off {
            self.back_off(id);
        }
    }

    /// Forgets where the searches for flavors go on: the flavors have changed.
    pub(super) fn forget_progress(&mut self) {
        self.progress.clear();
    }

    /// Adds a workload. If its class is inadmissible, so is the workload.
    pub(super) fn push(&mut self, id: WorkloadId, entry: Entry) {
        self.remove(id);
        self.insert(id, entry);
    }

    fn insert(&mut self, id: WorkloadId, entry: Entry) {
        self.entries.insert(id, entry);
        self.change(&entry, |by_age| {
            by_age.insert((entry.queued_at, id));
        });
    }

    /// Removes a workload.
    pub(super) fn remove(&mut self, id: WorkloadId) -> Option<Entry> {
        self.back_off(id)?;
        self.backing_off.remove(&id);
        self.entries.remove(&id)
    }

    /// Puts a workload into backoff: it is not tried, and no other workload waits behind it.
    pub(super) fn back_off(&mut self, id: WorkloadId) -> Option<Entry> {
        let entry = self.entry(id)?;
        self.progress.remove(&id);
        if self.preemptor == Some(id) {
            self.preemptor = None;
        }
        self.change(&entry, |by_age| {
            by_age.remove(&(entry.queued_at, id));
        });
        self.backing_off.insert(id);
        Some(entry)
    }

    /// Ends a workload's backoff: it is tried again, at the position that its queueing time gives it.
    pub(super) fn end_back_off(&mut self, id: WorkloadId) {
        if let Some(entry) = self.entry(id).filter(|_| self.backing_off.contains(&id)) {
            self.push(id, entry);
        }
    }

    /// Returns whether a workload is in backoff.
    pub(super) fn backs_off(&self, id: WorkloadId) -> bool {
        self.backing_off.contains(&id)
    }

    /// Changes the members of a class in an entry's list, and updates its head unless the class is inadmissible.
    fn change(&mut self, entry: &Entry, change: impl FnOnce(&mut BTreeSet<(Timestamp, WorkloadId)>)) {
        let (class, list) = (entry.class, self.list_of(entry));
        let members = self.classes.entry(class).or_default();
        let by_age = members.by_age.entry(list).or_default();
        let before = first(class, by_age);
        change(by_age);
        let after = first(class, by_age);
        if by_age.is_empty() {
            members.by_age.remove(&list);
        }
        if members.inadmissible {
            return;
        }
        if members.by_age.is_empty() {
            self.classes.remove(&class);
        }
        self.replace_head(list, before, after);
    }

    /// Replaces the head of a class in a list.
    fn replace_head(&mut self, list: usize, before: Option<HeadKey>, after: Option<HeadKey>) {
        if before == after {
            return;
        }
        let heads = self.heads.entry(list).or_default();
        if let Some(before) = before {
            heads.remove(&before);
        }
        heads.extend(after);
        if heads.is_empty() {
            self.heads.remove(&list);
        }
    }

    fn list_of(&self, entry: &Entry) -> usize {
        if self.by_usage { entry.user } else { 0 }
    }

    /// Returns the head of the queue. A workload that preempted others in a BestEffortFIFO queue stays the head of its list, so
    /// that no other workload takes the quota that they release.
    pub(super) fn head(&self, users: &Users) -> Option<(WorkloadId, Entry)> {
        let sticky = self.sticky().filter(|id| !self.is_inadmissible(*id));
        let sticky = sticky.map(|id| (self.list_of(&self.entries[&id]), id));
        let heads = self.heads.iter().filter_map(|(list, heads)| {
            let sticky = sticky.filter(|(of, _)| of == list);
            let id = sticky.map(|(_, id)| id).or(heads.first().map(|key| key.id))?;
            Some((id, self.entries[&id]))
        });
        heads.min_by_key(|(id, entry)| self.sort_key(*id, entry, users))
    }

    /// Returns the users with a workload to be tried.
    pub(super) fn users(&self) -> impl Iterator<Item = usize> {
        self.heads.keys().copied()
    }

    /// Returns the preemptor that stays the head.
    fn sticky(&self) -> Option<WorkloadId> {
        self.preemptor.filter(|_| self.is_sticky)
    }

    /// Returns whether a workload is inadmissible.
    pub(super) fn is_inadmissible(&self, id: WorkloadId) -> bool {
        let class = self
            .entries
            .get(&id)
            .and_then(|entry| self.classes.get(&entry.class));
        class.is_some_and(|members| members.inadmissible)
    }

    /// Marks a workload that cannot be admitted, and its whole class, as inadmissible, and returns whether anything changed. In
    /// a StrictFIFO queue, and while there are flavors left to try, the workload stays pending.
    pub(super) fn mark_inadmissible(&mut self, id: WorkloadId) -> bool {
        let pending = self.progress.get(&id).is_some_and(Progress::is_pending);
        if self.strategy == QueueingStrategy::StrictFIFO || pending {
            return false;
        }
        let class = self.entries[&id].class;
        self.set_inadmissible(class, true);
        true
    }

    /// Queues all inadmissible workloads to be tried again.
    pub(super) fn queue_inadmissible(&mut self) {
        let inadmissible = self.classes.iter().filter(|(_, members)| members.inadmissible);
        for class in inadmissible.map(|(class, _)| *class).collect::<Vec<_>>() {
            self.set_inadmissible(class, false);
        }
    }

    fn set_inadmissible(&mut self, class: Class, inadmissible: bool) {
        let members = self.classes.entry(class).or_default();
        members.inadmissible = inadmissible;
        let lists = members.by_age.iter();
        let heads: Vec<_> = lists
            .map(|(list, by_age)| (*list, first(class, by_age)))
            .collect();
        if heads.is_empty() && !inadmissible {
            self.classes.remove(&class);
        }
        for (list, first) in heads {
            let (before, after) = if inadmissible {
                (first, None)
            } else {
                (None, first)
            };
            self.replace_head(list, before, after);
        }
    }

    /// Notes that the head preempts others.
    pub(super) fn set_preemptor(&mut self, id: WorkloadId) {
        self.preemptor = Some(id);
        self.is_sticky = self.strategy == QueueingStrategy::BestEffortFIFO;
    }

    /// Returns the workload that last preempted others, and whether it stays the head.
    pub(super) fn preemptor(&self) -> (Option<WorkloadId>, bool) {
        (self.preemptor, self.is_sticky)
    }

    pub(super) fn restore_preemptor(&mut self, id: Option<WorkloadId>, is_sticky: bool) {
        (self.preemptor, self.is_sticky) = (id, is_sticky);
    }

    pub(super) fn progress(&self, id: WorkloadId) -> Option<&Progress> {
        self.progress.get(&id)
    }

    /// Keeps where the search for a workload's flavors goes on.
    pub(super) fn set_progress(&mut self, id: WorkloadId, progress: Progress) {
        if progress.is_pending() {
            self.progress.insert(id, progress);
        } else {
            self.progress.remove(&id);
        }
    }

    /// Returns the workloads with flavors left to try, and where their searches go on.
    pub(super) fn searches(&self) -> impl Iterator<Item = (WorkloadId, Vec<Vec<usize>>)> {
        self.progress
            .iter()
            .map(|(id, progress)| (*id, progress.next.clone()))
    }

    /// Restarts the search for a workload's flavors.
    pub(super) fn forget_progress_of(&mut self, id: WorkloadId) {
        self.progress.remove(&id);
    }

    pub(super) fn entry(&self, id: WorkloadId) -> Option<Entry> {
        self.entries.get(&id).copied()
    }

    /// Returns whether a workload has preempted others and is not admitted yet.
    pub(super) fn is_preemptor(&self, id: WorkloadId) -> bool {
        self.preemptor == Some(id)
    }

    /// Returns the workloads ahead of a workload in the order of the queue, inadmissible ones too.
    pub(super) fn before(&self, id: WorkloadId, users: &Users) -> Vec<WorkloadId> {
        let Some(entry) = self.entries.get(&id) else {
            return Vec::new();
        };
        let own = self.sort_key(id, entry, users);
        let mut before = self.sort_keys(users);
        before.retain(|sort_key @ (.., other)| *sort_key < own && !self.backs_off(*other));
        ids_in_order(before)
    }

    /// Returns the pending workloads in the order of the queue, inadmissible ones too.
    pub(super) fn in_order(&self, users: &Users) -> Vec<WorkloadId> {
        ids_in_order(self.sort_keys(users))
    }

    fn sort_keys(&self, users: &Users) -> Vec<SortKey> {
        let entries = self.entries.iter();
        entries
            .map(|(id, entry)| self.sort_key(*id, entry, users))
            .collect()
    }

    fn sort_key(&self, id: WorkloadId, entry: &Entry, users: &Users) -> SortKey {
        (
            users.usage(entry.user),
            self.sticky() != Some(id),
            Reverse(entry.class.priority),
            entry.queued_at,
            id,
        )
    }

    /// Returns the pending workloads, in no order.
    pub(super) fn ids(&self) -> impl Iterator<Item = WorkloadId> {
        self.entries.keys().copied()
    }

    /// Returns the number of pending workloads.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

fn first(class: Class, by_age: &BTreeSet<(Timestamp, WorkloadId)>) -> Option<HeadKey> {
    let (queued_at, id) = by_age.first().copied()?;
    Some(HeadKey {
        priority: Reverse(class.priority),
        queued_at,
        id,
        class,
    })
}

fn ids_in_order(mut sort_keys: Vec<SortKey>) -> Vec<WorkloadId> {
    sort_keys.sort_unstable();
    sort_keys.into_iter().map(|(.., id)| id).collect()
}

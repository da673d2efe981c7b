//! Those who wait in one ClusterQueue, and who of them is next.
//!
//! Higher priority first, then who waits longer. What waits is kept by class: workloads of the same shape and priority
//! fare alike, so when one of them cannot be admitted in a BestEffortFIFO queue, the whole class is parked, untried,
//! until something changes. Parking and waking cost the same however many a class has.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use jiff::Timestamp;

use super::{assign::Progress, objects::QueueingStrategy, workload::WorkloadId};

/// A workload that waits, or could wait again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) class: Class,
    pub(super) queued_at: Timestamp,
    /// How often it was evicted.
    pub(super) evictions: u32,
}

/// Workloads that fare alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Class {
    pub(super) priority: i32,
    /// The number of its shape in the queue.
    pub(super) shape: usize,
}

/// A place in the line: the least is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    priority: Reverse<i32>,
    since: Timestamp,
    id: WorkloadId,
    class: Class,
}

/// Those of a class that wait.
#[derive(Debug, Clone, Default)]
struct Members {
    by_age: BTreeSet<(Timestamp, WorkloadId)>,
    parked: bool,
}

/// Those who wait in one ClusterQueue.
#[derive(Debug, Clone)]
pub(super) struct Line {
    strategy: QueueingStrategy,
    entries: BTreeMap<WorkloadId, Entry>,
    classes: BTreeMap<Class, Members>,
    /// The first of each class that is not parked.
    firsts: BTreeSet<Place>,
    /// Those who may not be tried yet.
    backing_off: BTreeSet<WorkloadId>,
    /// Who last had others evicted for it, and waits for that.
    preemptor: Option<WorkloadId>,
    progress: BTreeMap<WorkloadId, Progress>,
}

impl Line {
    pub(super) fn new(strategy: QueueingStrategy) -> Self {
        Self {
            strategy,
            entries: BTreeMap::new(),
            classes: BTreeMap::new(),
            firsts: BTreeSet::new(),
            backing_off: BTreeSet::new(),
            preemptor: None,
            progress: BTreeMap::new(),
        }
    }

    /// Goes on by another strategy; everybody may try again.
    pub(super) fn set_strategy(&mut self, strategy: QueueingStrategy) {
        self.strategy = strategy;
        self.wake();
    }

    /// Forgets where searches for flavors go on: there are others now.
    pub(super) fn forget_progress(&mut self) {
        self.progress.clear();
    }

    /// Puts a workload into the line. One of a class that is parked is parked with it.
    pub(super) fn push(&mut self, id: WorkloadId, entry: Entry) {
        self.remove(id);
        self.entries.insert(id, entry);
        self.change(entry.class, |members| {
            members.by_age.insert((entry.queued_at, id));
        });
    }

    /// Takes a workload out of the line.
    pub(super) fn remove(&mut self, id: WorkloadId) -> Option<Entry> {
        self.back_off(id)?;
        self.backing_off.remove(&id);
        self.entries.remove(&id)
    }

    /// Lets a workload step aside: it is not tried, and nobody waits behind it.
    pub(super) fn back_off(&mut self, id: WorkloadId) -> Option<Entry> {
        let entry = self.entry(id)?;
        self.progress.remove(&id);
        if self.preemptor == Some(id) {
            self.preemptor = None;
        }
        self.change(entry.class, |members| {
            members.by_age.remove(&(entry.queued_at, id));
        });
        self.backing_off.insert(id);
        Some(entry)
    }

    /// Lets a workload that stepped aside be tried again, in the place that its age gives it.
    pub(super) fn end_back_off(&mut self, id: WorkloadId) {
        if let Some(entry) = self.entry(id).filter(|_| self.backing_off.contains(&id)) {
            self.push(id, entry);
        }
    }

    /// Returns whether a workload of this line has stepped aside.
    pub(super) fn backs_off(&self, id: WorkloadId) -> bool {
        self.backing_off.contains(&id)
    }

    /// Changes a class, and keeps its first in view unless it is parked.
    fn change(&mut self, class: Class, change: impl FnOnce(&mut Members)) {
        let members = self.classes.entry(class).or_default();
        if let Some(first) = first(class, members) {
            self.firsts.remove(&first);
        }
        change(members);
        if let Some(first) = first(class, members) {
            self.firsts.insert(first);
        }
        if members.by_age.is_empty() && !members.parked {
            self.classes.remove(&class);
        }
    }

    /// Returns who is next. In a BestEffortFIFO queue one who waits for others to be gone stays next, so that their
    /// quota goes to nobody else.
    pub(super) fn head(&self) -> Option<(WorkloadId, Entry)> {
        let sticky = self
            .preemptor
            .filter(|_| self.strategy == QueueingStrategy::BestEffortFIFO);
        let sticky = sticky.filter(|id| !self.is_parked(*id));
        let id = sticky.or_else(|| self.firsts.first().map(|place| place.id))?;
        Some((id, self.entries[&id]))
    }

    /// Returns whether a workload of this line is parked.
    pub(super) fn is_parked(&self, id: WorkloadId) -> bool {
        let class = self
            .entries
            .get(&id)
            .and_then(|entry| self.classes.get(&entry.class));
        class.is_some_and(|members| members.parked)
    }

    /// Parks a workload that cannot be admitted, with all that fare alike, and returns whether anything changed. In a
    /// StrictFIFO queue, and while it has flavors left to try, it stays where it is.
    pub(super) fn park(&mut self, id: WorkloadId) -> bool {
        let pending = self.progress.get(&id).is_some_and(Progress::is_pending);
        if self.strategy == QueueingStrategy::StrictFIFO || pending {
            return false;
        }
        let class = self.entries[&id].class;
        self.change(class, |members| members.parked = true);
        true
    }

    /// Lets everybody try again.
    pub(super) fn wake(&mut self) {
        let parked = self.classes.iter().filter(|(_, members)| members.parked);
        for class in parked.map(|(class, _)| *class).collect::<Vec<_>>() {
            self.change(class, |members| members.parked = false);
        }
    }

    /// Notes that a workload, which is next, has others evicted for it.
    pub(super) fn set_preemptor(&mut self, id: WorkloadId) {
        self.preemptor = Some(id);
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

    /// Returns who has flavors left to try, and where their searches go on.
    pub(super) fn searches(&self) -> impl Iterator<Item = (WorkloadId, Vec<Vec<usize>>)> {
        self.progress
            .iter()
            .map(|(id, progress)| (*id, progress.next.clone()))
    }

    /// Lets the search for a workload's flavors start anew.
    pub(super) fn forget_progress_of(&mut self, id: WorkloadId) {
        self.progress.remove(&id);
    }

    pub(super) fn entry(&self, id: WorkloadId) -> Option<Entry> {
        self.entries.get(&id).copied()
    }

    /// Returns whether a workload had others evicted for it, and waits for that.
    pub(super) fn is_preemptor(&self, id: WorkloadId) -> bool {
        self.preemptor == Some(id)
    }

    /// Returns who waits before a workload, the first one first, whether parked or not.
    pub(super) fn before(&self, id: WorkloadId) -> Vec<WorkloadId> {
        let Some(entry) = self.entries.get(&id) else {
            return Vec::new();
        };
        let own = self.rank(id, entry);
        let here = self.entries.iter().filter(|(id, _)| !self.backs_off(**id));
        let all = here.map(|(id, entry)| self.rank(*id, entry));
        let mut before: Vec<_> = all.filter(|other| *other < own).collect();
        before.sort_unstable();
        before.into_iter().map(|(.., id)| id).collect()
    }

    /// Returns who waits, the first one first, whether parked or not.
    pub(super) fn in_order(&self) -> Vec<WorkloadId> {
        let mut all: Vec<_> = self
            .entries
            .iter()
            .map(|(id, entry)| self.rank(*id, entry))
            .collect();
        all.sort_unstable();
        all.into_iter().map(|(.., id)| id).collect()
    }

    fn rank(&self, id: WorkloadId, entry: &Entry) -> (bool, Reverse<i32>, Timestamp, WorkloadId) {
        (
            self.preemptor != Some(id),
            Reverse(entry.class.priority),
            entry.queued_at,
            id,
        )
    }

    /// Returns who waits, in no order.
    pub(super) fn ids(&self) -> impl Iterator<Item = WorkloadId> {
        self.entries.keys().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

fn first(class: Class, members: &Members) -> Option<Place> {
    let (since, id) = members.by_age.first().copied().filter(|_| !members.parked)?;
    Some(Place {
        priority: Reverse(class.priority),
        since,
        id,
        class,
    })
}

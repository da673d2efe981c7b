//! Those who wait in one ClusterQueue, and who of them is next.
//!
//! Where usage counts, the user who had less lately goes first. Then higher priority first, then who waits longer. What
//! waits is kept by class: workloads of the same shape and priority fare alike, so when one of them cannot be admitted in
//! a BestEffortFIFO queue, the whole class is parked, untried, until something changes. Parking and waking cost the same
//! however many a class has. Where usage counts, each user has a line of its own, so that to find who is next only users
//! are compared, and nothing moves when their usage does.

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

/// A workload that waits, or could wait again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) class: Class,
    /// The number of its user in the queue.
    pub(super) user: usize,
    pub(super) queued_at: Timestamp,
    /// How often it was evicted.
    pub(super) evictions: u32,
    /// For whom it was evicted last.
    pub(super) evicted_by: Option<WorkloadId>,
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

/// Those of a class that wait, by line.
#[derive(Debug, Clone, Default)]
struct Members {
    by_age: BTreeMap<usize, BTreeSet<(Timestamp, WorkloadId)>>,
    parked: bool,
}

/// In which order those who wait are: by usage, then who waits for others to be gone, then by priority and age.
type Rank = (Usage, bool, Reverse<i32>, Timestamp, WorkloadId);

/// Those who wait in one ClusterQueue.
#[derive(Debug, Clone)]
pub(super) struct Line {
    strategy: QueueingStrategy,
    /// Whether each user has a line of its own; else there is one.
    by_usage: bool,
    entries: BTreeMap<WorkloadId, Entry>,
    classes: BTreeMap<Class, Members>,
    /// In each line that is not empty the first of each class that is not parked.
    firsts: BTreeMap<usize, BTreeSet<Place>>,
    /// Those who may not be tried yet.
    backing_off: BTreeSet<WorkloadId>,
    /// Who last had others evicted for it, and waits for that.
    preemptor: Option<WorkloadId>,
    /// Whether it stays next: by the strategy of the queue when it had them evicted, which may be another now.
    is_sticky: bool,
    progress: BTreeMap<WorkloadId, Progress>,
}

impl Line {
    pub(super) fn new(strategy: QueueingStrategy, by_usage: bool) -> Self {
        Self {
            strategy,
            by_usage,
            entries: BTreeMap::new(),
            classes: BTreeMap::new(),
            firsts: BTreeMap::new(),
            backing_off: BTreeSet::new(),
            preemptor: None,
            is_sticky: false,
            progress: BTreeMap::new(),
        }
    }

    /// Takes over those who wait in another; everybody may try again.
    pub(super) fn adopt(&mut self, old: Self) {
        if self.by_usage == old.by_usage {
            let strategy = self.strategy;
            *self = Self { strategy, ..old };
            return self.wake();
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

    /// Forgets where searches for flavors go on: there are others now.
    pub(super) fn forget_progress(&mut self) {
        self.progress.clear();
    }

    /// Puts a workload into the line. One of a class that is parked is parked with it.
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
        self.change(&entry, |by_age| {
            by_age.remove(&(entry.queued_at, id));
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

    /// Changes who of a class is in an entry's line, and keeps the first in view unless the class is parked.
    fn change(&mut self, entry: &Entry, change: impl FnOnce(&mut BTreeSet<(Timestamp, WorkloadId)>)) {
        let (class, line) = (entry.class, self.line_of(entry));
        let members = self.classes.entry(class).or_default();
        let by_age = members.by_age.entry(line).or_default();
        let before = first(class, by_age);
        change(by_age);
        let after = first(class, by_age);
        if by_age.is_empty() {
            members.by_age.remove(&line);
        }
        if members.parked {
            return;
        }
        if members.by_age.is_empty() {
            self.classes.remove(&class);
        }
        self.show(line, before, after);
    }

    /// Shows the first of a class in a line, in the place of another.
    fn show(&mut self, line: usize, before: Option<Place>, after: Option<Place>) {
        if before == after {
            return;
        }
        let firsts = self.firsts.entry(line).or_default();
        if let Some(before) = before {
            firsts.remove(&before);
        }
        firsts.extend(after);
        if firsts.is_empty() {
            self.firsts.remove(&line);
        }
    }

    fn line_of(&self, entry: &Entry) -> usize {
        if self.by_usage { entry.user } else { 0 }
    }

    /// Returns who is next. One for whom others were evicted in a BestEffortFIFO queue stays next of its user's, so that their
    /// quota goes to nobody else.
    pub(super) fn head(&self, users: &Users) -> Option<(WorkloadId, Entry)> {
        let sticky = self.sticky().filter(|id| !self.is_parked(*id));
        let sticky = sticky.map(|id| (self.line_of(&self.entries[&id]), id));
        let firsts = self.firsts.iter().filter_map(|(line, firsts)| {
            let sticky = sticky.filter(|(of, _)| of == line);
            let id = sticky
                .map(|(_, id)| id)
                .or(firsts.first().map(|place| place.id))?;
            Some((id, self.entries[&id]))
        });
        firsts.min_by_key(|(id, entry)| self.rank(*id, entry, users))
    }

    /// Returns the users who have somebody to be tried.
    pub(super) fn users(&self) -> impl Iterator<Item = usize> {
        self.firsts.keys().copied()
    }

    /// Returns who had others evicted for it and goes on to be first.
    fn sticky(&self) -> Option<WorkloadId> {
        self.preemptor.filter(|_| self.is_sticky)
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
        self.set_parked(class, true);
        true
    }

    /// Lets everybody try again.
    pub(super) fn wake(&mut self) {
        let parked = self.classes.iter().filter(|(_, members)| members.parked);
        for class in parked.map(|(class, _)| *class).collect::<Vec<_>>() {
            self.set_parked(class, false);
        }
    }

    fn set_parked(&mut self, class: Class, parked: bool) {
        let members = self.classes.entry(class).or_default();
        members.parked = parked;
        let lines = members.by_age.iter();
        let firsts: Vec<_> = lines
            .map(|(line, by_age)| (*line, first(class, by_age)))
            .collect();
        if firsts.is_empty() && !parked {
            self.classes.remove(&class);
        }
        for (line, first) in firsts {
            let (before, after) = if parked { (first, None) } else { (None, first) };
            self.show(line, before, after);
        }
    }

    /// Notes that a workload, which is next, has others evicted for it.
    pub(super) fn set_preemptor(&mut self, id: WorkloadId) {
        self.preemptor = Some(id);
        self.is_sticky = self.strategy == QueueingStrategy::BestEffortFIFO;
    }

    /// Returns the workload that last had others evicted for it, and whether it stays the head.
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
    pub(super) fn before(&self, id: WorkloadId, users: &Users) -> Vec<WorkloadId> {
        let Some(entry) = self.entries.get(&id) else {
            return Vec::new();
        };
        let own = self.rank(id, entry, users);
        let mut before = self.ranks(users);
        before.retain(|rank @ (.., other)| *rank < own && !self.backs_off(*other));
        ids_in_order(before)
    }

    /// Returns who waits, the first one first, whether parked or not.
    pub(super) fn in_order(&self, users: &Users) -> Vec<WorkloadId> {
        ids_in_order(self.ranks(users))
    }

    fn ranks(&self, users: &Users) -> Vec<Rank> {
        let entries = self.entries.iter();
        entries.map(|(id, entry)| self.rank(*id, entry, users)).collect()
    }

    fn rank(&self, id: WorkloadId, entry: &Entry, users: &Users) -> Rank {
        (
            users.usage(entry.user),
            self.sticky() != Some(id),
            Reverse(entry.class.priority),
            entry.queued_at,
            id,
        )
    }

    /// Returns who waits, in no order.
    pub(super) fn ids(&self) -> impl Iterator<Item = WorkloadId> {
        self.entries.keys().copied()
    }

    /// Returns how many wait.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

fn first(class: Class, by_age: &BTreeSet<(Timestamp, WorkloadId)>) -> Option<Place> {
    let (since, id) = by_age.first().copied()?;
    Some(Place {
        priority: Reverse(class.priority),
        since,
        id,
        class,
    })
}

fn ids_in_order(mut ranks: Vec<Rank>) -> Vec<WorkloadId> {
    ranks.sort_unstable();
    ranks.into_iter().map(|(.., id)| id).collect()
}

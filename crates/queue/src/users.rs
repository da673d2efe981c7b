//! Those who use one ClusterQueue, and what each had lately: Kueue's Admission Fair Sharing.
//!
//! A user is a LocalQueue, or one of those whom a LocalQueue tells apart: each of them has its weight. What it consumed
//! follows what it holds and forgets by half in each half-life: after a time `t` it is
//! `held + (consumed - held) · ½^(t / half-life)`. Kueue works that out from samples, some minutes apart. It is exact while
//! what is held stays the same, so here it is worked out whenever that changes, and nothing between two samples is missed.
//! All decay by one factor, which is worked out once for whoever is compared.

mod saved;

use std::{cmp::Ordering, collections::BTreeMap};

use jiff::{SignedDuration, Timestamp};

use super::{
    Quantity,
    objects::{AdmissionFairSharing, AdmissionMode, Objects},
    workload::Workload,
};

/// After so many half-lives nothing is left.
const HALF_LIVES_AT_MOST: f64 = 64.0;

pub(super) use saved::UsersSnapshot;

/// The users of a ClusterQueue, by number.
#[derive(Debug, Clone)]
pub(super) struct Users {
    numbers: BTreeMap<UserName, usize>,
    users: Vec<User>,
    /// How usage is counted; `None` where it does not decide who goes first.
    terms: Option<AdmissionFairSharing>,
    /// When what the users consumed was last worked out; `None` before anybody said what time it is.
    settled_at: Option<Timestamp>,
    /// What since then is left of it.
    left: f64,
    /// What is held more or less since then: nobody told when.
    changes: Vec<(usize, String, Quantity)>,
}

/// The LocalQueue that a user comes through, and who it is there, if these are told apart.
type UserName = (String, Option<String>);

/// Somebody who uses the queue.
#[derive(Debug, Clone)]
struct User {
    name: UserName,
    weight: f64,
    meters: BTreeMap<String, Meter>,
}

/// How much of a resource a user had, in the queue's units.
#[derive(Debug, Clone, Copy, Default)]
struct Meter {
    consumed: f64,
    held: Quantity,
}

/// What a user had lately, by which users are ordered: the less, the earlier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Usage(pub(super) f64);

impl Users {
    /// Returns the users of a ClusterQueue before there are any.
    pub(super) fn new(cluster_queue: &str, objects: &Objects) -> Self {
        let by_usage = objects
            .cluster_queues
            .get(cluster_queue)
            .is_some_and(|queue| queue.admission_mode == AdmissionMode::UsageBasedAdmissionFairSharing);
        Self {
            numbers: BTreeMap::new(),
            users: Vec::new(),
            terms: objects.admission_fair_sharing.clone().filter(|_| by_usage),
            settled_at: None,
            left: 1.0,
            changes: Vec::new(),
        }
    }

    /// Returns whether usage decides who goes first.
    pub(super) fn by_usage(&self) -> bool {
        self.terms.is_some()
    }

    /// Returns the number of whoever a workload is of.
    pub(super) fn number(&mut self, workload: &Workload, objects: &Objects) -> usize {
        self.number_of((workload.local_queue.clone(), workload.user.clone()), objects)
    }

    fn number_of(&mut self, name: UserName, objects: &Objects) -> usize {
        *self.numbers.entry(name).or_insert_with_key(|name| {
            self.users.push(User {
                name: name.clone(),
                weight: weight(&name.0, objects),
                meters: BTreeMap::new(),
            });
            self.users.len() - 1
        })
    }

    /// Returns the LocalQueue of a user, and who it is there.
    pub(super) fn name(&self, user: usize) -> (&str, Option<&str>) {
        let (local_queue, user) = &self.users[user].name;
        (local_queue, user.as_deref())
    }

    /// Returns the numbers of those who came through a LocalQueue.
    pub(super) fn of(&self, local_queue: &str) -> impl Iterator<Item = usize> {
        let those = self.numbers.range((local_queue.to_owned(), None)..);
        those
            .take_while(move |((of, _), _)| of == local_queue)
            .map(|(_, number)| *number)
    }

    /// Takes over those of the same ClusterQueue under other objects, of whom it is told what they hold.
    pub(super) fn adopt(
        &mut self,
        old: Self,
        objects: &Objects,
        held: impl Iterator<Item = (usize, String, Quantity)>,
    ) {
        let counted = old.by_usage() && self.by_usage();
        self.numbers = old.numbers;
        self.users = old.users;
        for user in &mut self.users {
            user.weight = weight(&user.name.0, objects);
        }
        if counted {
            self.settled_at = old.settled_at;
            self.left = old.left;
            self.changes = old.changes;
            return;
        }
        self.users.iter_mut().for_each(|user| user.meters.clear());
        if self.by_usage() {
            self.changes = held.collect();
        }
    }

    /// Returns whether nothing that counts here is different under other objects, in which the ClusterQueue is the same.
    pub(super) fn is_same_under(&self, objects: &Objects) -> bool {
        let mut users = self.users.iter();
        let is_same = |user: &User| weight(&user.name.0, objects).total_cmp(&user.weight).is_eq();
        self.terms.is_none() || self.terms == objects.admission_fair_sharing && users.all(is_same)
    }

    /// Notes that a user holds so much more, or less, since some time after the last cycle and before the next.
    pub(super) fn note(&mut self, user: usize, resource: &str, change: Quantity) {
        if self.by_usage() {
            self.changes.push((user, resource.to_owned(), change));
        }
    }

    /// Takes it that it is so late.
    pub(super) fn advance(&mut self, now: Timestamp) {
        if !self.by_usage() {
            return;
        }
        if !self.changes.is_empty() {
            return self.settle(now);
        }
        self.settled_at.get_or_insert(now);
        self.left = self.left_at(now);
    }

    /// Works out what everybody consumed until now, and counts from now on what is held now.
    fn settle(&mut self, now: Timestamp) {
        let left = self.left_at(now);
        for meter in self.users.iter_mut().flat_map(|user| user.meters.values_mut()) {
            meter.consumed = meter.after(left);
        }
        for (user, resource, change) in self.changes.drain(..) {
            let meter = self.users[user].meters.entry(resource).or_default();
            meter.held = meter.held.plus(change);
        }
        self.settled_at = Some(now);
        self.left = 1.0;
    }

    /// Charges a user who is admitted, as if it had held what it asks for, which may be more than it gets, for a sampling
    /// interval already.
    pub(super) fn admit<'a>(
        &mut self,
        now: Timestamp,
        user: usize,
        asked: impl Iterator<Item = (&'a str, Quantity)>,
        gets: impl Iterator<Item = (&'a str, Quantity)>,
    ) {
        let Some(terms) = &self.terms else { return };
        let penalty = 1.0 - halved(terms.usage_sampling_interval, terms.usage_half_life_time);
        self.settle(now);
        let meters = &mut self.users[user].meters;
        for (resource, amount) in asked {
            meters.entry(resource.to_owned()).or_default().consumed += penalty * count(amount);
        }
        for (resource, amount) in gets {
            let held = &mut meters.entry(resource.to_owned()).or_default().held;
            *held = held.plus(amount);
        }
    }

    /// Returns how much is left, by the last cycle, of what was consumed when that was last worked out.
    pub(super) fn left(&self) -> f64 {
        self.left
    }

    /// Returns how much is left of it at a time.
    pub(super) fn left_at(&self, at: Timestamp) -> f64 {
        let since = self.settled_at.unwrap_or(at);
        let terms = self.terms.as_ref();
        terms.map_or(1.0, |terms| {
            halved(at.duration_since(since), terms.usage_half_life_time)
        })
    }

    /// Returns what a user had by the last cycle; nothing where usage does not count.
    pub(super) fn usage(&self, user: usize) -> Usage {
        self.usage_when(user, self.left)
    }

    /// Kueue's `CalculateUsage`, when so much is left of what was consumed.
    pub(super) fn usage_when(&self, user: usize, left: f64) -> Usage {
        let Some(terms) = &self.terms else {
            return Usage(0.0);
        };
        let user = &self.users[user];
        if user.weight <= 0.0 {
            return Usage(f64::INFINITY);
        }
        let sum = user.meters.iter().fold(0.0, |sum, (resource, meter)| {
            let weight = terms.resource_weights.get(resource).copied().unwrap_or(1.0);
            sum + weight * in_units(resource, meter.after(left))
        });
        Usage(sum / user.weight)
    }

    /// Returns what a user consumed of each resource, in Kubernetes' units, when so much is left of it.
    pub(super) fn consumed_when(&self, user: usize, left: f64) -> BTreeMap<String, f64> {
        let meters = self.users[user].meters.iter();
        meters
            .map(|(resource, meter)| (resource.clone(), in_units(resource, meter.after(left))))
            .collect()
    }

    /// Returns when another user first has less than one who has least now, if all hold what they hold.
    pub(super) fn overtaken_at(
        &self,
        first: usize,
        others: impl Iterator<Item = usize>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let since = self.settled_at?;
        let half_life = self.terms.as_ref()?.usage_half_life_time;
        let others: Vec<usize> = others.filter(|other| *other != first).collect();
        let overtaken = |at: Timestamp| {
            let left = self.left_at(at);
            let own = self.usage_when(first, left);
            others.iter().any(|other| self.usage_when(*other, left) < own)
        };
        // The difference of two is linear in what is left, so one who is overtaken stays so.
        let end = since.checked_add(half_life.checked_mul(64)?).ok()?;
        if now >= end || !overtaken(end) {
            return None;
        }
        let (mut before, mut after) = (now, end);
        while after.duration_since(before) > SignedDuration::from_nanos(1) {
            let middle = before + after.duration_since(before) / 2;
            if overtaken(middle) {
                after = middle;
            } else {
                before = middle;
            }
        }
        Some(after)
    }
}

impl Meter {
    /// Returns what is consumed when so much is left of what was.
    fn after(&self, left: f64) -> f64 {
        let held = count(self.held);
        held + (self.consumed - held) * left
    }
}

impl Eq for Usage {}

impl Ord for Usage {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Usage {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Returns the weight of a LocalQueue; of one that is not there it is one.
fn weight(local_queue: &str, objects: &Objects) -> f64 {
    let local = objects.local_queues.get(local_queue);
    local.map_or(1.0, |local| local.weight.0)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "beyond 2^53 nobody tells amounts apart"
)]
fn count(amount: Quantity) -> f64 {
    amount.0 as f64
}

/// Returns an amount in Kubernetes' units: the queue counts cpu in thousandths.
fn in_units(resource: &str, amount: f64) -> f64 {
    if resource == "cpu" {
        amount / 1000.0
    } else {
        amount
    }
}

/// Returns a half to the power of `span / half_life`; a half-life of zero forgets nothing and learns nothing, as in Kueue.
///
/// IEEE 754 fixes the result of each operation to the bit, which it does not for `exp2`: what is decided by this is
/// decided in the same way on every machine.
fn halved(span: SignedDuration, half_life: SignedDuration) -> f64 {
    if half_life.is_zero() {
        return 1.0;
    }
    let halves = span.as_secs_f64() / half_life.as_secs_f64();
    if halves >= HALF_LIVES_AT_MOST {
        return 0.0;
    }
    let (mut left, mut root, mut rest) = (1.0, 0.5_f64, halves.max(0.0));
    while rest >= 1.0 {
        left *= 0.5;
        rest -= 1.0;
    }
    // Each root is of half as much time as the one before; a double has no more bits.
    for _ in 0..f64::MANTISSA_DIGITS {
        root = root.sqrt();
        rest *= 2.0;
        if rest >= 1.0 {
            left *= root;
            rest -= 1.0;
        }
    }
    left
}

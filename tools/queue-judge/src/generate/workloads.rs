//! Random workloads, in random queues.

use std::collections::BTreeMap;

use super::{
    Dice,
    queues::{self, Catalogue},
};
use crate::format::{Entry, FlavorChoice, PodSetEntry, Queue, Quota, Setup};

/// Makes workloads with names that none had before.
pub(super) struct Maker {
    queues: BTreeMap<String, Queue>,
    /// What may be asked for together.
    resources: Vec<Vec<&'static str>>,
    is_labelled: bool,
    has_sets: bool,
    /// What may still run, by flavor and resource, where no more runs than there is.
    room: Option<BTreeMap<(String, String), f64>>,
    made: usize,
}

impl Maker {
    pub(super) fn new(dice: &mut Dice, catalogue: &Catalogue, setup: &Setup) -> Self {
        Self {
            queues: setup.queues.clone(),
            resources: catalogue
                .groups
                .iter()
                .map(|offer| offer.resources.clone())
                .collect(),
            is_labelled: catalogue.is_labelled,
            has_sets: dice.chance(20),
            room: dice.chance(70).then(|| room(setup)),
            made: 0,
        }
    }

    /// Lets workloads be made for a queue that was not there before.
    pub(super) fn add_queue(&mut self, name: &str, queue: &Queue) {
        self.queues.insert(name.to_owned(), queue.clone());
    }

    /// Returns one that waits.
    pub(super) fn pending(&mut self, dice: &mut Dice) -> Entry {
        self.made += 1;
        let queues: Vec<_> = self.queues.keys().cloned().collect();
        let mut entry = Entry {
            n: format!("w{}", self.made),
            q: Some(dice.one_of(&queues).clone()),
            p: *dice.one_of(&[-1, 0, 0, 0, 1, 1, 2, 10]),
            ..Entry::default()
        };
        if self.is_labelled {
            entry.selector = selector(dice);
            if dice.chance(35) {
                entry.tolerations = vec![queues::toleration(dice)];
            }
        }
        if self.has_sets && dice.chance(60) {
            entry.sets = self.sets(dice);
        } else {
            entry.amounts = self.amounts(dice, &[1, 1, 2, 3, 3, 4, 5, 6, 8]);
        }
        entry
    }

    /// Returns one that runs, unless there is no room for it.
    pub(super) fn running(&mut self, dice: &mut Dice) -> Option<Entry> {
        let mut entry = self.pending(dice);
        entry.t = *dice.one_of(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        entry.evicted = dice.chance(7);
        let queue = &self.queues[entry.q.as_deref().expect("it is in one")];
        let mut flavors = BTreeMap::new();
        for group in &queue.groups {
            let (flavor, quotas) = dice.one_of(&group.0);
            flavors.extend(quotas.keys().map(|resource| (resource.clone(), flavor.clone())));
        }
        let asked = asked(&entry);
        if asked.keys().any(|resource| !flavors.contains_key(resource)) {
            return None;
        }
        if let Some(room) = &mut self.room {
            let place = |resource: &String| (flavors[resource].clone(), resource.clone());
            if asked
                .iter()
                .any(|(resource, amount)| room[&place(resource)] < *amount)
            {
                return None;
            }
            for (resource, amount) in &asked {
                *room.get_mut(&place(resource)).expect("seen above") -= amount;
            }
        }
        flavors.retain(|resource, _| asked.contains_key(resource));
        entry.f = Some(FlavorChoice::Each(flavors));
        Some(entry)
    }

    /// Returns what one pod asks for: of each group at times, and of at least one.
    fn amounts(&self, dice: &mut Dice, sizes: &[u32]) -> BTreeMap<String, f64> {
        let mut amounts = BTreeMap::new();
        for resources in dice.some_of(&self.resources) {
            for resource in dice.some_of(&resources) {
                let whole = if dice.chance(2) { 0 } else { *dice.one_of(sizes) };
                amounts.insert(resource.to_owned(), queues::amount(dice, resource, whole));
            }
        }
        amounts
    }

    /// Returns pod sets, of which at most one may do with fewer pods.
    fn sets(&self, dice: &mut Dice) -> Vec<PodSetEntry> {
        let mut sets: Vec<_> = (0..dice.between(1, 3))
            .map(|_| PodSetEntry {
                count: dice.0.u32(1..=5),
                amounts: self.amounts(dice, &[1, 1, 1, 2, 3]),
                ..PodSetEntry::default()
            })
            .collect();
        if dice.chance(60) {
            let at = dice.between(0, sets.len() - 1);
            sets[at].min = Some(dice.0.u32(1..=sets[at].count));
        }
        if self.is_labelled && dice.chance(30) {
            sets[0].selector = Some(selector(dice));
        }
        sets
    }
}

fn selector(dice: &mut Dice) -> BTreeMap<String, String> {
    let mut selector = BTreeMap::new();
    if let Some(zone) = dice.word(40, &["a", "b"]) {
        selector.insert("zone".into(), zone);
    }
    if let Some(tier) = dice.word(20, &["fast", "slow"]) {
        selector.insert("tier".into(), tier);
    }
    selector
}

/// Returns what a workload asks for in all.
fn asked(entry: &Entry) -> BTreeMap<String, f64> {
    let mut asked = entry.amounts.clone();
    for set in &entry.sets {
        for (resource, amount) in &set.amounts {
            *asked.entry(resource.clone()).or_default() += f64::from(set.count) * amount;
        }
    }
    asked
}

/// Returns what there is of each flavor's resource, in all queues and cohorts.
fn room(setup: &Setup) -> BTreeMap<(String, String), f64> {
    let of_cohorts = setup.cohorts.values().flat_map(|cohort| &cohort.groups);
    let groups = of_cohorts.chain(setup.queues.values().flat_map(|queue| &queue.groups));
    let mut room = BTreeMap::new();
    for (flavor, quotas) in groups.flat_map(|group| &group.0) {
        for (resource, quota) in quotas {
            *room.entry((flavor.clone(), resource.clone())).or_default() += quota.nominal();
        }
    }
    room
}

impl Quota {
    /// Returns what its owner has without borrowing.
    pub(super) fn nominal(&self) -> f64 {
        match self {
            Self::Nominal(amount) => *amount,
            Self::Limits(limits) => limits.first().copied().flatten().unwrap_or(0.0),
        }
    }

    /// Changes how much of it there is, and returns whether it did: to the same amount, or to less than is lent, it does not.
    pub(super) fn set_nominal(&mut self, amount: f64) -> bool {
        let lending = match self {
            Self::Nominal(_) => None,
            Self::Limits(limits) => limits.get(2).copied().flatten(),
        };
        if amount == self.nominal() || lending.is_some_and(|lending| lending > amount) {
            return false;
        }
        match self {
            Self::Nominal(nominal) => *nominal = amount,
            Self::Limits(limits) => limits[0] = Some(amount),
        }
        true
    }

    /// Changes how much of it others may have, and returns whether that is another amount than before.
    pub(super) fn set_lending(&mut self, limit: Option<f64>) -> bool {
        let (nominal, borrowing, before) = match self {
            Self::Nominal(nominal) => (Some(*nominal), None, None),
            Self::Limits(limits) => {
                let limit = |at: usize| limits.get(at).copied().flatten();
                (limit(0), limit(1), limit(2))
            }
        };
        *self = Self::Limits(vec![nominal, borrowing, limit]);
        before != limit
    }
}

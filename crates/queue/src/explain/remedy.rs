//! What would end a wait: it is not reasoned about but tried, on a copy of the queues, so that it is true.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    super::{
        Quantity, Queues, WorkloadId, WorkloadStatus,
        objects::ClusterQueue,
        terms::{Shape, Terms},
    },
    least::least_set,
};

/// So many of those who hold quota are tried one by one.
const TRIES: usize = 64;

/// So many sets of workloads are tried for the least that helps: `why` is asked by people, who wait for its answer.
const SETS: usize = 256;

/// So many ways to choose flavors are looked at for one that needs little more quota.
const WAYS: usize = 16;

/// A change that gets a workload admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Remedy {
    /// Nothing but time: it is admitted in the next cycle after evicted workloads have ended.
    Time,
    /// These end. None can be left out.
    Ends {
        /// Which of the admitted workloads, the longest running first.
        workloads: Vec<WorkloadId>,
        /// Which of the pending workloads: they are admitted first, and end too.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pending: Vec<WorkloadId>,
    },
    /// Enough of those that hold quota, and of those that go first, end; it takes too long to find out which.
    InTurn,
    /// Its queue has so much more quota of its own, of all of these.
    MoreQuota {
        /// Of what; none can be left out, and none be less.
        #[serde(alias = "raises")]
        increases: Vec<QuotaIncrease>,
    },
    /// These, which are before it and can never fit, are cancelled, and then one of the others comes to pass, if there are
    /// any.
    Cancelled {
        /// Which; none can be left out.
        workloads: Vec<WorkloadId>,
        /// What has to come after it; any one of these. Where nothing does, that they are cancelled is enough.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        then: Vec<Remedy>,
    },
}

/// More quota of one resource in one flavor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QuotaIncrease {
    /// Of which flavor.
    pub flavor: String,
    /// Of which resource.
    pub resource: String,
    /// How much more, in Kueue's units.
    pub more: Quantity,
}

impl Queues {
    /// Returns changes that would get a waiting workload admitted, each by itself, the smallest of its kind; none when
    /// nothing that was tried does. Each was tried on a copy. Of one that backs off only time is known.
    pub fn unblocked_by(&self, id: WorkloadId) -> Vec<Remedy> {
        if self.backs_off_until(id).is_some() {
            return Vec::new();
        }
        if self.admits_after(id, |_| {}) {
            return vec![Remedy::Time];
        }
        let others = self.ends(id).or_else(|| self.cancelled(id));
        others.into_iter().chain(self.more_quota(id)).collect()
    }

    /// Returns whether a workload is admitted after a change, once evicted workloads have ended.
    fn admits_after(&self, id: WorkloadId, change: impl FnOnce(&mut Self)) -> bool {
        let mut copy = self.clone();
        change(&mut copy);
        copy.drain_evicted();
        copy.settle();
        copy.standing(id) == Some(WorkloadStatus::Admitted)
    }

    /// Returns whether a workload is admitted when these end, each as soon as it has quota.
    fn admits_when_end(&self, id: WorkloadId, those: &[WorkloadId]) -> bool {
        let mut copy = self.clone();
        copy.settle_with_ends(those.iter().copied().collect());
        copy.standing(id) == Some(WorkloadStatus::Admitted)
    }

    /// Returns a least set of workloads whose end helps: any one that holds quota if that will do, else those who run
    /// longest, else also those who wait and are admitted first.
    pub(in super::super) fn ends(&self, id: WorkloadId) -> Option<Remedy> {
        let holders = self.holders_by_age(id)?;
        let admits = |those: &[WorkloadId]| self.admits_when_end(id, those);
        if let Some(one) = holders.iter().take(TRIES).find(|other| admits(&[**other])) {
            return Some(ends(vec![*one], Vec::new()));
        }
        if admits(&holders) {
            let first = &holders[..least(holders.len(), |count| admits(&holders[..count]))];
            let workloads = least_set(first, SETS, admits);
            return Some(workloads.map_or(Remedy::InTurn, |workloads| ends(workloads, Vec::new())));
        }
        self.ends_in_turn(id, &holders)
    }

    /// Returns a least set of workloads whose end helps, where it takes the end of some that wait, too.
    fn ends_in_turn(&self, id: WorkloadId, holders: &[WorkloadId]) -> Option<Remedy> {
        let admits = |those: &[WorkloadId]| self.admits_when_end(id, those);
        let all = [holders, &self.pending_beside(id)?].concat();
        if !admits(&all) {
            return None;
        }
        let first = &all[..least(all.len(), |count| admits(&all[..count]))];
        let Some(those) = least_set(first, SETS, admits) else {
            return Some(Remedy::InTurn);
        };
        let (workloads, pending) = those.into_iter().partition(|other| holders.contains(other));
        Some(ends(workloads, pending))
    }

    /// Returns who of those before it has to be cancelled because nobody's end makes them fit, and what it takes then.
    fn cancelled(&self, id: WorkloadId) -> Option<Remedy> {
        let mut never = self.ahead_of(id);
        never.retain(|other| !self.fits_ever(*other));
        let helps = |those: &[WorkloadId]| {
            let copy = self.without(those);
            let others = copy.holders_by_age(id).zip(copy.pending_beside(id));
            others.is_some_and(|(holders, pending)| copy.admits_when_end(id, &[holders, pending].concat()))
        };
        let workloads = least_set(&never, SETS, helps).filter(|those| !those.is_empty())?;
        let copy = self.without(&workloads);
        let then = match copy.admits_after(id, |_| {}) {
            true => Vec::new(),
            false => vec![copy.ends(id)?],
        };
        Some(Remedy::Cancelled { workloads, then })
    }

    /// Returns a copy in which these are gone.
    pub(in super::super) fn without(&self, those: &[WorkloadId]) -> Self {
        let mut copy = self.clone();
        for other in those {
            copy.remove(*other);
        }
        copy
    }

    /// Returns who holds quota in a workload's tree, the longest first.
    fn holders_by_age(&self, id: WorkloadId) -> Option<Vec<WorkloadId>> {
        let queues = &self.trees[self.workloads.get(&id)?.tree].queues;
        let holders = queues.iter().flat_map(|queue| &queue.holders);
        let mut by_age: Vec<_> = holders.map(|(id, holder)| (holder.reserved_at, *id)).collect();
        by_age.sort_unstable();
        Some(by_age.into_iter().map(|(_, id)| id).collect())
    }

    /// Returns who waits in a workload's tree beside it: those before it in its own queue, then the others.
    fn pending_beside(&self, id: WorkloadId) -> Option<Vec<WorkloadId>> {
        let at = *self.workloads.get(&id)?;
        let ahead = self.ahead_of(id);
        let queues = self.trees[at.tree].queues.iter();
        let pending = queues.flat_map(|queue| queue.pending.in_order(&queue.users));
        let others = pending
            .filter(|other| *other != id && !ahead.contains(other) && self.backs_off_until(*other).is_none());
        Some(ahead.iter().copied().chain(others).collect())
    }

    /// Returns the least that its queue has to have more: of the fewest resources, and of them the least in proportion to
    /// what it asks for.
    fn more_quota(&self, id: WorkloadId) -> Option<Remedy> {
        let queue = self.queue(*self.workloads.get(&id)?);
        let shape = &queue.shapes[queue.pending.entry(id)?.class.shape];
        // What it asks for is always enough for itself, but there may be others before it.
        let times = u32::try_from(1 + queue.pending.before(id, &queue.users).len()).ok()?;
        let found = ways(&queue.terms, shape).into_iter().filter_map(|asked| {
            let enough = |raise: &QuotaIncrease| raise.more.times(times);
            // Others of its cohort take what it does not use yet, and those before it may ask for more than it does.
            let for_all = |raise: &QuotaIncrease| raise.more.plus(self.asked_by_all(id, &raise.resource));
            let increases = self
                .least_raises(id, &queue.name, &asked, enough)
                .or_else(|| self.least_raises(id, &queue.name, &asked, for_all))?;
            let share = |raise: &QuotaIncrease, asked: &QuotaIncrease| {
                raise.more.0.saturating_mul(1000) / asked.more.0
            };
            let shares = increases
                .iter()
                .zip(&asked)
                .map(|(raise, asked)| share(raise, asked));
            let n_raised = increases
                .iter()
                .filter(|raise| raise.more != Quantity::ZERO)
                .count();
            Some(((n_raised, shares.max()), increases))
        });
        let (_, mut increases) = found.min_by_key(|(size, _)| *size)?;
        increases.retain(|raise| raise.more != Quantity::ZERO);
        (!increases.is_empty()).then_some(Remedy::MoreQuota { increases })
    }

    /// Returns how much of a resource all ask for who wait in a workload's tree.
    fn asked_by_all(&self, id: WorkloadId, resource: &str) -> Quantity {
        let queues = &self.trees[self.workloads[&id].tree].queues;
        let asked = queues.iter().flat_map(|queue| {
            let waiting = queue.pending.in_order(&queue.users).into_iter();
            let entries = waiting.filter_map(|id| queue.pending.entry(id));
            entries.flat_map(|entry| queue.terms.asked(&queue.shapes[entry.class.shape]))
        });
        let of_resource = asked.filter(|(asked, _)| *asked == resource);
        of_resource.fold(Quantity::ZERO, |sum, (_, amount)| sum.plus(amount))
    }

    /// Returns how much more of each there has to be: none can be less while the others are as they are. `None` is that
    /// even what should be enough is not.
    fn least_raises(
        &self,
        id: WorkloadId,
        queue: &str,
        asked: &[QuotaIncrease],
        enough: impl Fn(&QuotaIncrease) -> Quantity,
    ) -> Option<Vec<QuotaIncrease>> {
        let admits = |increases: &[QuotaIncrease]| self.admits_after(id, |copy| copy.raise(queue, increases));
        let mut increases = asked.to_vec();
        for raise in &mut increases {
            raise.more = enough(raise);
        }
        if !admits(&increases) {
            return None;
        }
        for number in 0..increases.len() {
            let with = |more: usize| {
                let mut increases = increases.clone();
                increases[number].more = Quantity(i64::try_from(more).expect("it is less than what was one"));
                increases
            };
            let most = usize::try_from(increases[number].more.0).ok()?;
            let more = if admits(&with(0)) {
                0
            } else {
                least(most, |more| admits(&with(more)))
            };
            increases = with(more);
        }
        Some(increases)
    }

    /// Gives a queue more quota of its own.
    pub(in super::super) fn raise(&mut self, queue: &str, increases: &[QuotaIncrease]) {
        let mut objects = self.objects.clone();
        if let Some(queue) = objects.cluster_queues.get_mut(queue) {
            for raise in increases {
                raise.apply(queue);
            }
        }
        self.set_objects(objects);
    }
}

fn ends(workloads: Vec<WorkloadId>, pending: Vec<WorkloadId>) -> Remedy {
    Remedy::Ends { workloads, pending }
}

impl QuotaIncrease {
    fn apply(&self, queue: &mut ClusterQueue) {
        let flavors = queue
            .resource_groups
            .iter_mut()
            .flat_map(|group| &mut group.flavors);
        for quotas in flavors.filter(|quotas| quotas.name == self.flavor) {
            if let Some(quota) = quotas.resources.get_mut(&self.resource) {
                quota.nominal = quota.nominal.plus(self.more);
            }
        }
    }
}

/// What pod sets that may have the same flavors of a group ask for, each resource by its place in the group.
type Together = BTreeMap<usize, Quantity>;

/// Returns what a workload asks for, in each way to choose flavors for it, those first that are tried first.
fn ways(terms: &Terms, shape: &Shape) -> Vec<Vec<QuotaIncrease>> {
    if shape.sets.iter().any(|set| !set.uncovered.is_empty()) {
        return Vec::new();
    }
    let mut together: BTreeMap<(usize, Vec<bool>), Together> = BTreeMap::new();
    for set in &shape.sets {
        for request in &set.requests {
            let may_have = request.mismatches.iter().map(Option::is_none).collect();
            let sums = together.entry((request.group, may_have)).or_default();
            for (resource, per_pod) in &request.per_pod {
                let sum = sums.entry(*resource).or_default();
                *sum = sum.plus(per_pod.times(set.count));
            }
        }
    }
    let mut ways = vec![Vec::new()];
    for ((group, may_have), sums) in &together {
        let group = &terms.groups[*group];
        let flavors = group.flavors.iter().zip(may_have).filter(|(_, may)| **may);
        let chosen: Vec<_> = flavors
            .map(|(flavor, _)| increases(&flavor.name, &group.resources, sums))
            .collect();
        let further = ways.iter().flat_map(|way| {
            chosen
                .iter()
                .map(move |more| [way.clone(), more.clone()].concat())
        });
        ways = further.take(WAYS).collect();
    }
    ways
}

fn increases(flavor: &str, resources: &[String], asked: &Together) -> Vec<QuotaIncrease> {
    let some = asked.iter().filter(|(_, amount)| **amount != Quantity::ZERO);
    let increases = some.map(|(resource, amount)| QuotaIncrease {
        flavor: flavor.to_owned(),
        resource: resources[*resource].clone(),
        more: *amount,
    });
    increases.collect()
}

/// Returns the least number from 1 for which a condition holds that holds for `most`, taking for granted that it holds
/// for all between.
fn least(most: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut fails, mut holds_at) = (0, most);
    while holds_at - fails > 1 {
        let middle = fails + (holds_at - fails) / 2;
        if holds(middle) {
            holds_at = middle;
        } else {
            fails = middle;
        }
    }
    holds_at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_least_number_is_found_wherever_it_is(
            (most, first) in (1..40_usize).prop_flat_map(|most| (Just(most), 1..=most)),
        ) {
            prop_assert_eq!(least(most, |number| number >= first), first);
        }
    }
}

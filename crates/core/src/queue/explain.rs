//! Why a workload waits, and what would end that: nothing here decides, it tells what the rules would.
//!
//! What would end a wait is not reasoned about but tried, on a copy of the queues, so that it is true.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::{
    At, Inactive, Mismatch, Quantity, Queues, Standing, WorkloadId,
    assign::{self, Assignment, Miss, MissReason, Mode},
    quotas::FlavorResource,
    terms::Terms,
    tree::{Ask, Scene, Tree},
};

/// So many of those who hold quota are tried one by one.
const TRIES: usize = 64;

/// Why a workload waits: Kueue's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WaitReason {
    /// It would fit; others go first, or it has not been looked at yet.
    PendingEvaluation,
    /// Those who make room for it have not left yet.
    WaitingForPreemptedWorkloads,
    /// Others have what it asks for.
    WaitingForQuota,
    /// It asks for more than its queue could ever have.
    ExceedsMaxQuota,
    /// No flavor of its queue is for it.
    NoMatchingFlavor,
    /// Its queue is stopped.
    Suspended,
    /// Its queue cannot admit anybody as it is configured.
    Misconfigured,
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PendingEvaluation => "PendingEvaluation",
            Self::WaitingForPreemptedWorkloads => "WaitingForPreemptedWorkloads",
            Self::WaitingForQuota => "WaitingForQuota",
            Self::ExceedsMaxQuota => "ExceedsMaxQuota",
            Self::NoMatchingFlavor => "NoMatchingFlavor",
            Self::Suspended => "Suspended",
            Self::Misconfigured => "Misconfigured",
        })
    }
}

/// Why a workload waits, in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// In a word.
    pub reason: WaitReason,
    /// What is missing, for each flavor that was looked at.
    pub obstacles: Vec<Obstacle>,
    /// Whether it could be admitted were nobody else there.
    pub can_ever_fit: bool,
}

/// What stands between a workload and a flavor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Obstacle {
    /// The pod set, by its place in the workload.
    pub pod_set: usize,
    /// The flavor; `None` where no flavor covers what is asked for.
    pub flavor: Option<String>,
    /// What is wrong.
    pub why: ObstacleReason,
}

/// What is wrong with a flavor for a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ObstacleReason {
    /// The queue does not have the resource.
    Uncovered {
        /// Which.
        resource: String,
    },
    /// The flavor's nodes are not for it.
    Mismatch {
        /// Why not.
        mismatch: Mismatch,
    },
    /// There is too little of a resource.
    Short {
        /// Of which.
        resource: String,
        /// How much is asked for.
        asked: Quantity,
        /// How much could be had now.
        available: Quantity,
        /// How much could be had were nobody else there.
        most: Quantity,
        /// What keeps it from having more.
        limit: Limit,
    },
}

/// What keeps a queue from having more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Limit {
    /// Its own quota: it is in no cohort.
    Nominal,
    /// How much it, or a cohort that it is in, may borrow.
    Borrowing {
        /// Whose limit.
        of: String,
    },
    /// What others keep for themselves, though they do not use it.
    Lending,
    /// All that its cohort has.
    Cohort,
}

/// A change that gets a workload admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Unblock {
    /// Nothing but time: it is admitted as soon as those who were told to go have left, and it is looked at.
    Time,
    /// These end.
    Ends {
        /// Who.
        workloads: Vec<WorkloadId>,
    },
    /// Its queue has so much more quota of its own.
    MoreQuota {
        /// Of which flavor.
        flavor: String,
        /// Of which resource.
        resource: String,
        /// How much more.
        more: Quantity,
    },
}

impl Queues {
    /// Returns why a workload waits, or `None` when it does not.
    pub fn wait(&self, id: WorkloadId) -> Option<Wait> {
        let at = *self.workloads.get(&id)?;
        let tree = &self.trees[at.tree];
        let queue = &tree.queues[at.queue];
        let entry = queue.line.entry(id)?;
        let shape = &queue.shapes[entry.class.shape];
        let ask = Ask {
            queue: at.queue,
            evictions: entry.evictions,
            priority: entry.class.priority,
            queued_at: entry.queued_at,
            shape,
        };
        let mut quotas = tree.quotas.clone();
        let mut scene = Scene {
            quotas: &mut quotas,
            queues: &tree.queues,
            rules: self.rules(self.now),
        };
        let (assignment, victims) = assign::assign_with_victims(&mut scene, &ask, None);
        let reason = match &queue.inactive {
            Some(Inactive::Stopped(_)) => WaitReason::Suspended,
            Some(Inactive::FlavorNotFound(_) | Inactive::CohortCycle | Inactive::Removed) => {
                WaitReason::Misconfigured
            }
            None if queue.line.is_preemptor(id) && self.anybody_leaves(at) => {
                WaitReason::WaitingForPreemptedWorkloads
            }
            None if assignment.mode == Mode::Fit || !victims.is_empty() => WaitReason::PendingEvaluation,
            None => reason(&assignment),
        };
        let obstacles = assignment.misses.iter().map(|miss| self.obstacle(at, miss));
        Some(Wait {
            reason,
            obstacles: obstacles.collect(),
            can_ever_fit: self.fits_empty(at, &ask),
        })
    }

    fn anybody_leaves(&self, at: At) -> bool {
        let holders = self.trees[at.tree]
            .queues
            .iter()
            .flat_map(|queue| queue.holders.values());
        holders.into_iter().any(|holder| holder.evicted)
    }

    fn obstacle(&self, at: At, miss: &Miss) -> Obstacle {
        let tree = &self.trees[at.tree];
        let terms = &tree.queues[at.queue].terms;
        let short = |of: FlavorResource, asked, available, most| ObstacleReason::Short {
            resource: tree.places[of.0].1.clone(),
            asked,
            available,
            most,
            limit: tree.limit(at.queue, of, asked),
        };
        let node = tree.queues[at.queue].node;
        Obstacle {
            pod_set: miss.set,
            flavor: miss.flavor.map(|place| flavor_name(terms, place)),
            why: match &miss.why {
                MissReason::Uncovered(resource) => ObstacleReason::Uncovered {
                    resource: resource.clone(),
                },
                MissReason::Mismatch(mismatch) => ObstacleReason::Mismatch {
                    mismatch: mismatch.clone(),
                },
                MissReason::ExceedsMax { of, asked, most } => {
                    short(*of, *asked, tree.quotas.available(node, *of), *most)
                }
                MissReason::Short { of, asked, available } => {
                    short(*of, *asked, *available, tree.quotas.potential(node, *of))
                }
            },
        }
    }

    /// Returns changes that would get a waiting workload admitted, each by itself, the smallest of its kind; none when
    /// nothing that was tried does. Each was tried on a copy.
    pub fn unblocked_by(&self, id: WorkloadId) -> Vec<Unblock> {
        if self.admits_after(id, |_| {}) {
            return vec![Unblock::Time];
        }
        self.ends(id).into_iter().chain(self.more_quota(id)).collect()
    }

    /// Returns whether a workload is admitted after a change, once those who were told to go have left.
    fn admits_after(&self, id: WorkloadId, change: impl FnOnce(&mut Self)) -> bool {
        let mut copy = self.clone();
        change(&mut copy);
        copy.let_leave();
        copy.settle();
        copy.standing(id) == Some(Standing::Admitted)
    }

    /// Returns the fewest who have to end: one if any one will do, else the first so many, the longest running first.
    fn ends(&self, id: WorkloadId) -> Option<Unblock> {
        let at = self.workloads.get(&id)?;
        let queues = &self.trees[at.tree].queues;
        let holders = queues.iter().flat_map(|queue| &queue.holders);
        let mut by_age: Vec<_> = holders.map(|(id, holder)| (holder.reserved_at, *id)).collect();
        by_age.sort_unstable();
        let by_age: Vec<_> = by_age.into_iter().map(|(_, id)| id).collect();
        let one = by_age
            .iter()
            .take(TRIES)
            .find(|other| self.admits_after(id, |copy| copy.remove(**other)));
        if let Some(other) = one {
            return Some(Unblock::Ends {
                workloads: vec![*other],
            });
        }
        let admits = |count: usize| {
            self.admits_after(id, |copy| {
                by_age[..count].iter().for_each(|other| copy.remove(*other));
            })
        };
        let count = least(2, by_age.len(), admits)?;
        Some(Unblock::Ends {
            workloads: by_age[..count].to_vec(),
        })
    }

    /// Returns the least of one resource that its queue has to have more.
    fn more_quota(&self, id: WorkloadId) -> Option<Unblock> {
        let at = *self.workloads.get(&id)?;
        let name = self.queue(at).name.clone();
        let wait = self.wait(id)?;
        let shorts = wait
            .obstacles
            .into_iter()
            .filter_map(|obstacle| match obstacle.why {
                ObstacleReason::Short { resource, asked, .. } => Some((obstacle.flavor?, resource, asked)),
                ObstacleReason::Uncovered { .. } | ObstacleReason::Mismatch { .. } => None,
            });
        for (flavor, resource, asked) in shorts {
            let admits = |more: usize| {
                let more = Quantity(i64::try_from(more).unwrap_or(i64::MAX));
                self.admits_after(id, |copy| copy.raise(&name, &flavor, &resource, more))
            };
            // What is asked for is always enough for itself, but there may be others before it.
            let most = usize::try_from(asked.0)
                .ok()?
                .saturating_mul(1 + self.ahead_of(id).len());
            if let Some(more) = least(1, most, admits) {
                let more = Quantity(i64::try_from(more).ok()?);
                return Some(Unblock::MoreQuota {
                    flavor,
                    resource,
                    more,
                });
            }
        }
        None
    }

    /// Gives a queue more quota of its own.
    pub(super) fn raise(&mut self, queue: &str, flavor: &str, resource: &str, more: Quantity) {
        let mut objects = self.objects.clone();
        let groups = objects
            .cluster_queues
            .get_mut(queue)
            .into_iter()
            .flat_map(|queue| &mut queue.resource_groups);
        for quotas in groups
            .flat_map(|group| &mut group.flavors)
            .filter(|quotas| quotas.name == flavor)
        {
            if let Some(quota) = quotas.resources.get_mut(resource) {
                quota.nominal = quota.nominal.plus(more);
            }
        }
        self.set_objects(objects);
    }
}

impl Tree {
    /// Returns what keeps a queue from having more of a resource in a flavor.
    fn limit(&self, queue: usize, of: FlavorResource, asked: Quantity) -> Limit {
        let queue = &self.queues[queue];
        if !self.quotas.has_parent(queue.node) {
            return Limit::Nominal;
        }
        if let Some(node) = self.quotas.borrowing_limit_that_binds(queue.node, of) {
            let of = self.cohorts.get(node.0).unwrap_or(&queue.name).clone();
            return Limit::Borrowing { of };
        }
        let used = self.queues.iter().fold(Quantity::ZERO, |sum, queue| {
            sum.plus(self.quotas.usage(queue.node, of))
        });
        if self.quotas.total(of).minus(used) >= asked {
            Limit::Lending
        } else {
            Limit::Cohort
        }
    }
}

fn flavor_name(terms: &Terms, (group, flavor): (usize, usize)) -> String {
    terms.groups[group].flavors[flavor].name.clone()
}

/// Returns Kueue's word for what stands in the way: of a group's flavors the least obstacle counts, of its groups the
/// worst.
fn reason(assignment: &Assignment) -> WaitReason {
    let mut flavors: BTreeMap<_, WaitReason> = BTreeMap::new();
    for miss in &assignment.misses {
        let Some((group, flavor)) = miss.flavor else {
            return WaitReason::NoMatchingFlavor;
        };
        let severity = match miss.why {
            MissReason::Uncovered(_) | MissReason::Mismatch(_) => WaitReason::NoMatchingFlavor,
            MissReason::ExceedsMax { .. } => WaitReason::ExceedsMaxQuota,
            MissReason::Short { .. } => WaitReason::WaitingForQuota,
        };
        let worst = flavors.entry((miss.set, group, flavor)).or_insert(severity);
        *worst = severity.max(*worst);
    }
    let mut groups: BTreeMap<_, WaitReason> = BTreeMap::new();
    for ((set, group, _), severity) in flavors {
        let best = groups.entry((set, group)).or_insert(severity);
        *best = severity.min(*best);
    }
    groups.into_values().max().unwrap_or(WaitReason::WaitingForQuota)
}

/// Returns the least number in a range for which a condition holds, taking for granted that it holds for more then.
fn least(from: usize, to: usize, holds: impl Fn(usize) -> bool) -> Option<usize> {
    if from > to || !holds(to) {
        return None;
    }
    let (mut fails, mut holds_at) = (from - 1, to);
    while holds_at - fails > 1 {
        let middle = fails + (holds_at - fails) / 2;
        if holds(middle) {
            holds_at = middle;
        } else {
            fails = middle;
        }
    }
    Some(holds_at)
}

#[cfg(test)]
mod tests;

//! Why a workload waits, and what would end that: nothing here decides, it tells what the rules would.

mod least;
mod remedy;

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::{
    At, Inactive, Mismatch, Quantity, Queues, WorkloadId,
    assign::{self, Assignment, Miss, MissReason, Mode},
    cycle_state::{CycleState, Request},
    quotas::FlavorResource,
    terms::Terms,
    tree::Tree,
};

pub use remedy::{QuotaIncrease, Remedy};

/// Why a workload waits: Kueue's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WaitReason {
    /// It would fit; others go first, or it has not been looked at yet.
    PendingEvaluation,
    /// The workloads that it preempted have not ended yet.
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
    /// Whether it could be admitted if there were no other.
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
        /// How much could be had if there were no other workload.
        most: Quantity,
        /// The limit that keeps it from more.
        limit: QuotaLimit,
    },
}

/// The limit that keeps a queue from more quota.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum QuotaLimit {
    /// Its nominal quota: it is in no cohort.
    Nominal,
    /// The borrowing limit of the queue or of a cohort above it.
    Borrowing {
        /// The queue or cohort with that limit.
        of: String,
    },
    /// The lending limits of others, which do not use that quota.
    Lending,
    /// The quota of its whole cohort.
    Cohort,
}

impl Queues {
    /// Returns the pending workloads before a workload in its queue, in order.
    pub fn ahead_of(&self, id: WorkloadId) -> Vec<WorkloadId> {
        let Some(at) = self.workloads.get(&id) else {
            return Vec::new();
        };
        let queue = self.queue(*at);
        queue.pending.before(id, &queue.users)
    }

    /// Returns why a workload waits, or `None` when it does not.
    pub fn wait(&self, id: WorkloadId) -> Option<Wait> {
        let at = *self.workloads.get(&id)?;
        let tree = &self.trees[at.tree];
        let queue = &tree.queues[at.queue];
        let request = self.request(at, id)?;
        let mut quotas = tree.quotas.clone();
        let mut state = CycleState {
            quotas: &mut quotas,
            queues: &tree.queues,
            rules: self.rules(self.now),
        };
        let (assignment, victims) = assign::assign_with_victims(&mut state, &request, None);
        let reason = match &queue.inactive {
            Some(Inactive::Stopped(_)) => WaitReason::Suspended,
            Some(Inactive::FlavorNotFound(_) | Inactive::CohortCycle(_) | Inactive::Removed) => {
                WaitReason::Misconfigured
            }
            None if queue.pending.is_preemptor(id) && self.anybody_leaves(at) => {
                WaitReason::WaitingForPreemptedWorkloads
            }
            None if assignment.mode == Mode::Fit || !victims.is_empty() => WaitReason::PendingEvaluation,
            None => reason(&assignment),
        };
        let obstacles = assignment.misses.iter().map(|miss| self.obstacle(at, miss));
        Some(Wait {
            reason,
            obstacles: obstacles.collect(),
            can_ever_fit: self.fits_empty(at, &request),
        })
    }

    /// Returns whether a pending workload could be admitted if there were no other.
    pub fn fits_ever(&self, id: WorkloadId) -> bool {
        let at = self.workloads.get(&id).copied();
        let request = at.and_then(|at| Some((at, self.request(at, id)?)));
        request.is_some_and(|(at, request)| self.fits_empty(at, &request))
    }

    fn request(&self, at: At, id: WorkloadId) -> Option<Request<'_>> {
        let queue = self.queue(at);
        let entry = queue.pending.entry(id)?;
        Some(Request {
            queue: at.queue,
            evictions: entry.evictions,
            priority: entry.class.priority,
            queued_at: entry.queued_at,
            shape: &queue.shapes[entry.class.shape],
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
}

impl Tree {
    /// Returns what keeps a queue from having more of a resource in a flavor.
    fn limit(&self, queue: usize, of: FlavorResource, asked: Quantity) -> QuotaLimit {
        let queue = &self.queues[queue];
        if !self.quotas.has_parent(queue.node) {
            return QuotaLimit::Nominal;
        }
        if let Some(node) = self.quotas.borrowing_limit_that_binds(queue.node, of) {
            let of = self.cohorts.get(node.0).unwrap_or(&queue.name).clone();
            return QuotaLimit::Borrowing { of };
        }
        let used = self.queues.iter().fold(Quantity::ZERO, |sum, queue| {
            sum.plus(self.quotas.usage(queue.node, of))
        });
        if self.quotas.total(of).minus(used) >= asked {
            QuotaLimit::Lending
        } else {
            QuotaLimit::Cohort
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

#[cfg(test)]
mod tests;

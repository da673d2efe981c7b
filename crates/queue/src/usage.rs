//! What users had lately, as it is told: nothing here decides.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Queues, UnknownQueue, WorkloadId, users::Users};

/// What a user of a ClusterQueue had lately, where that goes by it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UserUsage {
    /// The LocalQueue that it comes through.
    pub local_queue: String,
    /// The user in the LocalQueue, if users are distinguished: an author or a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What it is ordered by, the least first: the consumed resources, each by its weight, together, divided by the
    /// LocalQueue's weight. `None` is more than any other, which a weight of zero is.
    pub usage: Option<f64>,
    /// What it consumed, in Kubernetes' units: what it holds, had it held it for ever, and decaying by half in each
    /// half-life.
    pub consumed_resources: BTreeMap<String, f64>,
}

/// Whom a workload comes after because they had less lately.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageOrder {
    /// The workload's own user.
    pub own: UserUsage,
    /// The other users of its ClusterQueue with less usage and pending workloads, the least first, each with these.
    pub less: Vec<(UserUsage, Vec<WorkloadId>)>,
}

impl Queues {
    /// Returns what each user of a ClusterQueue had until a time, which is not before the last cycle, in the order of their
    /// LocalQueues, or `None` where that does not count. A LocalQueue without workloads is one user.
    pub fn users(&self, queue: &str, now: Timestamp) -> Result<Option<Vec<UserUsage>>, UnknownQueue> {
        let users = &self.queue(self.at(queue)?).users;
        if !users.by_usage() {
            return Ok(None);
        }
        let left = users.left_at(now);
        let local_queues = self.objects.local_queues.iter();
        let in_front = local_queues.filter(|(_, local)| local.cluster_queue == queue);
        let mut told = Vec::new();
        for (name, local) in in_front {
            let before = told.len();
            told.extend(users.of(name).map(|user| users.told(user, left)));
            if told.len() == before {
                told.push(UserUsage {
                    local_queue: name.clone(),
                    user: None,
                    usage: (local.weight.0 > 0.0).then_some(0.0),
                    consumed_resources: BTreeMap::new(),
                });
            }
        }
        Ok(Some(told))
    }

    /// Returns whom a waiting workload comes after because they had less by the last cycle, or `None` where that does not
    /// count.
    pub fn usage_order(&self, id: WorkloadId) -> Option<UsageOrder> {
        let queue = self.queue(*self.workloads.get(&id)?);
        let (users, own) = (&queue.users, queue.pending.entry(id)?.user);
        if !users.by_usage() {
            return None;
        }
        let mut less: BTreeMap<_, Vec<WorkloadId>> = BTreeMap::new();
        for other in queue.pending.before(id, users) {
            let user = queue.pending.entry(other)?.user;
            if users.usage(user) < users.usage(own) {
                less.entry((users.usage(user), user)).or_default().push(other);
            }
        }
        let told = |user| users.told(user, users.left());
        Some(UsageOrder {
            own: told(own),
            less: less
                .into_iter()
                .map(|((_, user), those)| (told(user), those))
                .collect(),
        })
    }
}

impl Users {
    fn told(&self, number: usize, left: f64) -> UserUsage {
        let usage = self.usage_when(number, left).0;
        let (local_queue, user) = self.name(number);
        UserUsage {
            local_queue: local_queue.to_owned(),
            user: user.map(str::to_owned),
            usage: usage.is_finite().then_some(usage),
            consumed_resources: self.consumed_when(number, left),
        }
    }
}

#[cfg(test)]
mod tests;

//! Why a queue admits nobody, with each name that is missing.

use std::fmt;

use blueproof_queue::{Inactive, Queues, StopPolicy, UnknownQueue, names::quoted, objects::Objects};
use serde::{Deserialize, Serialize};

/// Why a run's queue admits nobody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum InactiveQueue {
    /// The LocalQueue that the run names is not there.
    LocalQueueNotFound {
        /// Its name.
        local_queue: String,
    },
    /// The LocalQueue is stopped.
    LocalQueueStopped {
        /// Its name.
        local_queue: String,
        /// How.
        stop_policy: StopPolicy,
    },
    /// The ClusterQueue behind the LocalQueue is not there.
    ClusterQueueNotFound {
        /// The LocalQueue.
        local_queue: String,
        /// The name that is missing.
        cluster_queue: String,
    },
    /// The ClusterQueue is stopped.
    ClusterQueueStopped {
        /// Its name.
        cluster_queue: String,
        /// How.
        stop_policy: StopPolicy,
    },
    /// The ClusterQueue names flavors that are not there.
    FlavorNotFound {
        /// The ClusterQueue.
        cluster_queue: String,
        /// All names that are missing, in its order.
        flavors: Vec<String>,
    },
    /// Cohorts above the ClusterQueue are each other's parents.
    CohortCycle {
        /// The ClusterQueue.
        cluster_queue: String,
        /// The cohorts, each below the next, and the last one below the first.
        cohorts: Vec<String>,
    },
}

impl InactiveQueue {
    /// Returns why nobody is admitted through the LocalQueue of this name; `None` is that they are.
    pub fn of(queues: &Queues, local_queue: &str) -> Option<Self> {
        let Some((local_queue, local)) = queues.local_queue(local_queue) else {
            let local_queue = local_queue.to_owned();
            return Some(Self::LocalQueueNotFound { local_queue });
        };
        let own = local_queue.to_owned();
        if local.stop_policy != StopPolicy::None {
            return Some(Self::LocalQueueStopped {
                local_queue: own,
                stop_policy: local.stop_policy,
            });
        }
        match queues.inactive(&local.cluster_queue) {
            Ok(inactive) => Some(Self::of_cluster_queue(
                local_queue,
                &local.cluster_queue,
                inactive?,
            )),
            Err(UnknownQueue(cluster_queue)) => Some(Self::ClusterQueueNotFound {
                local_queue: own,
                cluster_queue,
            }),
        }
    }

    /// Returns whether it was stopped, and nothing is missing.
    pub fn is_stopped(&self) -> bool {
        match self {
            Self::LocalQueueStopped { .. } | Self::ClusterQueueStopped { .. } => true,
            Self::LocalQueueNotFound { .. }
            | Self::ClusterQueueNotFound { .. }
            | Self::FlavorNotFound { .. }
            | Self::CohortCycle { .. } => false,
        }
    }

    /// Lets a queue that is stopped admit again.
    pub(in super::super) fn resume(&self, objects: &mut Objects) {
        match self {
            Self::LocalQueueStopped { local_queue, .. } => {
                let queue = objects.local_queues.get_mut(local_queue);
                queue.expect("it is stopped").stop_policy = StopPolicy::None;
            }
            Self::ClusterQueueStopped { cluster_queue, .. } => {
                let queue = objects.cluster_queues.get_mut(cluster_queue);
                queue.expect("it is stopped").stop_policy = StopPolicy::None;
            }
            Self::LocalQueueNotFound { .. }
            | Self::ClusterQueueNotFound { .. }
            | Self::FlavorNotFound { .. }
            | Self::CohortCycle { .. } => {}
        }
    }

    fn of_cluster_queue(local_queue: &str, name: &str, inactive: &Inactive) -> Self {
        let cluster_queue = name.to_owned();
        match inactive {
            Inactive::Stopped(stop_policy) => Self::ClusterQueueStopped {
                cluster_queue,
                stop_policy: *stop_policy,
            },
            Inactive::FlavorNotFound(flavors) => Self::FlavorNotFound {
                cluster_queue,
                flavors: flavors.clone(),
            },
            Inactive::CohortCycle(cohorts) => Self::CohortCycle {
                cluster_queue,
                cohorts: cohorts.clone(),
            },
            Inactive::Removed => Self::ClusterQueueNotFound {
                local_queue: local_queue.to_owned(),
                cluster_queue,
            },
        }
    }

    /// Returns what would put it right, as the rest of a sentence without a full stop.
    pub(super) fn remedy(&self) -> String {
        match self {
            Self::LocalQueueNotFound { local_queue } => {
                format!("`blueproof quota apply` brings a LocalQueue `{local_queue}`")
            }
            Self::LocalQueueStopped { local_queue, .. } => {
                format!("the LocalQueue `{local_queue}` is applied without its stopPolicy")
            }
            Self::ClusterQueueNotFound {
                local_queue,
                cluster_queue,
            } => format!(
                "`blueproof quota apply` brings a ClusterQueue `{cluster_queue}`, or the LocalQueue `{local_queue}` \
                 names another"
            ),
            Self::ClusterQueueStopped { cluster_queue, .. } => {
                format!("the ClusterQueue `{cluster_queue}` is applied without its stopPolicy")
            }
            Self::FlavorNotFound {
                cluster_queue,
                flavors,
            } => format!(
                "`blueproof quota apply` brings a ResourceFlavor {}, or the ClusterQueue `{cluster_queue}` does without",
                quoted(flavors, "and a ResourceFlavor")
            ),
            Self::CohortCycle { cohorts, .. } => {
                if let [own] = &cohorts[..] {
                    return format!("the Cohort `{own}` is applied with another parent");
                }
                format!(
                    "one of the Cohorts {} is applied with another parent",
                    quoted(cohorts, "and")
                )
            }
        }
    }
}

impl fmt::Display for InactiveQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LocalQueueNotFound { local_queue } => write!(f, "there is no LocalQueue `{local_queue}`"),
            Self::LocalQueueStopped {
                local_queue,
                stop_policy,
            } => write!(
                f,
                "its LocalQueue `{local_queue}` is stopped (stopPolicy {stop_policy:?})"
            ),
            Self::ClusterQueueNotFound {
                local_queue,
                cluster_queue,
            } => write!(
                f,
                "its LocalQueue `{local_queue}` names the ClusterQueue `{cluster_queue}`, which is not there"
            ),
            Self::ClusterQueueStopped {
                cluster_queue,
                stop_policy,
            } => write!(
                f,
                "its ClusterQueue `{cluster_queue}` is stopped (stopPolicy {stop_policy:?})"
            ),
            Self::FlavorNotFound {
                cluster_queue,
                flavors,
            } => write!(
                f,
                "its ClusterQueue `{cluster_queue}` admits nobody: {}",
                Inactive::FlavorNotFound(flavors.clone())
            ),
            Self::CohortCycle {
                cluster_queue,
                cohorts,
            } => write!(
                f,
                "its ClusterQueue `{cluster_queue}` admits nobody: {}",
                Inactive::CohortCycle(cohorts.clone())
            ),
        }
    }
}

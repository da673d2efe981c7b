//! Why a workload has to give its quota back.

use serde::{Deserialize, Serialize};

use super::{Drained, PreemptionReason};

/// Why a workload has to give its quota back: Kueue's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EvictionReason {
    /// For a workload of its own queue, which is of higher priority or older.
    InClusterQueue,
    /// For a workload whose queue takes back what is its own.
    InCohortReclamation,
    /// For a workload whose queue has less than its fair share.
    InCohortFairSharing,
    /// For a workload of higher priority, whose queue borrows too.
    InCohortReclaimWhileBorrowing,
    /// Its LocalQueue was stopped and drained.
    LocalQueueStopped,
    /// Its ClusterQueue was stopped and drained.
    ClusterQueueStopped,
}

impl EvictionReason {
    /// Returns Kueue's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InClusterQueue => "InClusterQueue",
            Self::InCohortReclamation => "InCohortReclamation",
            Self::InCohortFairSharing => "InCohortFairSharing",
            Self::InCohortReclaimWhileBorrowing => "InCohortReclaimWhileBorrowing",
            Self::LocalQueueStopped => "LocalQueueStopped",
            Self::ClusterQueueStopped => "ClusterQueueStopped",
        }
    }

    /// Returns the reason in a few words.
    pub fn as_words(self) -> &'static str {
        match self {
            Self::InClusterQueue => "another of its queue goes first",
            Self::InCohortReclamation => "another queue takes back what is its own",
            Self::InCohortFairSharing => "another queue has less than its fair share",
            Self::InCohortReclaimWhileBorrowing => "another queue's run of higher priority goes first",
            Self::LocalQueueStopped => "its LocalQueue was stopped and drained",
            Self::ClusterQueueStopped => "its ClusterQueue was stopped and drained",
        }
    }

    /// Returns the reason of Kueue's condition `Evicted`, which is the same for every preemption.
    pub fn condition_reason(self) -> &'static str {
        match self {
            Self::InClusterQueue
            | Self::InCohortReclamation
            | Self::InCohortFairSharing
            | Self::InCohortReclaimWhileBorrowing => "Preempted",
            Self::LocalQueueStopped | Self::ClusterQueueStopped => self.as_str(),
        }
    }
}

impl From<PreemptionReason> for EvictionReason {
    fn from(reason: PreemptionReason) -> Self {
        match reason {
            PreemptionReason::InClusterQueue => Self::InClusterQueue,
            PreemptionReason::InCohortReclamation => Self::InCohortReclamation,
            PreemptionReason::InCohortFairSharing => Self::InCohortFairSharing,
            PreemptionReason::InCohortReclaimWhileBorrowing => Self::InCohortReclaimWhileBorrowing,
        }
    }
}

impl From<Drained> for EvictionReason {
    fn from(drained: Drained) -> Self {
        match drained {
            Drained::LocalQueue => Self::LocalQueueStopped,
            Drained::ClusterQueue => Self::ClusterQueueStopped,
        }
    }
}

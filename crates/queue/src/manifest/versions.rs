//! The versions of Kueue's objects that are read, and the kinds.

pub(super) const GROUP: &str = "kueue.x-k8s.io";
pub(super) const VERSION: &str = "kueue.x-k8s.io/v1beta2";
pub(super) const CONFIGURATION: &str = "config.kueue.x-k8s.io/v1beta2";
pub(super) const CONFIGURATION_GROUP: &str = "config.kueue.x-k8s.io";

/// The kinds that are read.
pub(super) const KINDS: [&str; 5] = [
    "ClusterQueue",
    "Cohort",
    "LocalQueue",
    "ResourceFlavor",
    "WorkloadPriorityClass",
];

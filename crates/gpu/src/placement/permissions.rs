//! What whoever collects the scores has to be allowed, as the rules of roles.
//!
//! Making roles of it, and binding them, belongs to whoever sets up clusters.

use super::Mode;

/// Where something is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// In the cluster whose nodes and pods are counted.
    ManagedCluster,
    /// On the hub, where the scores are written.
    Hub,
}

/// One rule of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permission {
    /// The group of the resources; empty is the core group.
    pub api_group: &'static str,
    /// The resources, in the plural and lower case.
    pub resources: &'static [&'static str],
    /// What may be done with them.
    pub verbs: &'static [&'static str],
}

const READ: &[&str] = &["get", "list", "watch"];
const ALL: &[&str] = &[
    "get",
    "list",
    "watch",
    "create",
    "update",
    "delete",
    "deletecollection",
    "patch",
];
const OCM: &str = "cluster.open-cluster-management.io";

const ADDON_ON_MANAGED: [Permission; 2] = [
    Permission {
        api_group: "",
        resources: &["nodes", "configmaps", "pods", "events"],
        verbs: ALL,
    },
    Permission {
        api_group: "coordination.k8s.io",
        resources: &["leases"],
        verbs: &["create", "get", "list", "update", "watch", "patch"],
    },
];

const ADDON_ON_HUB: [Permission; 4] = [
    ADDON_ON_MANAGED[0],
    ADDON_ON_MANAGED[1],
    Permission {
        api_group: OCM,
        resources: &["addonplacementscores"],
        verbs: ALL,
    },
    Permission {
        api_group: OCM,
        resources: &["addonplacementscores/status"],
        verbs: &["update", "patch"],
    },
];

const OURS_ON_MANAGED: [Permission; 2] = [
    Permission {
        api_group: "",
        resources: &["nodes", "pods"],
        verbs: READ,
    },
    // By its lease OCM sees that an addon is alive.
    Permission {
        api_group: "coordination.k8s.io",
        resources: &["leases"],
        verbs: &["get", "create", "update"],
    },
];

// A score is a subresource: what is sent along when the object is created is dropped, so both are needed.
const OURS_ON_HUB: [Permission; 2] = [
    Permission {
        api_group: OCM,
        resources: &["addonplacementscores"],
        verbs: &["get", "list", "watch", "create"],
    },
    Permission {
        api_group: OCM,
        resources: &["addonplacementscores/status"],
        verbs: &["update", "patch"],
    },
];

impl Mode {
    /// Returns what a collector of this mode may do on a side: in [`Mode::Compat`] what the addon's roles allow, in
    /// [`Mode::Correct`] what it takes.
    pub fn permissions(&self, side: Side) -> &'static [Permission] {
        match (self, side) {
            (Self::Compat, Side::ManagedCluster) => &ADDON_ON_MANAGED,
            (Self::Compat, Side::Hub) => &ADDON_ON_HUB,
            (Self::Correct(_), Side::ManagedCluster) => &OURS_ON_MANAGED,
            (Self::Correct(_), Side::Hub) => &OURS_ON_HUB,
        }
    }
}

//! What clusters are called.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What the machine of the store is called among clusters.
pub const LOCAL_CLUSTER: &str = "local";

/// The name of a cluster, as whoever configures it says. The usual one is `local`, this machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ClusterName(String);

impl ClusterName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it is the usual one.
    pub fn is_local(&self) -> bool {
        self.0 == LOCAL_CLUSTER
    }
}

impl Default for ClusterName {
    fn default() -> Self {
        LOCAL_CLUSTER.into()
    }
}

impl From<&str> for ClusterName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

//! How accelerators are named.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a device, or a part of one, is called by its driver, wherever it is plugged in: `GPU-…`, `MIG-…`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct DeviceUuid(pub String);

impl fmt::Display for DeviceUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

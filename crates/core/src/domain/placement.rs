//! Where an attempt is. Words for it are made where it is shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::{ClusterName, DeviceUuid};

/// Where an attempt is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", from = "Written")]
pub struct Placement {
    /// The cluster; `local` is this machine.
    pub cluster: ClusterName,
    /// The nodes that its pods are on; none where there are no nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// The devices that it has, where that is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceUuid>,
    /// The flavor of each resource, by pod set, where the cluster assigned them: Kueue's `podSetAssignments`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub flavors: BTreeMap<String, BTreeMap<String, String>>,
}

impl Placement {
    /// Returns a place on a cluster of which no more is known.
    pub fn on(cluster: &str) -> Self {
        Self {
            cluster: cluster.into(),
            ..Self::default()
        }
    }
}

impl From<&str> for Placement {
    fn from(cluster: &str) -> Self {
        Self::on(cluster)
    }
}

/// A placement as it may be written: logs of before have words for it.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum Written {
    Words(String),
    Placement {
        cluster: ClusterName,
        #[serde(default)]
        nodes: Vec<String>,
        #[serde(default)]
        devices: Vec<DeviceUuid>,
        #[serde(default)]
        flavors: BTreeMap<String, BTreeMap<String, String>>,
    },
}

impl From<Written> for Placement {
    fn from(written: Written) -> Self {
        match written {
            // All of them were on the machine of the store, with their devices behind the dots.
            Written::Words(words) => Self {
                cluster: ClusterName::default(),
                nodes: Vec::new(),
                devices: words
                    .split(" · ")
                    .skip(2)
                    .map(|unit| DeviceUuid(unit.into()))
                    .collect(),
                flavors: BTreeMap::new(),
            },
            Written::Placement {
                cluster,
                nodes,
                devices,
                flavors,
            } => Self {
                cluster,
                nodes,
                devices,
                flavors,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_earlier_logs_are_read() {
        let words = "\"process on this machine · threads capped at 2 · GPU-1 · GPU-2\"";
        let placement: Placement = serde_json::from_str(words).expect("words");
        let expected = Placement {
            devices: ["GPU-1", "GPU-2"].map(|unit| DeviceUuid(unit.into())).into(),
            ..Placement::on("local")
        };
        assert_eq!(placement, expected);
        let text = serde_json::to_string(&placement).expect("plain data");
        assert_eq!(
            serde_json::from_str::<Placement>(&text).expect("it comes back"),
            expected
        );
    }
}

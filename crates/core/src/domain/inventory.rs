//! What a cluster has, node by node.

use std::collections::BTreeMap;

use blueproof_diagnostic::Diagnostic;
use blueproof_queue::{Quantity, objects::Taint};
use serde::{Deserialize, Serialize};

use super::{
    DeviceUuid, Isolation, Resources,
    quota::{Zeros, requests, resources},
};

/// What a cluster has, used or not. Which of it is of which flavor follows from the labels and taints of the nodes, as in Kueue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Inventory {
    /// What it is, in words: `local · 2 cpu · 1 gpu (NVIDIA A10)`.
    pub description: String,
    /// Its nodes.
    pub nodes: Vec<NodeInventory>,
    /// What is there and cannot be promised, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Diagnostic>,
    /// Whether content of strangers may run there.
    #[serde(default, skip_serializing_if = "Isolation::is_unknown")]
    pub isolation: Isolation,
}

/// What a node has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeInventory {
    /// Its name in its cluster.
    pub name: String,
    /// Its labels, as far as a flavor may ask for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// What it would have if all of it were healthy, by resource, in Kueue's units.
    pub capacity: BTreeMap<String, Quantity>,
    /// What of that pods can be given; nothing where the node is not ready.
    pub allocatable: BTreeMap<String, Quantity>,
    /// Its devices, where they are told apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceInventory>,
}

/// A device of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeviceInventory {
    /// Its UUID.
    pub uuid: DeviceUuid,
    /// Why it is given to no attempt; `None` is healthy, as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unhealthy: Option<String>,
}

impl Inventory {
    /// Returns an inventory of one node that has this much.
    pub fn of_one_node(name: &str, has: Resources, description: &str) -> Self {
        let node = NodeInventory::new(name, has, has);
        Self {
            description: description.into(),
            nodes: vec![node],
            warnings: Vec::new(),
            isolation: Isolation::Unknown,
        }
    }

    /// Returns what pods of all nodes together can be given of what every machine has.
    pub fn allocatable(&self) -> Resources {
        self.sum(|node| &node.allocatable)
    }

    /// Returns what all nodes together would have of that if all of it were healthy.
    pub fn capacity(&self) -> Resources {
        self.sum(|node| &node.capacity)
    }

    fn sum(&self, of: impl Fn(&NodeInventory) -> &BTreeMap<String, Quantity>) -> Resources {
        resources(|resource| {
            let amounts = self.nodes.iter().filter_map(|node| of(node).get(resource));
            amounts.fold(Quantity::ZERO, |sum, amount| sum.plus(*amount))
        })
    }
}

impl NodeInventory {
    /// Returns a node that would have `capacity` and has `allocatable` of it.
    pub fn new(name: &str, capacity: Resources, allocatable: Resources) -> Self {
        Self {
            name: name.into(),
            capacity: requests(capacity, Zeros::LeftOut),
            allocatable: requests(allocatable, Zeros::LeftOut),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Bytes, Cpus, Gpus};

    #[test]
    fn what_can_be_given_is_the_sum_of_the_nodes_and_no_unhealthy_device() {
        let has = |gpu: u32| Resources {
            cpu: Cpus::cores(4),
            memory: Bytes(1 << 30),
            gpu: Gpus(gpu),
        };
        let inventory = Inventory {
            nodes: vec![
                NodeInventory::new("a", has(8), has(7)),
                NodeInventory::new("b", has(8), Resources::default()),
            ],
            ..Inventory::default()
        };
        assert_eq!(inventory.allocatable(), has(7));
        assert_eq!(inventory.capacity().gpu, Gpus(16));
        assert_eq!(Inventory::default().allocatable(), Resources::default());
    }
}

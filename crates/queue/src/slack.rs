//! How much a slack queue may lend while some of the capacity cannot be used.
//!
//! A slack queue holds quota for nobody, to lend it to all. When nodes fail, what it lends shrinks by as much, so that
//! quota is not promised on nodes that are not there. Setting the limits, and seeing to the nodes, is the caller's
//! matter.
//!
//! The rule is that of AppWrapper 0.30, which knew one flavor: the first of the first group. Here each flavor of each
//! group loses what its own nodes lost, which comes to the same where there is one. As there, the limits belong to
//! whoever keeps them so: one that an admin set by hand is replaced.

use std::collections::BTreeMap;

use super::{
    Quantity,
    objects::{ClusterQueue, FlavorQuotas, ResourceFlavor, TaintEffect},
    workload::PODS,
};

/// The capacity of a node, or of one device of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCapacity {
    /// Its labels; they tell of which flavors it is.
    pub labels: BTreeMap<String, String>,
    /// How much of each resource it has.
    pub capacity: BTreeMap<String, Quantity>,
    /// Whether anything can be put there.
    pub schedulability: Schedulability,
    /// What its health says of single resources.
    pub taints: BTreeMap<String, TaintEffect>,
}

/// Whether anything can be put on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedulability {
    /// It can.
    Schedulable,
    /// It cannot: the node is cordoned, unreachable or not ready.
    Unschedulable,
}

/// How much a queue may lend of a resource in a flavor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LendingLimit {
    /// The flavor.
    pub flavor: String,
    /// The resource.
    pub resource: String,
    /// The limit; `None` is none, as all of the capacity can be used.
    pub limit: Option<Quantity>,
}

/// Returns the lending limits of a slack queue, for each flavor and resource that it has quota of; none at all for a
/// queue without a cohort, which lends nothing.
///
/// A node that is of several flavors of a group counts for the first of them, so that nothing is lost twice.
pub fn lending_limits(
    queue: &ClusterQueue,
    flavors: &BTreeMap<String, ResourceFlavor>,
    nodes: &[NodeCapacity],
) -> Vec<LendingLimit> {
    if queue.cohort.is_none() {
        return Vec::new();
    }
    let groups = queue.resource_groups.iter();
    let limits = groups.flat_map(|group| {
        group.flavors.iter().flat_map(|quotas| {
            let is_of = |node: &&NodeCapacity| {
                let mut names = group.flavors.iter().map(|other| &other.name);
                names.find(|name| node.is_of(flavors.get(*name))) == Some(&quotas.name)
            };
            let lost = |resource: &str| lost(nodes.iter().filter(is_of), resource);
            limits(quotas, lost).collect::<Vec<_>>()
        })
    });
    limits.collect()
}

fn limits(quotas: &FlavorQuotas, lost: impl Fn(&str) -> Quantity) -> impl Iterator<Item = LendingLimit> {
    quotas.resources.iter().map(move |(resource, quota)| {
        let lost = lost(resource);
        LendingLimit {
            flavor: quotas.name.clone(),
            resource: resource.clone(),
            limit: (lost > Quantity::ZERO).then(|| quota.nominal.minus(lost).or_zero()),
        }
    })
}

/// Returns how much of a resource cannot be used.
fn lost<'a>(nodes: impl Iterator<Item = &'a NodeCapacity>, resource: &str) -> Quantity {
    nodes.fold(Quantity::ZERO, |sum, node| sum.plus(node.lost(resource)))
}

impl NodeCapacity {
    /// Returns whether the node has the labels of a flavor; one that is not known has none.
    fn is_of(&self, flavor: Option<&ResourceFlavor>) -> bool {
        let mut labels = flavor.iter().flat_map(|flavor| &flavor.node_labels);
        flavor.is_some() && labels.all(|(key, value)| self.labels.get(key) == Some(value))
    }

    /// Returns how much of a resource cannot be used here. Places for pods are not lost with a node, as in AppWrapper:
    /// a node has far more of them than anybody asks for.
    fn lost(&self, resource: &str) -> Quantity {
        let all = self.schedulability == Schedulability::Unschedulable && resource != PODS;
        let this = self.taints.get(resource).is_some_and(|effect| match effect {
            TaintEffect::NoSchedule | TaintEffect::NoExecute => true,
            TaintEffect::PreferNoSchedule => false,
        });
        if all || this {
            self.capacity.get(resource).copied().unwrap_or_default()
        } else {
            Quantity::ZERO
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{Quota, ResourceGroup};

    const GPU: &str = "nvidia.com/gpu";

    fn flavors(names: &[&str]) -> BTreeMap<String, ResourceFlavor> {
        let labelled = |name: &str| ResourceFlavor {
            node_labels: BTreeMap::from([("flavor".to_owned(), name.to_owned())]),
            ..ResourceFlavor::default()
        };
        let flavors = names.iter().map(|name| match *name {
            "default" => ("default".to_owned(), ResourceFlavor::default()),
            name => (name.to_owned(), labelled(name)),
        });
        flavors.collect()
    }

    /// A slack queue of one group, with so many GPUs, and as many pods, in each flavor.
    fn slack(quotas: &[(&str, i64)]) -> ClusterQueue {
        let flavors = quotas.iter().map(|(name, gpus)| {
            let quota = Quota {
                nominal: Quantity(*gpus),
                ..Quota::default()
            };
            FlavorQuotas {
                name: (*name).to_owned(),
                resources: [(GPU.to_owned(), quota), (PODS.to_owned(), quota)].into(),
            }
        });
        ClusterQueue {
            cohort: Some("all".into()),
            resource_groups: vec![ResourceGroup {
                flavors: flavors.collect(),
            }],
            ..ClusterQueue::default()
        }
    }

    fn node(flavor: &str, gpus: i64) -> NodeCapacity {
        NodeCapacity {
            labels: BTreeMap::from([("flavor".to_owned(), flavor.to_owned())]),
            capacity: [(GPU, gpus), (PODS, 100), ("cpu", 64_000)]
                .map(|(resource, amount)| (resource.to_owned(), Quantity(amount)))
                .into(),
            schedulability: Schedulability::Schedulable,
            taints: BTreeMap::new(),
        }
    }

    fn cordoned(node: NodeCapacity) -> NodeCapacity {
        NodeCapacity {
            schedulability: Schedulability::Unschedulable,
            ..node
        }
    }

    fn tainted(node: NodeCapacity, effect: TaintEffect) -> NodeCapacity {
        NodeCapacity {
            taints: BTreeMap::from([(GPU.to_owned(), effect)]),
            ..node
        }
    }

    /// Returns the limit of one resource in each flavor.
    fn limits_of(resource: &str, queue: &ClusterQueue, nodes: &[NodeCapacity]) -> Vec<Option<i64>> {
        let limits = lending_limits(queue, &flavors(&["default", "a", "b"]), nodes);
        let limits = limits.into_iter().filter(|limit| limit.resource == resource);
        limits
            .map(|limit| limit.limit.map(|Quantity(amount)| amount))
            .collect()
    }

    #[test]
    fn what_is_lent_shrinks_by_what_cannot_be_used() {
        use TaintEffect::{NoExecute, NoSchedule, PreferNoSchedule};
        let node = || node("any", 8);
        let rows = [
            ("all is well", 24, vec![node(); 3], None),
            (
                "one node of three",
                24,
                vec![cordoned(node()), node(), node()],
                Some(16),
            ),
            (
                "its GPUs are being tested",
                24,
                vec![tainted(node(), NoSchedule)],
                Some(16),
            ),
            (
                "its GPUs have failed",
                24,
                vec![tainted(node(), NoExecute)],
                Some(16),
            ),
            (
                "its GPUs are suspect",
                24,
                vec![tainted(node(), PreferNoSchedule)],
                None,
            ),
            (
                "it is lost once",
                24,
                vec![cordoned(tainted(node(), NoExecute))],
                Some(16),
            ),
            ("more is lost than is lent", 6, vec![cordoned(node())], Some(0)),
            ("just as much", 8, vec![cordoned(node())], Some(0)),
        ];
        for (why, nominal, nodes, expected) in rows {
            let limits = limits_of(GPU, &slack(&[("default", nominal)]), &nodes);
            assert_eq!(limits, [expected], "{why}");
        }
    }

    #[test]
    fn each_further_loss_shrinks_it_further_and_when_all_is_mended_the_limit_goes() {
        let queue = slack(&[("default", 8)]);
        let mut nodes = [node("any", 2), node("any", 2)];
        let mut limits = Vec::new();
        for number in 0..2 {
            nodes[number] = tainted(nodes[number].clone(), TaintEffect::NoExecute);
            limits.extend(limits_of(GPU, &queue, &nodes));
        }
        nodes.iter_mut().for_each(|node| node.taints.clear());
        limits.extend(limits_of(GPU, &queue, &nodes));
        assert_eq!(limits, [Some(6), Some(4), None]);
    }

    #[test]
    fn a_cordoned_node_takes_no_pods_from_what_is_lent() {
        let nodes = [cordoned(node("any", 8))];
        assert_eq!(limits_of(PODS, &slack(&[("default", 24)]), &nodes), [None]);
    }

    #[test]
    fn each_flavor_loses_what_its_own_nodes_lost() {
        let queue = slack(&[("a", 24), ("b", 24)]);
        let nodes = [
            cordoned(node("a", 8)),
            cordoned(node("b", 4)),
            node("b", 4),
            cordoned(node("c", 9)),
        ];
        assert_eq!(limits_of(GPU, &queue, &nodes), [Some(16), Some(20)]);
    }

    #[test]
    fn a_node_of_several_flavors_is_lost_to_the_first() {
        let queue = slack(&[("a", 24), ("default", 24)]);
        let nodes = [cordoned(node("a", 8)), cordoned(node("b", 4))];
        assert_eq!(limits_of(GPU, &queue, &nodes), [Some(16), Some(20)]);
    }

    #[test]
    fn a_flavor_that_is_not_known_has_no_nodes() {
        let queue = slack(&[("unknown", 24)]);
        assert_eq!(limits_of(GPU, &queue, &[cordoned(node("a", 8))]), [None]);
    }

    #[test]
    fn a_queue_that_lends_nothing_has_no_limit_on_it() {
        let alone = ClusterQueue {
            cohort: None,
            ..slack(&[("default", 24)])
        };
        assert_eq!(limits_of(GPU, &alone, &[cordoned(node("a", 8))]), []);
    }
}

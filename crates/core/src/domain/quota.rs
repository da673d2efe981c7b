//! What one machine has, in the queues' words.

use std::collections::BTreeMap;

use blueproof_queue::{
    Quantity,
    objects::{
        ClusterQueue, FlavorQuotas, LocalQueue, Objects, QueueingStrategy, Quota, ResourceFlavor,
        ResourceGroup,
    },
};

use super::{Bytes, Cpus, Gpus, Resources};

/// The name of the resource that is counted in thousandths.
pub(crate) const CPU: &str = "cpu";
const MEMORY: &str = "memory";
const GPU: &str = "nvidia.com/gpu";

/// The name of the one queue, and of its flavor, that holds where nobody applied others.
pub(crate) const DEFAULT: &str = "local";

/// Returns the queues that hold where nobody applied others: one, with the whole quota, in which nobody overtakes the
/// first.
pub fn default_objects(quota: Resources) -> Objects {
    let amounts = requests(quota, Zeros::Kept).into_iter();
    let quotas = amounts.map(|(resource, nominal)| {
        let quota = Quota {
            nominal,
            ..Quota::default()
        };
        (resource, quota)
    });
    let flavor = FlavorQuotas {
        name: DEFAULT.into(),
        resources: quotas.collect(),
    };
    let queue = ClusterQueue {
        resource_groups: vec![ResourceGroup {
            flavors: vec![flavor],
        }],
        queueing_strategy: QueueingStrategy::StrictFIFO,
        ..ClusterQueue::default()
    };
    let local = LocalQueue {
        cluster_queue: DEFAULT.into(),
        ..LocalQueue::default()
    };
    Objects {
        flavors: BTreeMap::from([(DEFAULT.into(), ResourceFlavor::default())]),
        cluster_queues: BTreeMap::from([(DEFAULT.into(), queue)]),
        local_queues: BTreeMap::from([(DEFAULT.into(), local)]),
        ..Objects::default()
    }
}

/// Whether a resource of which there is none is named.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zeros {
    /// It is, with an amount of zero.
    Kept,
    /// It is not.
    LeftOut,
}

/// Returns amounts by the names of their resources.
pub(crate) fn requests(asked: Resources, zeros: Zeros) -> BTreeMap<String, Quantity> {
    let amounts = [
        (CPU, quantity(asked.cpu.as_millis())),
        (MEMORY, quantity(asked.memory.0)),
        (GPU, quantity(u64::from(asked.gpu.0))),
    ];
    let named = amounts
        .into_iter()
        .filter(|(_, amount)| zeros == Zeros::Kept || *amount != Quantity::ZERO);
    named
        .map(|(resource, amount)| (resource.into(), amount))
        .collect()
}

fn quantity(amount: u64) -> Quantity {
    i64::try_from(amount).map_or(Quantity::UNLIMITED, Quantity)
}

/// Returns whether every machine says how much it has of a resource; what it has of others is known from applied quota alone.
pub(crate) fn is_counted(resource: &str) -> bool {
    [CPU, MEMORY, GPU].contains(&resource)
}

/// Returns resources of which `amount` tells how much there is of each.
pub(crate) fn resources(amount: impl Fn(&str) -> Quantity) -> Resources {
    let count = |resource| u64::try_from(amount(resource).or_zero().0).expect("not below zero");
    Resources {
        cpu: Cpus::millis(count(CPU)),
        memory: Bytes(count(MEMORY)),
        gpu: Gpus(u32::try_from(count(GPU)).unwrap_or(u32::MAX)),
    }
}

//! What is free, counted as the Kubernetes scheduler counts it.
//!
//! A pod takes what `k8s.io/component-helpers/resource:helpers.go` (`PodRequests`) says: its containers and sidecars
//! together, or more if one init container with the sidecars before it needs more, and its overhead.

use std::collections::BTreeMap;

use blueproof_queue::{
    Quantity,
    objects::{TaintEffect, Toleration},
};

use super::{
    Available, Ceilings, ConditionStatus, GpuName, ObservedNode, PerResource, Pod, Resource, ResourceList,
    amounts::{AMD_GPU, CPU, MEMORY, MIG_PREFIX, NVIDIA_GPU, TPU, add, amount, raise},
    normalise::combined,
};

/// What is decided for a fleet, so that the scores of its clusters can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// How much scores 100.
    pub ceilings: Ceilings,
    /// Which resources are GPUs. One of any of them counts as one: a MIG device is what a pod can ask for, as a whole
    /// GPU is. Leave names out where only whole GPUs are to be compared.
    pub gpu_names: Vec<GpuName>,
    /// What the work to be placed puts up with. Nodes with another taint, save `PreferNoSchedule`, do not count.
    pub tolerations: Vec<Toleration>,
}

/// In what pieces the GPUs of a cluster are free.
///
/// Free GPUs in pieces are worth less to a job that needs many on one node, which a score of the cluster does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuBlocks {
    /// How many are free in all.
    pub free: Quantity,
    /// The most that are free on one node.
    pub largest: Quantity,
}

impl Rules {
    /// Returns the rules for work that asks for accelerators, with these ceilings.
    ///
    /// GPUs are `nvidia.com/gpu`, `nvidia.com/mig-*` and `amd.com/gpu`. Taints whose key is the name of a GPU or TPU
    /// resource are tolerated, since Kubernetes' admission plugin ExtendedResourceToleration lets pods that ask for the
    /// resource tolerate them.
    pub fn new(ceilings: Ceilings) -> Self {
        let tolerated = [NVIDIA_GPU, AMD_GPU, TPU];
        Self {
            ceilings,
            gpu_names: vec![
                GpuName::Is(NVIDIA_GPU.to_owned()),
                GpuName::StartsWith(MIG_PREFIX.to_owned()),
                GpuName::Is(AMD_GPU.to_owned()),
            ],
            tolerations: tolerated.map(tolerating).into(),
        }
    }

    pub(super) fn available<'a>(
        &self,
        nodes: &[ObservedNode],
        pods: impl IntoIterator<Item = &'a Pod>,
    ) -> Available {
        let used = usage(pods);
        let nothing = ResourceList::new();
        let mut available = Available {
            node: PerResource::default(),
            cluster: PerResource::default(),
        };
        for node in nodes.iter().filter(|node| self.counts(node)) {
            let free = self.free(node, used.get(node.name.as_str()).unwrap_or(&nothing));
            available.node = combined(available.node, free, Quantity::max);
            available.cluster = combined(available.cluster, free, Quantity::plus);
        }
        available
    }

    fn counts(&self, node: &ObservedNode) -> bool {
        !node.unschedulable && is_ready(node) && !self.is_kept_off(node)
    }

    fn is_kept_off(&self, node: &ObservedNode) -> bool {
        let tolerated = |taint| self.tolerations.iter().any(|one| one.tolerates(taint));
        let mut taints = node.taints.iter();
        taints.any(|taint| keeps_off(taint.effect) && !tolerated(taint))
    }

    /// Returns what a node has free. More used than is allocatable, as when a device failed, leaves nothing: it takes
    /// away nothing that another node or another resource has.
    fn free(&self, node: &ObservedNode, used: &ResourceList) -> PerResource<Quantity> {
        PerResource::from_fn(|resource| {
            let listed = node.allocatable.iter();
            let named = listed.filter(|(name, _)| resource.is_named(name, &self.gpu_names));
            named.fold(Quantity::ZERO, |sum, (name, allocatable)| {
                sum.plus(allocatable.minus(amount(used, name)).or_zero())
            })
        })
    }
}

fn tolerating(key: &str) -> Toleration {
    Toleration {
        key: Some(key.to_owned()),
        ..Toleration::default()
    }
}

fn is_ready(node: &ObservedNode) -> bool {
    match node.ready {
        ConditionStatus::True => true,
        ConditionStatus::False | ConditionStatus::Unknown => false,
    }
}

fn keeps_off(effect: TaintEffect) -> bool {
    match effect {
        TaintEffect::NoSchedule | TaintEffect::NoExecute => true,
        TaintEffect::PreferNoSchedule => false,
    }
}

/// Returns what is requested on each node, in one pass over the pods.
fn usage<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> BTreeMap<&'a str, ResourceList> {
    let mut used = BTreeMap::<_, ResourceList>::new();
    for pod in pods.into_iter().filter(|pod| !pod.is_over()) {
        if let Some(node) = &pod.node_name {
            add(used.entry(node.as_str()).or_default(), &requests(pod));
        }
    }
    used
}

fn requests(pod: &Pod) -> ResourceList {
    let mut together = ResourceList::new();
    for container in &pod.containers {
        add(&mut together, &container.requests);
    }
    let mut sidecars = ResourceList::new();
    let mut at_start = ResourceList::new();
    for container in &pod.init_containers {
        let mut now = sidecars.clone();
        add(&mut now, &container.requests);
        raise(&mut at_start, &now);
        if container.is_sidecar() {
            sidecars = now;
        }
    }
    add(&mut together, &sidecars);
    raise(&mut together, &at_start);
    add(&mut together, &pod.overhead);
    together
}

impl Resource {
    /// Returns whether a name in a [`ResourceList`] is one of this resource.
    pub(super) fn is_named(self, name: &str, gpu_names: &[GpuName]) -> bool {
        match self {
            Self::Cpu => name == CPU,
            Self::Memory => name == MEMORY,
            Self::Gpu => gpu_names.iter().any(|gpus| gpus.matches(name)),
            Self::Tpu => name == TPU,
        }
    }
}

impl GpuBlocks {
    /// Returns `1 - largest / free`: 0 where all that is free is on one node, near 1 where it is scattered. `None` when
    /// nothing is free, as nothing is neither whole nor in pieces.
    pub fn fragmentation(self) -> Option<f64> {
        if self.free <= Quantity::ZERO {
            return None;
        }
        Some(1.0 - self.largest.0 as f64 / self.free.0 as f64)
    }
}

//! What is free by the addon's own counting, defects included.
//!
//! This follows `calculate.go` function by function and is not to be improved: where it looks wrong, it is meant to be.
//! The right counting is in `correct`.

use std::collections::BTreeMap;

use blueproof_queue::Quantity;

use super::{
    Available, Bounds, Ceilings, ObservedNode, PerResource, Pod, Resource, Scope,
    amounts::{CPU, MEMORY, NVIDIA_GPU, TPU, amount},
};

/// The memory's ceiling is meant to be in MiB. As the addon's division by 1024² does not divide, it is compared with
/// bytes.
const MEMORY_CEILING: Quantity = Quantity(1024 * 1024);

type PodsOfNodes<'a> = BTreeMap<&'a str, Vec<&'a Pod>>;

pub(super) fn available<'a>(nodes: &[ObservedNode], pods: impl IntoIterator<Item = &'a Pod>) -> Available {
    let pods = by_node(pods);
    Available {
        node: PerResource::from_fn(|resource| on_best_node(nodes, &pods, name(resource))),
        cluster: PerResource::from_fn(|resource| in_cluster(nodes, &pods, name(resource))),
    }
}

pub(super) fn bounds(resource: Resource) -> Bounds {
    let meant = Ceilings::ADDON.bounds(Scope::Cluster, resource);
    match resource {
        Resource::Memory => Bounds {
            max: MEMORY_CEILING,
            ..meant
        },
        Resource::Cpu | Resource::Gpu | Resource::Tpu => meant,
    }
}

fn name(resource: Resource) -> &'static str {
    match resource {
        Resource::Cpu => CPU,
        Resource::Memory => MEMORY,
        Resource::Gpu => NVIDIA_GPU,
        Resource::Tpu => TPU,
    }
}

fn by_node<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> PodsOfNodes<'a> {
    let mut of_nodes = PodsOfNodes::new();
    for pod in pods {
        if let Some(node) = &pod.node_name {
            of_nodes.entry(node).or_default().push(pod);
        }
    }
    of_nodes
}

fn on_best_node(nodes: &[ObservedNode], pods: &PodsOfNodes<'_>, resource: &str) -> Quantity {
    let mut most = Quantity::ZERO;
    for node in nodes.iter().filter(|node| !node.unschedulable) {
        if let Some(allocatable) = node.allocatable.get(resource) {
            most = most.max(allocatable.minus(usage(node, pods, resource)));
        }
    }
    most
}

fn in_cluster(nodes: &[ObservedNode], pods: &PodsOfNodes<'_>, resource: &str) -> Quantity {
    let mut allocatable = Quantity::ZERO;
    let mut used = Quantity::ZERO;
    for node in nodes.iter().filter(|node| !node.unschedulable) {
        allocatable = allocatable.plus(amount(&node.allocatable, resource));
        // What a node does not list is taken off here too, if its pods ask for it.
        used = used.plus(usage(node, pods, resource));
    }
    allocatable.minus(used)
}

/// Returns what the pods of a node request. One sum runs through all of them, and every init container, sidecar or
/// not, is compared with it as it stands.
fn usage(node: &ObservedNode, pods: &PodsOfNodes<'_>, resource: &str) -> Quantity {
    let here = pods.get(node.name.as_str()).into_iter().flatten();
    here.filter(|pod| !pod.is_over() && pod.deletion_timestamp.is_none())
        .fold(Quantity::ZERO, |running, pod| with_pod(running, pod, resource))
}

fn with_pod(mut running: Quantity, pod: &Pod, resource: &str) -> Quantity {
    for container in &pod.containers {
        running = running.plus(amount(&container.requests, resource));
    }
    for container in &pod.init_containers {
        running = running.max(amount(&container.requests, resource));
    }
    running.plus(amount(&pod.overhead, resource))
}

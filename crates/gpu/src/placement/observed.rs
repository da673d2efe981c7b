//! What is known of a cluster's nodes and pods, in the words of Kubernetes.
//!
//! Only what the scores need is here. Reading it from a cluster is the caller's matter.

use blueproof_queue::objects::Taint;
use jiff::Timestamp;

use super::ResourceList;

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedNode {
    /// Its name.
    pub name: String,
    /// How much pods may have of each resource.
    pub allocatable: ResourceList,
    /// Whether it is cordoned.
    pub unschedulable: bool,
    /// Its condition `Ready`; a node without one is [`ConditionStatus::Unknown`].
    pub ready: ConditionStatus,
    /// What keeps pods off it.
    pub taints: Vec<Taint>,
}

/// What a condition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody knows: the node has not been heard of for a while.
    Unknown,
}

/// A pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pod {
    /// The node that it is bound to; `None` while it waits for one.
    pub node_name: Option<String>,
    /// How far it is.
    pub phase: PodPhase,
    /// When somebody asked for its deletion. It keeps what it has until it is gone.
    pub deletion_timestamp: Option<Timestamp>,
    /// What runs before the containers, in that order, and sidecars.
    pub init_containers: Vec<InitContainer>,
    /// What runs side by side.
    pub containers: Vec<Container>,
    /// What running the pod takes beside its containers.
    pub overhead: ResourceList,
}

/// How far a pod is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PodPhase {
    /// Not all of its containers have started.
    #[default]
    Pending,
    /// It runs.
    Running,
    /// All of its containers ended well.
    Succeeded,
    /// All of its containers ended, and one of them badly.
    Failed,
    /// Its node has not been heard of.
    Unknown,
}

/// A container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Container {
    /// What it asks for; nothing of what is not listed.
    pub requests: ResourceList,
}

/// A container that starts before those of the pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InitContainer {
    /// What it asks for; nothing of what is not listed.
    pub requests: ResourceList,
    /// When it is started again, where it has a say of its own. With `Always` it is a sidecar: it runs on beside what
    /// comes after it.
    pub restart_policy: Option<RestartPolicy>,
}

/// When a container is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartPolicy {
    /// Whenever it ends.
    Always,
    /// When it ends badly.
    OnFailure,
    /// Not at all.
    Never,
}

impl Pod {
    /// Returns whether its containers have ended, so that it holds nothing any more.
    pub(super) fn is_over(&self) -> bool {
        match self.phase {
            PodPhase::Succeeded | PodPhase::Failed => true,
            PodPhase::Pending | PodPhase::Running | PodPhase::Unknown => false,
        }
    }
}

impl InitContainer {
    pub(super) fn is_sidecar(&self) -> bool {
        self.restart_policy == Some(RestartPolicy::Always)
    }
}

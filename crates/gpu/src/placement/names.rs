//! What there are scores of, and what they are called in an `AddOnPlacementScore`.
//!
//! The names and their order are the addon's (`agent.go`, `sync`), so that placements written for it go on working.

use std::{fmt, str::FromStr};

/// What a score is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// Processor time.
    Cpu,
    /// Memory.
    Memory,
    /// GPUs.
    Gpu,
    /// Google's TPUs.
    Tpu,
}

/// Where a score looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// At the node with the most.
    Node,
    /// At all nodes together.
    Cluster,
}

/// The name of a score, such as `gpuClusterAvailable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScoreName {
    /// What it is of.
    pub resource: Resource,
    /// Where it looks.
    pub scope: Scope,
}

/// Something for each resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PerResource<T> {
    /// Of processor time.
    pub cpu: T,
    /// Of memory.
    pub memory: T,
    /// Of GPUs.
    pub gpu: T,
    /// Of TPUs.
    pub tpu: T,
}

/// A name that no score has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no score is named `{name}`; there are {}", ScoreName::ALL.map(ScoreName::as_str).join(", "))]
pub struct UnknownScore {
    name: String,
}

impl ScoreName {
    /// All of them, in the order in which the addon publishes them.
    pub const ALL: [Self; 8] = [
        Self::new(Resource::Cpu, Scope::Node),
        Self::new(Resource::Cpu, Scope::Cluster),
        Self::new(Resource::Memory, Scope::Node),
        Self::new(Resource::Memory, Scope::Cluster),
        Self::new(Resource::Gpu, Scope::Node),
        Self::new(Resource::Gpu, Scope::Cluster),
        Self::new(Resource::Tpu, Scope::Node),
        Self::new(Resource::Tpu, Scope::Cluster),
    ];

    /// Returns the name of the score of a resource in a scope.
    pub const fn new(resource: Resource, scope: Scope) -> Self {
        Self { resource, scope }
    }

    /// Returns the name as it is published.
    pub const fn as_str(self) -> &'static str {
        match (self.resource, self.scope) {
            (Resource::Cpu, Scope::Node) => "cpuNodeAvailable",
            (Resource::Cpu, Scope::Cluster) => "cpuClusterAvailable",
            (Resource::Memory, Scope::Node) => "memNodeAvailable",
            (Resource::Memory, Scope::Cluster) => "memClusterAvailable",
            (Resource::Gpu, Scope::Node) => "gpuNodeAvailable",
            (Resource::Gpu, Scope::Cluster) => "gpuClusterAvailable",
            (Resource::Tpu, Scope::Node) => "tpuNodeAvailable",
            (Resource::Tpu, Scope::Cluster) => "tpuClusterAvailable",
        }
    }
}

impl fmt::Display for ScoreName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ScoreName {
    type Err = UnknownScore;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|name| name.as_str() == text);
        known.ok_or_else(|| UnknownScore {
            name: text.to_owned(),
        })
    }
}

impl<T> PerResource<T> {
    /// Returns what `of` gives for each resource.
    pub fn from_fn(mut of: impl FnMut(Resource) -> T) -> Self {
        Self {
            cpu: of(Resource::Cpu),
            memory: of(Resource::Memory),
            gpu: of(Resource::Gpu),
            tpu: of(Resource::Tpu),
        }
    }
}

impl<T: Copy> PerResource<T> {
    /// Returns what there is for a resource.
    pub fn get(&self, resource: Resource) -> T {
        match resource {
            Resource::Cpu => self.cpu,
            Resource::Memory => self.memory,
            Resource::Gpu => self.gpu,
            Resource::Tpu => self.tpu,
        }
    }
}

/// A name, or many alike, of resources that are GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuName {
    /// Exactly this one: `amd.com/gpu`.
    Is(String),
    /// Every one that starts so: `nvidia.com/mig-`.
    StartsWith(String),
}

impl GpuName {
    /// Returns whether a resource of this name is a GPU by it.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Is(exactly) => name == exactly,
            Self::StartsWith(start) => name.starts_with(start.as_str()),
        }
    }
}

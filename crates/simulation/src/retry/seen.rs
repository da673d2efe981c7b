//! What is seen of a workload at one moment, and what that comes to while it runs.
//!
//! How it is read from a cluster is not known here.

use std::collections::{BTreeMap, BTreeSet};

/// What is seen of a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedState {
    /// What is asked for by whoever owns it, or by the queue.
    pub wanted: DesiredState,
    /// Each of its components.
    pub components: Vec<Component>,
    /// How many pods they make.
    pub expected_pods: usize,
    /// The pods that there are.
    pub pods: Vec<Pod>,
    /// By node, the resources that are not to be used there any more.
    pub no_execute: BTreeMap<String, BTreeSet<String>>,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DesiredState {
    /// It is to wait; nothing of it may exist.
    #[default]
    Suspended,
    /// It is to run: it was admitted.
    Running,
    /// It is to be gone, with all that is known of it.
    Deleted,
}

/// What is seen of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    /// It is known not to exist, not merely absent from a cache.
    Missing,
    /// It does not exist, and creating it failed in a way that trying again does not mend.
    Refused,
    /// It could not be read.
    Unknown,
    /// It is there.
    Deployed,
    /// It is there, and says that it has failed for good.
    Failed,
    /// It is being deleted.
    Deleting,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// How far it is.
    pub phase: PodPhase,
    /// The node that it is bound to.
    pub node: Option<String>,
    /// The resources that any of its containers asks for, other than none of it.
    pub resources: BTreeSet<String>,
    /// The exit codes of its containers that have ended, init containers among them.
    pub exit_codes: Vec<i32>,
}

/// How far a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodPhase {
    /// Not all of its containers have started.
    Pending,
    /// It runs.
    Running,
    /// It was running, and is being deleted.
    Leaving,
    /// All of its containers ended well.
    Succeeded,
    /// A container ended badly.
    Failed,
}

/// What is to be made of a workload that runs; of several things the one that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    Unclear,
    MissingComponent,
    FailedComponent,
    Succeeded,
    FailedPods,
    BadNode,
    Ready,
    TooFewPods,
    PodsNotRunning,
}

impl ObservedState {
    /// Returns whether a component can never be created.
    pub(super) fn is_refused(&self) -> bool {
        self.components.contains(&Component::Refused)
    }

    /// Returns whether every component was created.
    pub(super) fn is_created(&self) -> bool {
        let mut components = self.components.iter();
        components.all(|component| matches!(component, Component::Deployed | Component::Failed))
    }

    /// Returns whether nothing is left of it.
    pub(super) fn is_gone(&self) -> bool {
        let mut components = self.components.iter();
        self.pods.is_empty()
            && components.all(|component| matches!(component, Component::Missing | Component::Refused))
    }

    pub(super) fn finding(&self) -> Finding {
        self.finding_of_components()
            .unwrap_or_else(|| self.finding_of_pods())
    }

    fn finding_of_components(&self) -> Option<Finding> {
        let any = |wanted: &[Component]| self.components.iter().any(|seen| wanted.contains(seen));
        if any(&[Component::Missing, Component::Refused, Component::Deleting]) {
            return Some(Finding::MissingComponent);
        }
        if any(&[Component::Unknown]) {
            return Some(Finding::Unclear);
        }
        any(&[Component::Failed]).then_some(Finding::FailedComponent)
    }

    fn finding_of_pods(&self) -> Finding {
        let count = |phase| self.pods.iter().filter(|pod| pod.phase == phase).count();
        let (pending, running) = (count(PodPhase::Pending), count(PodPhase::Running));
        let (succeeded, failed) = (count(PodPhase::Succeeded), count(PodPhase::Failed));
        if succeeded >= self.expected_pods && pending + running + failed == 0 {
            return Finding::Succeeded;
        }
        if failed > 0 {
            return Finding::FailedPods;
        }
        if self.pods.iter().any(|pod| self.is_on_bad_node(pod)) {
            return Finding::BadNode;
        }
        if running + succeeded >= self.expected_pods {
            return Finding::Ready;
        }
        if pending + running + succeeded >= self.expected_pods {
            return Finding::PodsNotRunning;
        }
        Finding::TooFewPods
    }

    fn is_on_bad_node(&self, pod: &Pod) -> bool {
        let periods = match pod.phase {
            PodPhase::Pending | PodPhase::Running => true,
            PodPhase::Leaving | PodPhase::Succeeded | PodPhase::Failed => false,
        };
        let bad = pod.node.as_ref().and_then(|node| self.no_execute.get(node));
        periods && bad.is_some_and(|bad| !bad.is_disjoint(&pod.resources))
    }
}

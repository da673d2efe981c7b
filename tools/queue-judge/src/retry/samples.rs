//! What can be seen of a workload of two components with two pods.

use blueproof_simulation::retry::{Component, DesiredState, ObservedState, Pod, PodPhase};

const NODE: &str = "node";
const GPU: &str = "nvidia.com/gpu";

/// Two components, with these of their two pods.
pub(super) fn pods(phases: &[PodPhase]) -> ObservedState {
    let pods = phases.iter().map(|phase| Pod {
        phase: *phase,
        node: Some(NODE.into()),
        resources: [GPU.to_owned()].into(),
        exit_codes: Vec::new(),
    });
    ObservedState {
        wanted: DesiredState::Running,
        components: vec![Component::Deployed; 2],
        expected_pods: 2,
        pods: pods.collect(),
        ..ObservedState::default()
    }
}

pub(super) fn second_component(second: Component) -> ObservedState {
    ObservedState {
        components: vec![Component::Deployed, second],
        ..pods(&[])
    }
}

pub(super) fn on_bad_node() -> ObservedState {
    ObservedState {
        no_execute: [(NODE.to_owned(), [GPU.to_owned()].into())].into(),
        ..pods(&[PodPhase::Running; 2])
    }
}

/// All is well, and this is asked for.
pub(super) fn wanted(wanted: DesiredState) -> ObservedState {
    ObservedState {
        wanted,
        ..pods(&[PodPhase::Running; 2])
    }
}

pub(super) fn all_gone(wanted: DesiredState) -> ObservedState {
    ObservedState {
        wanted,
        components: vec![Component::Missing; 2],
        ..pods(&[])
    }
}

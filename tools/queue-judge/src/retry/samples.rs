//! What can be seen of a workload of two components with two pods.

use blueproof_simulation::retry::{Component, Pod, PodPhase, Seen, Wanted};

const NODE: &str = "node";
const GPU: &str = "nvidia.com/gpu";

/// Two components, with these of their two pods.
pub(super) fn pods(phases: &[PodPhase]) -> Seen {
    let pods = phases.iter().map(|phase| Pod {
        phase: *phase,
        node: Some(NODE.into()),
        resources: [GPU.to_owned()].into(),
        exit_codes: Vec::new(),
    });
    Seen {
        wanted: Wanted::Running,
        components: vec![Component::Deployed; 2],
        expected_pods: 2,
        pods: pods.collect(),
        ..Seen::default()
    }
}

pub(super) fn second_component(second: Component) -> Seen {
    Seen {
        components: vec![Component::Deployed, second],
        ..pods(&[])
    }
}

pub(super) fn on_bad_node() -> Seen {
    Seen {
        no_execute: [(NODE.to_owned(), [GPU.to_owned()].into())].into(),
        ..pods(&[PodPhase::Running; 2])
    }
}

/// All is well, and this is asked for.
pub(super) fn wanted(wanted: Wanted) -> Seen {
    Seen {
        wanted,
        ..pods(&[PodPhase::Running; 2])
    }
}

pub(super) fn all_gone(wanted: Wanted) -> Seen {
    Seen {
        wanted,
        components: vec![Component::Missing; 2],
        ..pods(&[])
    }
}

//! What the scores of small clusters are, worked out by hand.

mod defects;
mod examples;
mod properties;

use blueproof_queue::{
    Quantity,
    objects::{Taint, TaintEffect},
};
use jiff::{SignedDuration, Timestamp};

use super::{
    Ceilings, ConditionStatus, Container, InitContainer, ListingTime, Mode, ObservedNode, Pod, PodPhase,
    ResourceList, RestartPolicy, Rules, ScoreName, read_quantity,
};

const GPU: &str = "nvidia.com/gpu";

const TAKEN: ListingTime = ListingTime {
    at: Timestamp::UNIX_EPOCH,
    every: SignedDuration::from_mins(1),
};

fn correct() -> Mode {
    Mode::Correct(Rules::new(Ceilings::ADDON))
}

fn list(amounts: &[(&str, &str)]) -> ResourceList {
    let read = |(resource, text): &(&str, &str)| {
        let amount = read_quantity(resource, text).expect("tests write quantities");
        ((*resource).to_owned(), amount)
    };
    amounts.iter().map(read).collect()
}

fn gpus(count: i64) -> ResourceList {
    [(GPU.to_owned(), Quantity(count))].into()
}

fn node(name: &str, allocatable: ResourceList) -> ObservedNode {
    ObservedNode {
        name: name.to_owned(),
        allocatable,
        unschedulable: false,
        ready: ConditionStatus::True,
        taints: vec![],
    }
}

fn cordoned(node: ObservedNode) -> ObservedNode {
    ObservedNode {
        unschedulable: true,
        ..node
    }
}

fn tainted(node: ObservedNode, key: &str, effect: TaintEffect) -> ObservedNode {
    let taint = Taint {
        key: key.to_owned(),
        value: String::new(),
        effect,
    };
    ObservedNode {
        taints: vec![taint],
        ..node
    }
}

fn pod(node: &str, requests: ResourceList) -> Pod {
    Pod {
        node_name: Some(node.to_owned()),
        phase: PodPhase::Running,
        containers: vec![Container { requests }],
        ..Pod::default()
    }
}

fn init(requests: ResourceList) -> InitContainer {
    InitContainer {
        requests,
        restart_policy: None,
    }
}

fn sidecar(requests: ResourceList) -> InitContainer {
    InitContainer {
        requests,
        restart_policy: Some(RestartPolicy::Always),
    }
}

/// Returns one score of a cluster.
fn score(mode: &Mode, name: &str, nodes: &[ObservedNode], pods: &[Pod]) -> i32 {
    let name: ScoreName = name.parse().expect("tests name scores that there are");
    mode.score(nodes, pods, TAKEN).scores[&name]
}

/// Returns one score of a cluster as the addon has it, and the right one.
fn both(name: &str, nodes: &[ObservedNode], pods: &[Pod]) -> (i32, i32) {
    let of = |mode| score(&mode, name, nodes, pods);
    (of(Mode::Compat), of(correct()))
}

//! What holds of every cluster: random nodes and pods.

use blueproof_queue::{Quantity, objects::TaintEffect};
use proptest::{collection::vec, prelude::*, sample::select};

use super::{
    ConditionStatus, Container, GPU, InitContainer, Mode, ObservedNode, Pod, PodPhase, ResourceList,
    RestartPolicy, TAKEN, correct, node, tainted,
};

const NODES: [&str; 3] = ["a", "b", "c"];
const RESOURCES: [&str; 5] = ["cpu", "memory", GPU, "nvidia.com/mig-1g.10gb", "google.com/tpu"];

fn amount() -> impl Strategy<Value = Quantity> {
    prop_oneof![
        4 => (0..24_i64).prop_map(Quantity),
        2 => (0..200_000_i64).prop_map(Quantity),
        2 => (0..1_i64 << 41).prop_map(Quantity),
        1 => select(vec![Quantity(i64::MAX - 1), Quantity::UNLIMITED]),
    ]
}

fn resources() -> impl Strategy<Value = ResourceList> {
    vec((select(&RESOURCES), amount()), 0..4).prop_map(|list| {
        list.into_iter()
            .map(|(name, amount)| (name.to_owned(), amount))
            .collect()
    })
}

/// Returns a cluster of up to three nodes, each with a name of its own.
fn nodes() -> impl Strategy<Value = Vec<ObservedNode>> {
    let ready = select(&[
        ConditionStatus::True,
        ConditionStatus::True,
        ConditionStatus::Unknown,
    ]);
    let taint = prop::option::weighted(0.2, select(&["team", GPU]));
    let one = (resources(), prop::bool::weighted(0.1), ready, taint);
    vec(one, 0..=NODES.len()).prop_map(|all| {
        let named = NODES.into_iter().zip(all);
        let made = named.map(|(name, (allocatable, unschedulable, ready, taint))| {
            let node = ObservedNode {
                unschedulable,
                ready,
                ..node(name, allocatable)
            };
            match taint {
                Some(key) => tainted(node, key, TaintEffect::NoSchedule),
                None => node,
            }
        });
        made.collect()
    })
}

fn pods() -> impl Strategy<Value = Vec<Pod>> {
    let phases = [PodPhase::Running, PodPhase::Pending, PodPhase::Succeeded];
    let init = (resources(), prop::bool::ANY).prop_map(|(requests, sidecar)| InitContainer {
        requests,
        restart_policy: sidecar.then_some(RestartPolicy::Always),
    });
    let one = (
        prop::option::weighted(0.9, select(&NODES)),
        select(phases.to_vec()),
        prop::bool::weighted(0.1),
        vec(init, 0..3),
        vec(resources(), 0..3),
        resources(),
    );
    let made = one.prop_map(
        |(node, phase, leaving, init_containers, containers, overhead)| Pod {
            node_name: node.map(str::to_owned),
            phase,
            deletion_timestamp: leaving.then_some(TAKEN.at),
            init_containers,
            containers: containers
                .into_iter()
                .map(|requests| Container { requests })
                .collect(),
            overhead,
        },
    );
    vec(made, 0..6)
}

proptest! {
    #[test]
    fn every_score_is_from_minus_100_to_100(nodes in nodes(), pods in pods()) {
        for mode in [Mode::Compat, correct()] {
            let published = mode.score(&nodes, &pods, TAKEN);
            prop_assert_eq!(published.scores.len(), 8);
            for (name, score) in published.scores {
                prop_assert!((-100..=100).contains(&score), "{name} is {score}");
            }
        }
    }

    #[test]
    fn fragmentation_is_a_share(nodes in nodes(), pods in pods()) {
        let blocks = correct().score(&nodes, &pods, TAKEN).blocks.expect("a correct score has them");
        match blocks.fragmentation() {
            Some(share) => prop_assert!((0.0..1.0).contains(&share), "{share} of {blocks:?}"),
            None => prop_assert_eq!(blocks.free, Quantity::ZERO),
        }
    }

    #[test]
    fn more_allocatable_lowers_no_correct_score(
        nodes in nodes(), pods in pods(), at in 0..3_usize, resource in select(&RESOURCES), more in amount(),
    ) {
        let before = correct().score(&nodes, &pods, TAKEN);
        let mut richer = nodes;
        if let Some(node) = richer.get_mut(at) {
            let amount = node.allocatable.entry(resource.to_owned()).or_default();
            *amount = amount.plus(more);
        }
        let after = correct().score(&richer, &pods, TAKEN);
        for (name, score) in &before.scores {
            prop_assert!(after.scores[name] >= *score, "{name} fell from {score} to {}", after.scores[name]);
        }
    }

    #[test]
    fn a_pod_less_lowers_no_correct_score(nodes in nodes(), pods in pods()) {
        let before = correct().score(&nodes, &pods, TAKEN);
        let after = correct().score(&nodes, pods.iter().skip(1), TAKEN);
        for (name, score) in &before.scores {
            prop_assert!(after.scores[name] >= *score, "{name} fell from {score} to {}", after.scores[name]);
        }
    }

    #[test]
    fn the_order_of_nodes_and_pods_changes_no_correct_score(
        (nodes, shuffled_nodes) in nodes().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        (pods, shuffled_pods) in pods().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
    ) {
        let one = correct().score(&nodes, &pods, TAKEN);
        let other = correct().score(&shuffled_nodes, &shuffled_pods, TAKEN);
        prop_assert_eq!(one, other);
    }
}

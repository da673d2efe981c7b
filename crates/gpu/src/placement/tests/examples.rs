//! The addon's own examples, and the edges: no nodes, nothing listed, more used than there is.

use blueproof_queue::{Quantity, objects::TaintEffect};

use super::{
    Ceilings, GPU, Mode, ObservedNode, Pod, PodPhase, TAKEN, both, cordoned, correct, gpus, init, list, node,
    pod, score, sidecar, tainted,
};
use crate::placement::{Bounds, PerResource, Resource, Rules, Scope, ScoreName, read_quantity};

fn addon_nodes() -> [ObservedNode; 2] {
    [
        node("node1", list(&[("cpu", "16"), ("memory", "32Gi"), (GPU, "6")])),
        node("node2", list(&[("cpu", "32"), ("memory", "64Gi"), (GPU, "8")])),
    ]
}

fn addon_pod() -> Pod {
    pod("node2", list(&[("cpu", "4"), ("memory", "8Gi"), (GPU, "2")]))
}

#[test]
fn the_addons_table_of_normalised_values_holds() {
    let free = |cpu, memory, gpu, tpu| PerResource {
        cpu: Quantity(cpu),
        memory: Quantity(memory),
        gpu: Quantity(gpu),
        tpu: Quantity(tpu),
    };
    let lowest = PerResource::from_fn(|_| -100);
    let some = |memory| PerResource {
        cpu: -20,
        memory,
        gpu: -80,
        tpu: -90,
    };
    for (why, value, compat, right) in [
        ("all in use", free(0, 0, 0, 0), lowest, lowest),
        ("some in use", free(40_000, 524 << 30, 2, 1), some(100), some(2)),
        (
            "more in use than there is",
            free(-10_000, -(1 << 30), -10, -10),
            lowest,
            lowest,
        ),
    ] {
        for scope in [Scope::Node, Scope::Cluster] {
            assert_eq!(Mode::Compat.normalise(scope, value), compat, "{why}");
            assert_eq!(correct().normalise(scope, value), right, "{why}");
        }
    }
}

#[test]
fn the_addons_two_nodes_have_twelve_gpus_free_and_score_twenty() {
    let (nodes, pods) = (addon_nodes(), [addon_pod()]);
    for mode in [Mode::Compat, correct()] {
        let available = mode.available(&nodes, &pods);
        assert_eq!(
            (available.node.gpu, available.cluster.gpu),
            (Quantity(6), Quantity(12))
        );
        assert_eq!(
            (available.node.cpu, available.cluster.cpu),
            (Quantity(28_000), Quantity(44_000))
        );
    }
    assert_eq!(both("gpuClusterAvailable", &nodes, &pods), (20, 20)); // 200 * 12 / 20 - 100
    assert_eq!(both("gpuNodeAvailable", &nodes, &pods), (-40, -40)); // 200 * 6 / 20 - 100
    assert_eq!(both("cpuNodeAvailable", &nodes, &pods), (-44, -44)); // 200 * 28 / 100 - 100
    assert_eq!(both("cpuClusterAvailable", &nodes, &pods), (-12, -12)); // 200 * 44 / 100 - 100
    assert_eq!(both("memNodeAvailable", &nodes, &pods), (100, -89)); // 200 * 56 / 1024 - 100 = -89.06
    assert_eq!(both("tpuClusterAvailable", &nodes, &pods), (-100, -100));
}

/// The eight numbers are what the addon's own `calculate.go` at f5844b9 gave for these nodes and pods.
#[test]
fn the_addons_code_and_compat_agree_on_a_cluster_with_something_of_everything() {
    let nodes = [
        node(
            "n0",
            list(&[
                ("cpu", "64"),
                ("memory", "900Ki"),
                (GPU, "16"),
                ("google.com/tpu", "12"),
            ]),
        ),
        node("n1", list(&[("cpu", "20"), (GPU, "2")])),
        cordoned(node("n2", list(&[("cpu", "8"), (GPU, "8")]))),
    ];
    let pods = [
        pod("n0", list(&[("cpu", "8"), ("memory", "100Ki"), (GPU, "4")])),
        Pod {
            init_containers: vec![init(list(&[("cpu", "12"), (GPU, "5")])), sidecar(gpus(1))],
            overhead: list(&[("cpu", "1")]),
            ..pod("n0", list(&[("cpu", "2"), (GPU, "1")]))
        },
        Pod {
            deletion_timestamp: Some(TAKEN.at),
            ..pod("n0", gpus(3))
        },
        pod("n1", list(&[(GPU, "5"), ("google.com/tpu", "1")])),
    ];

    let published = Mode::Compat.score(&nodes, &pods, TAKEN);

    let scores: Vec<_> = published.scores.into_values().collect();
    assert_eq!(scores, [2, 42, 56, 56, 10, -20, 20, 10]);
}

#[test]
fn the_readmes_free_gpus_have_the_readmes_scores() {
    for (free, expected) in [(3, -70), (2, -80), (0, -100)] {
        let nodes = [node("a", gpus(free))];
        assert_eq!(
            both("gpuClusterAvailable", &nodes, &[]),
            (expected, expected),
            "{free}"
        );
    }
}

#[test]
fn scores_are_published_under_the_addons_names_in_its_order() {
    let names = [
        "cpuNodeAvailable",
        "cpuClusterAvailable",
        "memNodeAvailable",
        "memClusterAvailable",
        "gpuNodeAvailable",
        "gpuClusterAvailable",
        "tpuNodeAvailable",
        "tpuClusterAvailable",
    ];
    for mode in [Mode::Compat, correct()] {
        let published = mode.score(&addon_nodes(), &[addon_pod()], TAKEN);
        let published: Vec<_> = published.scores.keys().map(ScoreName::to_string).collect();
        assert_eq!(published, names);
    }
    assert_eq!(
        ScoreName::new(Resource::Memory, Scope::Node).as_str(),
        "memNodeAvailable"
    );
}

#[test]
fn a_value_between_the_bounds_is_cut_off_towards_zero() {
    let of = |value| {
        let bounds = Bounds {
            min: Quantity(0),
            max: Quantity(1000),
        };
        bounds.normalise(Quantity(value))
    };
    for (value, expected) in [
        (-1, -100),
        (0, -100),
        (1, -99), // -99.8
        (499, 0), // -0.2
        (500, 0),
        (504, 0), // 0.8
        (505, 1),
        (999, 99), // 99.8
        (1000, 100),
        (1001, 100),
    ] {
        assert_eq!(of(value), expected, "{value}");
    }
}

#[test]
fn bounds_that_are_equal_only_tell_above_from_not_above() {
    let bounds = Bounds {
        min: Quantity(5),
        max: Quantity(5),
    };

    assert_eq!(
        [4, 5, 6].map(|value| bounds.normalise(Quantity(value))),
        [-100, -100, 100]
    );
}

#[test]
fn bounds_at_the_ends_of_the_range_do_not_overflow() {
    let bounds = Bounds {
        min: Quantity(i64::MIN),
        max: Quantity(i64::MAX),
    };

    let values = [i64::MIN, 0, i64::MAX];
    assert_eq!(
        values.map(|value| bounds.normalise(Quantity(value))),
        [-100, 0, 100]
    );
}

#[test]
fn without_a_node_that_counts_every_score_is_the_lowest() {
    let none: [ObservedNode; 0] = [];
    let all_cordoned = addon_nodes().map(cordoned);
    let bare = [node("a", list(&[])), node("b", list(&[]))];
    for (why, nodes) in [
        ("no node", none.as_slice()),
        ("all cordoned", &all_cordoned),
        ("nothing listed", &bare),
    ] {
        for mode in [Mode::Compat, correct()] {
            let published = mode.score(nodes, &[addon_pod()], TAKEN);
            assert!(published.scores.values().all(|score| *score == -100), "{why}");
        }
    }
}

#[test]
fn more_used_than_allocatable_takes_nothing_from_other_nodes() {
    let nodes = [node("a", gpus(2)), node("b", gpus(10))];
    let pods = [pod("a", gpus(6))];

    // The addon: 12 - 6. The right way: nothing on the one, 10 on the other.
    assert_eq!(both("gpuClusterAvailable", &nodes, &pods), (-40, 0));
    assert_eq!(both("gpuNodeAvailable", &nodes, &pods), (0, 0));
    assert_eq!(both("gpuNodeAvailable", &nodes[..1], &pods), (-100, -100));
    assert_eq!(
        Mode::Compat.available(&nodes[..1], &pods).cluster.gpu,
        Quantity(-4)
    );
    assert_eq!(correct().available(&nodes[..1], &pods).cluster.gpu, Quantity(0));
}

#[test]
fn a_request_for_what_the_node_does_not_list_takes_nothing_from_other_nodes() {
    let nodes = [node("a", list(&[("cpu", "8")])), node("b", gpus(10))];
    let pods = [pod("a", gpus(4))];

    assert_eq!(both("gpuClusterAvailable", &nodes, &pods), (-40, 0));
    assert_eq!(both("gpuNodeAvailable", &nodes, &pods), (0, 0));
}

#[test]
fn pods_count_while_they_hold_something() {
    let nodes = [node("a", gpus(8))];
    let running = pod("a", gpus(2));
    let in_phase = |phase| Pod {
        phase,
        ..running.clone()
    };
    let leaving = Pod {
        deletion_timestamp: Some(TAKEN.at),
        ..running.clone()
    };
    let waiting = Pod {
        node_name: None,
        ..running.clone()
    };
    for (why, pod, expected) in [
        ("it runs", running.clone(), (-40, -40)),
        ("it starts", in_phase(PodPhase::Pending), (-40, -40)),
        ("its node is silent", in_phase(PodPhase::Unknown), (-40, -40)),
        ("it is over", in_phase(PodPhase::Succeeded), (-20, -20)),
        ("it is over, badly", in_phase(PodPhase::Failed), (-20, -20)),
        ("it is bound to no node", waiting, (-20, -20)),
        (
            "it is on a node that is not known",
            super::pod("b", gpus(2)),
            (-20, -20),
        ),
        // The scheduler takes nothing of it for free before it is gone; the addon does.
        ("it is being deleted", leaving, (-20, -40)),
    ] {
        assert_eq!(both("gpuNodeAvailable", &nodes, &[pod]), expected, "{why}");
    }
}

#[test]
fn the_overhead_of_a_pod_counts() {
    let nodes = [node("a", list(&[("cpu", "10")]))];
    let pods = [Pod {
        overhead: list(&[("cpu", "500m")]),
        ..pod("a", list(&[("cpu", "1")]))
    }];

    // 8.5 cores: 200 * 8.5 / 100 - 100
    assert_eq!(both("cpuNodeAvailable", &nodes, &pods), (-83, -83));
}

#[test]
fn tpus_are_counted_on_nodes_that_are_kept_for_them() {
    let tpu = "google.com/tpu";
    let nodes = [
        tainted(node("a", list(&[(tpu, "8")])), tpu, TaintEffect::NoSchedule),
        tainted(
            node("b", list(&[(tpu, "4"), ("amd.com/gpu", "3")])),
            "amd.com/gpu",
            TaintEffect::NoSchedule,
        ),
    ];
    let pods = [pod("a", list(&[(tpu, "2")]))];

    assert_eq!(both("tpuNodeAvailable", &nodes, &pods), (-40, -40)); // 6 on the one
    assert_eq!(both("tpuClusterAvailable", &nodes, &pods), (0, 0)); // and 4 on the other
    assert_eq!(both("gpuClusterAvailable", &nodes, &pods), (-100, -70)); // AMD's are no GPUs for the addon
}

#[test]
fn a_cordoned_node_leaves_the_ceilings_of_the_fleet_where_they_are() {
    let names = Rules::new(Ceilings::ADDON).gpu_names;
    let nodes = addon_nodes();
    let [first, second] = nodes.clone();

    let ceilings = Ceilings::of_fleet([nodes.as_slice()], &names);
    assert_eq!(
        (ceilings.node.gpu, ceilings.cluster.gpu),
        (Quantity(8), Quantity(14))
    );
    assert_eq!(
        (ceilings.node.cpu, ceilings.cluster.cpu),
        (Quantity(32_000), Quantity(48_000))
    );
    assert_eq!(
        Ceilings::of_fleet([[first, cordoned(second)].as_slice()], &names),
        ceilings
    );
}

#[test]
fn a_ceiling_of_nothing_makes_all_that_is_free_the_most() {
    let ceilings = Ceilings::of_fleet([], &[]);
    let mode = Mode::Correct(Rules::new(ceilings));

    assert_eq!(score(&mode, "gpuNodeAvailable", &[node("a", gpus(1))], &[]), 100);
    assert_eq!(score(&mode, "gpuNodeAvailable", &[node("a", gpus(0))], &[]), -100);
}

#[test]
fn an_amount_that_is_too_large_to_count_is_unlimited() {
    assert_eq!(read_quantity("memory", "15Ei"), Ok(Quantity::UNLIMITED));
    assert!(read_quantity("memory", "99Ei").is_err());
    assert!(read_quantity(GPU, "-1").is_err());
}

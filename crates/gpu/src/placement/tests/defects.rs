//! The addon's defects, one test each: its value, and the right one.

use std::cell::Cell;

use blueproof_queue::{
    Quantity,
    objects::{TaintEffect, Toleration},
};
use jiff::{SignedDuration, Timestamp};

use super::{
    Ceilings, ConditionStatus, GPU, Mode, ObservedNode, Pod, Rules, TAKEN, both, cordoned, correct, gpus,
    init, list, node, pod, score, sidecar, tainted,
};
use crate::placement::{GpuName, PerResource, PlacementScores, Prioritizer, Scope, Side};

fn wish(score_name: &str, weight: i32) -> Prioritizer {
    Prioritizer {
        score_name: score_name.to_owned(),
        weight,
    }
}

/// Returns what a cluster counts for at the time it was measured.
fn weighted(mode: &Mode, published: Option<&PlacementScores>, weight: i32) -> Option<i64> {
    let wish = wish("gpuClusterAvailable", weight);
    mode.weighted(published, &wish, TAKEN.at).ok()
}

#[test]
fn defect_1_memory_is_measured_against_a_tebibyte_and_not_a_mebibyte() {
    let of = |memory| {
        both(
            "memClusterAvailable",
            &[node("a", list(&[("memory", memory)]))],
            &[],
        )
    };

    assert_eq!(of("524Gi"), (100, 2)); // 200 * 536576 / 1048576 - 100 = 2.3
    assert_eq!(of("1048577"), (100, -99)); // a byte more than 1 MiB: 200 / 1048576 - 100 = -99.9
    assert_eq!(of("512Ki"), (0, -99)); // half of 1 MiB
    assert_eq!(of("1Ti"), (100, 100));
}

#[test]
fn defect_2_a_cluster_that_nobody_measured_does_not_beat_one_with_nine_free_gpus() {
    let nodes = [node("a", gpus(9))];
    let measured = correct().score(&nodes, &[], TAKEN);

    // 200 * 9 / 20 - 100
    assert_eq!(weighted(&Mode::Compat, Some(&measured), 1), Some(-10));
    assert_eq!(weighted(&Mode::Compat, None, 1), Some(0));
    assert_eq!(weighted(&correct(), Some(&measured), 1), Some(-10));
    assert_eq!(weighted(&correct(), None, 1), Some(-100));
}

#[test]
fn defect_2_a_cluster_that_nobody_measured_does_not_win_where_low_scores_are_preferred() {
    let nodes = [node("a", gpus(19))];
    let measured = correct().score(&nodes, &[], TAKEN);

    assert_eq!(weighted(&Mode::Compat, None, -3), Some(0));
    assert_eq!(weighted(&correct(), None, -3), Some(-300));
    assert_eq!(weighted(&correct(), Some(&measured), -3), Some(-270));
}

#[test]
fn defect_3_a_score_expires_after_three_periods() {
    let nodes = [node("a", gpus(12))];
    let at = |seconds| Timestamp::from_second(seconds).expect("a time");
    let wish = wish("gpuClusterAvailable", 1);
    let later = |mode: &Mode, seconds| {
        let published = mode.score(&nodes, &[], TAKEN);
        mode.weighted(Some(&published), &wish, at(seconds))
    };

    assert_eq!(Mode::Compat.score(&nodes, &[], TAKEN).valid_until, None);
    assert_eq!(later(&Mode::Compat, 1_000_000_000), Ok(20));

    assert_eq!(correct().score(&nodes, &[], TAKEN).valid_until, Some(at(180)));
    assert_eq!(later(&correct(), 180), Ok(20));
    assert_eq!(later(&correct(), 181), Ok(-100));
}

#[test]
fn a_period_without_an_end_is_valid_as_long_as_there_is_time() {
    let taken = crate::placement::ListingTime {
        every: SignedDuration::MAX,
        ..TAKEN
    };

    assert_eq!(correct().score(&[], &[], taken).valid_until, Some(Timestamp::MAX));
}

#[test]
fn defect_4_three_large_nodes_and_three_hundred_do_not_score_alike() {
    let fleet = |count| vec![node("dgx", gpus(8)); count];
    let (small, large) = (fleet(3), fleet(300));
    let rules = Rules::new(Ceilings::ADDON);
    let ceilings = Ceilings::of_fleet([small.as_slice(), large.as_slice()], &rules.gpu_names);
    let mended = Mode::Correct(Rules { ceilings, ..rules });
    let of = |mode: &Mode, nodes: &[ObservedNode]| score(mode, "gpuClusterAvailable", nodes, &[]);

    // 24 and 2400 are both above 20.
    assert_eq!((of(&Mode::Compat, &small), of(&Mode::Compat, &large)), (100, 100));
    // 200 * 24 / 2400 - 100
    assert_eq!((of(&mended, &small), of(&mended, &large)), (-98, 100));
    assert_eq!(score(&mended, "gpuNodeAvailable", &small, &[]), 100); // 8 of the 8 that a node has
}

#[test]
fn defect_5_an_init_container_counts_for_its_own_pod_in_any_order_of_pods() {
    let nodes = [node("a", gpus(8))];
    let plain = pod("a", gpus(4));
    let with_init = Pod {
        init_containers: vec![init(gpus(2))],
        ..pod("a", gpus(1))
    };
    let (one, other) = ([plain.clone(), with_init.clone()], [with_init, plain]);

    // The addon: 4, then 5, which is more than 2 already: 3 free. The right way: 4 and max(1, 2): 2 free.
    assert_eq!(both("gpuClusterAvailable", &nodes, &one), (-70, -80));
    // The addon: 1, raised to 2, then 6: 2 free.
    assert_eq!(both("gpuClusterAvailable", &nodes, &other), (-80, -80));
}

#[test]
fn defect_5_a_sidecar_is_counted_beside_the_containers_and_the_init_containers_after_it() {
    let nodes = [node("a", gpus(8))];
    let with = |init_containers| Pod {
        init_containers,
        ..pod("a", gpus(2))
    };

    // The addon: max(2, 1). The right way: 2 + 1.
    let beside = with(vec![sidecar(gpus(1))]);
    assert_eq!(both("gpuNodeAvailable", &nodes, &[beside]), (-40, -50));

    // The addon: max(2, 1, 4). The right way: max(2 + 1, 4 + 1), as the sidecar is there by then.
    let after = with(vec![sidecar(gpus(1)), init(gpus(4))]);
    assert_eq!(both("gpuNodeAvailable", &nodes, &[after]), (-60, -70));

    // The right way: max(2 + 1, 4), as the init container has ended before the sidecar starts.
    let before = with(vec![init(gpus(4)), sidecar(gpus(1))]);
    assert_eq!(both("gpuNodeAvailable", &nodes, &[before]), (-60, -60));
}

#[test]
fn defect_6_nodes_that_take_no_pods_are_no_capacity() {
    let nodes = [
        node("fine", gpus(4)),
        ObservedNode {
            ready: ConditionStatus::False,
            ..node("broken", gpus(3))
        },
        ObservedNode {
            ready: ConditionStatus::Unknown,
            ..node("lost", gpus(1))
        },
        tainted(node("kept", gpus(2)), "team", TaintEffect::NoSchedule),
        tainted(node("drained", gpus(6)), "maintenance", TaintEffect::NoExecute),
        cordoned(node("cordoned", gpus(8))),
    ];

    // 16 free for the addon, 4 in truth.
    assert_eq!(both("gpuClusterAvailable", &nodes, &[]), (60, -60));
    assert_eq!(both("gpuNodeAvailable", &nodes, &[]), (-40, -60));
}

#[test]
fn taints_that_are_tolerated_or_only_a_preference_leave_a_node_in() {
    let nodes = [
        tainted(node("gpu", gpus(4)), GPU, TaintEffect::NoSchedule),
        tainted(node("spare", gpus(2)), "spare", TaintEffect::PreferNoSchedule),
        tainted(node("team", gpus(1)), "team", TaintEffect::NoSchedule),
    ];
    let mut rules = Rules::new(Ceilings::ADDON);
    assert_eq!(both("gpuClusterAvailable", &nodes, &[]), (-30, -40));

    rules.tolerations.push(Toleration {
        key: Some("team".to_owned()),
        ..Toleration::default()
    });
    assert_eq!(
        score(&Mode::Correct(rules), "gpuClusterAvailable", &nodes, &[]),
        -30
    );
}

#[test]
fn defect_7_mig_devices_and_amd_gpus_count_as_gpus() {
    let nodes = [
        node(
            "mig",
            list(&[("nvidia.com/mig-1g.10gb", "7"), ("nvidia.com/mig-3g.40gb", "2")]),
        ),
        node("amd", list(&[("amd.com/gpu", "4")])),
    ];
    let pods = [pod("mig", list(&[("nvidia.com/mig-1g.10gb", "3")]))];

    // 4 + 2 + 4 free
    assert_eq!(both("gpuClusterAvailable", &nodes, &pods), (-100, 0));
    assert_eq!(both("gpuNodeAvailable", &nodes, &pods), (-100, -40));
}

#[test]
fn defect_7_what_is_a_gpu_is_a_matter_of_configuration() {
    let nodes = [node(
        "a",
        list(&[
            (GPU, "4"),
            ("nvidia.com/mig-1g.10gb", "7"),
            ("intel.com/gpu", "2"),
        ]),
    )];
    let mut rules = Rules::new(Ceilings::ADDON);
    rules.gpu_names = vec![
        GpuName::Is(GPU.to_owned()),
        GpuName::StartsWith("intel.com/".to_owned()),
    ];

    assert_eq!(score(&Mode::Correct(rules), "gpuNodeAvailable", &nodes, &[]), -40);
}

#[test]
fn defect_8_a_failure_of_the_node_scope_publishes_nothing() {
    let cluster = || Ok(PerResource::from_fn(|_| 20));
    let failed = || Err("no list of nodes");
    let node_gpus = "gpuNodeAvailable".parse().expect("a score");

    // As high as with 10 of 20 GPUs free on a node.
    let published = Mode::Compat
        .combine(failed(), cluster())
        .expect("the addon goes on");
    assert_eq!(published[&node_gpus], 0);
    assert_eq!(published.len(), 8);

    assert_eq!(correct().combine(failed(), cluster()), Err("no list of nodes"));
    for mode in [Mode::Compat, correct()] {
        assert_eq!(mode.combine(cluster(), failed()), Err("no list of nodes"));
    }
}

#[test]
fn defect_9_scoring_again_leaves_the_score_before_as_it_was() {
    let nodes = [node("a", gpus(12))];
    for mode in [Mode::Compat, correct()] {
        let before = mode.score(&nodes, &[], TAKEN);
        let kept = before.clone();
        let after = mode.score(&nodes, &[pod("a", gpus(2))], TAKEN);

        assert_eq!(before, kept);
        assert_ne!(before, after);
    }
}

#[test]
fn defect_10_each_pod_is_looked_at_once() {
    let nodes = [node("a", gpus(4)), node("b", gpus(4))];
    let pods = [pod("a", gpus(1)), pod("b", gpus(1)), pod("b", gpus(1))];

    // The addon goes through the 3 pods for each of 4 resources, 2 scopes and 2 nodes; not for a node that does not
    // list the resource in the node scope, which leaves 30 of 48.
    for mode in [Mode::Compat, correct()] {
        let looked_at = Cell::new(0);
        let counted = pods.iter().inspect(|_| looked_at.set(looked_at.get() + 1));
        mode.score(&nodes, counted, TAKEN);

        assert_eq!(looked_at.get(), 3);
    }
}

#[test]
fn defect_11_a_name_that_no_score_has_is_refused() {
    let published = correct().score(&[node("a", gpus(12))], &[], TAKEN);
    let ask = |mode: &Mode, name| mode.weighted(Some(&published), &wish(name, 1), TAKEN.at);

    assert_eq!(ask(&Mode::Compat, "gpuAvailable"), Ok(0));
    let error = ask(&correct(), "gpuAvailable").expect_err("the README's name");
    assert_eq!(
        error.to_string(),
        "no score is named `gpuAvailable`; there are cpuNodeAvailable, cpuClusterAvailable, memNodeAvailable, \
         memClusterAvailable, gpuNodeAvailable, gpuClusterAvailable, tpuNodeAvailable, tpuClusterAvailable"
    );
    assert_eq!(ask(&correct(), "gpuClusterAvailable"), Ok(20));
}

#[test]
fn defect_12_nodes_and_pods_are_only_read() {
    let may = |mode: &Mode, side, verb| {
        let rules = mode.permissions(side).iter();
        let about = |resource: &&str| matches!(*resource, "nodes" | "pods");
        rules
            .filter(|rule| rule.verbs.contains(&verb))
            .flat_map(|rule| rule.resources)
            .filter(|resource| about(resource))
            .count()
    };
    for verb in ["create", "update", "delete", "deletecollection", "patch"] {
        for side in [Side::ManagedCluster, Side::Hub] {
            assert_eq!(may(&Mode::Compat, side, verb), 2, "{verb} {side:?}");
            assert_eq!(may(&correct(), side, verb), 0, "{verb} {side:?}");
        }
    }
    for verb in ["get", "list", "watch"] {
        assert_eq!(may(&correct(), Side::ManagedCluster, verb), 2, "{verb}");
    }
}

#[test]
fn defect_13_eight_free_gpus_on_eight_nodes_are_told_from_eight_on_one() {
    let scattered: Vec<_> = (0..8).map(|n| node(&format!("n{n}"), gpus(1))).collect();
    let whole = [node("a", gpus(8))];
    let of = |mode: &Mode, nodes: &[ObservedNode]| {
        let published = mode.score(nodes, &[], TAKEN);
        let blocks = published.blocks;
        let free = published.scores[&"gpuClusterAvailable".parse().expect("a score")];
        (
            free,
            blocks.map(|blocks| (blocks.largest, blocks.fragmentation())),
        )
    };

    assert_eq!(of(&Mode::Compat, &scattered), (-20, None));
    assert_eq!(of(&Mode::Compat, &whole), (-20, None));
    assert_eq!(
        of(&correct(), &scattered),
        (-20, Some((Quantity(1), Some(0.875))))
    );
    assert_eq!(of(&correct(), &whole), (-20, Some((Quantity(8), Some(0.0)))));
}

#[test]
fn nothing_free_is_in_no_pieces() {
    let blocks = |nodes: &[ObservedNode], pods: &[Pod]| {
        let blocks = correct().score(nodes, pods, TAKEN).blocks;
        blocks.expect("a correct score has them")
    };

    for (why, none) in [
        ("no node", blocks(&[], &[])),
        ("all in use", blocks(&[node("a", gpus(2))], &[pod("a", gpus(2))])),
    ] {
        assert_eq!((none.free, none.largest), (Quantity(0), Quantity(0)), "{why}");
        assert_eq!(none.fragmentation(), None, "{why}");
    }
}

#[test]
fn scopes_have_ceilings_of_their_own() {
    let mut rules = Rules::new(Ceilings::ADDON);
    rules.ceilings.node.gpu = Quantity(8);
    let free = PerResource::from_fn(|_| Quantity(4));
    let mode = Mode::Correct(rules);

    assert_eq!(mode.normalise(Scope::Node, free).gpu, 0);
    assert_eq!(mode.normalise(Scope::Cluster, free).gpu, -60);
}

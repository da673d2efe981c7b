//! What a blueprint asks for: pod sets, further resources, nodes and tolerations.

use blueproof_queue::{
    PodSet, Quantity,
    objects::{TaintEffect, Toleration},
};

use super::*;

const SEVERAL: &str = r#"
parameters: {gpus: {type: int, default: 8, min: 1}}
driver:
  resources: {nvidia.com/mig-1g.10gb: 1, ephemeral-storage: 20Gi}
  nodeSelector: {nvidia.com/gpu.product: A100}
  tolerations:
    - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
    - {key: team, value: red}
    - {operator: Exists}
workload:
  podSets:
    - {name: launcher}
    - {name: trainer, count: 4, cpu: 2, memory: 16Gi, resources: {amd.com/gpu: "{{gpus}}"}}
profiles:
  nvidia: {workload: {podSets: [{name: trainer, count: 2, gpu: 1}]}, driver: {resources: {ephemeral-storage: null}}}
  plain: {workload: {podSets: null, nodes: 3}, driver: {nodeSelector: null, tolerations: []}}
"#;

fn resolved(spec: &str, profile: Option<&str>) -> Vec<PodSet> {
    let folder = folder(spec);
    let loaded = Blueprint::load(folder.path()).expect("it is valid");
    let resolved = loaded.resolve(profile, &[]).expect("it resolves");
    resolved.pod_sets.into()
}

fn requests(set: &PodSet) -> Vec<(&str, i64)> {
    let requests = set.requests.iter();
    requests
        .map(|(resource, amount)| (resource.as_str(), amount.0))
        .collect()
}

#[test]
fn pod_sets_have_their_counts_and_resources_by_their_kubernetes_names() {
    let sets = resolved(SEVERAL, None);
    let named: Vec<_> = sets.iter().map(|set| (set.name.as_str(), set.count)).collect();
    assert_eq!(named, [("driver", 1), ("launcher", 1), ("trainer", 4)]);
    assert_eq!(
        requests(&sets[0]),
        [
            ("cpu", 1000),
            ("ephemeral-storage", 20 << 30),
            ("memory", 1 << 30),
            ("nvidia.com/mig-1g.10gb", 1)
        ]
    );
    assert_eq!(
        requests(&sets[2]),
        [("amd.com/gpu", 8), ("cpu", 2000), ("memory", 16 << 30)]
    );
}

#[test]
fn a_workload_of_nodes_is_one_pod_set() {
    let sets = resolved("workload: {nodes: 4, perNode: {gpu: 8}}", None);
    assert_eq!((sets[1].name.as_str(), sets[1].count), ("workload", 4));
    assert_eq!(sets[1].requests["nvidia.com/gpu"], Quantity(8));
    let by_name = resolved(
        "workload: {nodes: 4, perNode: {resources: {nvidia.com/gpu: 8}}}",
        None,
    );
    assert_eq!(by_name, sets, "`gpu` is short for it");
}

#[test]
fn node_selectors_and_tolerations_are_those_of_a_pod() {
    let sets = resolved(SEVERAL, None);
    assert_eq!(sets[0].node_selector["nvidia.com/gpu.product"], "A100");
    let toleration = |key: Option<&str>, value: Option<&str>, effect| Toleration {
        key: key.map(str::to_owned),
        value: value.map(str::to_owned),
        effect,
    };
    assert_eq!(
        sets[0].tolerations,
        [
            toleration(Some("nvidia.com/gpu"), None, Some(TaintEffect::NoSchedule)),
            toleration(Some("team"), Some("red"), None),
            toleration(None, None, None),
        ]
    );
}

#[test]
fn a_profile_changes_what_is_asked_for() {
    let sets = resolved(SEVERAL, Some("nvidia"));
    assert_eq!(sets.len(), 2, "lists are replaced");
    assert_eq!(sets[1].requests["nvidia.com/gpu"], Quantity(1));
    assert!(!sets[0].requests.contains_key("ephemeral-storage"));
    assert!(sets[0].requests.contains_key("nvidia.com/mig-1g.10gb"));
    let sets = resolved(SEVERAL, Some("plain"));
    assert_eq!((sets[1].name.as_str(), sets[1].count), ("workload", 3));
    assert!(sets[0].node_selector.is_empty() && sets[0].tolerations.is_empty());
}

#[test]
fn mistakes_in_what_is_asked_for_are_shown_each_at_its_place() {
    let spec = r#"
driver:
  gpu: 1
  resources:
    nvidia.com/gpu: 1
    amd.com/gpu: 0
    google.com/tpu: -1
    ephemeral-storage: 1.5
    example.com/a: many
  nodeSelector: {gpu: a10}
workload:
  podSets:
    - {name: driver, count: 0}
    - {name: trainer, resources: {rdma/hca: "{{absent}}"}}
    - {name: trainer, count: 4000000000}
    - {name: Big_One}
"#;
    insta::assert_snapshot!(shown(&errors(spec)));
}

#[test]
fn what_kubernetes_would_refuse_of_a_pod_is_refused() {
    let spec = r#"
driver:
  resources:
    cpu: 1
    memory: 2Gi
    gpu: 1
    nvidia.com/GPU: 1
    requests.nvidia.com/gpu: 1
    kubernetes.io/x: 1
  nodeSelector: {"-gpu": a10, disk: 1, zone: "a b", "a/b/c": x}
  tolerations:
    - {key: team, operator: In}
    - {key: team, effect: NoRun}
    - {key: team, tolerationSeconds: 60}
"#;
    insta::assert_snapshot!(shown(&errors(spec)));
}

#[test]
fn a_workload_is_told_in_one_way_and_tolerations_as_in_kubernetes() {
    for (workload, code) in [
        ("{nodes: 2, podSets: [{name: a}]}", Code::BadValue),
        ("{perNode: {cpu: 1}, podSets: [{name: a}]}", Code::BadValue),
        ("{podSets: []}", Code::BadValue),
        ("{podSets: [{name: a, minCount: 1}]}", Code::NotSupportedYet),
        ("{podSets: [{count: 2}]}", Code::MissingKey),
        ("{podSets: [{name: a, memory: 2}]}", Code::BadValue),
        ("{nodes: 150001}", Code::TooMuch),
        (
            "{nodes: 3, perNode: {resources: {example.com/a: 4Ei}}}",
            Code::TooMuch,
        ),
    ] {
        assert_eq!(codes(&format!("workload: {workload}")), [code], "{workload}");
    }
    for toleration in [
        "{key: 'a b', operator: Exists}",
        "{value: red}",
        "{key: team, operator: Exists, value: red}",
        "{key: team, value: 'a b'}",
    ] {
        let spec = format!("driver: {{tolerations: [{toleration}]}}");
        assert_eq!(codes(&spec), [Code::BadValue], "{toleration}");
    }
    let eight: Vec<String> = (0..8).map(|number| format!("{{name: set-{number}}}")).collect();
    let all = |sets: &[String]| format!("workload: {{podSets: [{}]}}", sets.join(", "));
    assert_eq!(codes(&all(&eight)), [Code::BadValue]);
    assert_eq!(resolved(&all(&eight[1..]), None).len(), 8);
}

//! Further resources, labels of nodes and pod sets on one machine: refused, pending, or told.

use std::fs;

use serde_json::json;

use crate::common::{Checkout, Home};

const QUOTA: &str = "
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: box}
spec: {nodeLabels: {gpu: mi300x}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: local}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory, amd.com/gpu]
    flavors:
    - name: box
      resources:
      - {name: cpu, nominalQuota: 8}
      - {name: memory, nominalQuota: 64Gi}
      - {name: amd.com/gpu, nominalQuota: 8}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: local, namespace: default}
spec: {clusterQueue: local}
";

fn asking(spec: &str) -> Checkout {
    Checkout::new(&["print('it ran')"], &format!("  {spec}\n"))
}

fn with_quota() -> Home {
    let home = Home::new();
    fs::write(home.path().join("quota.yaml"), QUOTA).expect("a file");
    let applied = home.blueproof(&["quota", "apply", "-f", "quota.yaml"]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    home
}

#[test]
fn what_this_machine_has_no_quota_of_is_refused_and_never_run_without_it() {
    let home = Home::new();
    for (spec, code, says) in [
        (
            "driver: {resources: {amd.com/gpu: 1}}",
            "BP0801",
            "asks for 1 amd.com/gpu, and the queue has a quota of none",
        ),
        (
            "workload: {nodes: 2, perNode: {resources: {nvidia.com/mig-1g.10gb: 1}}}",
            "BP0801",
            "asks for 2 nvidia.com/mig-1g.10gb",
        ),
        (
            "driver: {nodeSelector: {gpu: mi300x}}",
            "BP0805",
            "asks for nodes with the label gpu=mi300x",
        ),
    ] {
        let checkout = asking(spec);
        let ran = home.blueproof(&["run", checkout.typed()]);
        assert_eq!(ran.code, Some(6), "{spec}: {ran:?}");
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains(code) && told.contains(says), "{spec}: {told}");
        if !home.is_local() {
            // What a scheduler elsewhere has is not looked at before a run is requested there.
            continue;
        }
        let checked = home.blueproof(&["check", checkout.typed()]);
        assert_eq!(checked.code, Some(2), "{spec}: {checked:?}");
        assert!(checked.stdout.contains(code), "{spec}: {checked:?}");
    }
}

#[test]
fn with_quota_of_it_a_run_has_it_counted_and_is_told_that_nothing_hands_it_out() {
    let home = with_quota();
    let checkout = asking(
        "workload: {podSets: [{name: trainer, count: 2, memory: 16Mi, resources: {amd.com/gpu: 2}, \
         nodeSelector: {gpu: mi300x}}]}",
    );
    let ran = home.blueproof(&["run", checkout.typed()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let view = home.last();
    assert_eq!(view["furtherResources"], json!({ "amd.com/gpu": 4 }));
    let notices = &view["attempts"][0]["outcome"]["notices"];
    assert!(
        notices.to_string().contains(
            "amd.com/gpu was asked for: 4 (spec.driver, spec.workload); on this machine that is not enforced"
        ),
        "{notices}"
    );
    let described = home.blueproof(&["describe", "run", "last"]).stdout;
    assert!(described.contains(", 4 amd.com/gpu"), "{described}");
    let listed = home.blueproof(&["get", "runs", "-o", "wide"]).stdout;
    assert!(listed.contains("4 amd.com/gpu"), "{listed}");
}

#[test]
fn with_quota_that_has_no_flavor_for_it_a_run_waits_with_kueues_reason() {
    let home = with_quota();
    for (spec, run) in [
        ("driver: {resources: {google.com/tpu: 1}}", "r-1"),
        ("driver: {nodeSelector: {gpu: h100}}", "r-2"),
    ] {
        let checkout = asking(spec);
        let asked = home.blueproof(&["run", checkout.typed(), "--detach"]);
        assert_eq!(asked.code, Some(0), "{spec}: {asked:?}");
        home.until_waits(run, "NoMatchingFlavor");
        let cancelled = home.blueproof(&["cancel", run]);
        assert_eq!(cancelled.code, Some(0), "{spec}: {cancelled:?}");
    }
}

#[test]
fn a_label_that_no_flavor_has_is_looked_for_once_and_the_run_ends_with_it() {
    let home = with_quota();
    let checkout = asking("driver: {nodeSelector: {rack: r12}}");
    let ran = home.blueproof(&["run", checkout.typed()]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let view = home.last();
    assert_eq!(view["attempts"].as_array().map(Vec::len), Some(1));
    let failure = &view["failure"];
    assert_eq!(failure["class"], "config", "{failure}");
    assert_eq!(
        failure["diagnostic"]["message"],
        "the pod set driver asks for a node with the label rack=r12, and none of its flavors has it"
    );
}

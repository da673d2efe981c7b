//! What is refused, each with its code, its place and what to do.

use blueproof_diagnostic::Code;

use super::{A10, assert_refused, gpus, of, queue};

#[test]
fn a_field_that_cannot_be_acted_upon_is_refused_by_name_where_it_is_set() {
    for (field, says) in [
        ("admissionChecks: [check]", "admission checks"),
        (
            "admissionChecksStrategy: {admissionChecks: [{name: check}]}",
            "admission checks",
        ),
        (
            "concurrentAdmissionPolicy: {migration: {mode: RetainFirstAdmission}}",
            "one flavor at a time",
        ),
    ] {
        let name = field.split(':').next().expect("a name");
        let text = queue(&format!("  ¶{field}\n"));
        assert_refused(&text, Code::NotSupportedYet, says);
        assert_refused(&text, Code::NotSupportedYet, name);
        assert!(
            of(&queue(&format!("  {name}: null\n"))).is_ok(),
            "{name} is not set"
        );
    }
    let selector = queue("").replace("{}", "¶{matchLabels: {team: a}}");
    assert_refused(&selector, Code::NotSupportedYet, "namespaceSelector: {}");
    for all in [
        "{matchExpressions: []}",
        "{matchLabels: {}, matchExpressions: []}",
    ] {
        assert!(
            of(&queue("").replace("{}", all)).is_ok(),
            "{all} selects every namespace"
        );
    }
    let topology = format!("{A10}spec: {{¶topologyName: racks}}\n");
    assert_refused(&topology, Code::NotSupportedYet, "topologyName");
    let seconds = format!(
        "{A10}spec:\n  tolerations: [{{operator: Exists, effect: NoExecute, ¶tolerationSeconds: 9}}]\n"
    );
    assert_refused(&seconds, Code::NotSupportedYet, "tolerationSeconds");
    let enable = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n\
                  fairSharing: {¶enable: true, preemptionStrategies: [LessThanInitialShare]}\n";
    assert_refused(enable, Code::NotSupportedYet, "enable");
}

#[test]
fn a_field_that_nobody_knows_is_refused_with_the_nearest_one() {
    for (spec, code, says) in [
        (
            "  ¶queueingStrateggy: StrictFIFO\n",
            Code::UnknownKey,
            "`queueingStrategy`",
        ),
        (
            "  queueingStrategy: ¶StrictFifo\n",
            Code::BadValue,
            "`StrictFIFO`",
        ),
        ("  stopPolicy: ¶Drain\n", Code::BadValue, "HoldAndDrain"),
        (
            "  preemption: {¶withinClusterQeue: Never}\n",
            Code::UnknownKey,
            "`withinClusterQueue`",
        ),
        (
            &gpus("¶nominalQouta: 1, nominalQuota: 1"),
            Code::UnknownKey,
            "`nominalQuota`",
        ),
        (
            "  ¶cohort: main\n",
            Code::UnknownKey,
            "did you mean `cohortName`?",
        ),
    ] {
        assert_refused(&queue(spec), code, says);
    }
}

fn object(version: &str, kind: &str) -> String {
    format!("apiVersion: {version}\nkind: ¶{kind}\nmetadata: {{name: x}}\n")
}

#[test]
fn kinds_that_are_not_read_are_refused_by_name_with_the_reason() {
    for (version, kind, says) in [
        ("v1", "ConfigMap", "ConfigMap"),
        ("batch/v1", "Job", "Job"),
        ("scheduling.k8s.io/v1", "PriorityClass", "PriorityClass"),
        ("kueue.x-k8s.io/v1beta2", "AdmissionCheck", "admission checks"),
        ("kueue.x-k8s.io/v1beta2", "MultiKueueCluster", "one machine"),
        ("kueue.x-k8s.io/v1beta2", "MultiKueueConfig", "one machine"),
        (
            "kueue.x-k8s.io/v1beta2",
            "ProvisioningRequestConfig",
            "makes nodes",
        ),
        ("kueue.x-k8s.io/v1beta2", "Topology", "no topology"),
        (
            "kueue.x-k8s.io/v1beta2",
            "Workload",
            "`blueproof run` asks for it",
        ),
    ] {
        assert_refused(&object(version, kind), Code::QueueObjectKind, says);
        let older = version.replace("v1beta2", "v1beta1");
        assert_refused(&object(&older, kind), Code::QueueObjectKind, says);
    }
}

#[test]
fn other_kinds_and_other_versions_are_named() {
    for (version, kind, code, says) in [
        (
            "kueue.x-k8s.io/v1alpha1",
            "ClusterQueue",
            Code::QueueObjectVersion,
            "kubectl get clusterqueues.v1beta2",
        ),
        (
            "kueue.x-k8s.io/v1alpha1",
            "WorkloadPriorityClass",
            Code::QueueObjectVersion,
            "kubectl get workloadpriorityclasses.v1beta2",
        ),
        (
            "config.kueue.x-k8s.io/v1alpha1",
            "Configuration",
            Code::QueueObjectVersion,
            "v1beta2",
        ),
        (
            "kueue.x-k8s.io/v1beta2",
            "Topology",
            Code::QueueObjectKind,
            "no topology",
        ),
        (
            "kueue.x-k8s.io/v1beta2",
            "ClusterQueu",
            Code::QueueObjectKind,
            "`ClusterQueue`",
        ),
        ("v1", "Namespace", Code::QueueObjectKind, "Namespace"),
    ] {
        assert_refused(&object(version, kind), code, says);
    }
    assert_refused("¶- a\n", Code::WrongType, "object");
    assert_refused("¶kind: ClusterQueue\n", Code::MissingKey, "apiVersion");
    assert_refused("a: ¶[1\n", Code::YamlSyntax, "Kueue's objects");
}

#[test]
fn a_resource_in_the_wrong_case_is_told_which_one_is_meant() {
    let wrong = gpus("nominalQuota: 1").replace("nvidia.com/gpu", "nvidia.com/GPU");
    let found = of(&queue(&wrong)).expect_err("nobody asks for it");
    let places: Vec<_> = found
        .iter()
        .map(|one| (one.code, one.place.as_ref().and_then(|at| at.line)))
        .collect();
    assert_eq!(
        places,
        [
            (Code::QueueResourceCase, Some(8)),
            (Code::QueueResourceCase, Some(12))
        ]
    );
    assert_eq!(found[0].hints, ["did you mean `nvidia.com/gpu`?"]);

    let first = queue(&gpus("nominalQuota: 1").replace("nvidia.com/gpu", "acme.com/Accel"));
    let second = first
        .replace("acme.com/Accel", "acme.com/accel")
        .replace("team-a", "team-b");
    let found = of(&format!("{first}---\n{second}")).expect_err("one of them is not meant");
    assert!(
        found.iter().all(|one| one.code == Code::QueueResourceCase),
        "{found:#?}"
    );
    assert_eq!(found[0].hints, ["did you mean `acme.com/Accel`?"]);
}

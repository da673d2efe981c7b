//! What is refused, each with its code, its place and what to do.

use super::{A10, assert_refused, gpus, of, queue};
use crate::{diagnostic::Code, queue::Quantity};

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
        ("  ¶cohort: main\n", Code::UnknownKey, "cohortName"),
    ] {
        assert_refused(&queue(spec), code, says);
    }
}

#[test]
fn amounts_and_limits_that_kueue_refuses_are_refused() {
    let in_cohort = |quota| format!("  cohortName: main\n{}", gpus(quota));
    for (spec, code, says) in [
        (
            gpus("nominalQuota: 1, borrowingLimit: ¶1"),
            Code::QueueRule,
            "cohortName",
        ),
        (
            gpus("nominalQuota: 1, lendingLimit: ¶1"),
            Code::QueueRule,
            "cohortName",
        ),
        (
            in_cohort("nominalQuota: 1, lendingLimit: ¶2"),
            Code::QueueRule,
            "more than",
        ),
        (gpus("nominalQuota: ¶-1"), Code::BadValue, "negative"),
        (gpus("nominalQuota: ¶1 Gi"), Code::BadValue, "512Mi"),
        (gpus("¶nominalQuota: null"), Code::MissingKey, "nominalQuota"),
        ("  fairSharing: {weight: ¶1n}\n".into(), Code::QueueRule, "1n"),
        (
            "  fairSharing: {weight: ¶-1}\n".into(),
            Code::BadValue,
            "negative",
        ),
    ] {
        assert_refused(&queue(&spec), code, says);
    }
}

#[test]
fn groups_that_kueue_refuses_are_refused() {
    let quotas = |names: &str| {
        let quotas = names
            .split(' ')
            .map(|name| format!("{{name: {name}, nominalQuota: 1}}"));
        format!("[{}]", quotas.collect::<Vec<_>>().join(", "))
    };
    let group = |covered: &str, flavor: &str, quotas: &str| {
        format!("  - {{coveredResources: [{covered}], flavors: [{{name: {flavor}, resources: {quotas}}}]}}\n")
    };
    let cpu = quotas("cpu");
    for (groups, code, says) in [
        (
            group("cpu, memory", "a10", &quotas("¶memory cpu")),
            Code::QueueRule,
            "in the order",
        ),
        (
            group("cpu, memory", "a10", &format!("¶{cpu}")),
            Code::QueueRule,
            "covers cpu, memory",
        ),
        (
            group("cpu", "a10", &cpu) + &group("¶cpu", "h200", &cpu),
            Code::QueueRule,
            "covered twice",
        ),
        (
            group("cpu", "a10", &cpu) + &group("pods", "¶a10", &quotas("pods")),
            Code::QueueRule,
            "one group",
        ),
        (group("cpu", "¶A10", &cpu), Code::BadValue, "a-z"),
        (
            group("¶-a", "a10", &quotas("-a")),
            Code::QueueRule,
            "nvidia.com/gpu",
        ),
        (group("cpu", "a10", "¶[]"), Code::BadValue, "1 to 64"),
    ] {
        assert_refused(&queue(&format!("  resourceGroups:\n{groups}")), code, says);
    }
}

#[test]
fn policies_that_kueue_refuses_are_refused() {
    for (spec, says) in [
        (
            "preemption: {borrowWithinCohort: ¶{policy: LowerPriority}}",
            "reclaimWithinCohort",
        ),
        (
            "flavorFungibility: {preference: ¶PreemptionOverBorrowing}",
            "TryNextFlavor",
        ),
    ] {
        assert_refused(&queue(&format!("  {spec}\n")), Code::QueueRule, says);
    }
}

#[test]
fn lists_are_as_long_as_kueue_lets_them_be() {
    let flavor = |n: usize| format!("{{name: f{n}, resources: [{{name: cpu, nominalQuota: 1}}]}}");
    let flavors = |count: usize| (0..count).map(flavor).collect::<Vec<_>>().join(", ");
    let group = |count| {
        format!(
            "  resourceGroups: [{{coveredResources: [cpu], flavors: ¶[{}]}}]\n",
            flavors(count)
        )
    };
    assert!(of(&queue(&group(64)).replace('¶', "")).is_ok());
    assert_refused(&queue(&group(65)), Code::BadValue, "1 to 64");
    let many: Vec<String> = (0..5)
        .map(|n| {
            let flavors = (0..52)
                .map(|m| flavor(n * 100 + m))
                .collect::<Vec<_>>()
                .join(", ");
            format!("{{coveredResources: [cpu], flavors: [{flavors}]}}").replace("cpu", &format!("r{n}"))
        })
        .collect();
    let all = format!("  resourceGroups: [¶{}]\n", many.join(", "));
    assert_refused(&queue(&all), Code::QueueRule, "256");
    let covered: Vec<String> = (0..64).map(|n| format!("r{n}")).collect();
    let quotas: Vec<String> = covered
        .iter()
        .map(|r| format!("{{name: {r}, nominalQuota: 1}}"))
        .collect();
    let flavors: Vec<String> = (0..9)
        .map(|n| format!("{{name: f{n}, resources: [{}]}}", quotas.join(", ")))
        .collect();
    let group = format!(
        "{{coveredResources: [{}], flavors: [{}]}}",
        covered.join(", "),
        flavors.join(", ")
    );
    assert_refused(
        &queue(&format!("  resourceGroups: [¶{group}]\n")),
        Code::QueueRule,
        "512",
    );
}

#[test]
fn what_kueue_refuses_of_flavors_is_refused() {
    for (spec, code, says) in [
        ("nodeLabels: {¶a/b/c: x}", Code::BadValue, "not a label"),
        ("nodeLabels: {gpu: ¶true}", Code::WrongType, "quotes"),
        (
            "nodeTaints: [{key: a, effect: ¶Never}]",
            Code::BadValue,
            "NoExecute",
        ),
        (
            "nodeTaints: [{key: a, effect: NoSchedule}, ¶{key: a, value: b, effect: NoSchedule}]",
            Code::QueueRule,
            "twice",
        ),
        (
            "nodeTaints: [¶{key: a b, effect: NoSchedule}]",
            Code::QueueRule,
            "taint",
        ),
        ("tolerations: [¶{effect: NoSchedule}]", Code::QueueRule, "Exists"),
        (
            "tolerations: [¶{key: a, operator: Exists, value: b}]",
            Code::QueueRule,
            "no value",
        ),
    ] {
        assert_refused(&format!("{A10}spec:\n  {spec}\n"), code, says);
    }
}

#[test]
fn a_cohort_lends_what_it_likes_but_only_with_a_parent() {
    let cohort = |spec: &str| {
        format!("apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {{name: left}}\nspec:\n{spec}")
    };
    let limits = gpus("nominalQuota: 1, lendingLimit: 3");
    let marked = gpus("nominalQuota: 1, lendingLimit: ¶3");
    assert_refused(&cohort(&marked), Code::QueueRule, "parentName");
    let with_parent = of(&cohort(&format!("  parentName: root\n{limits}"))).expect("Kueue takes it");
    let group = &with_parent.objects.cohorts["left"].resource_groups[0];
    let quota = group.flavors[0].resources["nvidia.com/gpu"];
    assert_eq!(quota.lending_limit, Some(Quantity(3)));
}

#[test]
fn other_kinds_and_other_versions_are_named() {
    let object =
        |version: &str, kind: &str| format!("apiVersion: {version}\nkind: ¶{kind}\nmetadata: {{name: x}}\n");
    for (version, kind, code, says) in [
        (
            "kueue.x-k8s.io/v1beta1",
            "ClusterQueue",
            Code::QueueObjectVersion,
            "kubectl get clusterqueues.v1beta2",
        ),
        (
            "config.kueue.x-k8s.io/v1beta1",
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

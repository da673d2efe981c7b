//! Kueue's YAML as people write it and as clusters export it; what is refused, and where; and the way back.

mod kueues_rules;
mod older;
mod refused;
mod round_trip;

use std::collections::BTreeMap;

use blueproof_diagnostic::Code;
use jiff::SignedDuration;

use super::{super::objects::*, *};
use crate::Quantity;

fn file(name: &str, text: &str) -> File {
    File {
        name: name.into(),
        text: text.into(),
    }
}

fn of(text: &str) -> Result<Manifest, Vec<Diagnostic>> {
    read([file("queues.yaml", text)])
}

/// Returns a ClusterQueue with these lines below `spec:`, each indented by two already.
fn queue(spec: &str) -> String {
    format!(
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata:\n  name: team-a\nspec:\n  namespaceSelector: {{}}\n{spec}"
    )
}

/// Returns a group of one flavor with one quota for GPUs.
fn gpus(quota: &str) -> String {
    format!(
        "  resourceGroups:\n  - coveredResources: [nvidia.com/gpu]\n    flavors:\n    - name: a10\n      \
         resources:\n      - {{name: nvidia.com/gpu, {quota}}}\n"
    )
}

const A10: &str = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: a10}\n";

/// Sees that a text has this one mistake, where the text has a `¶`, and that its message or a hint says so much.
fn assert_refused(text: &str, code: Code, says: &str) {
    let (text, place) = unmarked(text);
    let found = of(&text).expect_err(&text);
    let [one] = &found[..] else {
        panic!(
            "one mistake, not {found:#?}
{text}"
        );
    };
    assert_eq!(one.code, code, "{one:?}");
    let at = one.place.as_ref().expect("a place");
    assert_eq!((at.line, at.column), place, "{one:?}\n{text}");
    assert!(!one.hints.is_empty(), "{one:?}");
    let words = format!("{} {} {}", one.message, one.causes.join(" "), one.hints.join(" "));
    assert!(words.contains(says), "`{says}`: {words}");
}

/// Takes the mark out of a text, and returns its line and column.
fn unmarked(text: &str) -> (String, (Option<u32>, Option<u32>)) {
    let before = &text[..text.find('¶').expect("a mark")];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    let number = |n| u32::try_from(n).ok();
    (text.replace('¶', ""), (number(line), number(column)))
}

#[test]
fn what_a_cluster_exports_is_read_as_it_is() {
    let manifest = of(include_str!("tests/exported.yaml")).expect("a cluster has it");
    assert_eq!(manifest.warnings, []);
    let quota = |nominal| Quota {
        nominal: Quantity(nominal),
        ..Quota::default()
    };
    let gpus = Quota {
        nominal: Quantity(8),
        borrowing_limit: Some(Quantity(8)),
        lending_limit: Some(Quantity(4)),
    };
    let resources = [
        ("cpu", quota(224_000)),
        ("memory", quota(2_000_000_000_000)),
        ("nvidia.com/gpu", gpus),
        ("pods", quota(100)),
    ];
    let queue = ClusterQueue {
        cohort: Some("default-cohort".into()),
        resource_groups: vec![ResourceGroup {
            flavors: vec![FlavorQuotas {
                name: "h200".into(),
                resources: resources.map(|(name, quota)| (name.into(), quota)).into(),
            }],
        }],
        preemption: Preemption {
            within_cluster_queue: WithinClusterQueue::LowerOrNewerEqualPriority,
            reclaim_within_cohort: ReclaimWithinCohort::Any,
            borrow_within_cohort: None,
        },
        ..ClusterQueue::default()
    };
    let flavor = ResourceFlavor {
        node_labels: BTreeMap::from([("example.com/gpu".into(), "h200".into())]),
        node_taints: vec![Taint {
            key: "nvidia.com/gpu".into(),
            value: String::new(),
            effect: TaintEffect::NoSchedule,
        }],
        tolerations: vec![Toleration {
            key: Some("nvidia.com/gpu".into()),
            value: None,
            effect: Some(TaintEffect::NoSchedule),
        }],
    };
    let local = LocalQueue {
        cluster_queue: "red-cluster-queue".into(),
        namespace: Some("red".into()),
        ..LocalQueue::default()
    };
    let expected = Objects {
        flavors: BTreeMap::from([("h200".into(), flavor)]),
        cluster_queues: BTreeMap::from([("red-cluster-queue".into(), queue)]),
        local_queues: BTreeMap::from([("default-queue".into(), local)]),
        priority_classes: BTreeMap::from([("high-priority".into(), 10)]),
        ..Objects::default()
    };
    assert_eq!(manifest.objects, expected);
}

#[test]
fn what_kueue_takes_and_nobody_means_is_a_warning() {
    let cohort = |name: &str, parent: &str| {
        format!(
            "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {{name: {name}}}\nspec: {{parentName: {parent}}}\n"
        )
    };
    let local = "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: q}\nspec: {clusterQueue: team-b}\n";
    let text = format!(
        "{}---\n{}{local}{}{}{}",
        queue(&gpus("nominalQuota: 1").replace("a10", "a11")),
        A10,
        cohort("a", "b"),
        cohort("b", "a"),
        cohort("c", "d"),
    );
    let manifest = of(&text).expect("Kueue takes it");
    let said: Vec<_> = manifest
        .warnings
        .iter()
        .map(|one| (one.code, one.message.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            (
                Code::QueueReference,
                "there is no ResourceFlavor `a11`, so the ClusterQueue `team-a` admits nothing"
            ),
            (
                Code::QueueReference,
                "there is no ClusterQueue `team-b`, so nobody gets through the LocalQueue `q`"
            ),
            (
                Code::QueueCircle,
                "the cohorts a, b are each other's parents, and admit nothing"
            ),
            (
                Code::QueueReference,
                "there is no Cohort `d`: it is taken as one without quota of its own"
            ),
        ]
    );
    assert_eq!(manifest.warnings[0].hints, ["did you mean `a10`?"]);

    let own = of(&cohort("lab", "lab")).expect("Kueue takes it").warnings;
    assert_eq!(
        own[0].message,
        "the cohort lab is its own parent, and admits nothing"
    );
    assert_eq!(own[0].hints, ["leave out its parentName"]);

    let unreachable = of(&queue("").replace("  namespaceSelector: {}\n", "")).expect("Kueue takes it");
    assert_eq!(unreachable.warnings[0].code, Code::QueueUnreachable);

    let local = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: q}\n";
    let nowhere = of(local).expect("Kueue takes it");
    assert_eq!(nowhere.warnings[0].code, Code::QueueReference);
    assert_eq!(nowhere.objects.local_queues["q"], LocalQueue::default());
}

#[test]
fn an_empty_key_tolerates_taints_of_any_key() {
    let flavor =
        of(&format!("{A10}spec:\n  tolerations: [{{key: '', value: b}}]\n")).expect("Kueue takes it");
    let toleration = &flavor.objects.flavors["a10"].tolerations[0];
    let taint = |value: &str| Taint {
        key: "any".into(),
        value: value.into(),
        effect: TaintEffect::NoSchedule,
    };
    assert!(toleration.tolerates(&taint("b")));
    assert!(!toleration.tolerates(&taint("c")));
}

#[test]
fn files_are_read_as_one_and_each_mistake_names_its_own() {
    let flavor = A10.to_owned();
    let apart = read([
        file("a.yaml", &queue(&gpus("nominalQuota: 1"))),
        file("b.yaml", &flavor),
    ]);
    assert_eq!(apart.expect("the flavor is in the other file").warnings, []);

    let found = read([file("a.yaml", &queue("")), file("b.yaml", &queue(""))]).expect_err("twice");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].code, Code::QueueObjectTwice);
    assert_eq!(found[0].place.as_ref().map(|at| at.file.as_str()), Some("b.yaml"));
    assert!(found[0].hints[0].contains("a.yaml:1:1"), "{found:#?}");
}

#[test]
fn the_documented_example_is_read_without_a_word() {
    let page = include_str!("../../../../docs/queues.md");
    let example = page
        .split("```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let example = example.expect("the page has one");
    let manifest = of(example).expect("it is right");
    assert_eq!(manifest.warnings, []);
    assert_eq!(manifest.objects.local_queues["red"].cluster_queue, "red");
    assert!(manifest.objects.priority_classes.contains_key("high"));

    let both: Vec<&str> = example.split("---\n").collect();
    let [.., queue, local] = &both[..] else {
        panic!("it ends with the two objects of a team");
    };
    let other = [queue, "---\n", local].concat().replace(": red\n", ": blue\n");
    let manifest = of(&format!("{example}---\n{other}")).expect("both are right");
    assert_eq!(manifest.warnings, []);
    let names: Vec<&String> = manifest.objects.local_queues.keys().collect();
    assert_eq!(names, ["blue", "red"]);
}

#[test]
fn all_mistakes_are_shown_at_once() {
    let text = queue("  stopPolicy: Maybe\n  topology: x\n") + "---\nkind: Job\napiVersion: batch/v1\n";
    let found = of(&text).expect_err("three mistakes");
    let codes: Vec<_> = found.iter().map(|one| one.code).collect();
    assert_eq!(codes, [Code::BadValue, Code::UnknownKey, Code::QueueObjectKind]);
}

#[test]
fn local_queues_of_one_name_are_known_by_their_namespace_too() {
    let local = |namespace: &str| {
        format!(
            "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\n\
             metadata: {{name: default-queue, namespace: {namespace}}}\nspec: {{clusterQueue: team-a}}\n"
        )
    };
    let manifest = of(&(queue("") + &local("red") + &local("blue"))).expect("clusters have that");
    let names: Vec<_> = manifest.objects.local_queues.keys().collect();
    assert_eq!(names, ["blue.default-queue", "red.default-queue"]);
    let codes: Vec<_> = manifest.warnings.iter().map(|one| one.code).collect();
    assert_eq!(codes, [Code::QueueRenamed; 2]);

    let alone = of(&(queue("") + &local("red"))).expect("one is enough");
    assert_eq!(
        alone.objects.local_queues.keys().collect::<Vec<_>>(),
        ["default-queue"]
    );
    assert_eq!(alone.warnings, []);
    for manifest in [&manifest, &alone] {
        let written = write(&manifest.objects);
        assert!(
            written.contains("  name: default-queue\n  namespace: red\n"),
            "as in the cluster that it is of: {written}"
        );
        assert_eq!(of(&written).expect("it was written").objects, manifest.objects);
    }
    let found = of(&(queue("") + &local("red") + &local("red"))).expect_err("the very same");
    assert!(
        found.iter().any(|one| one.code == Code::QueueObjectTwice),
        "{found:#?}"
    );
}

#[test]
fn amounts_are_counted_as_kueue_counts_them() {
    for (resource, text, count) in [
        ("cpu", "2", 2000),
        ("cpu", "'1.5'", 1500),
        ("cpu", "2.0", 2000),
        ("cpu", "100m", 100),
        ("cpu", "1u", 1),
        ("cpu", "1e3", 1_000_000),
        ("cpu", "+2", 2000),
        ("memory", "1Ki", 1024),
        ("memory", "1.5Gi", 3 << 29),
        ("memory", "2000G", 2_000_000_000_000),
        ("memory", "100m", 1),
        ("nvidia.com/gpu", "'0.1'", 1),
        ("pods", "1E", 1_000_000_000_000_000_000),
        ("pods", "9223372036854775807", i64::MAX),
        ("cpu", "9223372036854775807", i64::MAX),
        ("memory", "10E", i64::MAX),
    ] {
        let spec = gpus(&format!("nominalQuota: {text}")).replace("nvidia.com/gpu", resource);
        let objects = of(&queue(&spec)).expect(text).objects;
        let group = &objects.cluster_queues["team-a"].resource_groups[0];
        assert_eq!(
            group.flavors[0].resources[resource].nominal,
            Quantity(count),
            "{resource} {text}"
        );
    }
}

#[test]
fn weights_are_the_doubles_that_they_are_in_kueue() {
    for (text, weight) in [
        ("2", 2.0),
        ("'0.3'", 0.3),
        ("300m", 0.3),
        ("0", 0.0),
        ("2n", 2e-9),
        ("1k", 1000.0),
    ] {
        let objects = of(&queue(&format!("  fairSharing: {{weight: {text}}}\n")))
            .expect(text)
            .objects;
        assert_eq!(objects.cluster_queues["team-a"].weight, Weight(weight), "{text}");
    }
}

#[test]
fn of_the_configuration_the_rules_of_fair_sharing_count() {
    let configuration = |rules: &str| {
        format!(
            "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nhealth: {{healthProbeBindAddress: ':8081'}}\n\
             waitForPodsReady: {{}}\nfairSharing:\n  preemptionStrategies: {rules}\n"
        )
    };
    let both = of(&configuration(
        "[LessThanOrEqualToFinalShare, LessThanInitialShare]",
    ))
    .expect("Kueue's default");
    assert_eq!(both.objects.fair_sharing, Some(FairSharing::default()));
    let one = of(&configuration("[LessThanInitialShare]"))
        .expect("Kueue takes it")
        .objects
        .fair_sharing;
    let expected = FairSharing {
        first: FairRule::LessThanInitialShare,
        then: None,
    };
    assert_eq!(one, Some(expected));

    let gates = of(&(configuration("[LessThanInitialShare]") + "featureGates: {ElasticJobs: true}\n"));
    let warnings = gates.expect("it is no object").warnings;
    assert_eq!((warnings[0].code, warnings.len()), (Code::QueueSetting, 1));
}

/// Kueue's own example of a Configuration, with a queue that goes by it.
fn by_usage(sharing: &str) -> String {
    let scope = "  admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}\n";
    let local = "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: q}\n\
                 spec: {clusterQueue: team-a, fairSharing: {weight: 2}}\n";
    let configuration = "---\napiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n";
    format!("{}{local}{configuration}{sharing}", queue(scope))
}

#[test]
fn how_usage_is_counted_is_read_with_kueues_defaults() {
    let text = by_usage(
        "admissionFairSharing:\n  usageHalfLifeTime: 168h0m0s\n  resourceWeights: {cpu: 2.0, memory: 1}\n",
    );
    let read = of(&text).expect("Kueue takes it");
    let sharing = AdmissionFairSharing {
        usage_half_life_time: SignedDuration::from_hours(168),
        usage_sampling_interval: SignedDuration::from_mins(5),
        resource_weights: BTreeMap::from([("cpu".into(), 2.0), ("memory".into(), 1.0)]),
    };
    assert_eq!(read.objects.admission_fair_sharing, Some(sharing));
    assert_eq!(read.objects.local_queues["q"].weight, Weight(2.0));
    assert_eq!(
        read.objects.cluster_queues["team-a"].admission_mode,
        AdmissionMode::UsageBasedAdmissionFairSharing
    );
    assert_eq!(read.warnings, []);
    let negative = "admissionFairSharing:\n  usageHalfLifeTime: 1h\n  resourceWeights: {cpu: ¶-1}\n";
    assert_refused(&by_usage(negative), Code::QueueRule, "less than zero");
    let span = "admissionFairSharing: {usageHalfLifeTime: ¶-1h}\n";
    assert_refused(&by_usage(span), Code::BadValue, "-1h");
}

#[test]
fn an_order_by_usage_that_nobody_means_is_a_warning() {
    for (sharing, says) in [
        ("", "nothing says how it decays"),
        ("admissionFairSharing: {}\n", "forgotten at once"),
        ("admissionFairSharing: {usageHalfLifeTime: 1h}\n", "a byte of it"),
    ] {
        let memory = gpus("nominalQuota: 1Gi").replace("nvidia.com/gpu", "memory");
        let text = by_usage(sharing).replacen("  admissionScope", &format!("{memory}  admissionScope"), 1);
        let warnings = of(&format!("{text}---\n{A10}")).expect("Kueue takes it").warnings;
        assert_eq!(warnings.len(), 1, "{warnings:#?}");
        assert_eq!(warnings[0].code, Code::QueueUsage);
        assert!(warnings[0].message.contains(says), "{}", warnings[0].message);
    }
}

#[test]
fn whom_a_local_queue_tells_apart_is_an_annotation_of_ours() {
    let sharing = "admissionFairSharing: {usageHalfLifeTime: 1h}\n";
    let said = |text: &str, says: &str| {
        text.replace(
            "{name: q}",
            &format!("{{name: q, annotations: {{other.io/x: y, {says}}}}}"),
        )
    };
    let read = of(&said(&by_usage(sharing), "blueproof.dev/users: Author")).expect("Kueue takes it");
    assert_eq!(read.objects.local_queues["q"].users, LocalQueueUsers::Author);
    assert_eq!(read.warnings, []);

    let refused = |says, code, hint| assert_refused(&said(&by_usage(sharing), says), code, hint);
    refused(
        "blueproof.dev/users: ¶author",
        Code::BadValue,
        "did you mean `Author`?",
    );
    refused(
        "¶blueproof.dev/user: Author",
        Code::UnknownKey,
        "blueproof.dev/users",
    );
    let elsewhere = by_usage(sharing).replace(
        "  name: team-a\n",
        "  name: team-a\n  annotations: {blueproof.dev/users: ¶Author}\n",
    );
    assert_refused(&elsewhere, Code::QueueRule, "at LocalQueues");

    let plain = by_usage(sharing).replace("UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing");
    let warnings = of(&said(&plain, "blueproof.dev/users: Repository"))
        .expect("Kueue takes it")
        .warnings;
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    assert!(
        warnings[0].message.contains("changes nothing"),
        "{}",
        warnings[0].message
    );
}

#[test]
fn who_admits_to_a_cluster_queue_is_an_annotation_of_ours() {
    let said = |says: &str| {
        queue("").replace(
            "  name: team-a\n",
            &format!("  name: team-a\n  annotations: {{other.io/x: y, {says}}}\n"),
        )
    };
    let read = of(&said("blueproof.dev/admission: External")).expect("Kueue takes it");
    assert_eq!(
        read.objects.cluster_queues["team-a"].admission,
        Admission::External
    );
    let plain = of(&queue("")).expect("Kueue takes it");
    assert_eq!(
        plain.objects.cluster_queues["team-a"].admission,
        Admission::Embedded
    );

    assert_refused(
        &said("blueproof.dev/admission: ¶external"),
        Code::BadValue,
        "did you mean `External`?",
    );
    let local = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata:\n  name: q\n  namespace: default\n  \
                 annotations: {blueproof.dev/admission: ¶External}\nspec: {clusterQueue: team-a}\n";
    assert_refused(
        &format!("{}---\n{local}", queue("")),
        Code::QueueRule,
        "at ClusterQueues",
    );

    let cohort = |name: &str, says: &str| {
        let text = queue("  cohortName: all\n").replace("team-a", name);
        text.replace("metadata:\n", &format!("metadata:\n  annotations: {{{says}}}\n"))
    };
    let both = [
        cohort("team-a", "blueproof.dev/admission: ¶External"),
        cohort("team-b", ""),
    ];
    assert_refused(&both.join("---\n"), Code::QueueRule, "promised twice");
    let alike = both.map(|text| {
        text.replace('¶', "")
            .replace("{}\n  name", "{blueproof.dev/admission: External}\n  name")
    });
    assert!(of(&alike.join("---\n")).is_ok());
}

#[test]
fn the_cluster_of_a_cluster_queue_is_an_annotation_of_ours() {
    let on = |name: &str, spec: &str, cluster: &str| {
        let text = queue(spec).replace("team-a", name);
        text.replace(
            "metadata:\n",
            &format!("metadata:\n  annotations: {{blueproof.dev/cluster: {cluster}}}\n"),
        )
    };
    let read = of(&on("team-a", "", "oke-frankfurt")).expect("Kueue takes it");
    let cluster = read.objects.cluster_queues["team-a"].cluster.as_deref();
    assert_eq!(cluster, Some("oke-frankfurt"));
    let plain = of(&queue("")).expect("Kueue takes it");
    assert_eq!(plain.objects.cluster_queues["team-a"].cluster, None);

    assert_refused(&on("team-a", "", "¶OKE Frankfurt"), Code::BadValue, "a-z, 0-9");
    let local = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata:\n  name: q\n  namespace: default\n  \
                 annotations: {blueproof.dev/cluster: ¶east}\nspec: {clusterQueue: team-a}\n";
    assert_refused(
        &format!("{}---\n{local}", queue("")),
        Code::QueueRule,
        "at ClusterQueues",
    );
    let cohort = "  cohortName: all\n";
    let two = [on("team-a", cohort, "east"), on("team-b", cohort, "¶west")];
    assert_refused(&two.join("---\n"), Code::QueueRule, "different clusters");
    let one = [on("team-a", cohort, "east"), on("team-b", cohort, "east")];
    assert!(of(&one.join("---\n")).is_ok());
}

#[test]
fn what_of_the_configuration_changes_decisions_elsewhere_is_a_warning_that_names_it() {
    for (name, value) in [
        ("featureGates", "{PartialAdmission: false}"),
        ("resources", "{excludeResourcePrefixes: [example.com]}"),
        (
            "resources",
            "{transformations: [{input: example.com/a, strategy: Replace}]}",
        ),
        ("resources", "{quotaCheckStrategy: IgnoreUndeclared}"),
        (
            "resources",
            "{deviceClassMappings: [{name: a, deviceClassNames: [b]}]}",
        ),
    ] {
        let text =
            format!("apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n{name}: {value}\n");
        let warnings = of(&text).expect("Kueue takes it").warnings;
        assert_eq!(warnings.len(), 1, "{value}");
        assert_eq!(warnings[0].code, Code::QueueSetting, "{value}");
        assert!(warnings[0].message.contains(&format!("`{name}`")), "{value}");
    }
}

#[test]
fn of_the_configuration_the_strategy_of_requeuing_counts() {
    let configuration = |wait: &str| {
        format!(
            "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nwaitForPodsReady: {{{wait}}}\n"
        )
    };
    let requeuing = |wait: &str| {
        let manifest = of(&configuration(wait)).expect("Kueue takes it");
        (manifest.objects.requeuing, manifest.warnings.len())
    };
    assert_eq!(
        requeuing("blockAdmission: false"),
        (Some(Requeuing::default()), 0)
    );
    assert_eq!(
        requeuing("timeout: 5m, recoveryTimeout: 3m"),
        (Some(Requeuing::default()), 2)
    );
    let strategy = "requeuingStrategy: {timestamp: Creation, backoffLimitCount: 5, backoffBaseSeconds: 10}";
    let expected = Requeuing {
        timestamp: RequeuingTimestamp::Creation,
        backoff_limit_count: Some(5),
        backoff_base_seconds: 10,
        ..Requeuing::default()
    };
    assert_eq!(requeuing(strategy), (Some(expected), 0));
    assert_refused(
        &configuration("blockAdmission: ¶true"),
        Code::NotSupportedYet,
        "blockAdmission",
    );
}

//! Objects of older versions: they say the same as their conversion to v1beta2.

use blueproof_diagnostic::Code;

use super::{A10, assert_refused, gpus, of, queue};
use crate::objects::Objects;

/// Returns what a text says.
fn says(text: &str) -> Objects {
    of(text)
        .unwrap_or_else(|found| panic!("{found:#?}\n{text}"))
        .objects
}

fn older(text: &str) -> String {
    text.replace("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1")
}

#[test]
fn v1beta1_is_converted_as_kueue_converts_it() {
    let newer = queue(&format!(
        "  cohortName: main\n  stopPolicy: Hold\n  flavorFungibility: {{whenCanBorrow: MayStopSearch, whenCanPreempt: \
         MayStopSearch}}\n{}",
        gpus("nominalQuota: 8, borrowingLimit: 2")
    ));
    let older_queue = older(&newer)
        .replace("cohortName:", "admissionChecks: []\n  cohort:")
        .replace("whenCanBorrow: MayStopSearch", "whenCanBorrow: Borrow")
        .replace("whenCanPreempt: MayStopSearch", "whenCanPreempt: Preempt");
    let local = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\n\
                 metadata: {name: a, namespace: default}\nspec: {clusterQueue: team-a}\n";
    let class =
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: high}\nvalue: 9\n";
    let cohort = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: main}\n\
                  spec: {parentName: root, fairSharing: {weight: \"2\"}}\n";
    let others = [A10, local, class, cohort].join("---\n");
    let expected = says(&format!("{newer}---\n{others}"));
    assert_eq!(says(&format!("{older_queue}---\n{}", older(&others))), expected);

    let oldest = cohort
        .replace("v1beta2", "v1alpha1")
        .replace("parentName", "parent");
    let others = [A10, local, class, &oldest].join("---\n");
    assert_eq!(says(&format!("{older_queue}---\n{others}")), expected);
}

#[test]
fn what_v1beta1_does_not_have_is_unknown_there_and_what_is_not_supported_is_refused_there_too() {
    let named = older(&queue("  ¶cohortName: main\n"));
    assert_refused(&named, Code::UnknownKey, "it is called `cohort`");
    let checked = older(&queue("  ¶admissionChecks: [check]\n"));
    assert_refused(&checked, Code::NotSupportedYet, "admission checks");
    let misspelt = older(&queue("  ¶cohrt: main\n"));
    assert_refused(&misspelt, Code::UnknownKey, "cohort");
    let limited = older(&queue(&gpus("nominalQuota: 1, ¶borrowingLimit: 1")));
    assert!(
        of(&limited.replace('¶', "")).is_err(),
        "a limit needs a cohort here, too"
    );
}

#[test]
fn what_had_to_be_enabled_counts_only_where_it_was() {
    let configuration = |version: &str, settings: &str| {
        format!("apiVersion: config.kueue.x-k8s.io/{version}\nkind: Configuration\n{settings}\n")
    };
    let both = "[LessThanOrEqualToFinalShare, LessThanInitialShare]";
    let on = configuration(
        "v1beta2",
        &format!("fairSharing: {{preemptionStrategies: {both}}}"),
    );
    let nothing = says(&configuration("v1beta2", "{}".trim_matches(['{', '}'])));
    for (settings, expected) in [
        ("fairSharing: {enable: true}", says(&on)),
        ("fairSharing: {enable: true, preemptionStrategies: []}", says(&on)),
        ("fairSharing: {enable: false}", nothing.clone()),
        (
            "fairSharing: {preemptionStrategies: [LessThanInitialShare]}",
            nothing.clone(),
        ),
        ("waitForPodsReady: {enable: false, timeout: 5m}", nothing.clone()),
        ("queueVisibility: {updateIntervalSeconds: 5}", nothing.clone()),
    ] {
        assert_eq!(says(&configuration("v1beta1", settings)), expected, "{settings}");
    }
    let requeuing = "requeuingStrategy: {timestamp: Creation, backoffLimitCount: 3}";
    let newer = configuration("v1beta2", &format!("waitForPodsReady: {{{requeuing}}}"));
    let older =
        |switch: &str| configuration("v1beta1", &format!("waitForPodsReady: {{{switch}{requeuing}}}"));
    assert_eq!(
        says(&older("enable: true, blockAdmission: false, ")),
        says(&newer)
    );
    assert_eq!(says(&older("")), nothing);
    // Others wait until one has started, unless it says no.
    let found = of(&older("enable: true, ")).expect_err("nobody waits here");
    assert_eq!(found[0].code, Code::NotSupportedYet, "{found:#?}");
}

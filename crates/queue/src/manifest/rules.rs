//! What Kueue's own checks refuse, beyond what a single value may be.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_diagnostic::{
    Code, Diagnostic,
    yaml::{Located, Problems, Spot},
};

use super::{
    documents::{Declared, Found},
    kinds::{
        BorrowPolicy, ClusterQueueSpec, CohortSpec, Configuration, FairSharing, FlavorFungibility,
        FlavorQuotas, Preemption, ResourceFlavorSpec, ResourceGroup, ResourceQuota, Toleration,
    },
    values::{Metadata, Operator, is_label_key, is_label_value},
};
use crate::objects::{FairRule, ReclaimWithinCohort, WhenCanBorrow, WhenCanPreempt};

/// The most flavors, and the most resources, of all groups of a queue.
const MOST_IN_ALL: usize = 256;
/// The most quotas of one group.
const MOST_QUOTAS: usize = 512;

/// Reports everything that Kueue would refuse.
pub(super) fn check(declared: &Declared, problems: &mut [Problems<'_>]) {
    for found in &declared.cluster_queues {
        cluster_queue(&found.object.spec, found.spot, &mut problems[found.file]);
    }
    for found in &declared.cohorts {
        cohort(&found.object.spec, &mut problems[found.file]);
    }
    for found in &declared.flavors {
        flavor(&found.object.spec, &mut problems[found.file]);
    }
    for found in &declared.configurations {
        configuration(&found.object, &mut problems[found.file]);
    }
    each_once(declared, problems);
}

fn refuse(spot: Spot, problems: &mut Problems<'_>, message: impl Into<String>, hint: &str) {
    problems.report(spot, Diagnostic::error(Code::QueueRule, message).hint(hint));
}

/// What holds for quotas depends on whose they are.
struct Owner {
    /// As in "… needs a cohort".
    parent: Option<&'static str>,
    lends_more_than_its_own: bool,
}

fn cluster_queue(spec: &ClusterQueueSpec, spot: Spot, problems: &mut Problems<'_>) {
    let owner = Owner {
        parent: spec.cohort_name.is_none().then_some("cohortName"),
        lends_more_than_its_own: false,
    };
    groups(&spec.resource_groups.0, &owner, problems);
    totals(&spec.resource_groups.0, problems);
    preemption(&spec.preemption, problems);
    fungibility(&spec.flavor_fungibility, problems);
    weight(&spec.fair_sharing, problems);
    if spec.namespace_selector.is_none() {
        let warning = Diagnostic::warning(
            Code::QueueUnreachable,
            "in a cluster no namespace may use this ClusterQueue: it has no namespaceSelector",
        );
        problems.report(
            spot,
            warning.hint("write `namespaceSelector: {}`; here it is taken as that"),
        );
    }
}

fn cohort(spec: &CohortSpec, problems: &mut Problems<'_>) {
    let owner = Owner {
        parent: spec.parent_name.is_none().then_some("parentName"),
        lends_more_than_its_own: true,
    };
    groups(&spec.resource_groups.0, &owner, problems);
    weight(&spec.fair_sharing, problems);
}

fn groups(groups: &[Located<ResourceGroup>], owner: &Owner, problems: &mut Problems<'_>) {
    let (mut resources, mut flavors) = (BTreeSet::new(), BTreeSet::new());
    for group in groups {
        for resource in &group.value.covered_resources.0 {
            if !is_label_key(&resource.value) {
                let message = format!("`{}` cannot be the name of a resource", resource.value);
                refuse(
                    resource.spot,
                    problems,
                    message,
                    "names look like `cpu` or `nvidia.com/gpu`",
                );
            }
            if !resources.insert(&resource.value) {
                let message = format!("the resource `{}` is covered twice", resource.value);
                refuse(
                    resource.spot,
                    problems,
                    message,
                    "a resource is part of one group",
                );
            }
        }
        for flavor in &group.value.flavors.0 {
            if !flavors.insert(&flavor.name.value) {
                let message = format!("the flavor `{}` is there twice", flavor.name.value.0);
                refuse(
                    flavor.name.spot,
                    problems,
                    message,
                    "a flavor is part of one group",
                );
            }
            quotas(flavor, &group.value, owner, problems);
        }
    }
}

fn quotas(flavor: &FlavorQuotas, group: &ResourceGroup, owner: &Owner, problems: &mut Problems<'_>) {
    let covered: Vec<&str> = group
        .covered_resources
        .0
        .iter()
        .map(|name| name.value.as_str())
        .collect();
    let quotas = &flavor.resources.value.0;
    let named: Vec<&str> = quotas.iter().map(|quota| quota.name.value.as_str()).collect();
    if covered != named {
        let message = format!(
            "the flavor `{}` has quotas for {}, and its group covers {}",
            flavor.name.value.0,
            named.join(", "),
            covered.join(", ")
        );
        let spot = quotas
            .iter()
            .zip(&covered)
            .find(|(quota, covered)| quota.name.value != **covered);
        let spot = spot.map_or(flavor.resources.spot, |(quota, _)| quota.name.spot);
        refuse(
            spot,
            problems,
            message,
            "each flavor names the same resources in the order of coveredResources",
        );
    }
    for quota in quotas {
        limits(quota, owner, problems);
    }
}

fn limits(quota: &ResourceQuota, owner: &Owner, problems: &mut Problems<'_>) {
    let limits = [
        ("borrowingLimit", quota.borrowing_limit.as_ref()),
        ("lendingLimit", quota.lending_limit.as_ref()),
    ];
    for (name, limit) in limits {
        if let (Some(limit), Some(parent)) = (limit, owner.parent) {
            let message = format!("{name} needs {parent}: without one nothing is borrowed or lent");
            refuse(
                limit.spot,
                problems,
                message,
                &format!("set {parent}, or leave {name} out"),
            );
        }
    }
    if let Some(limit) = &quota.lending_limit
        && !owner.lends_more_than_its_own
        && limit.value > quota.nominal_quota
    {
        let message = "lendingLimit is more than nominalQuota";
        refuse(
            limit.spot,
            problems,
            message,
            "a ClusterQueue lends at most what is its own",
        );
    }
}

fn totals(groups: &[Located<ResourceGroup>], problems: &mut Problems<'_>) {
    let Some(first) = groups.first() else { return };
    let flavors: usize = groups.iter().map(|group| group.value.flavors.0.len()).sum();
    let resources: usize = groups
        .iter()
        .map(|group| group.value.covered_resources.0.len())
        .sum();
    for (what, count) in [("flavors", flavors), ("covered resources", resources)] {
        if count > MOST_IN_ALL {
            let message = format!("the groups have {count} {what} together");
            refuse(
                first.spot,
                problems,
                message,
                &format!("Kueue takes at most {MOST_IN_ALL}"),
            );
        }
    }
    for group in groups {
        let quotas: usize = group
            .value
            .flavors
            .0
            .iter()
            .map(|flavor| flavor.resources.value.0.len())
            .sum();
        if quotas > MOST_QUOTAS {
            let message = format!("the group has {quotas} quotas");
            refuse(
                group.spot,
                problems,
                message,
                &format!("Kueue takes at most {MOST_QUOTAS}"),
            );
        }
    }
}

fn preemption(preemption: &Preemption, problems: &mut Problems<'_>) {
    let Some(borrow) = &preemption.borrow_within_cohort else {
        return;
    };
    if preemption.reclaim_within_cohort == ReclaimWithinCohort::Never
        && borrow.value.policy != BorrowPolicy::Never
    {
        refuse(
            borrow.spot,
            problems,
            "borrowWithinCohort needs a reclaimWithinCohort other than Never",
            "set reclaimWithinCohort to LowerPriority or Any, or leave borrowWithinCohort out",
        );
    }
}

fn fungibility(fungibility: &FlavorFungibility, problems: &mut Problems<'_>) {
    let tries_all = fungibility.when_can_borrow == WhenCanBorrow::TryNextFlavor
        && fungibility.when_can_preempt == WhenCanPreempt::TryNextFlavor;
    if let Some(preference) = &fungibility.preference
        && !tries_all
    {
        refuse(
            preference.spot,
            problems,
            "a preference needs whenCanBorrow and whenCanPreempt both to be TryNextFlavor",
            "with less, the first flavor that will do ends the search; leave the preference out",
        );
    }
}

fn weight(fair_sharing: &FairSharing, problems: &mut Problems<'_>) {
    if let Some(weight) = fair_sharing
        .weight
        .as_ref()
        .filter(|weight| weight.value.is_least())
    {
        let hint = "write 0 for the least, or more than 1n";
        refuse(weight.spot, problems, "this weight is as good as none", hint);
    }
}

fn flavor(spec: &ResourceFlavorSpec, problems: &mut Problems<'_>) {
    let mut seen = BTreeSet::new();
    for Located { value: taint, spot } in &spec.node_taints.0 {
        if !is_label_key(&taint.key) || !is_label_value(&taint.value) {
            let message = format!("`{}={}` cannot be a taint", taint.key, taint.value);
            refuse(
                *spot,
                problems,
                message,
                "key and value are written as those of labels",
            );
        }
        if !seen.insert((&taint.key, taint.effect)) {
            let message = format!("the taint `{}:{:?}` is there twice", taint.key, taint.effect);
            refuse(*spot, problems, message, "a key has each effect once");
        }
    }
    for toleration in &spec.tolerations.0 {
        tolerates(toleration, problems);
    }
}

fn tolerates(Located { value, spot }: &Located<Toleration>, problems: &mut Problems<'_>) {
    let key = value.key.as_ref().filter(|key| !key.is_empty());
    if let Some(key) = key.filter(|key| !is_label_key(key)) {
        let message = format!("`{key}` cannot be the key of a taint");
        refuse(*spot, problems, message, "keys look like `nvidia.com/gpu`");
    }
    if value.key.is_none() && value.operator != Operator::Exists {
        let message = "a toleration without a key needs the operator Exists";
        refuse(
            *spot,
            problems,
            message,
            "name the key, or write `operator: Exists` to tolerate every taint",
        );
    }
    if value.value.is_some() && value.operator == Operator::Exists {
        let message = "a toleration with the operator Exists has no value";
        refuse(
            *spot,
            problems,
            message,
            "leave the value out, or write `operator: Equal`",
        );
    }
}

fn configuration(configuration: &Configuration, problems: &mut Problems<'_>) {
    let wait = configuration.wait_for_pods_ready.as_ref();
    let passed_over = [
        ("featureGates", configuration.feature_gates.as_ref()),
        ("resources", configuration.resources.as_ref()),
        (
            "waitForPodsReady.timeout",
            wait.and_then(|wait| wait.timeout.as_ref()),
        ),
        (
            "waitForPodsReady.recoveryTimeout",
            wait.and_then(|wait| wait.recovery_timeout.as_ref()),
        ),
    ];
    for (name, value) in passed_over {
        if let Some(value) = value {
            let warning = Diagnostic::warning(Code::QueueSetting, format!("`{name}` does not count here"));
            problems.report(
                value.spot,
                warning.hint(
                    "of the Configuration, fairSharing, admissionFairSharing and \
                     waitForPodsReady.requeuingStrategy count",
                ),
            );
        }
    }
    if let Some(wait) = wait
        && wait.block_admission.value
    {
        let instead = "nobody waits here until others have started; leave the field out";
        problems.not_supported(wait.block_admission.spot, "blockAdmission", instead);
    }
    let Some(fair_sharing) = &configuration.fair_sharing else {
        return;
    };
    let rules = &fair_sharing.preemption_strategies;
    let named: Vec<FairRule> = rules.value.0.clone();
    let allowed = [
        FairRule::LessThanOrEqualToFinalShare,
        FairRule::LessThanInitialShare,
    ];
    if named.len() == 2 && named != allowed {
        refuse(
            rules.spot,
            problems,
            "these two rules cannot be tried in this order",
            "write either of them, or LessThanOrEqualToFinalShare and then LessThanInitialShare",
        );
    }
}

/// Reports objects that are there a second time.
fn each_once(declared: &Declared, problems: &mut [Problems<'_>]) {
    once(
        "ResourceFlavor",
        &declared.flavors,
        |flavor| named(&flavor.metadata),
        problems,
    );
    once(
        "Cohort",
        &declared.cohorts,
        |cohort| named(&cohort.metadata),
        problems,
    );
    once(
        "ClusterQueue",
        &declared.cluster_queues,
        |queue| named(&queue.metadata),
        problems,
    );
    once(
        "WorkloadPriorityClass",
        &declared.priority_classes,
        |class| named(&class.metadata),
        problems,
    );
    once(
        "Configuration",
        &declared.configurations,
        |_| String::new(),
        problems,
    );
}

fn named(metadata: &Metadata) -> String {
    format!(" `{}`", metadata.name.value.0)
}

fn once<T>(kind: &str, found: &[Found<T>], name: impl Fn(&T) -> String, problems: &mut [Problems<'_>]) {
    let mut first = BTreeMap::new();
    for found in found {
        let name = name(&found.object);
        let Some((file, spot)) = first.insert(name.clone(), (found.file, found.spot)) else {
            continue;
        };
        let twice = Diagnostic::error(Code::QueueObjectTwice, format!("the {kind}{name} is there twice"));
        let there = problems[file].place(spot);
        problems[found.file].report(
            found.spot,
            twice.hint(format!("it is also at {there}: keep one of the two")),
        );
    }
}

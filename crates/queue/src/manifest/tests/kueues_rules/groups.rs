//! Kueue's rules about quotas, and about the groups that they stand in.

use blueproof_diagnostic::Code;

use super::{super::gpus, Row, assert_rules, of, of_queue, queue, rule, taken};

/// Quotas of a ClusterQueue in a cohort.
const QUOTAS: [Row<'_>; 7] = [
    (
        "there is a nominalQuota",
        "nominalQuota: 0",
        "¶nominalQuota: null",
        Code::MissingKey,
        "nominalQuota",
    ),
    (
        "a quota is not negative",
        "nominalQuota: +1",
        "nominalQuota: ¶-1",
        Code::BadValue,
        "negative",
    ),
    (
        "a quota has a known unit",
        "nominalQuota: 1Gi",
        "nominalQuota: ¶1 Gi",
        Code::BadValue,
        "512Mi",
    ),
    (
        "a quota is whole or text",
        "nominalQuota: '1.5'",
        "nominalQuota: ¶1.5",
        Code::BadValue,
        "quotes",
    ),
    (
        "a borrowing limit is not negative",
        "nominalQuota: 1, borrowingLimit: 0",
        "nominalQuota: 1, borrowingLimit: ¶-1",
        Code::BadValue,
        "negative",
    ),
    (
        "a lending limit is not negative",
        "nominalQuota: 1, lendingLimit: 0",
        "nominalQuota: 1, lendingLimit: ¶-1",
        Code::BadValue,
        "negative",
    ),
    (
        "a queue lends what is its own",
        "nominalQuota: 1, lendingLimit: 1000m",
        "nominalQuota: 1, lendingLimit: ¶1001m",
        Code::QueueRule,
        "more than",
    ),
];

#[test]
fn amounts_and_limits_agree_with_each_other() {
    let in_cohort = |quota: &str| queue(&format!("  cohortName: main\n{}", gpus(quota)));
    assert_rules(
        QUOTAS
            .map(|(name, good, bad, code, says)| rule((name, &in_cohort(good), &in_cohort(bad), code, says))),
    );
    for limit in ["borrowingLimit", "lendingLimit"] {
        let good = in_cohort(&format!("nominalQuota: 1, {limit}: 1"));
        let alone = queue(&gpus(&format!("nominalQuota: 1, {limit}: ¶1")));
        assert_rules([rule((
            "a limit needs a cohort",
            &good,
            &alone,
            Code::QueueRule,
            "cohortName",
        ))]);
    }
}

/// Returns resource groups of a ClusterQueue, each with what it covers, its flavor and that one's quotas.
fn groups(groups: &[(&str, &str, &str)]) -> String {
    let groups = groups.iter().map(|(covered, flavor, quotas)| {
        format!("{{coveredResources: [{covered}], flavors: [{{name: {flavor}, resources: {quotas}}}]}}")
    });
    format!("resourceGroups: [{}]", groups.collect::<Vec<_>>().join(", "))
}

/// Returns a quota of one for each of some resources.
fn ones(names: &str) -> String {
    let quotas = names
        .split(' ')
        .map(|name| format!("{{name: {name}, nominalQuota: 1}}"));
    format!("[{}]", quotas.collect::<Vec<_>>().join(", "))
}

/// Returns so many groups, each of so many flavors and resources with names of their own, with a mark on the first.
fn crowd(n_groups: usize, n_flavors: usize, n_resources: usize) -> String {
    let groups = (0..n_groups).map(|group| {
        let resources: Vec<String> = (0..n_resources).map(|n| format!("r{group}-{n}")).collect();
        let quotas = ones(&resources.join(" "));
        let flavors = (0..n_flavors).map(|n| format!("{{name: f{group}-{n}, resources: {quotas}}}"));
        format!(
            "{{coveredResources: [{}], flavors: [{}]}}",
            resources.join(", "),
            flavors.collect::<Vec<_>>().join(", ")
        )
    });
    format!("resourceGroups: [¶{}]", groups.collect::<Vec<_>>().join(", "))
}

/// Returns the one resource group of a ClusterQueue.
fn group(covered: &str, flavor: &str, quotas: &str) -> String {
    groups(&[(covered, flavor, quotas)])
}

#[test]
fn groups_agree_with_what_they_cover() {
    let (cpu, pods) = (ones("cpu"), ones("pods"));
    let beside = |covered: &str, flavor: &str, quotas: &str| {
        groups(&[("cpu", "a10", &cpu), (covered, flavor, quotas)])
    };
    let good = beside("pods", "h200", &pods);
    let both = group("cpu, memory", "a10", &ones("cpu memory"));
    let turned = group("cpu, memory", "a10", &ones("¶memory cpu"));
    let fewer = group("cpu, memory", "a10", &format!("¶{cpu}"));
    let again = beside("¶cpu", "h200", &cpu);
    let same = beside("pods", "¶a10", &pods);
    let refused = |name, good: &str, bad: &str, says| of_queue((name, good, bad, Code::QueueRule, says));
    assert_rules([
        refused("quotas have the group's order", &both, &turned, "in the order"),
        refused(
            "quotas are as many as the group covers",
            &both,
            &fewer,
            "covers cpu, memory",
        ),
        refused("a resource is in one group", &good, &again, "covered twice"),
        refused("a flavor is in one group", &good, &same, "one group"),
    ]);
}

#[test]
fn groups_have_names_and_none_is_empty() {
    let one = ones("cpu");
    let good = group("cpu", "a10", &one);
    let capital = group("cpu", "¶A10", &one);
    let slashed = group("nvidia.com/gpu", "a10", &ones("nvidia.com/gpu"));
    let dashed = group("¶-a", "a10", &ones("-a"));
    let nothing = good.replace("[cpu]", "¶[]");
    let nobody = "resourceGroups: [{coveredResources: [cpu], flavors: ¶[]}]";
    let no_quota = group("cpu", "a10", "¶[]");
    let bad = Code::BadValue;
    assert_rules([
        of_queue(("a flavor's name is a subdomain", &good, &capital, bad, "a-z")),
        of_queue((
            "a resource is the key of a label",
            &slashed,
            &dashed,
            Code::QueueRule,
            "nvidia.com/gpu",
        )),
        of_queue(("a group covers something", &good, &nothing, bad, "1 to 64")),
        of_queue((
            "a group has a flavor",
            "resourceGroups: []",
            nobody,
            bad,
            "1 to 64",
        )),
        of_queue(("a flavor has a quota", &good, &no_quota, bad, "1 to 64")),
    ]);
}

#[test]
fn lists_are_as_long_as_kueue_lets_them_be() {
    let crowds = |name, good: &str, bad: &str, code, says| of_queue((name, &taken(good), bad, code, says));
    let groups_marked = |count| crowd(count, 1, 1).replace('¶', "").replacen(": [", ": ¶[", 1);
    let flavors_marked = |count| {
        crowd(1, count, 1)
            .replace('¶', "")
            .replacen("flavors: [", "flavors: ¶[", 1)
    };
    let covered_marked = |count| {
        let quotas = ones(&(0..count).map(|n| format!("r{n}")).collect::<Vec<_>>().join(" "));
        let covered = (0..count).map(|n| format!("r{n}")).collect::<Vec<_>>().join(", ");
        format!(
            "resourceGroups: [{{coveredResources: ¶[{covered}], flavors: [{{name: f, resources: {quotas}}}]}}]"
        )
    };
    assert_rules([
        crowds(
            "16 groups",
            &groups_marked(16),
            &groups_marked(17),
            Code::BadValue,
            "0 to 16",
        ),
        crowds(
            "64 flavors of a group",
            &flavors_marked(64),
            &flavors_marked(65),
            Code::BadValue,
            "1 to 64",
        ),
        crowds(
            "256 flavors in all",
            &crowd(4, 64, 1),
            &crowd(5, 52, 1),
            Code::QueueRule,
            "256",
        ),
        crowds(
            "256 resources in all",
            &crowd(4, 1, 64),
            &crowd(5, 1, 52),
            Code::QueueRule,
            "256",
        ),
        crowds(
            "512 quotas of a group",
            &crowd(1, 8, 64),
            &crowd(1, 9, 64),
            Code::QueueRule,
            "512",
        ),
    ]);
    let found = of(&queue(&format!("  {}\n", taken(&covered_marked(65))))).expect_err("64 at most");
    assert!(found.iter().all(|one| one.code == Code::BadValue), "{found:#?}");
    assert!(of(&queue(&format!("  {}\n", taken(&covered_marked(64))))).is_ok());
}

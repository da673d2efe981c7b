//! Every rule by which Kueue 0.19.2 refuses one of the objects that are read here: what it takes, and what it does not.
//!
//! The rules are those of its webhooks, of the schemas of its resources and, of its Configuration, those of `pkg/config`.
//! Rules about a change from one object to the next are left out: whoever applies files here replaces all objects.

mod flavors;
mod groups;

use blueproof_diagnostic::Code;

use super::{A10, assert_refused, gpus, of, queue, unmarked};

/// A rule: what it lets pass, and what it does not, with a `¶` where the mistake is said to be.
struct Rule {
    name: &'static str,
    taken: String,
    refused: String,
    code: Code,
    says: &'static str,
}

/// The same with texts, of which only a part is there: its name, what it lets pass, what not, the code, and what is said.
type Row<'a> = (&'static str, &'a str, &'a str, Code, &'static str);

fn rule((name, taken, refused, code, says): Row<'_>) -> Rule {
    let (taken, refused) = (taken.to_owned(), refused.to_owned());
    Rule {
        name,
        taken,
        refused,
        code,
        says,
    }
}

/// Sees that each rule lets pass what it lets pass, and nothing more.
fn assert_rules(rules: impl IntoIterator<Item = Rule>) {
    for rule in rules {
        if let Err(found) = of(&rule.taken) {
            panic!("{}: {found:#?}\n{}", rule.name, rule.taken);
        }
        assert_refused(&rule.refused, rule.code, rule.says);
    }
}

/// Returns a rule about lines of a ClusterQueue's spec.
fn of_queue((name, good, bad, code, says): Row<'_>) -> Rule {
    let lines = |lines: &str| queue(&format!("  {lines}\n"));
    rule((name, &lines(good), &lines(bad), code, says))
}

/// Returns a rule about lines of a ResourceFlavor's spec.
fn of_flavor((name, good, bad, code, says): Row<'_>) -> Rule {
    let lines = |lines: &str| format!("{A10}spec:\n  {lines}\n");
    rule((name, &lines(good), &lines(bad), code, says))
}

/// Returns a rule about an object of any kind, from below its version.
fn of_kind((name, good, bad, code, says): Row<'_>) -> Rule {
    let object = |rest: &str| format!("apiVersion: kueue.x-k8s.io/v1beta2\n{rest}\n");
    rule((name, &object(good), &object(bad), code, says))
}

fn taken(marked: &str) -> String {
    unmarked(marked).0
}

#[test]
fn names_and_texts_are_those_that_a_cluster_takes() {
    let local = |metadata: &str, queue: &str| {
        format!("kind: LocalQueue\nmetadata: {{{metadata}}}\nspec: {{clusterQueue: {queue}}}")
    };
    let class = |rest: &str| format!("kind: WorkloadPriorityClass\nmetadata: {{name: high}}\n{rest}");
    let described = |length: usize| class(&format!("value: 1\ndescription: ¶{}", "x".repeat(length)));
    let marked = format!("¶apiVersion: kueue.x-k8s.io/v1beta2\n{}\n", class(""));
    let with_value = format!("apiVersion: kueue.x-k8s.io/v1beta2\n{}\n", class("value: -1"));
    assert_rules([
        of_kind((
            "a name is a subdomain",
            &local("name: a.b", "a"),
            &local("name: ¶a_b", "a"),
            Code::BadValue,
            "a-z",
        )),
        of_kind((
            "a namespace is a label",
            &local("name: q, namespace: a-b", "a"),
            &local("name: q, namespace: ¶a.b", "a"),
            Code::BadValue,
            "namespaces have",
        )),
        of_kind((
            "clusterQueue is a subdomain",
            &local("name: q", "a"),
            &local("name: q", "¶A"),
            Code::BadValue,
            "a-z",
        )),
        of_queue((
            "cohortName is a subdomain",
            "cohortName: main",
            "cohortName: ¶''",
            Code::BadValue,
            "a-z",
        )),
        rule((
            "a priority has a value",
            &with_value,
            &marked,
            Code::MissingKey,
            "value",
        )),
        of_kind((
            "a priority is of 32 bits",
            &class("value: 2147483647"),
            &class("value: ¶2147483648"),
            Code::BadValue,
            "2147483647",
        )),
        of_kind((
            "a description has 2048 characters",
            &taken(&described(2048)),
            &described(2049),
            Code::BadValue,
            "2048",
        )),
    ]);
}

const WORDS: [Row<'_>; 9] = [
    (
        "queueingStrategy",
        "queueingStrategy: StrictFIFO",
        "queueingStrategy: ¶Strict",
        Code::BadValue,
        "BestEffortFIFO",
    ),
    (
        "stopPolicy",
        "stopPolicy: Hold",
        "stopPolicy: ¶''",
        Code::BadValue,
        "HoldAndDrain",
    ),
    (
        "whenCanBorrow",
        "flavorFungibility: {whenCanBorrow: MayStopSearch}",
        "flavorFungibility: {whenCanBorrow: ¶Borrow}",
        Code::BadValue,
        "MayStopSearch",
    ),
    (
        "whenCanPreempt",
        "flavorFungibility: {whenCanPreempt: MayStopSearch}",
        "flavorFungibility: {whenCanPreempt: ¶Preempt}",
        Code::BadValue,
        "TryNextFlavor",
    ),
    (
        "preference",
        "flavorFungibility: {whenCanBorrow: TryNextFlavor, preference: BorrowingOverPreemption}",
        "flavorFungibility: {whenCanBorrow: TryNextFlavor, preference: ¶Borrowing}",
        Code::BadValue,
        "BorrowingOverPreemption",
    ),
    (
        "withinClusterQueue",
        "preemption: {withinClusterQueue: LowerOrNewerEqualPriority}",
        "preemption: {withinClusterQueue: ¶Any}",
        Code::BadValue,
        "LowerPriority",
    ),
    (
        "reclaimWithinCohort",
        "preemption: {reclaimWithinCohort: Any}",
        "preemption: {reclaimWithinCohort: ¶LowerOrNewerEqualPriority}",
        Code::BadValue,
        "Never",
    ),
    (
        "borrowWithinCohort.policy",
        "preemption: {reclaimWithinCohort: Any, borrowWithinCohort: {policy: LowerPriority}}",
        "preemption: {reclaimWithinCohort: Any, borrowWithinCohort: {policy: ¶Any}}",
        Code::BadValue,
        "LowerPriority",
    ),
    (
        "maxPriorityThreshold",
        "preemption: {reclaimWithinCohort: Any, borrowWithinCohort: {maxPriorityThreshold: -2147483648}}",
        "preemption: {reclaimWithinCohort: Any, borrowWithinCohort: {maxPriorityThreshold: ¶-2147483649}}",
        Code::BadValue,
        "2147483647",
    ),
];

#[test]
fn words_are_those_of_the_api() {
    assert_rules(WORDS.map(of_queue));
}

#[test]
fn policies_agree_with_each_other() {
    let borrow = |reclaim: &str, policy: &str| {
        format!("preemption: {{reclaimWithinCohort: {reclaim}, borrowWithinCohort: ¶{{policy: {policy}}}}}")
    };
    let fungibility = |borrow: &str, preempt: &str| {
        format!(
            "flavorFungibility: {{whenCanBorrow: {borrow}, whenCanPreempt: {preempt}, \
             preference: ¶PreemptionOverBorrowing}}"
        )
    };
    let refused =
        |name, good: &str, bad: &str, says| of_queue((name, &taken(good), bad, Code::QueueRule, says));
    let both = fungibility("TryNextFlavor", "TryNextFlavor");
    assert_rules([
        refused(
            "borrowing and evicting needs reclaiming",
            &borrow("LowerPriority", "LowerPriority"),
            &borrow("Never", "LowerPriority"),
            "reclaimWithinCohort",
        ),
        refused(
            "by default nothing is reclaimed",
            &borrow("Never", "Never"),
            "preemption: {borrowWithinCohort: ¶{policy: LowerPriority}}",
            "reclaimWithinCohort",
        ),
        refused(
            "a preference needs a search that borrowing does not end",
            &both,
            &fungibility("MayStopSearch", "TryNextFlavor"),
            "TryNextFlavor",
        ),
        refused(
            "a preference needs a search that evicting does not end",
            &both,
            &fungibility("TryNextFlavor", "MayStopSearch"),
            "TryNextFlavor",
        ),
        refused(
            "by default borrowing ends the search",
            "flavorFungibility: {whenCanBorrow: TryNextFlavor, preference: ¶BorrowingOverPreemption}",
            "flavorFungibility: {preference: ¶BorrowingOverPreemption}",
            "TryNextFlavor",
        ),
        of_queue((
            "a weight is not negative",
            "fairSharing: {weight: 0}",
            "fairSharing: {weight: ¶-1}",
            Code::BadValue,
            "negative",
        )),
        of_queue((
            "a weight does not collapse",
            "fairSharing: {weight: 2n}",
            "fairSharing: {weight: ¶1n}",
            Code::QueueRule,
            "1n",
        )),
    ]);
}

#[test]
fn a_cohort_lends_what_it_likes_but_only_with_a_parent() {
    let cohort = |spec: &str| format!("kind: Cohort\nmetadata: {{name: left}}\nspec:\n{spec}");
    let below = |parent: &str, quota: &str| cohort(&format!("  parentName: {parent}\n{}", gpus(quota)));
    let lends = |limit: &str| cohort(&gpus(&format!("nominalQuota: 1, {limit}")));
    assert_rules([
        of_kind((
            "a parent's name is a subdomain",
            &below("root", "nominalQuota: 1"),
            &below("¶Root", "nominalQuota: 1"),
            Code::BadValue,
            "a-z",
        )),
        of_kind((
            "only a parent lends",
            &below("root", "nominalQuota: 1, lendingLimit: 3"),
            &lends("lendingLimit: ¶3"),
            Code::QueueRule,
            "parentName",
        )),
        of_kind((
            "only from a parent is borrowed",
            &below("root", "nominalQuota: 1, borrowingLimit: 3"),
            &lends("borrowingLimit: ¶3"),
            Code::QueueRule,
            "parentName",
        )),
        of_kind((
            "a cohort's weight does not collapse",
            &cohort("  fairSharing: {weight: '0.5'}"),
            &cohort("  fairSharing: {weight: ¶1n}"),
            Code::QueueRule,
            "1n",
        )),
    ]);
}

#[test]
fn of_the_configuration_the_rules_of_fair_sharing_are_checked() {
    let rules = |rules: &str| {
        format!("apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfairSharing: {rules}\n")
    };
    let both = rules("{preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}");
    let refused = |name, bad: &str, code, says| rule((name, &both, &rules(bad), code, says));
    assert_rules([
        refused(
            "there are strategies",
            "¶{}",
            Code::MissingKey,
            "preemptionStrategies",
        ),
        refused(
            "one at least",
            "{preemptionStrategies: ¶[]}",
            Code::BadValue,
            "1 to 2",
        ),
        refused(
            "each is known",
            "{preemptionStrategies: [¶LessThanFinalShare]}",
            Code::BadValue,
            "LessThan",
        ),
        refused(
            "they have one order",
            "{preemptionStrategies: ¶[LessThanInitialShare, LessThanOrEqualToFinalShare]}",
            Code::QueueRule,
            "order",
        ),
        refused(
            "each is there once",
            "{preemptionStrategies: ¶[LessThanInitialShare, LessThanInitialShare]}",
            Code::QueueRule,
            "order",
        ),
    ]);
}

/// Requeuing strategies.
const STRATEGIES: [Row<'_>; 5] = [
    (
        "timestamp",
        "timestamp: Creation",
        "timestamp: ¶Admission",
        Code::BadValue,
        "Eviction",
    ),
    (
        "backoffLimitCount",
        "backoffLimitCount: 0",
        "backoffLimitCount: ¶-1",
        Code::BadValue,
        "0 or more",
    ),
    (
        "backoffBaseSeconds",
        "backoffBaseSeconds: 0",
        "backoffBaseSeconds: ¶-1",
        Code::BadValue,
        "0 or more",
    ),
    (
        "backoffMaxSeconds",
        "backoffMaxSeconds: 0",
        "backoffMaxSeconds: ¶-1",
        Code::BadValue,
        "0 or more",
    ),
    (
        "they are of 32 bits",
        "backoffMaxSeconds: 2147483647",
        "backoffMaxSeconds: ¶2147483648",
        Code::BadValue,
        "2147483647",
    ),
];

#[test]
fn of_the_configuration_the_strategy_of_requeuing_is_checked() {
    let strategy = |strategy: &str| {
        format!(
            "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nwaitForPodsReady:\n  \
             requeuingStrategy: {{{strategy}}}\n"
        )
    };
    assert_rules(
        STRATEGIES
            .map(|(name, good, bad, code, says)| rule((name, &strategy(good), &strategy(bad), code, says))),
    );
}

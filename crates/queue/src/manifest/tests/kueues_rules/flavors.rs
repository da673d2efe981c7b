//! Kueue's rules about what nodes can have.

use blueproof_diagnostic::Code;

use super::{Row, assert_rules, of_flavor, unmarked};

const FLAVORS: [Row<'_>; 14] = [
    (
        "a label has a key",
        "nodeLabels: {a/b: x}",
        "nodeLabels: {¶a/b/c: x}",
        Code::BadValue,
        "not a label",
    ),
    (
        "a label has a value",
        "nodeLabels: {a: ''}",
        "nodeLabels: {¶a: x y}",
        Code::BadValue,
        "not a label",
    ),
    (
        "a label's value is text",
        "nodeLabels: {gpu: 'true'}",
        "nodeLabels: {gpu: ¶true}",
        Code::WrongType,
        "quotes",
    ),
    (
        "a taint has a key",
        "nodeTaints: [{key: a, effect: NoExecute}]",
        "nodeTaints: [¶{effect: NoExecute}]",
        Code::MissingKey,
        "key",
    ),
    (
        "a taint has an effect",
        "nodeTaints: [{key: a, effect: NoExecute}]",
        "nodeTaints: [¶{key: a}]",
        Code::MissingKey,
        "effect",
    ),
    (
        "a taint's effect is known",
        "nodeTaints: [{key: a, effect: PreferNoSchedule}]",
        "nodeTaints: [{key: a, effect: ¶Never}]",
        Code::BadValue,
        "NoExecute",
    ),
    (
        "a taint's key is a label's",
        "nodeTaints: [{key: a/b, effect: NoSchedule}]",
        "nodeTaints: [¶{key: a b, effect: NoSchedule}]",
        Code::QueueRule,
        "taint",
    ),
    (
        "a taint's value is a label's",
        "nodeTaints: [{key: a, value: b, effect: NoSchedule}]",
        "nodeTaints: [¶{key: a, value: b c, effect: NoSchedule}]",
        Code::QueueRule,
        "taint",
    ),
    (
        "a taint's key has each effect once",
        "nodeTaints: [{key: a, effect: NoSchedule}, {key: a, effect: NoExecute}]",
        "nodeTaints: [{key: a, effect: NoSchedule}, ¶{key: a, value: b, effect: NoSchedule}]",
        Code::QueueRule,
        "twice",
    ),
    (
        "a toleration without a key is of every taint",
        "tolerations: [{key: '', value: a}]",
        "tolerations: [¶{effect: NoSchedule}]",
        Code::QueueRule,
        "Exists",
    ),
    (
        "a toleration's key is a label's",
        "tolerations: [{key: a/b}]",
        "tolerations: [¶{key: a b}]",
        Code::QueueRule,
        "nvidia.com/gpu",
    ),
    (
        "a toleration's operator is known",
        "tolerations: [{key: a, operator: Equal}]",
        "tolerations: [{key: a, operator: ¶Lt}]",
        Code::BadValue,
        "Exists",
    ),
    (
        "a toleration's effect is known",
        "tolerations: [{key: a, effect: NoSchedule}]",
        "tolerations: [{key: a, effect: ¶''}]",
        Code::BadValue,
        "NoExecute",
    ),
    (
        "what exists has no value",
        "tolerations: [{key: a, operator: Exists}]",
        "tolerations: [¶{key: a, operator: Exists, value: b}]",
        Code::QueueRule,
        "no value",
    ),
];

#[test]
fn flavors_say_what_nodes_can_have() {
    assert_rules(FLAVORS.map(of_flavor));
    let list = |key: &str, count: usize, item: fn(usize) -> String| {
        let items: Vec<String> = (0..count).map(item).collect();
        format!("{key}: ¶[{}]", items.join(", "))
    };
    let labels = |count: usize| {
        let labels: Vec<String> = (0..count).map(|n| format!("l{n}: x")).collect();
        format!("nodeLabels: ¶{{{}}}", labels.join(", "))
    };
    let taints = |count| {
        list("nodeTaints", count, |n| {
            format!("{{key: t{n}, effect: NoSchedule}}")
        })
    };
    let tolerations = |count| list("tolerations", count, |_| "{operator: Exists}".into());
    let at_most = |name, of: &dyn Fn(usize) -> String, says| {
        of_flavor((name, &unmarked(&of(8)).0, &of(9), Code::BadValue, says))
    };
    assert_rules([
        at_most("8 labels", &labels, "at most 8"),
        at_most("8 taints", &taints, "0 to 8"),
        at_most("8 tolerations", &tolerations, "0 to 8"),
    ]);
}

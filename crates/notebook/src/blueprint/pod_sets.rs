//! What a blueprint asks for, as the queue has it: the pod set of the notebook's own kernel, and those of what it starts.

use blueproof_core::domain::{Bytes, Cpus, DRIVER, PodSets, WORKLOAD};
use blueproof_diagnostic::{
    Code, Diagnostic,
    yaml::{Decode, Located, Problems, Spot},
};
use blueproof_queue::{
    PodSet, Quantity,
    manifest::{is_label_key, is_label_value},
    objects::{self, TaintEffect},
};

use super::{
    check,
    format::{self, Effect, Operator, PerNode, Spec, Toleration, Workload},
    parameters::Values,
    resources::{NodeSelector, ResourceMap},
    value::Number,
};

const GPU: &str = "nvidia.com/gpu";

/// The most pods of a set: Kubernetes is made for clusters of at most so many.
const MOST_PODS: u32 = 150_000;

/// The most pod sets beside the driver: Kueue takes eight.
const MOST_SETS: usize = 7;

/// The most characters of a pod set's name: those of a DNS label.
const MOST_OF_NAME: usize = 63;

/// Returns the pod sets of a blueprint; `spot` tells where a key stands.
pub(super) fn of(
    spec: &Spec,
    spot: &impl Fn(&[&str]) -> Spot,
    values: &Values<'_>,
    problems: &mut Problems<'_>,
) -> Option<PodSets> {
    let driver = Pod {
        memory_spot: spot(&["spec", "driver", "memory"]),
        ..Pod::from(&spec.driver)
    };
    let driver = driver.pod_set(DRIVER, Some(1), values, problems);
    let workload = match &spec.workload {
        Some(workload) => self::workload(workload, spot, values, problems),
        None => Some(Vec::new()),
    };
    let sets: Vec<PodSet> = [driver?].into_iter().chain(workload?).collect();
    let place = spot(&["spec", if sets.len() > 1 { WORKLOAD } else { DRIVER }]);
    let sets = PodSets::try_from(sets).expect("each has a name of its own, and pods");
    countable(sets, place, problems)
}

fn workload(
    workload: &Located<Workload>,
    spot: &impl Fn(&[&str]) -> Spot,
    values: &Values<'_>,
    problems: &mut Problems<'_>,
) -> Option<Vec<PodSet>> {
    let Workload {
        nodes,
        per_node,
        pod_sets,
    } = &workload.value;
    if let Some(sets) = pod_sets {
        if nodes.is_some() || per_node.is_some() {
            let message = "`podSets` stands in place of `nodes` and `perNode`";
            let hint = "leave one or the other out; in a profile, `null` takes a key away";
            problems.bad_value(sets.spot, message, hint);
            return None;
        }
        return pod_sets_of(sets, values, problems);
    }
    let count = nodes.as_ref().unwrap_or(&Number::Fixed(1));
    let count = count.resolve(values, problems);
    let no_nodes = || {
        (
            "a workload has at least one node",
            "leave `workload` out where the notebook starts nothing",
        )
    };
    let count = count.filter(|count| pods(*count, workload.spot, no_nodes, problems));
    let per_node = per_node.clone().or_else(PerNode::absent)?;
    let pod = Pod {
        memory_spot: spot(&["spec", "workload", "perNode", "memory"]),
        ..Pod::from(&per_node)
    };
    Some(vec![pod.pod_set(WORKLOAD, count, values, problems)?])
}

fn pod_sets_of(
    sets: &Located<Vec<Located<format::PodSet>>>,
    values: &Values<'_>,
    problems: &mut Problems<'_>,
) -> Option<Vec<PodSet>> {
    if !(1..=MOST_SETS).contains(&sets.value.len()) {
        let message = format!("there are {} pod sets", sets.value.len());
        let hint =
            format!("1 to {MOST_SETS} are possible; leave `workload` out where the notebook starts nothing");
        problems.bad_value(sets.spot, message, &hint);
        return None;
    }
    let each: Vec<_> = sets
        .value
        .iter()
        .enumerate()
        .map(|(number, set)| {
            let format::PodSet { name, count, .. } = &set.value;
            let is_named = named(name, &sets.value[..number], problems);
            let no_pods = || {
                (
                    "a pod set has at least one pod",
                    "leave out a pod set without any",
                )
            };
            let count = count.resolve(values, problems);
            let count = count.filter(|count| pods(*count, set.spot, no_pods, problems));
            let pod = Pod {
                memory_spot: set.spot,
                ..Pod::from(&set.value)
            };
            let pod_set = pod.pod_set(&name.value, count, values, problems)?;
            is_named.then_some(pod_set)
        })
        .collect();
    each.into_iter().collect()
}

/// Returns whether a pod set may have this name, beside those before it.
fn named(name: &Located<String>, before: &[Located<format::PodSet>], problems: &mut Problems<'_>) -> bool {
    let text = name.value.as_str();
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let is_label = !text.is_empty()
        && text.len() <= MOST_OF_NAME
        && text.bytes().all(allowed)
        && !text.starts_with('-')
        && !text.ends_with('-');
    let (message, hint) = if text == DRIVER {
        (
            format!("`{DRIVER}` is the pod set of the notebook's own kernel"),
            "choose another name; what the kernel needs stands under `spec.driver`",
        )
    } else if !is_label {
        (
            format!("`{text}` cannot be the name of a pod set"),
            "names have at most 63 of a-z, 0-9 and `-`, with a letter or digit at both ends",
        )
    } else if before.iter().any(|other| other.value.name.value == text) {
        (
            format!("there are two pod sets `{text}`"),
            "give each its own name",
        )
    } else {
        return true;
    };
    problems.bad_value(name.spot, message, hint);
    false
}

/// Returns whether there may be so many pods; `none` says what is wrong with none.
fn pods(
    count: u32,
    spot: Spot,
    none: impl Fn() -> (&'static str, &'static str),
    problems: &mut Problems<'_>,
) -> bool {
    if count == 0 {
        let (message, hint) = none();
        problems.bad_value(spot, message, hint);
        return false;
    }
    if count > MOST_PODS {
        let message = format!("{count} pods are more than a cluster can have");
        let slip = "look for a slip in `spec.workload`";
        problems.report(spot, Diagnostic::error(Code::TooMuch, message).hint(slip));
        return false;
    }
    true
}

/// What one pod asks for, as it is written.
struct Pod<'a> {
    cpu: &'a Number<Cpus>,
    memory: &'a Number<Bytes>,
    memory_spot: Spot,
    gpu: Option<&'a Number<u32>>,
    resources: &'a ResourceMap,
    node_selector: &'a NodeSelector,
    tolerations: &'a [Located<Toleration>],
}

macro_rules! pods_of {
    ($($record:ident)*) => {$(
        impl<'a> From<&'a format::$record> for Pod<'a> {
            fn from(written: &'a format::$record) -> Self {
                Self {
                    cpu: &written.cpu,
                    memory: &written.memory,
                    memory_spot: Spot::default(),
                    gpu: written.gpu.as_ref(),
                    resources: &written.resources,
                    node_selector: &written.node_selector,
                    tolerations: &written.tolerations,
                }
            }
        }
    )*};
}
pods_of! { Driver PerNode PodSet }

impl Pod<'_> {
    /// Returns the pod set of so many such pods; of what it asks for, what is nothing is not named.
    fn pod_set(
        &self,
        name: &str,
        count: Option<u32>,
        values: &Values<'_>,
        problems: &mut Problems<'_>,
    ) -> Option<PodSet> {
        let cpu = self.cpu.resolve(values, problems);
        let memory = self.memory.resolve(values, problems);
        check::memory(memory, self.memory_spot, problems);
        let gpu = self.gpu.unwrap_or(&Number::Fixed(0)).resolve(values, problems);
        let further = self.resources.resolve(values, problems);
        let tolerations: Vec<_> = self
            .tolerations
            .iter()
            .map(|toleration| tolerated(toleration, problems))
            .collect();
        if let Some(twice) = self.resources.find(GPU).filter(|_| self.gpu.is_some()) {
            let message = format!("`gpu` says already how many {GPU} are needed");
            problems.bad_value(twice.spot, message, "leave one of the two out");
            return None;
        }
        let amounts = [
            ("cpu", quantity(cpu?.as_millis())),
            ("memory", quantity(memory?.0)),
            (GPU, quantity(gpu?.into())),
        ];
        let amounts = amounts.map(|(resource, amount)| (resource.to_owned(), amount));
        let asked = amounts.into_iter().filter(|(_, amount)| *amount > Quantity::ZERO);
        Some(PodSet {
            name: name.into(),
            count: count?,
            min_count: None,
            requests: asked.chain(further?).collect(),
            node_selector: self.node_selector.0.clone(),
            tolerations: tolerations.into_iter().collect::<Option<_>>()?,
        })
    }
}

fn quantity(amount: u64) -> Quantity {
    i64::try_from(amount).map_or(Quantity::UNLIMITED, Quantity)
}

/// Returns a toleration as the queue has it, by Kubernetes' rules.
fn tolerated(written: &Located<Toleration>, problems: &mut Problems<'_>) -> Option<objects::Toleration> {
    let Toleration {
        key,
        operator,
        value,
        effect,
    } = &written.value;
    let key = key.as_deref().filter(|key| !key.is_empty());
    let text = value.as_deref().unwrap_or_default();
    let mistake = match (key, operator) {
        (Some(key), _) if !is_label_key(key) => Some((
            format!("`{key}` cannot be the key of a taint"),
            "keys look like `nvidia.com/gpu`",
        )),
        (None, Operator::Equal) => Some((
            "a toleration without a key needs the operator Exists".to_owned(),
            "name the key, or write `operator: Exists` to tolerate every taint",
        )),
        (_, Operator::Exists) if !text.is_empty() => Some((
            "a toleration with the operator Exists has no value".to_owned(),
            "leave the value out, or write `operator: Equal`",
        )),
        (_, _) if !is_label_value(text) => Some((
            format!("`{text}` cannot be the value of a taint"),
            "values have at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
        )),
        (_, Operator::Equal | Operator::Exists) => None,
    };
    if let Some((message, hint)) = mistake {
        problems.bad_value(written.spot, message, hint);
        return None;
    }
    Some(objects::Toleration {
        key: key.map(str::to_owned),
        value: match operator {
            Operator::Equal => Some(text.to_owned()),
            Operator::Exists => None,
        },
        effect: effect.map(|effect| match effect {
            Effect::NoSchedule => TaintEffect::NoSchedule,
            Effect::PreferNoSchedule => TaintEffect::PreferNoSchedule,
            Effect::NoExecute => TaintEffect::NoExecute,
        }),
    })
}

/// Returns pod sets that ask for no more than can be counted.
fn countable(sets: PodSets, spot: Spot, problems: &mut Problems<'_>) -> Option<PodSets> {
    let is_countable = |resource: &str, amount: Quantity| {
        !amount.is_unlimited() && (resource != GPU || u32::try_from(amount.0).is_ok())
    };
    let total = sets.total();
    let beyond = total
        .iter()
        .find(|(resource, amount)| !is_countable(resource, **amount));
    let Some((resource, _)) = beyond else {
        return Some(sets);
    };
    let message = format!("all pods together ask for more {resource} than can be counted");
    let slip = "look for a slip in `spec.driver` and `spec.workload`";
    problems.report(spot, Diagnostic::error(Code::TooMuch, message).hint(slip));
    None
}

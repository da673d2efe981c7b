//! What a blueprint asks for, as the queue has it: the pod set of the notebook's own kernel, and that of what it starts.

use blueproof_core::domain::{Bytes, Cpus, DRIVER, PodSets, WORKLOAD};
use blueproof_diagnostic::{
    Code, Diagnostic,
    yaml::{Located, Problems, Spot},
};
use blueproof_queue::{PodSet, Quantity};

use super::{
    check,
    format::{Driver, PerNode, Spec, Workload},
    parameters::Values,
};

const GPU: &str = "nvidia.com/gpu";

/// Returns the pod sets of a blueprint; `spot` tells where a key stands.
pub(super) fn of(
    spec: &Spec,
    spot: &impl Fn(&[&str]) -> Spot,
    values: &Values<'_>,
    problems: &mut Problems<'_>,
) -> Option<PodSets> {
    let Driver { cpu, memory, gpu } = &spec.driver;
    let amounts = Amounts {
        cpu: cpu.resolve(values, problems),
        memory: memory.resolve(values, problems),
        gpu: gpu.resolve(values, problems),
    };
    check::memory(amounts.memory, spot(&["spec", "driver", "memory"]), problems);
    let driver = amounts.pod_set(DRIVER, 1);
    let workload = spec.workload.as_ref();
    let workload = workload.map(|workload| self::workload(workload, spot, values, problems));
    let mut sets = vec![driver?];
    if let Some(workload) = workload {
        sets.push(workload?);
    }
    let place = spot(&["spec", if sets.len() > 1 { WORKLOAD } else { DRIVER }]);
    let sets = PodSets::try_from(sets).expect("a driver and at most one other, with pods");
    countable(sets, place, problems)
}

fn workload(
    workload: &Located<Workload>,
    spot: &impl Fn(&[&str]) -> Spot,
    values: &Values<'_>,
    problems: &mut Problems<'_>,
) -> Option<PodSet> {
    let Workload { nodes, per_node } = &workload.value;
    let PerNode { cpu, memory, gpu } = per_node;
    let nodes = nodes.resolve(values, problems);
    let amounts = Amounts {
        cpu: cpu.resolve(values, problems),
        memory: memory.resolve(values, problems),
        gpu: gpu.resolve(values, problems),
    };
    let of_memory = spot(&["spec", "workload", "perNode", "memory"]);
    check::memory(amounts.memory, of_memory, problems);
    if nodes == Some(0) {
        problems.bad_value(
            workload.spot,
            "a workload has at least one node",
            "leave `workload` out where the notebook starts nothing",
        );
        return None;
    }
    amounts.pod_set(WORKLOAD, nodes?)
}

/// What one pod asks for of what every machine has.
struct Amounts {
    cpu: Option<Cpus>,
    memory: Option<Bytes>,
    gpu: Option<u32>,
}

impl Amounts {
    /// Returns the pod set of so many pods that ask for this; what it asks nothing of is not named.
    fn pod_set(self, name: &str, count: u32) -> Option<PodSet> {
        let amounts = [
            ("cpu", quantity(self.cpu?.as_millis())),
            ("memory", quantity(self.memory?.0)),
            (GPU, quantity(self.gpu?.into())),
        ];
        let amounts = amounts.map(|(resource, amount)| (resource.to_owned(), amount));
        let asked = amounts.into_iter().filter(|(_, amount)| *amount > Quantity::ZERO);
        Some(PodSet {
            name: name.into(),
            count,
            requests: asked.collect(),
            ..PodSet::default()
        })
    }
}

fn quantity(amount: u64) -> Quantity {
    i64::try_from(amount).map_or(Quantity::UNLIMITED, Quantity)
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

//! Quota that the machine does not have: the queue takes it, as Kueue does, so that it is said when it is applied.

use std::cmp::Reverse;

use blueproof_core::domain::Resources;
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::{
    Quantity, amount_in_words,
    objects::{Objects, ResourceGroup},
};

/// So many of those who have quota are named of each resource, those with the most.
const NAMED: usize = 8;

/// Returns a warning for each resource of which there is more quota than the machine has; quota that cohorts have of
/// their own counts, too.
pub(super) fn beyond(objects: &Objects, machine: Resources) -> Vec<Diagnostic> {
    let has = [
        ("cpu", machine.cpu.as_millis()),
        ("memory", machine.memory.0),
        ("nvidia.com/gpu", u64::from(machine.gpu.0)),
    ];
    let warnings = has.into_iter().filter_map(|(resource, has)| {
        let has = i64::try_from(has).map_or(Quantity::UNLIMITED, Quantity);
        let owners = owners(objects, resource);
        let sum = owners.iter().fold(Quantity::ZERO, |sum, (_, of)| sum.plus(*of));
        (sum > has).then(|| warning(resource, sum, has, &owners))
    });
    warnings.collect()
}

/// Returns who has nominal quota of a resource, and how much.
fn owners(objects: &Objects, resource: &str) -> Vec<(String, Quantity)> {
    let queues = objects
        .cluster_queues
        .iter()
        .map(|(name, queue)| (format!("ClusterQueue/{name}"), &queue.resource_groups));
    let cohorts = objects
        .cohorts
        .iter()
        .map(|(name, cohort)| (format!("Cohort/{name}"), &cohort.resource_groups));
    let owned = queues
        .chain(cohorts)
        .map(|(name, groups)| (name, nominal(groups, resource)));
    owned.filter(|(_, of)| *of > Quantity::ZERO).collect()
}

fn nominal(groups: &[ResourceGroup], resource: &str) -> Quantity {
    let flavors = groups.iter().flat_map(|group| &group.flavors);
    let quotas = flavors.filter_map(|flavor| flavor.resources.get(resource));
    quotas.fold(Quantity::ZERO, |sum, quota| sum.plus(quota.nominal))
}

fn warning(resource: &str, sum: Quantity, has: Quantity, owners: &[(String, Quantity)]) -> Diagnostic {
    let [quota, has] = [sum, has].map(|of| amount_in_words(resource, of));
    let message = format!("these queues have a quota of {quota} {resource}, and this machine has {has}");
    let mut most = owners.iter().collect::<Vec<_>>();
    if owners.len() > NAMED {
        most.sort_by_key(|(_, of)| Reverse(*of));
    }
    let named = most.iter().take(NAMED);
    let each = named.map(|(name, of)| format!("{name} has {}", amount_in_words(resource, *of)));
    let more = owners.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("{more} more have none that is larger"));
    let warning = each.chain(more).fold(
        Diagnostic::warning(Code::QueueBeyondMachine, message),
        Diagnostic::because,
    );
    warning.hint(match resource {
        "nvidia.com/gpu" => "lower it: a run that is promised a GPU which is not there fails",
        _ => "lower it, or runs that are admitted together have to share what there is",
    })
}

#[cfg(test)]
mod tests {
    use blueproof_core::domain::{Bytes, Cpus, Gpus};
    use blueproof_queue::manifest::File;

    use super::*;

    const QUEUES: &str = "
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: box}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: red}
spec:
  cohortName: lab
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - name: box
      resources:
      - {name: cpu, nominalQuota: 4}
      - {name: memory, nominalQuota: 8Gi}
      - {name: nvidia.com/gpu, nominalQuota: 8}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: lab}
spec:
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: box
      resources:
      - {name: cpu, nominalQuota: 1500m}
";

    fn warnings(cpu: u32, memory: u64, gpu: u32) -> Vec<String> {
        let file = File {
            name: "queues.yaml".into(),
            text: QUEUES.into(),
        };
        let objects = blueproof_queue::manifest::read([file])
            .expect("Kueue takes it")
            .objects;
        let machine = Resources {
            cpu: Cpus::cores(cpu),
            memory: Bytes(memory << 30),
            gpu: Gpus(gpu),
        };
        beyond(&objects, machine)
            .iter()
            .map(|one| format!("{one:#}"))
            .collect()
    }

    #[test]
    fn of_many_queues_those_with_the_most_are_named() {
        let owners: Vec<_> = (1..=3000)
            .map(|n| (format!("q{n}"), Quantity(n * 1000)))
            .collect();
        let warned = format!(
            "{:#}",
            warning("cpu", Quantity(9_000_000), Quantity(1000), &owners)
        );
        assert_eq!(warned.matches("caused by").count(), NAMED + 1, "{warned}");
        assert!(warned.contains("caused by: q3000 has 3000\n"), "{warned}");
        assert!(
            warned.contains("caused by: 2992 more have none that is larger\n"),
            "{warned}"
        );
    }

    #[test]
    fn quota_beyond_the_machine_is_remarked_of_each_resource_with_who_has_it() {
        assert_eq!(warnings(6, 8, 8), [""; 0]);
        let warned = warnings(5, 7, 0);
        assert_eq!(warned.len(), 3, "{warned:#?}");
        assert_eq!(
            warned[0],
            "warning[BP0822]: these queues have a quota of 5500m cpu, and this machine has 5\n   \
             = caused by: ClusterQueue/red has 4\n   = caused by: Cohort/lab has 1500m\n   \
             = hint: lower it, or runs that are admitted together have to share what there is"
        );
        assert!(
            warned[1].contains("a quota of 8Gi memory, and this machine has 7Gi"),
            "{warned:#?}"
        );
        assert!(
            warned[2].contains("a quota of 8 nvidia.com/gpu, and this machine has 0"),
            "{warned:#?}"
        );
    }
}

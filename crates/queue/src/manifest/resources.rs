//! Names of resources that differ from others only in their case: to Kueue they are resources that nobody ever asks for.

use std::collections::BTreeMap;

use blueproof_diagnostic::{
    Code, Diagnostic,
    yaml::{Located, Problems},
};

use super::{documents::Declared, kinds::ResourceGroup};

/// Resources that clusters have.
const WELL_KNOWN: [&str; 14] = [
    "amd.com/gpu",
    "aws.amazon.com/neuron",
    "cpu",
    "ephemeral-storage",
    "example.com/gpu",
    "google.com/tpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "habana.ai/gaudi",
    "hugepages-1Gi",
    "hugepages-2Mi",
    "memory",
    "nvidia.com/gpu",
    "pods",
];

/// Reports each name that is another one's in the wrong case.
pub(super) fn check(declared: &Declared, problems: &mut [Problems<'_>]) {
    let mut known: BTreeMap<String, String> = WELL_KNOWN
        .map(|name| (name.to_ascii_lowercase(), name.to_owned()))
        .into();
    let queues = declared
        .cluster_queues
        .iter()
        .map(|found| (found.file, &found.object.spec.resource_groups.0));
    let cohorts = declared
        .cohorts
        .iter()
        .map(|found| (found.file, &found.object.spec.resource_groups.0));
    for (file, groups) in queues.chain(cohorts) {
        for name in groups.iter().flat_map(|group| names(&group.value)) {
            let lower = name.value.to_ascii_lowercase();
            let meant = known.entry(lower).or_insert_with(|| name.value.clone());
            if *meant != name.value {
                problems[file].report(name.spot, wrong_case(&name.value, meant));
            }
        }
    }
}

fn names(group: &ResourceGroup) -> impl Iterator<Item = &Located<String>> {
    let of_flavors = group
        .flavors
        .0
        .iter()
        .flat_map(|flavor| &flavor.resources.value.0);
    group
        .covered_resources
        .0
        .iter()
        .chain(of_flavors.map(|quota| &quota.name))
}

/// Returns the resource that clusters have and that is meant by this name, which is its name in the wrong case.
pub fn in_right_case(name: &str) -> Option<&'static str> {
    let mut known = WELL_KNOWN.iter();
    known
        .find(|known| known.eq_ignore_ascii_case(name) && **known != name)
        .copied()
}

/// Returns what is said of a resource that would be `meant` were its name not in another case.
pub fn wrong_case(name: &str, meant: &str) -> Diagnostic {
    Diagnostic::error(Code::QueueResourceCase, format!("there is no resource `{name}`"))
        .because(format!(
            "names of resources are told apart by case, and `{meant}` is another one"
        ))
        .hint(format!("did you mean `{meant}`?"))
}

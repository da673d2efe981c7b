//! What the order by usage needs beside the ClusterQueue that has it, and what in it is likely not meant.

use super::{
    documents::Declared,
    kinds::{AdmissionFairSharing, ClusterQueueSpec},
};
use crate::{
    diagnostic::{Code, Diagnostic},
    queue::objects::AdmissionMode,
    yaml::Problems,
};

/// Reports weights that Kueue refuses.
pub(super) fn weights(declared: &Declared, problems: &mut [Problems<'_>]) {
    for found in &declared.configurations {
        let sharing = found.object.admission_fair_sharing.iter();
        for (resource, weight) in sharing.flat_map(|sharing| &sharing.value.resource_weights) {
            if weight.value < 0.0 {
                let message = format!("the weight of `{resource}` is less than zero");
                let error = Diagnostic::error(Code::QueueRule, message);
                problems[found.file].report(
                    weight.spot,
                    error.hint("write 0 for a resource of which the use does not count"),
                );
            }
        }
    }
}

/// Reports queues whose order is not by what their admin thinks.
pub(super) fn check(declared: &Declared, problems: &mut [Problems<'_>]) {
    let mut configurations = declared.configurations.iter();
    let sharing = configurations.find_map(|found| found.object.admission_fair_sharing.as_ref());
    for found in &declared.cluster_queues {
        let sharing = sharing.map(|sharing| &sharing.value);
        scope(&found.object.spec, sharing, &mut problems[found.file]);
    }
}

fn scope(spec: &ClusterQueueSpec, sharing: Option<&AdmissionFairSharing>, problems: &mut Problems<'_>) {
    let Some(scope) = &spec.admission_scope else {
        return;
    };
    if scope.value.admission_mode != AdmissionMode::UsageBasedAdmissionFairSharing {
        return;
    }
    let found = match sharing {
        None => Some((
            "usage does not count: nothing says how it decays",
            "add `admissionFairSharing` with a `usageHalfLifeTime` to a Configuration",
        )),
        Some(sharing) if sharing.usage_half_life_time.0.is_zero() => Some((
            "usage does not count: it is forgotten at once",
            "write how long it takes until usage counts half: `usageHalfLifeTime: 168h`",
        )),
        Some(sharing) if covers_memory(spec) && !sharing.resource_weights.contains_key("memory") => Some((
            "nothing but memory decides here: a byte of it counts as much as a core or a GPU",
            "name what is to count: `resourceWeights: {cpu: 0, memory: 0, nvidia.com/gpu: 1}`",
        )),
        Some(_) => None,
    };
    if let Some((message, hint)) = found {
        let warning = Diagnostic::warning(Code::QueueUsage, message);
        problems.report(scope.spot, warning.hint(hint));
    }
}

fn covers_memory(spec: &ClusterQueueSpec) -> bool {
    let groups = spec.resource_groups.0.iter();
    let mut covered = groups.flat_map(|group| &group.value.covered_resources.0);
    covered.any(|resource| resource.value == "memory")
}

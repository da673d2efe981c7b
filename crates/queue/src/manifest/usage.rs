//! What the order by usage needs beside the ClusterQueue that has it, and what in it is likely not meant.

use blueproof_diagnostic::{Code, Diagnostic, yaml::Problems};

use super::{
    documents::{Declared, Found},
    kinds::{AdmissionFairSharing, ClusterQueueSpec, LocalQueue},
    values::{Metadata, USERS},
};
use crate::objects::{AdmissionMode, LocalQueueUsers};

/// Reports users that are told apart where nobody comes through.
pub(super) fn users_elsewhere(declared: &Declared, problems: &mut [Problems<'_>]) {
    let others = metadata_of(&declared.cluster_queues, |object| &object.metadata)
        .chain(metadata_of(&declared.cohorts, |object| &object.metadata))
        .chain(metadata_of(&declared.flavors, |object| &object.metadata))
        .chain(metadata_of(&declared.priority_classes, |object| &object.metadata));
    for (file, metadata) in others {
        if let Some(users) = &metadata.users {
            let error = Diagnostic::error(Code::QueueRule, format!("`{USERS}` says nothing here"));
            problems[file].report(
                users.spot,
                error.hint("write it at LocalQueues, for those who come through them"),
            );
        }
    }
}

fn metadata_of<T>(
    found: &[Found<T>],
    metadata: fn(&T) -> &Metadata,
) -> impl Iterator<Item = (usize, &Metadata)> {
    found
        .iter()
        .map(move |found| (found.file, metadata(&found.object)))
}

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
    for found in &declared.local_queues {
        users(&found.object, declared, &mut problems[found.file]);
    }
}

/// Reports a LocalQueue that tells users apart for nothing.
fn users(local: &LocalQueue, declared: &Declared, problems: &mut Problems<'_>) {
    let Some(users) = &local.metadata.users else {
        return;
    };
    let mut queues = declared.cluster_queues.iter().map(|found| &found.object);
    let behind = local.spec.cluster_queue.as_ref();
    let behind = queues.find(|queue| Some(&queue.metadata.name.value) == behind.map(|name| &name.value));
    if users.value != LocalQueueUsers::LocalQueue && !behind.is_some_and(|queue| goes_by_usage(&queue.spec)) {
        let message = format!("`{USERS}` changes nothing: the ClusterQueue does not go by usage");
        let warning = Diagnostic::warning(Code::QueueUsage, message);
        let hint = "write `admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}` there";
        problems.report(users.spot, warning.hint(hint));
    }
}

fn goes_by_usage(spec: &ClusterQueueSpec) -> bool {
    let scope = spec.admission_scope.as_ref();
    scope.is_some_and(|scope| scope.value.admission_mode == AdmissionMode::UsageBasedAdmissionFairSharing)
}

fn scope(spec: &ClusterQueueSpec, sharing: Option<&AdmissionFairSharing>, problems: &mut Problems<'_>) {
    let Some(scope) = &spec.admission_scope else {
        return;
    };
    if !goes_by_usage(spec) {
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

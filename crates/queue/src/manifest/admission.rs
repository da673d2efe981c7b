//! Who decides which workloads of a ClusterQueue are admitted, and on which cluster they run: annotations of ours, of which
//! Kueue takes no notice.

use std::collections::BTreeMap;

use blueproof_diagnostic::{
    Code, Diagnostic,
    yaml::{Problems, Spot},
};

use super::{
    documents::{Declared, Found},
    kinds::ClusterQueue,
    values::{ADMISSION, CLUSTER, Metadata},
};
use crate::objects::Admission;

/// Reports what is said of objects that admit nothing, and queues of one cohort that differ in it.
pub(super) fn check(declared: &Declared, problems: &mut [Problems<'_>]) {
    elsewhere(&declared.local_queues, |object| &object.metadata, problems);
    elsewhere(&declared.cohorts, |object| &object.metadata, problems);
    elsewhere(&declared.flavors, |object| &object.metadata, problems);
    elsewhere(&declared.priority_classes, |object| &object.metadata, problems);
    let parents = parents(declared);
    admissions(declared, &parents, problems);
    clusters(declared, &parents, problems);
}

fn elsewhere<T>(found: &[Found<T>], metadata: fn(&T) -> &Metadata, problems: &mut [Problems<'_>]) {
    for found in found {
        let metadata = metadata(&found.object);
        let admission = metadata.admission.as_ref().map(|said| (ADMISSION, said.spot));
        let cluster = metadata.cluster.as_ref().map(|said| (CLUSTER, said.spot));
        for (annotation, spot) in [admission, cluster].into_iter().flatten() {
            let error = Diagnostic::error(Code::QueueRule, format!("`{annotation}` says nothing here"));
            let hint = "write it at ClusterQueues: it is they that admit workloads";
            problems[found.file].report(spot, error.hint(hint));
        }
    }
}

/// Returns the cohort that each cohort is part of.
fn parents(declared: &Declared) -> BTreeMap<&str, &str> {
    let parents = declared.cohorts.iter().filter_map(|found| {
        let cohort = &found.object;
        let parent = cohort.spec.parent_name.as_ref()?;
        Some((cohort.metadata.name.value.0.as_str(), parent.value.0.as_str()))
    });
    parents.collect()
}

/// Quota of a cohort is promised by one of the two, or it is promised twice.
fn admissions(declared: &Declared, parents: &BTreeMap<&str, &str>, problems: &mut [Problems<'_>]) {
    let mut embedded: BTreeMap<&str, &str> = BTreeMap::new();
    for found in &declared.cluster_queues {
        if let Some(root) = root_of(&found.object, parents)
            && admission_of(&found.object) == Admission::Embedded
        {
            embedded.insert(root, &found.object.metadata.name.value.0);
        }
    }
    for found in &declared.cluster_queues {
        let Some(admission) = &found.object.metadata.admission else {
            continue;
        };
        let other = root_of(&found.object, parents).and_then(|root| embedded.get(root));
        if let Some(other) = other.filter(|_| admission.value == Admission::External) {
            let queue = &found.object.metadata.name.value.0;
            let message = format!(
                "the ClusterQueue `{queue}` is admitted to by its cluster, and `{other}`, with which it shares a cohort, is not"
            );
            let error = Diagnostic::error(Code::QueueRule, message)
                .because("quota that they share would be promised twice");
            let hint = format!(
                "write `{ADMISSION}: External` at each queue of the cohort, or take it out of the cohort"
            );
            problems[found.file].report(admission.spot, error.hint(hint));
        }
    }
}

/// Quota that is lent lies on the cluster of the lender, where the borrower's workloads have to run.
fn clusters(declared: &Declared, parents: &BTreeMap<&str, &str>, problems: &mut [Problems<'_>]) {
    let mut first: BTreeMap<&str, &ClusterQueue> = BTreeMap::new();
    for found in &declared.cluster_queues {
        let queue = &found.object;
        let Some(root) = root_of(queue, parents) else {
            continue;
        };
        let other = *first.entry(root).or_insert(queue);
        if cluster_of(other) == cluster_of(queue) {
            continue;
        }
        let (name, other) = (&queue.metadata.name.value.0, &other.metadata.name.value.0);
        let message = format!(
            "the ClusterQueues `{name}` and `{other}` share a cohort, and their workloads run on different clusters"
        );
        let error = Diagnostic::error(Code::QueueRule, message)
            .because("quota that one lends the other is not on the other's cluster");
        let hint =
            format!("write the same `{CLUSTER}` at each queue of the cohort, or make them two cohorts");
        problems[found.file].report(cluster_spot(queue), error.hint(hint));
    }
}

fn cluster_of(queue: &ClusterQueue) -> Option<&str> {
    let cluster = queue.metadata.cluster.as_ref();
    cluster.map(|said| said.value.0.as_str())
}

fn cluster_spot(queue: &ClusterQueue) -> Spot {
    let cluster = queue.metadata.cluster.as_ref();
    cluster.map_or(queue.metadata.name.spot, |said| said.spot)
}

fn admission_of(queue: &ClusterQueue) -> Admission {
    let admission = queue.metadata.admission.as_ref();
    admission.map_or_else(Admission::default, |said| said.value)
}

/// Returns the cohort at the top of a queue's ancestors; where they go round, the one that is met last.
fn root_of<'a>(queue: &'a ClusterQueue, parents: &BTreeMap<&'a str, &'a str>) -> Option<&'a str> {
    let mut cohort = queue.spec.cohort_name.as_ref()?.value.0.as_str();
    for _ in 0..parents.len() {
        match parents.get(cohort) {
            Some(parent) => cohort = parent,
            None => break,
        }
    }
    Some(cohort)
}

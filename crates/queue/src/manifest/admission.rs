//! Who decides which workloads of a ClusterQueue are admitted: an annotation of ours, of which Kueue takes no notice.

use std::collections::BTreeMap;

use blueproof_diagnostic::{Code, Diagnostic, yaml::Problems};

use super::{
    documents::{Declared, Found},
    kinds::ClusterQueue,
    values::{ADMISSION, Metadata},
};
use crate::objects::Admission;

/// Reports an admission that is said of what admits nothing, and queues of one cohort that differ in it.
pub(super) fn check(declared: &Declared, problems: &mut [Problems<'_>]) {
    elsewhere(&declared.local_queues, |object| &object.metadata, problems);
    elsewhere(&declared.cohorts, |object| &object.metadata, problems);
    elsewhere(&declared.flavors, |object| &object.metadata, problems);
    elsewhere(&declared.priority_classes, |object| &object.metadata, problems);
    cohorts(declared, problems);
}

fn elsewhere<T>(found: &[Found<T>], metadata: fn(&T) -> &Metadata, problems: &mut [Problems<'_>]) {
    for found in found {
        if let Some(admission) = &metadata(&found.object).admission {
            let error = Diagnostic::error(Code::QueueRule, format!("`{ADMISSION}` says nothing here"));
            let hint = "write it at ClusterQueues: it is they that admit workloads";
            problems[found.file].report(admission.spot, error.hint(hint));
        }
    }
}

/// Quota of a cohort is promised by one of the two, or it is promised twice.
fn cohorts(declared: &Declared, problems: &mut [Problems<'_>]) {
    let parents = declared.cohorts.iter().filter_map(|found| {
        let cohort = &found.object;
        let parent = cohort.spec.parent_name.as_ref()?;
        Some((cohort.metadata.name.value.0.as_str(), parent.value.0.as_str()))
    });
    let parents: BTreeMap<&str, &str> = parents.collect();
    let mut embedded: BTreeMap<&str, &str> = BTreeMap::new();
    for found in &declared.cluster_queues {
        if let Some(root) = root_of(&found.object, &parents)
            && admission_of(&found.object) == Admission::Embedded
        {
            embedded.insert(root, &found.object.metadata.name.value.0);
        }
    }
    for found in &declared.cluster_queues {
        let Some(admission) = &found.object.metadata.admission else {
            continue;
        };
        let other = root_of(&found.object, &parents).and_then(|root| embedded.get(root));
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

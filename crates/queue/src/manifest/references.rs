//! What refers to objects that are not there. Kueue takes it, and the queue stays inactive until they come.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_diagnostic::{
    Code, Diagnostic,
    yaml::{Located, Problems, nearest},
};

use super::{
    documents::{Declared, Found},
    kinds::LocalQueue,
    values::Name,
};

/// Reports each name that nothing has, and cohorts that are their own ancestors.
pub(super) fn check(declared: &Declared, problems: &mut [Problems<'_>]) {
    flavors(declared, problems);
    cluster_queues(declared, problems);
    parents(declared, problems);
    circles(declared, problems);
}

fn warn(
    name: &Located<Name>,
    message: String,
    known: &BTreeSet<&str>,
    what: &str,
    problems: &mut Problems<'_>,
) {
    let warning = Diagnostic::warning(Code::QueueReference, message);
    let hint = match nearest(&name.value.0, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("add the {what}"),
    };
    problems.report(name.spot, warning.hint(hint));
}

fn flavors(declared: &Declared, problems: &mut [Problems<'_>]) {
    let flavors = declared.flavors.iter().map(|found| &found.object.metadata.name);
    let known: BTreeSet<&str> = flavors.map(|name| name.value.0.as_str()).collect();
    for found in &declared.cluster_queues {
        let groups = found.object.spec.resource_groups.0.iter();
        for flavor in groups.flat_map(|group| &group.value.flavors.0) {
            let name = &flavor.name;
            if !known.contains(name.value.0.as_str()) {
                let queue = &found.object.metadata.name.value.0;
                let message = format!(
                    "there is no ResourceFlavor `{}`, so the ClusterQueue `{queue}` admits nothing",
                    name.value.0
                );
                warn(name, message, &known, "ResourceFlavor", &mut problems[found.file]);
            }
        }
    }
}

fn cluster_queues(declared: &Declared, problems: &mut [Problems<'_>]) {
    let queues = declared
        .cluster_queues
        .iter()
        .map(|found| &found.object.metadata.name);
    let known: BTreeSet<&str> = queues.map(|name| name.value.0.as_str()).collect();
    for found in &declared.local_queues {
        let Some(name) = &found.object.spec.cluster_queue else {
            goes_nowhere(found, &mut problems[found.file]);
            continue;
        };
        if !known.contains(name.value.0.as_str()) {
            let queue = &found.object.metadata.name.value.0;
            let message = format!(
                "there is no ClusterQueue `{}`, so nobody gets through the LocalQueue `{queue}`",
                name.value.0
            );
            warn(name, message, &known, "ClusterQueue", &mut problems[found.file]);
        }
    }
}

fn goes_nowhere(found: &Found<LocalQueue>, problems: &mut Problems<'_>) {
    let queue = &found.object.metadata.name.value.0;
    let message = format!("nobody gets through the LocalQueue `{queue}`: it names no ClusterQueue");
    let warning = Diagnostic::warning(Code::QueueReference, message);
    problems.report(found.spot, warning.hint("set spec.clusterQueue"));
}

fn parents(declared: &Declared, problems: &mut [Problems<'_>]) {
    let cohorts = declared.cohorts.iter().map(|found| &found.object.metadata.name);
    let known: BTreeSet<&str> = cohorts.map(|name| name.value.0.as_str()).collect();
    for found in &declared.cohorts {
        let Some(name) = &found.object.spec.parent_name else {
            continue;
        };
        if !known.contains(name.value.0.as_str()) {
            let message = format!(
                "there is no Cohort `{}`: it is taken as one without quota of its own",
                name.value.0
            );
            warn(name, message, &known, "Cohort", &mut problems[found.file]);
        }
    }
}

fn circles(declared: &Declared, problems: &mut [Problems<'_>]) {
    let parents: BTreeMap<&str, &str> = declared
        .cohorts
        .iter()
        .filter_map(|found| {
            let parent = found.object.spec.parent_name.as_ref()?;
            Some((
                found.object.metadata.name.value.0.as_str(),
                parent.value.0.as_str(),
            ))
        })
        .collect();
    let mut told = BTreeSet::new();
    for found in &declared.cohorts {
        let (Some(parent), Some(circle)) = (
            &found.object.spec.parent_name,
            circle_of(&found.object.metadata.name.value.0, &parents),
        ) else {
            continue;
        };
        if circle.iter().all(|cohort| told.insert(*cohort)) {
            let (message, hint) = match &circle[..] {
                [own] => (
                    format!("the cohort {own} is its own parent, and admits nothing"),
                    "leave out its parentName",
                ),
                several => (
                    format!(
                        "the cohorts {} are each other's parents, and admit nothing",
                        several.join(", ")
                    ),
                    "leave out the parentName of one of them",
                ),
            };
            let warning = Diagnostic::warning(Code::QueueCircle, message);
            problems[found.file].report(parent.spot, warning.hint(hint));
        }
    }
}

/// Returns the cohorts from `start` back to itself, or `None` where its ancestors have an end, or go round without it.
fn circle_of<'a>(start: &'a str, parents: &BTreeMap<&'a str, &'a str>) -> Option<Vec<&'a str>> {
    let mut passed = vec![start];
    loop {
        let next = *parents.get(passed.last()?)?;
        if next == start {
            return Some(passed);
        }
        if passed.contains(&next) {
            return None;
        }
        passed.push(next);
    }
}

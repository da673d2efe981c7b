//! Names in a simulation that nothing has, and what else no key alone can tell.

use std::collections::BTreeSet;

use blueproof_diagnostic::{
    Code, Diagnostic,
    yaml::{Located, Problems, nearest},
};
use blueproof_queue::{Quantity, manifest::wrong_case, objects::Objects};

use super::{
    MOST_JOBS,
    spec::{EventSpec, JobSpec, NodeSpec, PodFailure, PodSetSpec},
};
use crate::Change;

/// More names than these help nobody.
const MOST_NAMED: usize = 20;

pub(super) fn jobs(jobs: &[JobSpec], objects: &Objects, problems: &mut Problems<'_>) {
    let mut sum: usize = 0;
    for job in jobs {
        sum = sum.saturating_add(usize::try_from(job.count.value).unwrap_or(usize::MAX));
        if sum > MOST_JOBS {
            let hint = format!("at most {MOST_JOBS} jobs are simulated");
            return problems.bad_value(job.count.spot, "these are too many jobs", &hint);
        }
        let queue = &job.queue;
        known(
            queue,
            "LocalQueue",
            Code::NoSuchQueue,
            objects.local_queues.keys(),
            problems,
        );
        if let Some(class) = &job.priority_class {
            let classes = objects.priority_classes.keys();
            known(
                class,
                "WorkloadPriorityClass",
                Code::QueueReference,
                classes,
                problems,
            );
        }
        if job.pod_sets.value.is_empty() {
            problems.missing(job.pod_sets.spot, "podSets");
        }
        min_counts(&job.pod_sets.value, problems);
        resources(job, objects, problems);
    }
}

/// Reports least counts that Kueue would not take.
fn min_counts(sets: &[PodSetSpec], problems: &mut Problems<'_>) {
    let least = sets
        .iter()
        .filter_map(|set| Some((set.min_count.as_ref()?, set.count)));
    for (number, (Located { value, spot }, count)) in least.enumerate() {
        if !(1..=count).contains(value) {
            let message = format!("{value} of {count} pods cannot be the least");
            problems.bad_value(*spot, message, "write a number from 1 to `count`");
        }
        if number == 1 {
            let message = "a second pod set of the job says `minCount`";
            problems.bad_value(
                *spot,
                message,
                "Kueue takes fewer pods of one pod set of a workload",
            );
        }
    }
}

/// Reports each resource of which the job's queue has none.
fn resources(job: &JobSpec, objects: &Objects, problems: &mut Problems<'_>) {
    let local = objects.local_queues.get(&job.queue.value);
    let queue = local.and_then(|local| objects.cluster_queues.get(&local.cluster_queue));
    let Some(queue) = queue else { return };
    let groups = queue.resource_groups.iter();
    let covered: BTreeSet<&str> = groups.flat_map(|group| group.covered_resources()).collect();
    let asked = job.pod_sets.value.iter().flat_map(|set| &set.requests.0);
    for (resource, spot, amount) in asked.filter(|(resource, ..)| !covered.contains(resource.as_str())) {
        let same = covered.iter().find(|name| name.eq_ignore_ascii_case(resource));
        let error = match same {
            Some(meant) => wrong_case(resource, meant),
            // Kueue admits whoever asks for nothing of it (kubernetes-sigs/kueue#8241).
            None if amount.of(resource) == Quantity::ZERO => continue,
            None => not_covered(resource, &covered, &job.queue.value),
        };
        problems.report(*spot, error);
    }
}

fn not_covered(resource: &str, covered: &BTreeSet<&str>, queue: &str) -> Diagnostic {
    let message = format!("the queue `{queue}` has no quota for `{resource}`");
    let all: Vec<&str> = covered.iter().copied().collect();
    Diagnostic::error(Code::QueueReference, message)
        .because("Kueue admits nobody who asks for some of a resource that no resource group covers")
        .hint(format!("it has quota for {}", all.join(", ")))
}

pub(super) fn slack(queue: Option<&Located<String>>, objects: &Objects, problems: &mut Problems<'_>) {
    if let Some(queue) = queue {
        let queues = objects.cluster_queues.keys();
        known(queue, "ClusterQueue", Code::QueueReference, queues, problems);
    }
}

pub(super) fn node(node: &Located<String>, nodes: &[NodeSpec], problems: &mut Problems<'_>) {
    let names = nodes.iter().map(|node| &node.name);
    known(node, "node", Code::QueueReference, names, problems);
}

/// Returns the failure of a pod of the job that is named.
pub(super) fn pod_failure(
    failure: &PodFailure,
    jobs: &[JobSpec],
    problems: &mut Problems<'_>,
) -> Option<Change> {
    let (name, code) = (&failure.job, &failure.exit_code);
    let job = number(&name.value, jobs);
    if job.is_none() {
        let names = jobs.iter().map(|job| &job.name);
        let error = unknown("job", Code::QueueReference, &name.value, names);
        problems.report(name.spot, error);
    }
    let exit_code = u8::try_from(code.value).ok().filter(|code| *code > 0);
    if exit_code.is_none() {
        let message = format!("a pod that fails has no exit code {}", code.value);
        problems.bad_value(code.spot, message, "exit codes of failures are 1 to 255");
    }
    Some(Change::PodFails {
        job: job?,
        exit_code: exit_code?.into(),
    })
}

/// Returns the number of the first job of this name. Of several that are alike, the third of `a` is called `a-3`.
fn number(name: &str, jobs: &[JobSpec]) -> Option<usize> {
    let mut before = 0;
    for job in jobs {
        let which = match job.count.value {
            1 => (name == job.name).then_some(1),
            count => name
                .strip_prefix(&job.name)
                .and_then(|rest| rest.strip_prefix('-')?.parse::<u32>().ok())
                .filter(|which| (1..=count).contains(which)),
        };
        if let Some(which) = which {
            return Some(before + which as usize - 1);
        }
        before += job.count.value as usize;
    }
    None
}

/// Reports an event that is nothing, or several things.
pub(super) fn one_thing(event: &EventSpec, problems: &mut Problems<'_>) {
    let keys = [&event.say, &event.fail_node, &event.recover_node, &event.quota];
    let spots = keys.into_iter().flatten().map(|key| key.spot);
    let pod = event.fail_pod.iter().map(|failure| failure.job.spot);
    let second = spots.chain(pod).nth(1);
    let message = "an event is exactly one of `say`, `failNode`, `recoverNode`, `failPod` and `quota`";
    problems.bad_value(
        second.unwrap_or(event.at.spot),
        message,
        "several events may have the same time",
    );
}

fn known<'a>(
    name: &Located<String>,
    kind: &str,
    code: Code,
    names: impl Iterator<Item = &'a String> + Clone,
    problems: &mut Problems<'_>,
) {
    if names.clone().any(|known| *known == name.value) {
        return;
    }
    problems.report(name.spot, unknown(kind, code, &name.value, names));
}

fn unknown<'a>(kind: &str, code: Code, name: &str, names: impl Iterator<Item = &'a String>) -> Diagnostic {
    let all: Vec<&str> = names.map(String::as_str).collect();
    let hint = match nearest(name, all.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if all.is_empty() => format!("there is no {kind} at all"),
        None if all.len() > MOST_NAMED => format!("there are {} others", all.len()),
        None => format!("there are: {}", all.join(", ")),
    };
    Diagnostic::error(code, format!("there is no {kind} `{name}`")).hint(hint)
}

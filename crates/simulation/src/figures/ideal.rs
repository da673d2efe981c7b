//! What the work alone takes: how soon all could be done if nothing ever stood idle.

use std::collections::BTreeMap;

use blueproof_queue::{
    PodSet,
    objects::{Objects, ResourceGroup},
    root_cohort,
};
use jiff::SignedDuration;

use super::{Job, Scenario};
use crate::Change;

/// Work or quota by the tree of cohorts that it is in and by resource.
type ByTree<'a> = BTreeMap<(Tree<'a>, &'a str), f64>;

/// Queues that can use each other's quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tree<'a> {
    /// All below this uppermost cohort.
    Below(&'a str),
    /// A queue in no cohort.
    Alone(&'a str),
}

/// Returns how many seconds these jobs, each with how long it takes, need at the least: those of the tree and resource that have
/// the most to do. `None` where the quota does not stay as it is.
pub(super) fn work_alone<'a>(
    scenario: &'a Scenario,
    jobs: impl Iterator<Item = (&'a Job, SignedDuration)>,
) -> Option<f64> {
    let changes = |(_, change): &(_, Change)| matches!(change, Change::Quota(_));
    if scenario.changes.iter().any(changes) {
        return None;
    }
    let quota = quota(&scenario.objects);
    let mut work = ByTree::new();
    for (job, takes) in jobs {
        if let Some(tree) = scenario
            .cluster_queue(job)
            .and_then(|queue| tree(&scenario.objects, queue))
        {
            add_work(&mut work, tree, job, takes);
        }
    }
    let spans = work.into_iter().filter_map(|(of, work)| {
        let quota = quota.get(&of).copied().filter(|quota| *quota > 0.0)?;
        Some(work / quota)
    });
    Some(spans.fold(0.0, f64::max))
}

/// Returns the tree that a queue is in; `None` where cohorts make a circle, and nobody is admitted.
fn tree<'a>(objects: &'a Objects, queue: &'a str) -> Option<Tree<'a>> {
    match &objects.cluster_queues.get(queue)?.cohort {
        Some(cohort) => root_cohort(objects, cohort).map(Tree::Below),
        None => Some(Tree::Alone(queue)),
    }
}

fn add_work<'a>(work: &mut ByTree<'a>, tree: Tree<'a>, job: &'a Job, takes: SignedDuration) {
    let seconds = takes.as_secs_f64();
    for set in &job.pod_sets {
        let pods = f64::from(least(set));
        for (resource, amount) in &set.requests {
            *work.entry((tree, resource)).or_default() += amount.0 as f64 * pods * seconds;
        }
    }
}

/// Returns how few pods of a set will do.
fn least(set: &PodSet) -> u32 {
    set.min_count.unwrap_or(set.count).min(set.count)
}

fn quota(objects: &Objects) -> ByTree<'_> {
    let queues = objects
        .cluster_queues
        .iter()
        .filter_map(|(name, queue)| Some((tree(objects, name)?, &queue.resource_groups)));
    let cohorts = objects.cohorts.iter().filter_map(|(name, cohort)| {
        Some((Tree::Below(root_cohort(objects, name)?), &cohort.resource_groups))
    });
    let mut quota = ByTree::new();
    for (tree, groups) in queues.chain(cohorts) {
        add_quota(&mut quota, tree, groups);
    }
    quota
}

fn add_quota<'a>(sums: &mut ByTree<'a>, tree: Tree<'a>, groups: &'a [ResourceGroup]) {
    let flavors = groups.iter().flat_map(|group| &group.flavors);
    for (resource, quota) in flavors.flat_map(|flavor| &flavor.resources) {
        *sums.entry((tree, resource)).or_default() += quota.nominal.0 as f64;
    }
}

//! All about one ClusterQueue, for a person: its terms, its quota, who is in it, and where it stands in its cohorts.

use std::fmt::Write as _;

use anstyle::Style;
use blueproof_core::{
    domain::{Bytes, RunId},
    queue::{
        Inactive, Quantity, Queues, UserUsage, WorkloadId,
        objects::{ClusterQueue, FlavorFungibility, FlavorPreference, Objects, Preemption},
    },
    view::RunView,
};
use jiff::Timestamp;

use super::{
    quotas::{amount, limit, quotas, strategy, used},
    text::figure,
};
use crate::output::{self, Cell, Table, Width};

const BOLD: Style = Style::new().bold();

/// Returns all about the queue, which is configured.
pub(crate) fn describe(
    name: &str,
    queues: &Queues,
    runs: &[RunView],
    now: Timestamp,
    width: Width,
) -> String {
    let objects = queues.objects();
    let queue = &objects.cluster_queues[name];
    let mut text = summary(name, queue, queues).render_rows(&[12, 0], Width::Unlimited);
    let quota = quota(name, queue, queues);
    let _ = write!(text, "\n{BOLD}Quota{BOLD:#}\n{}", quota.render(width));
    if let Ok(Some(usages)) = queues.users(name, now) {
        let table = usage(&usages, objects);
        let _ = write!(text, "\n{BOLD}Usage{BOLD:#}\n{}", table.render(width));
    }
    add_runs(
        &mut text,
        "Hold quota",
        &queues.holders(name).unwrap_or_default(),
        runs,
    );
    add_runs(&mut text, "Wait", &queues.waiting(name).unwrap_or_default(), runs);
    if let Some(cohort) = &queue.cohort {
        let _ = write!(text, "\n{BOLD}Cohorts{BOLD:#}\n");
        add_cohort(&mut text, root(cohort, objects), 1, name, objects);
    }
    text
}

fn summary(name: &str, queue: &ClusterQueue, queues: &Queues) -> Table {
    let mut table = Table::new([]);
    let mut row = |title: &str, value: String| table.row([Cell::from(title), value.into()]);
    row("queue", name.into());
    row(
        "cohort",
        queue
            .cohort
            .clone()
            .unwrap_or_else(|| "none: it neither borrows nor lends".into()),
    );
    row("admits", admits(queues.inactive(name).unwrap_or_default()));
    row("strategy", strategy(queue));
    row("preempts", preempts(queue.preemption));
    row("flavors", fungibility(queue.flavor_fungibility));
    row("weight", weight(name, queue, queues));
    row("entrances", entrances(name, queues.objects()));
    table
}

fn admits(inactive: Option<&Inactive>) -> String {
    match inactive {
        None => "yes".into(),
        Some(inactive) => format!("no: {inactive}"),
    }
}

fn preempts(preemption: Preemption) -> String {
    let borrowing = match preemption.borrow_within_cohort {
        None => "Never".into(),
        Some(borrow) => match borrow.max_priority_threshold {
            None => "LowerPriority".into(),
            Some(most) => format!("LowerPriority, up to {most}"),
        },
    };
    format!(
        "withinClusterQueue {:?} · reclaimWithinCohort {:?} · borrowWithinCohort {borrowing}",
        preemption.within_cluster_queue, preemption.reclaim_within_cohort
    )
}

fn fungibility(fungibility: FlavorFungibility) -> String {
    let preference = match fungibility.preference {
        FlavorPreference::BorrowingOverPreemption => "",
        FlavorPreference::PreemptionOverBorrowing => " · PreemptionOverBorrowing",
    };
    format!(
        "whenCanBorrow {:?} · whenCanPreempt {:?}{preference}",
        fungibility.when_can_borrow, fungibility.when_can_preempt
    )
}

fn weight(name: &str, queue: &ClusterQueue, queues: &Queues) -> String {
    let share = queues.weighted_share(name).unwrap_or_default();
    format!("{} · weighted share {}", queue.weight.0, figure(share))
}

/// Returns what each user had lately, the one that goes first first.
fn usage(usages: &[UserUsage], objects: &Objects) -> Table {
    let mut usages: Vec<_> = usages.iter().collect();
    usages.sort_by(|a, b| {
        let of = |usage: &UserUsage| usage.usage.unwrap_or(f64::INFINITY);
        of(a).total_cmp(&of(b))
    });
    let mut table = Table::new(["  LOCAL QUEUE", "USER", "WEIGHT", "USAGE", "CONSUMED"]);
    for of in usages {
        let weight = objects.local_queues[&of.local_queue].weight.0;
        table.row([
            Cell::from(format!("  {}", of.local_queue)),
            output::line(of.user.as_deref().unwrap_or("-")).into(),
            weight.to_string().into(),
            of.usage.map_or("last".into(), figure).into(),
            consumed(of).into(),
        ]);
    }
    table
}

fn consumed(of: &UserUsage) -> String {
    let consumed = of.consumed_resources.iter();
    let consumed = consumed.filter(|(_, amount)| **amount > 0.0);
    let words = consumed.map(|(resource, amount)| match resource.as_str() {
        "memory" | "ephemeral-storage" => format!("{} {resource}", Bytes(*amount as u64).rounded()),
        _ => format!("{} {resource}", figure(*amount)),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Returns the LocalQueues in front of a queue.
fn entrances(name: &str, objects: &Objects) -> String {
    let local = objects
        .local_queues
        .iter()
        .filter(|(_, local)| local.cluster_queue == name);
    let names: Vec<&str> = local.map(|(name, _)| name.as_str()).collect();
    if names.is_empty() {
        return "none: no run gets in without a LocalQueue".into();
    }
    names.join(", ")
}

fn quota(name: &str, queue: &ClusterQueue, queues: &Queues) -> Table {
    let mut table = Table::new([
        "  FLAVOR", "RESOURCE", "USED", "NOMINAL", "BORROW", "LEND", "FREE", "MOST",
    ]);
    for (flavor, resource, quota) in quotas(queue) {
        let of = |amounts: Result<Quantity, _>| amount(resource, amounts.unwrap_or(Quantity::ZERO));
        table.row([
            Cell::from(format!("  {flavor}")),
            resource.into(),
            used(queues, name, flavor, resource).into(),
            amount(resource, quota.nominal).into(),
            limit(queue, resource, quota.borrowing_limit).into(),
            limit(queue, resource, quota.lending_limit).into(),
            of(queues.available(name, flavor, resource)).into(),
            of(queues.potential(name, flavor, resource)).into(),
        ]);
    }
    table
}

fn add_runs(text: &mut String, title: &str, workloads: &[WorkloadId], runs: &[RunView]) {
    if workloads.is_empty() {
        return;
    }
    let mut table = Table::new([]);
    for id in workloads.iter().map(|workload| RunId(workload.0)) {
        let view = runs.iter().find(|view| view.id == id);
        let words = |word: &dyn Fn(&RunView) -> String| view.map(word).unwrap_or_default();
        table.row([
            Cell::from(format!("  {id}")),
            output::line(&words(&|view| view.subject.blueprint.to_string())).into(),
            words(&|view| view.resources.to_string()).into(),
            words(&|view| format!("priority {}", view.priority.0)).into(),
        ]);
    }
    let widths = table.widths();
    let _ = write!(
        text,
        "\n{BOLD}{title}{BOLD:#}\n{}",
        table.render_rows(&widths, Width::Unlimited)
    );
}

/// Returns the cohort that has no parent, or the last one before parents go round.
fn root<'a>(cohort: &'a str, objects: &'a Objects) -> &'a str {
    let mut passed = vec![cohort];
    while let Some(parent) =
        parent(passed[passed.len() - 1], objects).filter(|parent| !passed.contains(parent))
    {
        passed.push(parent);
    }
    passed[passed.len() - 1]
}

fn parent<'a>(cohort: &str, objects: &'a Objects) -> Option<&'a str> {
    objects.cohorts.get(cohort)?.parent.as_deref()
}

/// Adds a cohort and all below it, the queue that is described with a mark.
fn add_cohort(text: &mut String, cohort: &str, depth: usize, described: &str, objects: &Objects) {
    let indent = "  ".repeat(depth);
    let _ = writeln!(text, "{indent}{cohort}");
    // Parents that go round have no end.
    if depth > objects.cohorts.len() + 1 {
        return;
    }
    let below = objects
        .cohorts
        .iter()
        .filter(|(_, below)| below.parent.as_deref() == Some(cohort));
    for (below, _) in below {
        add_cohort(text, below, depth + 1, described, objects);
    }
    let queues = objects
        .cluster_queues
        .iter()
        .filter(|(_, queue)| queue.cohort.as_deref() == Some(cohort));
    for (queue, _) in queues {
        let mark = if queue == described { "  ←" } else { "" };
        let _ = writeln!(text, "{indent}  {queue}{mark}");
    }
}

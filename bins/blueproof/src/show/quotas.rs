//! ClusterQueues as rows of a table: each queue, and below it what it has of each resource.

use std::{cmp::Reverse, collections::BTreeMap};

use blueproof_core::{
    domain::{Gpus, RunId},
    scheduler::Lost,
    view::RunView,
};
use blueproof_queue::{
    Quantity, Queues, amount_in_words,
    objects::{AdmissionMode, ClusterQueue, Objects, Quota, StopPolicy},
};

use super::runs::Columns;
use crate::output::{Cell, Table};

/// Who waits behind each LocalQueue that is stopped.
pub(crate) type BehindStopped<'a> = BTreeMap<&'a str, Vec<RunId>>;

/// Returns a table of all queues.
pub(crate) fn table(
    queues: &Queues,
    behind: &BehindStopped<'_>,
    lost: &[Lost<'_>],
    columns: Columns,
) -> Table {
    let usual = ["QUEUE", "USED", "NOMINAL", "BORROW", "LEND", "WAITING"];
    let mut table = match columns {
        Columns::Usual => Table::new(usual),
        Columns::Wide => Table::new(usual.into_iter().chain(["FREE", "MOST"])),
    };
    for (name, queue) in &queues.objects().cluster_queues {
        let stopped = stopped_entrances(name, queues.objects(), behind);
        let held_up: usize = stopped.iter().map(|(.., runs)| runs.len()).sum();
        let waiting = held_up + queues.waiting(name).map_or(0, |waiting| waiting.len());
        let blank = || Cell::from("");
        table.row([
            name.into(),
            blank(),
            blank(),
            blank(),
            blank(),
            waiting.to_string().into(),
        ]);
        table.row([Cell::from(format!("  {}", terms(queue)))]);
        for (local, stop, runs) in stopped {
            let wait = match runs.len() {
                1 => "1 waits".to_owned(),
                n_runs => format!("{n_runs} wait"),
            };
            let stopped = stopped_in_words(stop);
            table.row([Cell::from(format!("  entrance {local}{stopped}: {wait}"))]);
        }
        add_quotas(&mut table, queues, name, queue, columns);
    }
    for name in removed(queues) {
        table.row([Cell::from(name)]);
        table.row([Cell::from(
            "  removed; what is held of it stays until it is given back",
        )]);
        for ((flavor, resource), held) in held(queues, name) {
            table.row([
                Cell::from(format!("  {flavor} {resource}")),
                amount(resource, held).into(),
            ]);
        }
    }
    add_lost(&mut table, lost);
    table
}

/// Adds what a queue has of each resource.
fn add_quotas(table: &mut Table, queues: &Queues, name: &str, queue: &ClusterQueue, columns: Columns) {
    for (flavor, resource, quota) in quotas(queue) {
        let usual = [
            Cell::from(format!("  {flavor} {resource}")),
            used(queues, name, flavor, resource).into(),
            amount(resource, quota.nominal).into(),
            limit(queue, resource, quota.borrowing_limit).into(),
            limit(queue, resource, quota.lending_limit).into(),
            Cell::from(""),
        ];
        let could_have = [
            queues.available(name, flavor, resource),
            queues.potential(name, flavor, resource),
        ];
        let could_have = could_have.map(|of| amount(resource, of.unwrap_or(Quantity::ZERO)).into());
        match columns {
            Columns::Usual => table.row(usual),
            Columns::Wide => table.row(usual.into_iter().chain(could_have)),
        }
    }
}

/// Adds who waits where an object is missing.
fn add_lost(table: &mut Table, lost: &[Lost<'_>]) {
    for Lost {
        local_queue,
        missing,
        runs,
        ..
    } in lost
    {
        let waiting = Cell::from(runs.len().to_string());
        let [used, nominal, borrow, lend] = [""; 4].map(Cell::from);
        table.row([Cell::from(*local_queue), used, nominal, borrow, lend, waiting]);
        table.row([Cell::from(format!("  {missing}"))]);
    }
}

/// Returns the queues that are no longer configured, and of which quota is held.
pub(crate) fn removed(queues: &Queues) -> impl Iterator<Item = &str> {
    let configured = &queues.objects().cluster_queues;
    queues.names().filter(|name| !configured.contains_key(*name))
}

/// Returns what is held of a queue, by flavor and resource.
pub(super) fn held<'a>(queues: &'a Queues, queue: &str) -> BTreeMap<(&'a str, &'a str), Quantity> {
    let mut sums: BTreeMap<_, Quantity> = BTreeMap::new();
    for holder in queues.holders(queue).unwrap_or_default() {
        for (flavor, resource, amount) in queues.held_by(holder) {
            let sum = sums.entry((flavor, resource)).or_default();
            *sum = sum.plus(amount);
        }
    }
    sums
}

/// Returns a table of the priorities that have a name, the highest first; `None` is that there are none.
pub(crate) fn priority_classes(objects: &Objects) -> Option<Table> {
    let mut classes: Vec<_> = objects.priority_classes.iter().collect();
    classes.sort_by_key(|(_, value)| Reverse(**value));
    let mut table = Table::new(["PRIORITY CLASS", "VALUE"]);
    for (name, value) in &classes {
        table.row([Cell::from(name.as_str()), value.to_string().into()]);
    }
    (!classes.is_empty()).then_some(table)
}

/// Returns the quotas of a queue, with their flavor and resource, the flavors as they are tried.
pub(super) fn quotas(queue: &ClusterQueue) -> impl Iterator<Item = (&str, &str, &Quota)> {
    let flavors = queue.resource_groups.iter().flat_map(|group| &group.flavors);
    flavors.flat_map(|flavor| {
        let quotas = flavor.resources.iter();
        quotas.map(|(resource, quota)| (flavor.name.as_str(), resource.as_str(), quota))
    })
}

/// Returns what the ClusterQueue of a run has of its own of what the run asks for, of all its flavors together; `None` where
/// there is no such queue.
pub(super) fn nominal(view: &RunView, objects: &Objects) -> Option<String> {
    let local = objects.local_queues.get(view.queue.as_str())?;
    let queue = objects.cluster_queues.get(&local.cluster_queue)?;
    let mut nominal: BTreeMap<&str, Quantity> = BTreeMap::new();
    for (_, resource, quota) in quotas(queue) {
        let sum = nominal.entry(resource).or_insert(Quantity::ZERO);
        *sum = sum.plus(quota.nominal);
    }
    let of = |resource: &str, word: &str| {
        let nominal = nominal.get(resource)?;
        Some(format!("{} {word}", amount(resource, *nominal)))
    };
    let gpu = (view.resources.gpu > Gpus(0)).then(|| of("nvidia.com/gpu", "gpu"));
    let further = view.further_resources.keys();
    let parts = [of("cpu", "cpu"), of("memory", "memory"), gpu.flatten()];
    let parts = parts
        .into_iter()
        .chain(further.map(|resource| of(resource, resource)));
    let parts: Vec<String> = parts.flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Returns the LocalQueues in front of a queue that are stopped, how, and who waits behind each.
pub(super) fn stopped_entrances<'a>(
    queue: &str,
    objects: &'a Objects,
    behind: &'a BehindStopped<'_>,
) -> Vec<(&'a str, StopPolicy, &'a [RunId])> {
    let of_queue = behind.iter().filter_map(|(name, runs)| {
        let (name, local) = objects.local_queues.get_key_value(*name)?;
        (local.cluster_queue == queue).then_some((name.as_str(), local.stop_policy, runs.as_slice()))
    });
    of_queue.collect()
}

/// Returns what follows the name of a queue that is stopped.
pub(super) fn stopped_in_words(stop: StopPolicy) -> &'static str {
    match stop {
        StopPolicy::None => "",
        StopPolicy::Hold => ", stopped (Hold)",
        StopPolicy::HoldAndDrain => ", stopped (HoldAndDrain)",
    }
}

/// Returns in which cohort a queue is and how it queues.
fn terms(queue: &ClusterQueue) -> String {
    let cohort = match &queue.cohort {
        Some(cohort) => format!("in {cohort}"),
        None => "no cohort".into(),
    };
    format!(
        "{cohort}, {}{}",
        strategy(queue),
        stopped_in_words(queue.stop_policy)
    )
}

/// Returns who goes next in a queue: Kueue's words.
pub(super) fn strategy(queue: &ClusterQueue) -> String {
    let strategy = format!("{:?}", queue.queueing_strategy);
    match queue.admission_mode {
        AdmissionMode::NoAdmissionFairSharing => strategy,
        mode @ AdmissionMode::UsageBasedAdmissionFairSharing => format!("{strategy}, {mode:?}"),
    }
}

/// Returns how much of a resource a queue's runs hold.
pub(super) fn used(queues: &Queues, queue: &str, flavor: &str, resource: &str) -> String {
    let used = queues.usage(queue, flavor, resource).unwrap_or(Quantity::ZERO);
    amount(resource, used)
}

/// Returns a limit; `any` is none, and without a cohort there is nothing to be limited.
pub(super) fn limit(queue: &ClusterQueue, resource: &str, limit: Option<Quantity>) -> String {
    match (limit, &queue.cohort) {
        (Some(limit), _) => amount(resource, limit),
        (None, Some(_)) => "any".into(),
        (None, None) => "-".into(),
    }
}

/// Returns an amount as people say it.
pub(super) fn amount(resource: &str, amount: Quantity) -> String {
    if amount.is_unlimited() {
        return "any".into();
    }
    amount_in_words(resource, amount)
}

#[cfg(test)]
mod tests {
    use blueproof_queue::manifest::{File, read};

    use super::*;
    use crate::output::Width;

    #[test]
    fn a_team_s_queue_of_a_cluster_is_shown_in_80_columns() {
        let text = include_str!("../../../../crates/queue/src/manifest/tests/exported.yaml");
        let file = File {
            name: "exported.yaml".into(),
            text: text.into(),
        };
        let objects = read([file]).expect("a cluster has it").objects;
        let shown = table(&Queues::new(objects), &BehindStopped::new(), &[], Columns::Usual)
            .render(Width::Columns(80));
        assert_eq!(
            shown,
            "\
QUEUE                                USED  NOMINAL  BORROW  LEND  WAITING
red-cluster-queue                                                 0
  in default-cohort, BestEffortFIFO
  h200 cpu                           0     224      any     any
  h200 memory                        0     1.8Ti    any     any
  h200 nvidia.com/gpu                0     8        8       4
  h200 pods                          0     100      any     any
"
        );
    }

    #[test]
    fn priorities_that_have_a_name_are_listed_from_the_highest() {
        let mut objects = Objects::default();
        assert!(priority_classes(&objects).is_none());
        objects.priority_classes = [("low", -5), ("high", 1000), ("usual", 0)]
            .map(|(name, value)| (name.to_owned(), value))
            .into();
        let shown = priority_classes(&objects).expect("there are some");
        assert_eq!(
            shown.render(Width::Columns(80)),
            "PRIORITY CLASS  VALUE\nhigh            1000\nusual           0\nlow             -5\n"
        );
    }
}

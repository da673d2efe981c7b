//! ClusterQueues as rows of a table: each queue, and below it what it has of each resource.

use std::cmp::Reverse;

use blueproof_core::queue::{
    Quantity, Queues, amount_in_words,
    objects::{AdmissionMode, ClusterQueue, Objects, Quota, StopPolicy},
};

use crate::output::{Cell, Table};

/// Returns a table of all queues.
pub(crate) fn table(queues: &Queues) -> Table {
    let mut table = Table::new(["QUEUE", "USED", "NOMINAL", "BORROW", "LEND", "WAITING"]);
    for (name, queue) in &queues.objects().cluster_queues {
        let waiting = queues.waiting(name).map_or(0, |waiting| waiting.len());
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
        for (flavor, resource, quota) in quotas(queue) {
            table.row([
                Cell::from(format!("  {flavor} {resource}")),
                used(queues, name, flavor, resource).into(),
                amount(resource, quota.nominal).into(),
                limit(queue, resource, quota.borrowing_limit).into(),
                limit(queue, resource, quota.lending_limit).into(),
                blank(),
            ]);
        }
    }
    table
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

/// Returns in which cohort a queue is and how it queues.
fn terms(queue: &ClusterQueue) -> String {
    let cohort = match &queue.cohort {
        Some(cohort) => format!("in {cohort}"),
        None => "no cohort".into(),
    };
    let stop = match queue.stop_policy {
        StopPolicy::None => "",
        StopPolicy::Hold => ", stopped (Hold)",
        StopPolicy::HoldAndDrain => ", stopped (HoldAndDrain)",
    };
    format!("{cohort}, {}{stop}", strategy(queue))
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
    use blueproof_core::queue::manifest::{File, read};

    use super::*;
    use crate::output::Width;

    #[test]
    fn a_team_s_queue_of_a_cluster_is_shown_in_80_columns() {
        let text = include_str!("../../../../crates/core/src/queue/manifest/tests/exported.yaml");
        let file = File {
            name: "exported.yaml".into(),
            text: text.into(),
        };
        let objects = read([file]).expect("a cluster has it").objects;
        let shown = table(&Queues::new(objects)).render(Width::Columns(80));
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

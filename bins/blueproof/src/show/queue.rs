//! All about one ClusterQueue, for a person: its terms, its quota, who is in it, and where it stands in its cohorts.

use std::fmt::Write as _;

use anstyle::Style;
use blueproof_core::{
    domain::{Bytes, RunId},
    scheduler::{Lost, Scheduler},
    view::RunView,
};
use blueproof_queue::{
    Inactive, Quantity, Queues, UserUsage, WorkloadId,
    objects::{ClusterQueue, FlavorFungibility, FlavorPreference, Objects, Preemption, StopPolicy},
};
use jiff::Timestamp;

use super::{
    quotas::{amount, held, limit, quotas, stopped_entrances, stopped_in_words, strategy, used},
    text::figure,
};
use crate::output::{self, Cell, Table, Width};

const BOLD: Style = Style::new().bold();

/// Returns all about the queue, which is configured, or is held still.
pub(crate) fn describe(
    name: &str,
    scheduler: &Scheduler,
    runs: &[RunView],
    now: Timestamp,
    width: Width,
) -> String {
    let (queues, behind) = (scheduler.queues(), scheduler.behind_stopped());
    let objects = queues.objects();
    let configured = objects.cluster_queues.get(name);
    let mut text = match configured {
        Some(queue) => terms(name, queue, queues, now, width),
        None => remains(name, queues, width),
    };
    let mut add = |title: &str, workloads: Vec<WorkloadId>| {
        let ids = workloads.into_iter().map(|workload| RunId(workload.0));
        add_runs(&mut text, title, &ids.collect::<Vec<_>>(), runs);
    };
    add("Hold quota", queues.holders(name).unwrap_or_default());
    add("Wait", queues.waiting(name).unwrap_or_default());
    for (local, stop, held_up) in stopped_entrances(name, objects, &behind) {
        let title = format!("Wait behind {local}{}", stopped_in_words(stop));
        add_runs(&mut text, &title, held_up, runs);
    }
    text.push_str(&lost(name, &scheduler.lost(), runs));
    if let Some(cohort) = configured.and_then(|queue| queue.cohort.as_ref()) {
        let _ = write!(text, "\n{BOLD}Cohorts{BOLD:#}\n");
        add_cohort(&mut text, root(cohort, objects), 1, name, objects);
    }
    text
}

/// Returns who waits in a queue of this name in vain, and what is missing; nothing where nobody does.
pub(crate) fn lost(name: &str, all: &[Lost<'_>], runs: &[RunView]) -> String {
    let mut text = String::new();
    for lost in all
        .iter()
        .filter(|lost| [lost.local_queue, lost.cluster_queue].contains(&name))
    {
        add_runs(&mut text, &format!("Wait: {}", lost.missing), &lost.runs, runs);
    }
    text
}

/// Returns how a queue is configured, what it has, and who had how much lately.
fn terms(name: &str, queue: &ClusterQueue, queues: &Queues, now: Timestamp, width: Width) -> String {
    let mut text = summary(name, queue, queues).render_rows(&[12, 0], Width::Unlimited);
    let quota = quota(name, queue, queues);
    let _ = write!(text, "\n{BOLD}Quota{BOLD:#}\n{}", quota.render(width));
    if let Ok(Some(usages)) = queues.users(name, now) {
        let table = usage(&usages, queues.objects());
        let _ = write!(text, "\n{BOLD}Usage{BOLD:#}\n{}", table.render(width));
    }
    text
}

/// Returns what there is still of a queue that was removed.
fn remains(name: &str, queues: &Queues, width: Width) -> String {
    let mut summary = Table::new([]);
    summary.row([Cell::from("queue"), name.into()]);
    summary.row([
        Cell::from("admits"),
        admits(queues.inactive(name).unwrap_or_default()).into(),
    ]);
    let mut used = Table::new(["  FLAVOR", "RESOURCE", "USED"]);
    for ((flavor, resource), held) in held(queues, name) {
        used.row([
            Cell::from(format!("  {flavor}")),
            resource.into(),
            amount(resource, held).into(),
        ]);
    }
    format!(
        "{}\n{BOLD}Quota{BOLD:#}\n{}",
        summary.render_rows(&[12, 0], Width::Unlimited),
        used.render(width)
    )
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
    let names: Vec<String> = local
        .map(|(name, local)| match local.stop_policy {
            StopPolicy::None => name.clone(),
            stop @ (StopPolicy::Hold | StopPolicy::HoldAndDrain) => format!("{name} (stopped: {stop:?})"),
        })
        .collect();
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

fn add_runs(text: &mut String, title: &str, ids: &[RunId], runs: &[RunView]) {
    if ids.is_empty() {
        return;
    }
    let mut table = Table::new([]);
    for id in ids {
        let view = runs.iter().find(|view| view.id == *id);
        let words = |word: &dyn Fn(&RunView) -> String| view.map(word).unwrap_or_default();
        table.row([
            Cell::from(format!("  {id}")),
            output::line(&words(&|view| view.subject.blueprint.to_string())).into(),
            words(&|view| view.asked().to_string()).into(),
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

#[cfg(test)]
mod tests {
    use blueproof_core::{
        domain::{Actor, RunState},
        event::Event,
        pending::PendingReason,
        policy::Policy,
        testing::{request, teams},
    };
    use blueproof_queue::objects::WithinClusterQueue;

    use super::*;
    use crate::show::{quotas::table, runs::Columns};

    fn tell(scheduler: &mut Scheduler, event: Event) {
        scheduler.handle(Timestamp::UNIX_EPOCH, event);
    }

    fn apply(scheduler: &mut Scheduler, objects: Objects) {
        let (objects, by) = (Box::new(objects), Actor::Local("admin".into()));
        tell(scheduler, Event::QuotaApplied { objects, by });
    }

    fn ask(scheduler: &mut Scheduler, run: &str, queue: &str) {
        let mut request = request(run, "nano-lm");
        request.queue = queue.parse().expect("a name");
        let request = Box::new(request);
        tell(scheduler, Event::Requested { request });
    }

    fn shown(scheduler: &Scheduler, columns: Columns) -> String {
        let (behind, lost) = (scheduler.behind_stopped(), scheduler.lost());
        table(scheduler.queues(), &behind, &lost, columns).render(Width::Columns(120))
    }

    #[test]
    fn a_wide_list_of_queues_tells_what_each_could_have_too() {
        let mut scheduler = Scheduler::new(Policy::local(Default::default()));
        apply(&mut scheduler, teams(1, WithinClusterQueue::Never));
        ask(&mut scheduler, "1", "red");
        let wide = shown(&scheduler, Columns::Wide);
        let cpu = |line: &&str| line.starts_with("  any cpu");
        let columns = |line: &str| {
            line.split_whitespace()
                .skip(2)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let rows: Vec<_> = wide.lines().filter(cpu).map(columns).collect();
        assert!(
            wide.lines()
                .next()
                .is_some_and(|head| head.ends_with("FREE  MOST")),
            "{wide}"
        );
        assert_eq!(rows[0], ["0", "1", "any", "any", "2", "3"], "{wide}");
        assert!(!shown(&scheduler, Columns::Usual).contains("FREE"));
    }

    fn described(scheduler: &Scheduler, queue: &str) -> String {
        let runs: Vec<RunView> = scheduler.runs().collect();
        describe(queue, scheduler, &runs, Timestamp::UNIX_EPOCH, Width::Columns(80))
    }

    #[test]
    fn a_queue_shows_who_waits_behind_its_local_queues_that_are_stopped() {
        let mut scheduler = Scheduler::new(Policy::local(Default::default()));
        let mut objects = teams(1, WithinClusterQueue::Never);
        objects.local_queues.get_mut("red").expect("there").stop_policy = StopPolicy::Hold;
        apply(&mut scheduler, objects);
        ask(&mut scheduler, "1", "red");
        ask(&mut scheduler, "2", "red");

        let shown = shown(&scheduler, Columns::Usual);
        let mut lines = shown.lines().skip_while(|line| !line.starts_with("red "));
        assert!(lines.next().is_some_and(|line| line.ends_with(" 2")), "{shown}");
        let stopped = lines.find(|line| line.starts_with("  entrance"));
        assert_eq!(stopped, Some("  entrance red, stopped (Hold): 2 wait"), "{shown}");
        assert_eq!(shown.matches("stopped").count(), 1, "{shown}");

        let told = described(&scheduler, "red");
        assert!(told.contains("entrances     red (stopped: Hold)\n"), "{told}");
        let waits = told
            .split("Wait behind red, stopped (Hold)")
            .nth(1)
            .expect("a title");
        assert!(
            waits.contains("  r-1  nano-lm") && waits.contains("  r-2  nano-lm"),
            "{told}"
        );
        assert!(!described(&scheduler, "blue").contains("r-1"));
    }

    #[test]
    fn a_queue_that_was_removed_is_shown_for_as_long_as_its_quota_is_held() {
        let mut scheduler = Scheduler::new(Policy::local(Default::default()));
        let mut objects = teams(1, WithinClusterQueue::Never);
        apply(&mut scheduler, objects.clone());
        ask(&mut scheduler, "1", "red");
        objects.cluster_queues.remove("red");
        objects.local_queues.remove("red");
        apply(&mut scheduler, objects);

        let shown = shown(&scheduler, Columns::Usual);
        let red = shown.split("\nred").nth(1).expect("its rows");
        assert!(
            red.contains("  removed; ") && red.contains("  any cpu "),
            "{shown}"
        );
        let told = described(&scheduler, "red");
        assert!(told.contains("admits        no: it is removed\n"), "{told}");
        assert!(
            told.contains("Hold quota") && told.contains("  r-1  nano-lm"),
            "{told}"
        );
    }

    #[test]
    fn who_waits_where_an_object_is_missing_is_shown_with_its_name() {
        let mut scheduler = Scheduler::new(Policy::local(Default::default()));
        let mut objects = teams(1, WithinClusterQueue::Never);
        apply(&mut scheduler, objects.clone());
        for run in ["1", "2", "3", "4", "5"] {
            ask(&mut scheduler, run, "red");
        }
        ask(&mut scheduler, "6", "blue");
        objects.cluster_queues.remove("red");
        objects.local_queues.remove("red");
        let blue = objects.local_queues.get_mut("blue").expect("there");
        blue.cluster_queue = "nowhere".into();
        apply(&mut scheduler, objects);
        let waiting = scheduler
            .runs()
            .filter(|view| view.state == RunState::Queued)
            .filter(|view| scheduler.why(view.id) != Some(PendingReason::WaitingForRelease))
            .count();

        let lost = scheduler.lost();
        assert_eq!(lost.iter().map(|lost| lost.runs.len()).sum::<usize>(), waiting);
        let in_red: Vec<RunId> = lost
            .iter()
            .filter(|lost| lost.local_queue == "red")
            .flat_map(|lost| lost.runs.clone())
            .collect();
        assert!(in_red.contains(&RunId(5)), "{in_red:?}");
        let shown = shown(&scheduler, Columns::Usual);
        let row = format!(" {}\n  there is no LocalQueue `red`\n", in_red.len());
        assert!(shown.contains(&row), "{shown}");
        let told = described(&scheduler, "red");
        assert!(told.contains("Wait: there is no LocalQueue `red`"), "{told}");
        for run in in_red {
            assert!(told.contains(&format!("  {run}  nano-lm")), "{told}");
        }
        assert_eq!(super::lost("green", &lost, &[]), "");
    }
}

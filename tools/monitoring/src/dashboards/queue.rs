//! Who waits for quota, who has it, and who takes it from whom. These are Kueue's figures, so the dashboard works for Kueue too.

use blueproof_core::metrics as m;

use crate::{
    expr::{Expr, expr},
    grafana::{Dashboard, Panel, Row, Unit, Variable, View},
    recorded as r,
};

/// One resource in the chosen queues.
const CHOSEN: &str = "{cluster_queue=~\"$cluster_queue\",resource=~\"$resource\"}";

pub(super) fn dashboard() -> Dashboard {
    let variable = |label, of: Expr| Variable { label, of };
    Dashboard {
        uid: "blueproof-queue",
        title: "blueproof: Queue and quota",
        description: "Who waits, for how long and for what; who has quota; and who takes it from whom.",
        variables: vec![
            variable("cluster_queue", expr("#", &[&m::PENDING_WORKLOADS])),
            variable("resource", expr("#", &[&m::CLUSTER_QUEUE_NOMINAL_QUOTA])),
        ],
        rows: vec![waiting(), stages(), quota(), cohorts(), preemption()],
    }
}

/// Returns the time below which a share of those who came in a day were.
fn quantile(share: &str, by: &str, chosen: &str, of: &'static m::Family) -> Expr {
    let template = format!("histogram_quantile({share}, sum by ({by}, le) (rate(#_bucket{chosen}[1d])))");
    expr(&template, &[of])
}

fn waiting() -> Row {
    let queue = "{cluster_queue=~\"$cluster_queue\"}";
    let wait = |title, of| {
        Panel::new(title, View::Lines, Unit::Seconds)
            .show(
                "{{cluster_queue}} half",
                quantile("0.5", "cluster_queue", queue, of),
            )
            .show(
                "{{cluster_queue}} 95 %",
                quantile("0.95", "cluster_queue", queue, of),
            )
    };
    let by_queue = |metric| expr(&format!("sum by (cluster_queue) (#{queue})"), &[metric]);
    Row {
        title: "Waiting",
        panels: vec![
            Panel::new("Pending workloads", View::Areas, Unit::Ones).show(
                "{{cluster_queue}} {{status}}",
                expr(
                    &format!("sum by (cluster_queue, status) (#{queue})"),
                    &[&m::PENDING_WORKLOADS],
                ),
            ),
            Panel::new("Workloads with quota", View::Areas, Unit::Ones)
                .show("{{cluster_queue}} told", by_queue(&m::ADMITTED_ACTIVE_WORKLOADS))
                .show(
                    "{{cluster_queue}} reserved",
                    by_queue(&m::RESERVING_ACTIVE_WORKLOADS),
                ),
            wait("Wait until told of quota, over a day", &m::ADMISSION_WAIT_TIME),
            wait("Wait until the attempt ran, over a day", &m::READY_WAIT_TIME),
            Panel::new("Asked for by those who wait", View::Lines, Unit::Ones).show(
                "{{cluster_queue}} {{resource}}",
                expr(
                    &format!("sum by (cluster_queue, resource) (#{CHOSEN})"),
                    &[&m::CLUSTER_QUEUE_RESOURCE_PENDING],
                ),
            ),
            Panel::new("Cycles of the queue, in a second", View::Lines, Unit::Ones).show(
                "{{result}}",
                expr(
                    "sum by (result) (rate(#[$__rate_interval]))",
                    &[&m::ADMISSION_ATTEMPTS],
                ),
            ),
        ],
    }
}

fn stages() -> Row {
    Row {
        title: "Stages of runs",
        panels: vec![
            Panel::new("Time in a stage, over a day", View::Lines, Unit::Seconds)
                .show("{{stage}} half", quantile("0.5", "stage", "", &m::STAGE_SECONDS))
                .show("{{stage}} 95 %", quantile("0.95", "stage", "", &m::STAGE_SECONDS)),
            Panel::new("Longest wait, and what is usual", View::Lines, Unit::Seconds)
                .limits(3_600.0, 14_400.0)
                .show(
                    "{{stage}} now",
                    expr("time() - min by (stage) (#)", &[&m::QUEUE_OLDEST_TIMESTAMP]),
                )
                .show("{{stage}} 95 %", expr("max by (stage) (#)", &[&r::STAGE_P95])),
        ],
    }
}

fn quota() -> Row {
    let used = |title, view, metric| {
        Panel::new(title, view, Unit::Ones).show(
            "{{cluster_queue}} {{flavor}} {{resource}}",
            expr(
                &format!("sum by (cluster_queue, flavor, resource) (#{CHOSEN})"),
                &[metric],
            ),
        )
    };
    let all = "sum by (cluster_queue, flavor, resource)";
    let names: [&dyn crate::expr::Named; 2] =
        [&m::CLUSTER_QUEUE_RESOURCE_USAGE, &m::CLUSTER_QUEUE_NOMINAL_QUOTA];
    Row {
        title: "Quota",
        panels: vec![
            used("Used", View::Areas, &m::CLUSTER_QUEUE_RESOURCE_USAGE),
            used("Own quota", View::Lines, &m::CLUSTER_QUEUE_NOMINAL_QUOTA),
            Panel::new(
                "Share of its own quota that a queue uses",
                View::Lines,
                Unit::Share,
            )
            .show(
                "{{cluster_queue}} {{flavor}} {{resource}}",
                expr(&format!("{all} (#{CHOSEN}) / ({all} (#{CHOSEN}) > 0)"), &names),
            ),
            Panel::new("Borrowed from others", View::Areas, Unit::Ones).show(
                "{{cluster_queue}} {{flavor}} {{resource}}",
                expr(
                    &format!("clamp_min({all} (#{CHOSEN}) - {all} (#{CHOSEN}), 0)"),
                    &names,
                ),
            ),
            used("May be borrowed", View::Lines, &m::CLUSTER_QUEUE_BORROWING_LIMIT),
            used("May be lent", View::Lines, &m::CLUSTER_QUEUE_LENDING_LIMIT),
        ],
    }
}

fn cohorts() -> Row {
    let resource = "{resource=~\"$resource\"}";
    let all = format!("sum by (cohort, flavor, resource) (#{resource})");
    Row {
        title: "Cohorts",
        panels: vec![
            Panel::new("Quota of a cohort, and what is reserved", View::Lines, Unit::Ones)
                .show(
                    "{{cohort}} {{flavor}} {{resource}}",
                    expr(&all, &[&m::COHORT_SUBTREE_QUOTA]),
                )
                .show(
                    "{{cohort}} {{flavor}} {{resource}} reserved",
                    expr(&all, &[&m::COHORT_SUBTREE_RESOURCE_RESERVATIONS]),
                ),
            Panel::new("Weighted share", View::Lines, Unit::Ones).show(
                "{{cluster_queue}}",
                expr(
                    "max by (cluster_queue) (#{cluster_queue=~\"$cluster_queue\"})",
                    &[&m::CLUSTER_QUEUE_WEIGHTED_SHARE],
                ),
            ),
        ],
    }
}

fn preemption() -> Row {
    Row {
        title: "Preemption, in an hour",
        panels: vec![
            Panel::new("Evicted", View::Areas, Unit::Ones).show(
                "{{cluster_queue}} {{reason}}",
                expr(
                    "sum by (cluster_queue, reason) (increase(#{cluster_queue=~\"$cluster_queue\"}[1h]))",
                    &[&m::EVICTED_WORKLOADS],
                ),
            ),
            Panel::new("Evicted for others", View::Areas, Unit::Ones).show(
                "for {{preempting_cluster_queue}} {{reason}}",
                expr(
                    "sum by (preempting_cluster_queue, reason) (increase(#[1h]))",
                    &[&m::PREEMPTED_WORKLOADS],
                ),
            ),
            Panel::new(
                "Evicted for one that had been evicted for them",
                View::Areas,
                Unit::Ones,
            )
            .show(
                "for {{preempting_cluster_queue}}",
                expr(
                    "sum by (preempting_cluster_queue) (increase(#[1h]))",
                    &[&m::PREEMPTION_REVERSALS],
                ),
            ),
            Panel::new(
                "Until quota was given back, over a day",
                View::Lines,
                Unit::Seconds,
            )
            .show(
                "{{cluster_queue}} 95 %",
                quantile(
                    "0.95",
                    "cluster_queue",
                    "{cluster_queue=~\"$cluster_queue\"}",
                    &m::WORKLOAD_EVICTION_LATENCY,
                ),
            ),
        ],
    }
}

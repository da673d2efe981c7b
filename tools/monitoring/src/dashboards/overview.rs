//! How everything stands: the five figures, runs, and devices.

use blueproof_core::{gpu::Figure, metrics as m};
use blueproof_gpu::pages::native;

use crate::{
    expr::expr,
    grafana::{Dashboard, Panel, Row, Unit, View},
    recorded as r,
};

pub(super) fn dashboard() -> Dashboard {
    Dashboard {
        uid: "blueproof-overview",
        title: "blueproof: Overview",
        description: "The five figures, what runs and waits, and what the devices do.",
        variables: Vec::new(),
        rows: vec![figures(), runs(), devices()],
    }
}

fn figures() -> Row {
    let one = |title, unit, recorded: &'static r::Recorded| {
        Panel::new(title, View::Number, unit).show("", expr("#", &[recorded]))
    };
    Row {
        title: "Five figures, over a day",
        panels: vec![
            one("Average CPU", Unit::Share, &r::CPU),
            one("Average GPU", Unit::Share, &r::GPU),
            one("Peak GPU", Unit::Share, &r::PEAK),
            one("Peak GPU memory", Unit::Bytes, &r::PEAK_MEMORY),
            one("Average queue time", Unit::Seconds, &r::QUEUE_TIME),
            one("Average build time", Unit::Seconds, &r::BUILD_TIME),
        ],
    }
}

fn runs() -> Row {
    Row {
        title: "Runs",
        panels: vec![
            Panel::new("Runs that ended, in an hour", View::Areas, Unit::Ones).show(
                "{{verdict}}",
                expr("sum by (verdict) (increase(#[1h]))", &[&m::RUNS_TOTAL]),
            ),
            Panel::new("Runs on their way", View::Areas, Unit::Ones)
                .show("{{stage}}", expr("sum by (stage) (#)", &[&m::QUEUE_DEPTH])),
            Panel::new("Longest wait", View::Lines, Unit::Seconds)
                .limits(3_600.0, 14_400.0)
                .show(
                    "{{stage}}",
                    expr("time() - min by (stage) (#)", &[&m::QUEUE_OLDEST_TIMESTAMP]),
                ),
            Panel::new("Workloads with quota", View::Areas, Unit::Ones).show(
                "{{cluster_queue}}",
                expr("sum by (cluster_queue) (#)", &[&m::ADMITTED_ACTIVE_WORKLOADS]),
            ),
            Panel::new("Not green for 36 hours", View::Table, Unit::Seconds).show(
                "",
                expr(
                    "max by (blueprint, profile) (time() - # > 36 * 3600)",
                    &[&m::BLUEPRINT_LAST_GREEN],
                ),
            ),
        ],
    }
}

fn devices() -> Row {
    Row {
        title: "Devices",
        panels: vec![
            Panel::new("GPUs", View::Number, Unit::Ones)
                .show("", expr("sum(#{kind=\"physical\"})", &[&native::DEVICES])),
            Panel::new("Machines that cannot be read", View::Number, Unit::Ones)
                .limits(1.0, 1.0)
                .show("", expr("count(#) - sum(#)", &[&native::UP, &native::UP])),
            Panel::new("Power", View::Number, Unit::Watts)
                .show("", expr("sum(#)", &[native::family(Figure::Power)])),
            Panel::new("Busy", View::Number, Unit::Share).show(
                "",
                expr("avg(#{partition=\"\"})", &[native::family(Figure::Utilization)]),
            ),
            Panel::new("Memory used", View::Number, Unit::Share).show(
                "",
                expr(
                    "sum(#{partition=\"\"}) / sum(#{partition=\"\"})",
                    &[
                        native::family(Figure::MemoryUsed),
                        native::family(Figure::MemoryTotal),
                    ],
                ),
            ),
            Panel::new("Hottest", View::Number, Unit::Celsius)
                .show("", expr("max(#)", &[native::family(Figure::Temperature)])),
        ],
    }
}

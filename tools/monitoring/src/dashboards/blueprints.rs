//! How each blueprint fares: whether it is green, how long it takes, and what it uses.

use blueproof_core::metrics as m;

use crate::{
    expr::{Expr, Named, expr},
    grafana::{Dashboard, Panel, Row, Unit, Variable, View},
    recorded as r,
};

/// The chosen blueprints.
const CHOSEN: &str = "{blueprint=~\"$blueprint\",profile=~\"$profile\"}";

/// What a series is called.
const NAME: &str = "{{blueprint}} {{profile}}";

pub(super) fn dashboard() -> Dashboard {
    let variable = |label| Variable {
        label,
        of: expr("#_count", &[&m::RUN_SECONDS]),
    };
    Dashboard {
        uid: "blueproof-blueprints",
        title: "blueproof: Blueprint health",
        description: "Whether blueprints are green, how long they take, and what they use.",
        variables: vec![variable("blueprint"), variable("profile")],
        rows: vec![health(), time(), used()],
    }
}

/// Returns what a template makes of the chosen blueprints; its `?` is that choice.
fn chosen(template: &str, names: &[&dyn Named]) -> Expr {
    expr(&template.replace('?', CHOSEN), names)
}

fn lines(title: &'static str, unit: Unit, template: &str, names: &[&dyn Named]) -> Panel {
    Panel::new(title, View::Lines, unit).show(NAME, chosen(template, names))
}

fn health() -> Row {
    Row {
        title: "Health",
        panels: vec![
            Panel::new(
                "Since the last green run of no pull request",
                View::Table,
                Unit::Seconds,
            )
            // The alert has 36 hours.
            .limits(86_400.0, 129_600.0)
            .show(
                "",
                chosen(
                    "sort_desc(max by (blueprint, profile) (time() - #?))",
                    &[&m::BLUEPRINT_LAST_GREEN],
                ),
            ),
            lines(
                "Runs that passed or failed, in a day",
                Unit::Ones,
                "sum by (blueprint, profile) (increase(#_count?[1d]))",
                &[&m::RUN_SECONDS],
            ),
            Panel::new("How all runs ended, in a day", View::Areas, Unit::Ones).show(
                "{{verdict}}",
                expr("sum by (verdict) (increase(#[1d]))", &[&m::RUNS_TOTAL]),
            ),
        ],
    }
}

fn time() -> Row {
    Row {
        title: "Time",
        panels: vec![
            lines(
                "Average build time, over a day",
                Unit::Seconds,
                "#?",
                &[&r::EACH_BUILD_TIME],
            ),
            lines(
                "Build time of 95 of 100, over a day",
                Unit::Seconds,
                "histogram_quantile(0.95, sum by (blueprint, profile, le) (rate(#_bucket?[1d])))",
                &[&m::RUN_SECONDS],
            ),
        ],
    }
}

fn used() -> Row {
    Row {
        title: "What they use",
        panels: vec![
            lines("Average CPU, over a day", Unit::Share, "#?", &[&r::EACH_CPU]),
            lines("Average GPU, over a day", Unit::Share, "#?", &[&r::EACH_GPU]),
            lines("Peak GPU, over a day", Unit::Share, "#?", &[&r::EACH_PEAK]),
            lines(
                "Peak GPU memory, over a day",
                Unit::Bytes,
                "#?",
                &[&r::EACH_PEAK_MEMORY],
            ),
            lines(
                "Energy of a run, over a day",
                Unit::Joules,
                "sum by (blueprint, profile) (increase(#?[1d])) \
                 / (sum by (blueprint, profile) (increase(#_count?[1d])) > 0)",
                &[&m::RUN_GPU_ENERGY, &m::RUN_SECONDS],
            ),
            lines(
                "Share of GPU time that was seen, over a day",
                Unit::Share,
                "sum by (blueprint, profile) (increase(#?[1d])) \
                 / (sum by (blueprint, profile) (increase(#?[1d])) > 0)",
                &[&m::RUN_GPU_SEEN_SECONDS, &m::RUN_GPU_ALLOCATED_SECONDS],
            ),
        ],
    }
}

//! How often estimates held.

use std::fmt;

use blueproof_core::backtest::{EstimateAccuracy, Scores};
use jiff::SignedDuration;
use serde::Serialize;

use super::text::duration;
use crate::output::{Cell, Table, Width, line};

/// Shares of less runs than these say little, and are for programs.
const ENOUGH: usize = 10;

/// How often estimates held.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Answer(pub(crate) Scores);

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scores = &self.0;
        let mut table = Table::new(["", "RUNS", "P50 HELD", "P90 HELD", "MEDIAN ERROR"]);
        add(&mut table, "starts", &scores.starts);
        add(&mut table, "ends", &scores.ends);
        let blueprints = scores.ends_by_blueprint.iter();
        for (name, held) in blueprints.filter(|(_, held)| held.runs >= ENOUGH) {
            add(&mut table, &format!("  {}", line(name)), held);
        }
        f.write_str(&table.render(Width::Unlimited))?;
        match scores.passed_over {
            0 => write!(
                f,
                "each of {} runs was estimated when it was asked for",
                scores.runs
            )?,
            passed_over => write!(
                f,
                "{} of {} runs were estimated when they were asked for, the others passed over: with so many waiting, \
                 estimates of all would take too long",
                scores.runs - passed_over,
                scores.runs
            )?,
        }
        if scores.without_estimate > 0 {
            write!(f, "; of {} nothing could be told yet", scores.without_estimate)?;
        }
        writeln!(f)
    }
}

fn add(table: &mut Table, what: &str, held: &EstimateAccuracy) {
    let of = |text: String| if held.runs == 0 { "-".into() } else { text };
    let percent = |share: f64| of(format!("{:.1} %", share * 100.0));
    let error = SignedDuration::from_secs_f64(held.median_error_seconds);
    table.row([
        Cell::from(what),
        held.runs.to_string().into(),
        percent(held.p50_held).into(),
        percent(held.p90_held).into(),
        of(duration(error)).into(),
    ]);
}

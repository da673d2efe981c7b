//! What is known of a run in tables, beside the attempt that had passed last.

use std::collections::BTreeSet;

use blueproof_core::{
    domain::{Bytes, Failure, GpuUse, Verdict},
    ports::RunStatus,
    view::{AttemptView, RunView},
};
use jiff::Timestamp;

use super::{CheckContext, CheckSettings, approving, figures, title};
use crate::markdown::{Document, code};

/// The most metrics that are shown.
const METRICS: usize = 30;

/// Returns the summary.
pub(super) fn of(status: &RunStatus, settings: &CheckSettings, context: CheckContext<'_>) -> String {
    let (view, sides) = (&status.view, Sides::of(status));
    let mut document = Document::default();
    document.push(&simulated(&sides, settings));
    document.push(&pending(view));
    document.push(&approving::of(status, context));
    document.push(&figures::table(&sides.header(), &rows(view, &sides)));
    document.push(&metrics(&sides));
    document.push(&parameters(view));
    if let Some(page) = context.page {
        document.push(&format!("Full report: {page}"));
    }
    document.finish()
}

/// An attempt, and the one that had passed last.
struct Sides<'a> {
    now: Option<&'a AttemptView>,
    then: Option<&'a AttemptView>,
}

impl<'a> Sides<'a> {
    fn of(status: &'a RunStatus) -> Self {
        let pass = status.view.last_pass.as_ref();
        let then = pass.zip(status.passed.as_ref()).and_then(|(pass, passed)| {
            let mut attempts = passed.attempts.iter();
            attempts.find(|attempt| attempt.id == pass.attempt)
        });
        Self {
            now: status.view.attempt_asked_for(),
            then,
        }
    }

    fn header(&self) -> Vec<String> {
        let then = self.then.map(|then| format!("last pass ({})", then.id));
        ["".to_owned(), "this run".to_owned()]
            .into_iter()
            .chain(then)
            .collect()
    }

    /// Returns a row of what both sides may have; `None` where neither has it.
    fn row(&self, name: &str, of: impl Fn(&AttemptView) -> Option<String>) -> Option<Vec<String>> {
        let (now, then) = (self.now.and_then(&of), self.then.map(&of));
        if now.is_none() && then.as_ref().is_none_or(Option::is_none) {
            return None;
        }
        let then = then.map(Option::unwrap_or_default);
        let cells = [name.to_owned(), now.unwrap_or_default()].into_iter().chain(then);
        Some(cells.collect())
    }
}

/// Says that figures are no measurements, where they are none.
fn simulated(sides: &Sides<'_>, settings: &CheckSettings) -> String {
    let is = |side: Option<&AttemptView>| side.is_some_and(|attempt| settings.is_simulated(attempt));
    let what = match (is(sides.now), is(sides.then)) {
        (false, false) => return String::new(),
        (true, false) => "this run",
        (false, true) => "the last pass",
        (true, true) => "both runs",
    };
    format!("**Simulated.** The devices of {what} are simulated: figures of them are no measurements.")
}

/// Says why a run waits, what would end that, and as of when that is.
fn pending(view: &RunView) -> String {
    let Some(outlook) = &view.outlook else {
        return String::new();
    };
    let mut told: Vec<String> = Vec::new();
    if let Some(reason) = &outlook.reason {
        told.push(format!(
            "Waits: {}.",
            code(&format!("{} ({})", reason, reason.as_str()))
        ));
        let remedies: Vec<String> = outlook
            .unblocked_by
            .iter()
            .take(3)
            .map(ToString::to_string)
            .collect();
        let ends = match remedies.is_empty() {
            true => reason.unblocked_by(),
            false => remedies.join(", or "),
        };
        told.push(format!("It goes on once {}.", code(&ends)));
    }
    if let Some(position) = &outlook.position {
        let queue = code(&position.cluster_queue);
        told.push(format!(
            "It is at {} of {} in {queue}.",
            position.position, position.waiting
        ));
    }
    if let Some(estimate) = &outlook.estimate {
        let of = |what: &str, at: &_| format!("It {what} {}.", title::when(at));
        told.extend(estimate.start.as_ref().map(|start| of("starts", start)));
        told.extend(estimate.end.as_ref().map(|end| of("ends", end)));
    }
    if !told.is_empty() {
        told.push(format!("As of {}.", figures::minute(outlook.as_of)));
    }
    told.join(" ")
}

fn rows(view: &RunView, sides: &Sides<'_>) -> Vec<Vec<String>> {
    let ours = |name: &str, value: Option<String>| {
        let blank = sides.then.map(|_| String::new());
        value.map(|value| [name.to_owned(), value].into_iter().chain(blank).collect())
    };
    let gpu = |of: fn(&GpuUse) -> Option<String>| move |attempt: &AttemptView| of(&gpu_of(attempt)?);
    let approved_by = |attempt: &AttemptView| code(attempt.approved_by.to_string().trim_start_matches('@'));
    let rows = [
        verdict(view, sides),
        ours("attempt", sides.now.map(|attempt| attempt.id.to_string())),
        ours("waited for approval", sides.now.and_then(|_| approval_wait(view))),
        sides.row("in queue", |attempt| {
            figures::span(attempt.queued_at?, attempt.reserved_at)
        }),
        sides.row("until start", |attempt| {
            figures::span(attempt.reserved_at, attempt.started_at?)
        }),
        sides.row("ran", title::ran_for),
        sides.row("GPUs", gpu(|gpu| Some(gpu.devices.to_string()))),
        sides.row("GPU time", gpu(|gpu| figures::gpu_minutes(gpu.allocated_seconds))),
        sides.row(
            "GPU busy, average",
            gpu(|gpu| figures::percent(gpu.busy_ratio()?)),
        ),
        sides.row(
            "GPU busy, peak",
            gpu(|gpu| figures::percent(gpu.peak_utilization?)),
        ),
        sides.row("GPU memory, peak", gpu(|gpu| Some(memory(gpu.peak_memory?)))),
        sides.row("GPU energy", gpu(|gpu| energy(gpu.joules?))),
        sides.row("CPU, average cores", |attempt| {
            let cores = attempt.outcome.as_ref()?.usage.as_ref()?.average_cores()?;
            Some(figures::number((cores * 100.0).round() / 100.0))
        }),
        sides.row("memory, peak", |attempt| {
            Some(memory(attempt.outcome.as_ref()?.usage.as_ref()?.memory_peak?))
        }),
        ours("asked for", Some(code(&view.asked().to_string()))),
        ours("approved by", sides.now.map(approved_by)),
        sides.row("place", |attempt| {
            Some(code(&attempt.place_in_words(view.resources)?))
        }),
    ];
    rows.into_iter().flatten().collect()
}

/// Returns the verdict, where there is one.
fn verdict(view: &RunView, sides: &Sides<'_>) -> Option<Vec<String>> {
    let failed = |failure: &Failure| {
        format!(
            "**{}** ({})",
            title::class(failure.class),
            failure.diagnostic.code
        )
    };
    if let Some(failure) = view.failure_asked_for() {
        let then = sides.then.map(|_| "passed".to_owned());
        let cells = ["verdict".to_owned(), failed(failure)].into_iter().chain(then);
        return Some(cells.collect());
    }
    sides.row("verdict", |attempt| {
        Some(match &attempt.outcome.as_ref()?.verdict {
            Verdict::Passed => "passed".to_owned(),
            Verdict::Failed(failure) => failed(failure),
            Verdict::Stopped => "stopped".to_owned(),
        })
    })
}

/// Returns how long a run waited until it entered the queue for the first attempt that was asked for.
fn approval_wait(view: &RunView) -> Option<String> {
    let asked_at: Timestamp = view.asked_at();
    let mut attempts = view.attempts.iter();
    let first = attempts.find(|attempt| attempt.reserved_at >= asked_at)?;
    figures::span(asked_at, first.queued_at?)
}

fn gpu_of(attempt: &AttemptView) -> Option<GpuUse> {
    attempt.outcome.as_ref()?.usage.as_ref()?.gpu
}

fn memory(bytes: Bytes) -> String {
    bytes.rounded().to_string()
}

fn energy(joules: f64) -> Option<String> {
    joules.is_finite().then(|| format!("{:.1} Wh", joules / 3600.0))
}

/// Returns the metrics of either side, with the differences and the trend of this run's.
fn metrics(sides: &Sides<'_>) -> String {
    let of = |side: Option<&'_ AttemptView>| {
        let outcome = side.and_then(|attempt| attempt.outcome.clone());
        outcome.map(|outcome| outcome.metrics).unwrap_or_default()
    };
    let (now, then) = (of(sides.now), of(sides.then));
    let names: BTreeSet<&String> = now.keys().chain(then.keys()).collect();
    let row = |name: &&String| {
        let last =
            |metric: Option<&blueproof_core::domain::MetricResult>| metric.and_then(|metric| metric.last);
        let (is, was) = (last(now.get(*name)), last(then.get(*name)));
        let shown = |value: Option<f64>| value.map(figures::number).unwrap_or_default();
        let differs = was.zip(is).and_then(|(was, is)| figures::difference(was, is));
        let trend = now
            .get(*name)
            .and_then(|metric| figures::sparkline(&metric.trace));
        let mut cells = vec![code(name), shown(is)];
        if sides.then.is_some() {
            cells.extend([shown(was), differs.unwrap_or_default()]);
        }
        cells.push(trend.unwrap_or_default());
        cells
    };
    let mut header = sides.header();
    header[0] = "metric".to_owned();
    if sides.then.is_some() {
        header.push("difference".to_owned());
    }
    header.push("trend".to_owned());
    let rows: Vec<Vec<String>> = names.iter().take(METRICS).map(row).collect();
    let mut table = figures::table(&header, &rows);
    if let Some(more @ 1..) = names.len().checked_sub(METRICS) {
        table += &format!("\n\n… and {more} more.");
    }
    table
}

/// Says which parameters differ from those of the attempt that had passed last.
fn parameters(view: &RunView) -> String {
    let changes = view.last_pass.as_ref().map_or(&[][..], |pass| &pass.parameters);
    let value =
        |value: &Option<serde_json::Value>| value.as_ref().map_or("none".to_owned(), ToString::to_string);
    let told: Vec<String> = changes
        .iter()
        .take(METRICS)
        .map(|change| {
            code(&format!(
                "{}: {} → {}",
                change.name,
                value(&change.then),
                value(&change.now)
            ))
        })
        .collect();
    match told.is_empty() {
        true => String::new(),
        false => format!("Other parameters than in the last pass: {}.", told.join(", ")),
    }
}

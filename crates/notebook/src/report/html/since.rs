//! What is different from the attempt that passed last.

use blueproof_core::{domain::Revision, view::ParameterChange};
use jiff::SignedDuration;

use super::{
    Brief,
    words::{duration, time},
};
use crate::{
    report::{CellEdit, Change, Comparison, MetricChange, PackageChange, Report, chart::number},
    text::shown,
};

/// More packages are folded.
const SHOWN_PACKAGES: usize = 12;

/// The most characters of a value.
const VALUE_CHARS: usize = 120;

pub(super) struct SinceView {
    pub(super) attempt: String,
    pub(super) when: String,
    /// What is the same, where all that is known is.
    pub(super) same: Option<&'static str>,
    /// What was tested in which surroundings: what, then, now.
    pub(super) causes: Vec<Row>,
    /// The packages beyond those.
    pub(super) packages: Vec<Row>,
    /// What came of it.
    pub(super) effects: Vec<Row>,
    /// What cannot be compared.
    pub(super) unknown: Vec<&'static str>,
}

/// A line of the comparison.
pub(super) struct Row {
    pub(super) name: String,
    /// The cell that it is about.
    pub(super) cell: Option<u32>,
    pub(super) then: String,
    pub(super) now: String,
    pub(super) difference: String,
}

pub(super) fn view(comparison: &Comparison, report: &Report) -> SinceView {
    let packages = comparison.packages.iter().flatten().map(package);
    let mut packages: Vec<Row> = packages.collect();
    let folded = packages.split_off(packages.len().min(SHOWN_PACKAGES));
    let mut causes = causes(comparison, report);
    causes.extend(packages);
    SinceView {
        attempt: comparison.attempt.to_string(),
        when: time(comparison.ended_at),
        same: comparison
            .is_same_question()
            .then_some("content, parameters, packages and machine are the same"),
        causes,
        packages: folded,
        effects: effects(comparison),
        unknown: unknown(comparison, report),
    }
}

fn causes(comparison: &Comparison, report: &Report) -> Vec<Row> {
    let mut rows: Vec<Row> = comparison.parameters.iter().map(parameter).collect();
    let revision = |revision: &Option<Revision>| {
        revision
            .as_ref()
            .map_or_else(|| "–".to_owned(), |revision| shown(&revision.to_string()))
    };
    let (then, now) = (revision(&comparison.revision), revision(&report.revision));
    if then != now {
        rows.push(row("commit", then, now));
    }
    if !comparison.is_same_content {
        let (then, now) = (comparison.head.short(), report.head.short());
        rows.push(row("content", then.to_owned(), now.to_owned()));
    }
    let cells = comparison.cells.iter().flatten();
    for cell in cells.filter(|cell| cell.edit != CellEdit::Same) {
        let now = match cell.edit {
            CellEdit::Added => "added",
            CellEdit::Edited | CellEdit::Same => "edited",
        };
        rows.push(Row {
            cell: Some(cell.cell),
            ..row(&cell_name(cell.cell), String::new(), now.into())
        });
    }
    let facts = comparison.environment.iter();
    rows.extend(facts.map(|fact| row(&fact.name, shown(&fact.then), shown(&fact.now))));
    rows
}

fn effects(comparison: &Comparison) -> Vec<Row> {
    let mut rows = vec![timed("time", &comparison.took)];
    rows.extend(comparison.metrics.iter().map(metric));
    let cells = comparison.notable_cells().into_iter();
    rows.extend(cells.map(|change| Row {
        cell: Some(change.cell),
        ..timed(&cell_name(change.cell), &change.took)
    }));
    rows
}

fn unknown(comparison: &Comparison, report: &Report) -> Vec<&'static str> {
    let mut unknown = Vec::new();
    if comparison.cells.is_none() && report.attempt.is_some() {
        unknown.push("cells");
    }
    if comparison.packages.is_none() {
        unknown.push("packages");
    }
    unknown
}

fn cell_name(position: u32) -> String {
    match position {
        0 => "parameters".into(),
        position => format!("cell {position}"),
    }
}

fn row(name: &str, then: String, now: String) -> Row {
    Row {
        name: shown(name),
        cell: None,
        then,
        now,
        difference: String::new(),
    }
}

fn parameter(change: &ParameterChange) -> Row {
    let value = |value: &Option<serde_json::Value>| match value {
        Some(value) => Brief(&shown(&value.to_string()), VALUE_CHARS).to_string(),
        None => "not given".into(),
    };
    row(&change.name, value(&change.then), value(&change.now))
}

fn package(change: &PackageChange) -> Row {
    let version = |version: &Option<String>| version.as_deref().map_or_else(|| "–".into(), shown);
    let difference = match (&change.then, &change.now) {
        (None, _) => "added",
        (_, None) => "removed",
        (Some(_), Some(_)) => "",
    };
    Row {
        difference: difference.into(),
        ..row(&change.name, version(&change.then), version(&change.now))
    }
}

fn timed(name: &str, took: &Change<SignedDuration>) -> Row {
    let text = |span: Option<SignedDuration>| span.map_or_else(|| "–".into(), duration);
    let difference = match (took.then, took.now) {
        (Some(then), Some(now)) if then.as_millis() > 0 => {
            signed_percent((now.as_secs_f64() / then.as_secs_f64() - 1.0) * 100.0)
        }
        _ => String::new(),
    };
    Row {
        difference,
        ..row(name, text(took.then), text(took.now))
    }
}

fn metric(change: &MetricChange) -> Row {
    let text = |value: Option<f64>| value.map_or_else(|| "–".into(), number);
    let difference = change.difference.filter(|difference| *difference != 0.0);
    let sign = |difference: f64| if difference > 0.0 { "+" } else { "" };
    let difference = difference.map(|difference| format!("{}{}", sign(difference), number(difference)));
    let percent = change
        .percent
        .filter(|percent| *percent != 0.0)
        .map(|percent| format!("({})", signed_percent(percent)));
    Row {
        difference: difference
            .into_iter()
            .chain(percent)
            .collect::<Vec<_>>()
            .join(" "),
        ..row(&change.name, text(change.then), text(change.now))
    }
}

fn signed_percent(percent: f64) -> String {
    format!("{percent:+.1} %")
}

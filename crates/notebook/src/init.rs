//! Writing a first `blueprint.yaml` for a notebook, from what its cells say.
//!
//! Each value that was found is followed by a comment that names its cell, so that a person can check it at a glance.
//! What is not found is left to the format's defaults rather than guessed.

mod offers;
mod packages;
mod resources;
#[cfg(test)]
mod tests;
mod write;

use std::path::Path;

use blueproof_diagnostic::{Code, Diagnostic};

use crate::{
    analysis::{Analysis, At, Traced, Value, kind_without_type, parameter_type},
    blueprint::{Blueprint, FILE_NAME, default_name},
    ipynb::Notebook,
    lint::placeholder::is_placeholder,
    python::syntax::{Expr, Kind},
    text::line,
};
use packages::Given;
use write::{Draft, scalar};

/// Schemes of places that data and models come from.
const SCHEMES: [&str; 9] = [
    "hf://", "s3://", "gs://", "gcs://", "az://", "abfs://", "wasbs://", "oci://", "cache://",
];
/// What a run takes beside its waits.
const BESIDE_WAITS_SECONDS: f64 = 1800.0;

/// Returns the text of a `blueprint.yaml` for the notebook at `notebook`, to stand beside it. Writes nothing.
///
/// The text is valid, but for a notebook in which nothing runs, of which it says so: it is read back before it is returned.
///
/// # Errors
///
/// The notebook cannot be read.
pub fn draft(notebook: &Path) -> Result<String, Vec<Diagnostic>> {
    let read = Notebook::read(notebook)?;
    let analysis = Analysis::of(&read);
    let file = notebook.file_name().unwrap_or_default().to_string_lossy();
    let mut draft = Draft::default();
    draft.remark(
        0,
        format!(
            "Drafted by `blueproof init` from {}; remarks name the cells that values come from.",
            line(&file)
        ),
    );
    draft.remark(
        0,
        "`blueproof check` tells what to look at, `blueproof schema blueprint` every key.",
    );
    draft.line(0, "apiVersion: blueproof.dev/v1alpha1");
    draft.line(0, "kind: Blueprint");
    metadata(&mut draft, notebook, &analysis);
    draft.line(0, "spec:");
    draft.line(1, format!("notebook: {}", scalar(&file)));
    packages::write(&mut draft, &analysis, &Given::read(&read, &analysis, notebook));
    parameters(&mut draft, &analysis);
    resources::write(&mut draft, &analysis);
    timeouts(&mut draft, &analysis);
    data(&mut draft, &analysis);
    secrets(&mut draft, &analysis);
    offers::write(&mut draft, &analysis);
    for at in &analysis.broken {
        draft.remark(
            1,
            format!(
                "cell {} is not Python (line {}) and was left out",
                at.cell, at.line
            ),
        );
    }
    if read.nothing_runs().is_some() {
        draft.remark(
            1,
            "Nothing of the notebook runs: give it code, or say `allowEmpty: true` if that is meant.",
        );
    }
    let text = draft.finish();
    let beside = notebook.with_file_name(FILE_NAME);
    let mistakes = Blueprint::parse(&beside, text.clone()).err().unwrap_or_default();
    if mistakes.iter().any(|mistake| mistake.code != Code::NothingRan) {
        return Err(mistakes);
    }
    Ok(text)
}

fn metadata(draft: &mut Draft, notebook: &Path, analysis: &Analysis) {
    draft.line(0, "metadata:");
    draft.line(1, format!("name: {}", scalar(default_name(notebook).as_str())));
    let runtime = analysis.jobs.iter().rev().find_map(|job| job.runtime.clone());
    if let Some((at, runtime)) = runtime {
        draft.line(1, "labels:");
        draft.of_cell(2, format!("runtime: {}", scalar(&runtime)), at);
    }
}

fn parameters(draft: &mut Draft, analysis: &Analysis) {
    let typed = analysis
        .parameters
        .iter()
        .filter_map(|(name, value)| Some((name, parameter(value)?, value.at)));
    let typed: Vec<_> = typed.collect();
    for (name, value) in &analysis.parameters {
        if let Some(kind) = kind_without_type(value) {
            let cell = value.at.cell;
            let said = format!(
                "cell {cell}: {} is {kind}, which no parameter can be; it stays in the cell",
                line(name)
            );
            draft.remark(1, said);
        }
    }
    if typed.is_empty() {
        return;
    }
    draft.line(1, "parameters:");
    for (name, (kind, default), at) in typed {
        let least = match least(analysis, name) {
            Some(least) if default.parse().is_ok_and(|default: i64| default >= least) => {
                format!(", min: {least}")
            }
            Some(_) | None => String::new(),
        };
        draft.of_cell(
            2,
            format!("{}: {{type: {kind}, default: {default}{least}}}", scalar(name)),
            at,
        );
    }
}

/// Returns the type of a parameter and its default, as YAML.
fn parameter(value: &Traced) -> Option<(&'static str, String)> {
    let name = parameter_type(value)?;
    let default = match &value.value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Text(value) => write::quoted(value),
        Value::Unknown
        | Value::None
        | Value::List(_)
        | Value::Dict(_)
        | Value::Made(_)
        | Value::Symbol(_) => return None,
    };
    Some((name, default))
}

/// Returns the least value that makes sense for a parameter, by what it is used for.
fn least(analysis: &Analysis, name: &str) -> Option<i64> {
    let is = |value: &Traced| value.via.as_deref() == Some(name);
    let counts_nodes = analysis.jobs.iter().filter_map(|job| job.nodes.as_ref()).any(is);
    let counts_gpus = analysis
        .jobs
        .iter()
        .filter_map(|job| job.gpu())
        .any(|(_, value)| is(value));
    match (counts_nodes, counts_gpus) {
        (true, _) => Some(1),
        (false, true) => Some(0),
        (false, false) => None,
    }
}

fn timeouts(draft: &mut Draft, analysis: &Analysis) {
    let known = analysis
        .waits
        .iter()
        .filter_map(|wait| Some((wait.at, wait.seconds?)));
    let known: Vec<(At, f64)> = known
        .filter(|(_, seconds)| seconds.is_finite() && *seconds > 0.0)
        .collect();
    if known.is_empty() {
        return;
    }
    let waits: f64 = known.iter().map(|(_, seconds)| seconds).sum();
    // Rounded up to ten minutes; a day is more than any notebook that is tested may take.
    let needed = ((waits + BESIDE_WAITS_SECONDS) / 600.0).ceil() * 10.0;
    #[expect(clippy::cast_possible_truncation, reason = "it lies between 60 and 1440")]
    let minutes = needed.clamp(60.0, 1440.0) as i64;
    let run = crate::blueprint::value::written(jiff::SignedDuration::from_mins(minutes));
    let each: Vec<String> = known
        .iter()
        .map(|(at, seconds)| format!("cell {} waits up to {seconds} s", at.cell))
        .collect();
    draft.line(1, "timeouts:");
    draft.remarked(2, format!("run: {run}"), each.join(", "));
}

/// Names what looks like a secret: where its value comes from, only a person knows.
fn secrets(draft: &mut Draft, analysis: &Analysis) {
    let secret = |name: &str| {
        let upper = name.to_ascii_uppercase();
        ["TOKEN", "KEY", "SECRET", "PASSWORD"]
            .iter()
            .any(|word| upper.contains(word))
    };
    let mut named: Vec<&str> = Vec::new();
    for (at, name) in analysis.environment.iter().filter(|(_, name)| secret(name)) {
        if !named.contains(&name.as_str()) {
            named.push(name);
            let name = line(name);
            draft.remark(
                1,
                format!(
                    "cell {} reads {name}: secrets: [{{name: the-secret, env: {name}}}]",
                    at.cell
                ),
            );
        }
    }
}

fn data(draft: &mut Draft, analysis: &Analysis) {
    let mut found: Vec<(At, String)> = analysis
        .texts
        .iter()
        .map(|(at, _, text)| (*at, text.clone()))
        .collect();
    for (cell, function) in analysis.functions.values() {
        let mut visit = |expr: &Expr| {
            if let Kind::Text(text) = &expr.kind {
                found.push((
                    At {
                        cell: *cell,
                        line: expr.line,
                    },
                    text.clone(),
                ));
            }
        };
        function
            .body
            .iter()
            .for_each(|statement| statement.walk(&mut visit, &mut |_| {}));
    }
    found.retain(|(_, text)| {
        let place = SCHEMES
            .iter()
            .any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()));
        place && !text.contains(char::is_whitespace) && text.len() < 500
    });
    found.sort_by_key(|(at, _)| *at);
    let mut seen = Vec::new();
    found.retain(|(_, text)| {
        let new = !seen.contains(text);
        seen.push(text.clone());
        new
    });
    let (open, known): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|(_, text)| is_placeholder(None, text));
    if !known.is_empty() {
        draft.line(1, "data:");
    }
    for (at, uri) in &known {
        draft.of_cell(2, format!("- uri: {}", write::quoted(uri)), *at);
    }
    for (at, uri) in &open {
        draft.remark(
            1,
            format!(
                "cell {} reads {}, which is still to be filled in",
                at.cell,
                line(uri)
            ),
        );
    }
}

//! What no single value can be wrong in: how the parts of a blueprint fit together, and whether its files are there.

use std::path::Path;

use blueproof_core::domain::Bytes;
use blueproof_diagnostic::{
    Code, Diagnostic,
    yaml::{Located, Problems, Spot, nearest},
};

use super::{
    Loaded,
    expect::{Bounds, MetricBounds, RESERVED},
    format::{Env, Metric, Spec},
};
use crate::{
    environment::{checked_lock, checked_python, checked_requirement},
    ipynb::readable,
};

/// Less is no amount that anybody means: an interpreter without any package takes more.
pub(crate) const LEAST_MEMORY: Bytes = Bytes(8 << 20);

/// Reports what does not fit together in `spec`.
pub(super) fn spec(loaded: &Loaded, spec: &Spec, problems: &mut Problems<'_>) {
    notebook(loaded, spec, problems);
    environment(loaded, &spec.env, problems);
    for (number, metric) in spec.metrics.iter().enumerate() {
        self::metric(metric, &spec.metrics[..number], problems);
    }
    for (name, bounds) in &spec.expect.metrics {
        known_metric(name, &spec.metrics, problems);
        self::bounds(name, bounds, problems);
    }
    for secret in &spec.secrets {
        variable(&secret.env, problems);
    }
}

/// Reports an amount of memory that is surely meant in another unit: `memory: 2` is two bytes.
pub(super) fn memory(memory: Option<Bytes>, spot: Spot, problems: &mut Problems<'_>) {
    let Some(memory) = memory.filter(|memory| *memory < LEAST_MEMORY) else {
        return;
    };
    let message = format!("{} bytes of memory are too few for a Python to start", memory.0);
    let hint = match memory.0 {
        bare @ 0..1024 => format!("write the unit: {}Gi", bare.max(1)),
        _ => "a kernel takes some 64Mi before it does anything; 2Gi is a good start".to_owned(),
    };
    problems.bad_value(spot, message, &hint);
}

/// Reports a file that is missing or lies outside `folder`, symbolic links followed.
pub(super) fn file(folder: &Path, path: &Path, spot: Spot, problems: &mut Problems<'_>) -> bool {
    let whole = folder.join(path);
    if let Err(missing) = readable(&whole) {
        let place_free = Diagnostic {
            place: None,
            hints: vec!["check the path; it is relative to the folder of the blueprint".to_owned()],
            ..missing
        };
        problems.report(spot, place_free);
        return false;
    }
    let inside = match (folder.canonicalize(), whole.canonicalize()) {
        (Ok(folder), Ok(whole)) => whole.starts_with(folder),
        (Err(_), _) | (_, Err(_)) => false,
    };
    if !inside {
        let message = format!(
            "`{}` leaves the folder of the blueprint through a symbolic link",
            path.display()
        );
        problems.report(
            spot,
            Diagnostic::error(Code::OutsideCheckout, message).hint("put the file itself where the link is"),
        );
    }
    inside
}

/// Reports a notebook that no run would start.
fn notebook(loaded: &Loaded, spec: &Spec, problems: &mut Problems<'_>) {
    let notebook = loaded.notebook();
    if notebook.is_unread() {
        return;
    }
    let has_parameters = !spec.parameters.is_empty();
    let refused = [
        notebook.refuses_parameters().filter(|_| has_parameters),
        notebook.nothing_runs().filter(|_| !spec.allow_empty),
    ];
    for diagnostic in refused.into_iter().flatten() {
        problems.report(spec.notebook.spot, diagnostic);
    }
}

fn environment(loaded: &Loaded, env: &Env, problems: &mut Problems<'_>) {
    if let Some(python) = &env.python {
        let numbers: Vec<&str> = python.value.split('.').collect();
        let number =
            |part: &&str| !part.is_empty() && part.len() < 5 && part.bytes().all(|b| b.is_ascii_digit());
        if numbers.len() > 3 || !numbers.iter().all(number) {
            let message = format!("`{}` is not a version of Python", python.value);
            problems.bad_value(python.spot, message, "write it like \"3.12\"");
        } else if let Err(refused) = checked_python(&python.value) {
            problems.report(python.spot, *refused);
        }
    }
    for requirement in &env.requirements {
        // Read as the run will read it: what is refused there is refused here.
        if let Err(refused) = checked_requirement(&requirement.value) {
            problems.report(requirement.spot, *refused);
        }
    }
    if let Some(lock) = &env.lock {
        let there = file(&loaded.folder, &lock.value.0, lock.spot, problems);
        // As with requirements: what the run refuses is refused here.
        if there && let Err(refused) = checked_lock(&loaded.folder, &lock.value.0) {
            problems.report(lock.spot, *refused);
        }
    }
}

fn metric(metric: &Metric, before: &[Metric], problems: &mut Problems<'_>) {
    let name = &metric.name;
    if name.value.is_empty() || RESERVED.contains(&name.value.as_str()) {
        let message = format!("`{}` cannot be the name of a metric", name.value);
        problems.bad_value(
            name.spot,
            message,
            "it has another meaning under `spec.expect`; choose another name",
        );
    }
    if before.iter().any(|other| other.name.value == name.value) {
        let message = format!("the metric `{}` is declared twice", name.value);
        problems.bad_value(name.spot, message, "give each its own name");
    }
    let from = &metric.from.value;
    if from.regex.is_some() == from.display.is_some() {
        let message = format!(
            "the metric `{}` needs exactly one of `regex` and `display`",
            name.value
        );
        problems.bad_value(
            metric.from.spot,
            message,
            "from: {regex: 'loss: ([0-9.]+)'} or from: {display: metrics}",
        );
    }
    if let Some(display) = &from.display {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.' || b == b'_';
        if display.value.is_empty() || !display.value.bytes().all(allowed) {
            let message = format!("`{}` cannot be part of a MIME type", display.value);
            problems.bad_value(display.spot, message, "use letters, digits, `-`, `.` and `_`");
        }
    }
}

fn known_metric(name: &Located<String>, metrics: &[Metric], problems: &mut Problems<'_>) {
    let known = || metrics.iter().map(|metric| metric.name.value.as_str());
    if known().any(|known| known == name.value) {
        return;
    }
    let unknown = Diagnostic::error(
        Code::UnknownMetric,
        format!("`{}` is no metric of this blueprint", name.value),
    );
    let words = known().chain(RESERVED.iter().copied());
    problems.report(
        name.spot,
        match nearest(&name.value, words) {
            Some(meant) => unknown.hint(format!("did you mean `{meant}`?")),
            None => unknown.hint(format!("declare `{}` under `spec.metrics`", name.value)),
        },
    );
}

fn bounds(name: &Located<String>, bounds: &MetricBounds, problems: &mut Problems<'_>) {
    let hint = "bound some of its values: {last: {max: 1.6}}";
    let MetricBounds {
        first,
        last,
        min,
        max,
        every,
    } = bounds;
    let all = [first, last, min, max, every];
    if all.iter().all(|bounds| bounds.is_none()) {
        let message = format!("nothing is expected of `{}`", name.value);
        problems.bad_value(name.spot, message, hint);
    }
    for Located { value, spot } in all.into_iter().flatten() {
        match *value {
            Bounds { min: None, max: None } => {
                problems.bad_value(*spot, format!("the bounds of `{}` are empty", name.value), hint);
            }
            Bounds {
                min: Some(min),
                max: Some(max),
            } if min > max => {
                let message = format!("no value of `{}` is at least {min} and at most {max}", name.value);
                problems.bad_value(*spot, message, "exchange `min` and `max`");
            }
            Bounds { .. } => {}
        }
    }
}

fn variable(name: &Located<String>, problems: &mut Problems<'_>) {
    let begins = name
        .value
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if !begins || !name.value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        let message = format!("`{}` cannot be the name of an environment variable", name.value);
        problems.bad_value(name.spot, message, "use letters, digits and `_`, like HF_TOKEN");
    }
}

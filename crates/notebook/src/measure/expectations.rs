//! Whether what a blueprint expects holds, once every cell has run.

use std::{collections::BTreeMap, path::Path};

use blueproof_core::{
    attempt::Checked,
    domain::{Failure, FailureClass},
};
use blueproof_diagnostic::{Code, Diagnostic};

use super::{
    OutputSearch, Summary,
    artifacts::{Before, Match, Target, elsewhere, matching},
};
use crate::{
    plan::{Expectation, Which},
    text::counted,
};

/// What is known when every cell has run.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// What was measured, by name.
    pub metrics: &'a BTreeMap<String, Summary>,
    /// The folder that the notebook ran in.
    pub folder: &'a Path,
    /// The files of before that are expected.
    pub before: &'a Before,
    /// What was printed.
    pub printed: &'a OutputSearch,
}

/// Returns whether an expectation holds, and if not, what was expected and what there is.
pub fn check(expectation: &Expectation, evidence: Evidence<'_>) -> Checked {
    let met = match expectation {
        Expectation::Metric {
            name,
            which,
            min,
            max,
        } => check_metric(name, *which, *min, *max, evidence.metrics),
        Expectation::Artifact(pattern) => check_artifact(pattern, evidence.folder, evidence.before),
        Expectation::Output(text) => check_output(text, evidence.printed),
        Expectation::TrainJobs => {
            return Checked::NotLookedAt("nobody looks at TrainJobs on this machine".to_owned());
        }
    };
    match met {
        Ok(actual) => Checked::Met { actual },
        Err(diagnostic) => Checked::Unmet(*diagnostic),
    }
}

/// Of what is expected what there is, in a few words, where that says more than that it holds.
type Met = Result<Option<String>, Box<Diagnostic>>;

/// Returns the failure that unmet expectations are, or `None` where there are none. Several stand side by side, each in a line
/// of its own, because one does not come of the other; a hint names those that it is for.
pub fn failure(unmet: Vec<Diagnostic>) -> Option<Failure> {
    let unmet = match <[Diagnostic; 1]>::try_from(unmet) {
        Ok([only]) => return Some(Failure::outside_cells(FailureClass::Expectation, only)),
        Err(unmet) => unmet,
    };
    let first = unmet.first()?;
    let messages: Vec<&str> = unmet.iter().map(|one| one.message.as_str()).collect();
    let mut diagnostic = Diagnostic::listing(first.code, "expectations do not hold", &messages);
    let mut hints: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in &unmet {
        let subject = one.message.split(',').next().unwrap_or_default();
        let causes = one.causes.iter().map(|cause| format!("{subject}: {cause}"));
        diagnostic.causes.extend(causes);
        for hint in &one.hints {
            match hints.iter_mut().find(|(known, _)| known == hint) {
                Some((_, subjects)) => subjects.push(subject),
                None => hints.push((hint, vec![subject])),
            }
        }
    }
    let hints = hints.into_iter();
    diagnostic
        .hints
        .extend(hints.map(|(hint, subjects)| format!("{}: {hint}", subjects.join("; "))));
    Some(Failure::outside_cells(FailureClass::Expectation, diagnostic))
}

fn check_metric(
    name: &str,
    which: Which,
    min: Option<f64>,
    max: Option<f64>,
    metrics: &BTreeMap<String, Summary>,
) -> Met {
    let Some(summary) = metrics.get(name).filter(|summary| summary.count > 0) else {
        let wanted = bounds(min, max);
        let message = format!("{name} has no value, {wanted} was expected");
        return unmet(
            Diagnostic::error(Code::MetricMissing, message)
                .hint("check that a cell prints it in the form that `spec.metrics` looks for"),
        );
    };
    let label = match which {
        Which::First => format!("the first {name}"),
        Which::Last => name.to_owned(),
        Which::Min => format!("the smallest {name}"),
        Which::Max => format!("the largest {name}"),
        Which::Every => format!("{name}, every value:"),
    };
    // Both ends of what was seen must lie within the bounds; for one value they are the same.
    let (low, high) = match which {
        Which::First => (summary.first.flatten(), summary.first.flatten()),
        Which::Last => (summary.last.flatten(), summary.last.flatten()),
        // Nothing can be said of the order of values of which one is no number.
        Which::Min | Which::Max | Which::Every if summary.not_finite > 0 => (None, None),
        Which::Min => (summary.min, summary.min),
        Which::Max => (summary.max, summary.max),
        Which::Every => (summary.min, summary.max),
    };
    let (Some(low), Some(high)) = (low, high) else {
        return unmet(no_finite_number(&label, &bounds(min, max), summary));
    };
    let outside = |message: String| unmet(Diagnostic::error(Code::MetricOutOfBounds, message));
    match (min, max) {
        (_, Some(max)) if high > max => outside(format!("{label} {high} > {max}")),
        (Some(min), _) if low < min => outside(format!("{label} {low} < {min}")),
        _ if low == high => Ok(Some(low.to_string())),
        _ => Ok(Some(format!("{low} to {high}"))),
    }
}

fn no_finite_number(label: &str, wanted: &str, summary: &Summary) -> Diagnostic {
    let said = |what: &str| {
        let message = format!("{label} is no {what}, {wanted} was expected");
        Diagnostic::error(Code::MetricNotFinite, message)
    };
    if let Some(text) = &summary.no_number {
        return said("number")
            .because(format!("`{text}` was found for it"))
            .hint("let the group of its regular expression in `spec.metrics` match the figure alone");
    }
    let (not_finite, count) = (summary.not_finite, summary.count);
    said("finite number")
        .because(format!("{not_finite} of {count} values are not finite"))
        .hint("look for a division by zero, or a learning rate that is too high")
}

fn unmet(diagnostic: Diagnostic) -> Met {
    Err(Box::new(diagnostic))
}

fn bounds(min: Option<f64>, max: Option<f64>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "any number".to_owned(),
    }
}

fn check_artifact(pattern: &str, folder: &Path, before: &Before) -> Met {
    let found = matching(&[pattern.to_owned()], folder)?;
    if !before.is_of(folder) {
        let missing = format!("no file matches `{pattern}`, at least one was expected");
        let missing = Diagnostic::error(Code::ArtifactMissing, missing);
        return unmet(missing.because(elsewhere().message));
    }
    let size = |target: &Target| match target {
        Target::File(_, size) => Some(*size),
        Target::Outside | Target::NoFile => None,
    };
    let is_new = |found: &&Match| !before.has_untouched(found);
    let new: Vec<&Match> = found.iter().filter(is_new).collect();
    if new.is_empty() && !found.is_empty() {
        let message =
            format!("every file that matches `{pattern}` was there before, and nothing wrote to it");
        return unmet(
            Diagnostic::error(Code::ArtifactUntouched, message)
                .hint("take out of the repository what the notebook is to make"),
        );
    }
    let sizes: Vec<u64> = new.iter().filter_map(|found| size(&found.target)).collect();
    if sizes.iter().any(|size| *size > 0) {
        return Ok(Some(counted(sizes.len(), "file")));
    }
    if sizes.is_empty() {
        let message = format!("no file matches `{pattern}`, at least one was expected");
        return unmet(
            Diagnostic::error(Code::ArtifactMissing, message)
                .hint("paths are relative to the notebook's folder"),
        );
    }
    let message = format!("every file that matches `{pattern}` is empty");
    unmet(Diagnostic::error(Code::ArtifactEmpty, message))
}

fn check_output(text: &str, printed: &OutputSearch) -> Met {
    if printed.contains(text) {
        return Ok(None);
    }
    let message = format!("no cell printed \"{}\"", text.escape_debug());
    unmet(Diagnostic::error(Code::OutputMissing, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(values: &[f64]) -> Summary {
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let all = || values.iter().copied().filter(|value| value.is_finite());
        Summary {
            count: values.len() as u64,
            not_finite: (values.len() - all().count()) as u64,
            first: values.first().map(|value| finite(*value)),
            last: values.last().map(|value| finite(*value)),
            min: all().reduce(f64::min),
            max: all().reduce(f64::max),
            no_number: None,
        }
    }

    /// Returns what is said of `loss` with these values, empty where nothing is wrong.
    fn said(values: &[f64], which: Which, min: Option<f64>, max: Option<f64>) -> String {
        let metrics = BTreeMap::from([("loss".to_owned(), summary(values))]);
        let met = check_metric("loss", which, min, max, &metrics);
        met.err().map(|diagnostic| diagnostic.message).unwrap_or_default()
    }

    #[test]
    fn bounds_are_included_and_apply_to_the_value_that_is_meant() {
        let three = &[2.0, 0.1, 3.0];
        assert_eq!(said(&[0.9, 0.5], Which::Last, Some(0.5), Some(0.5)), "");
        assert_eq!(said(three, Which::Min, None, Some(0.1)), "");
        assert_eq!(said(&[0.71], Which::Last, None, Some(0.629)), "loss 0.71 > 0.629");
        assert_eq!(said(&[0.1], Which::Last, Some(0.2), Some(1.0)), "loss 0.1 < 0.2");
        assert_eq!(said(three, Which::First, None, Some(1.0)), "the first loss 2 > 1");
        assert_eq!(
            said(three, Which::Max, None, Some(2.5)),
            "the largest loss 3 > 2.5"
        );
        assert_eq!(
            said(three, Which::Every, Some(0.5), None),
            "loss, every value: 0.1 < 0.5"
        );
    }

    #[test]
    fn what_is_met_is_told_with_what_there_is() {
        let metrics = BTreeMap::from([("loss".to_owned(), summary(&[2.0, 0.5]))]);
        let met = |which| check_metric("loss", which, None, Some(9.0), &metrics).expect("it holds");
        assert_eq!(met(Which::Last).as_deref(), Some("0.5"));
        assert_eq!(met(Which::Every).as_deref(), Some("0.5 to 2"));
    }

    #[test]
    fn what_is_missing_or_no_number_satisfies_nothing() {
        let missing = "loss has no value, at least 0 was expected";
        assert_eq!(said(&[], Which::Last, Some(0.0), None), missing);
        let last = "loss is no finite number, any number was expected";
        assert_eq!(said(&[0.1, f64::NAN], Which::Last, None, None), last);
        let every = "loss, every value: is no finite number, at most 1 was expected";
        assert_eq!(said(&[0.1, f64::NAN, 0.1], Which::Every, None, Some(1.0)), every);
        let largest = "the largest loss is no finite number, at least 0 was expected";
        assert_eq!(said(&[f64::INFINITY], Which::Max, Some(0.0), None), largest);
        assert_eq!(said(&[0.3, f64::INFINITY], Which::Max, Some(0.0), None), largest);
        let smallest = "the smallest loss is no finite number, at least 0 was expected";
        assert_eq!(
            said(&[f64::NEG_INFINITY, 0.3], Which::Min, Some(0.0), None),
            smallest
        );
    }

    #[test]
    fn a_text_that_is_no_number_is_shown_and_not_taken_for_an_infinite_one() {
        let found = Summary {
            no_number: Some("95%".to_owned()),
            ..summary(&[f64::NAN])
        };
        let metrics = BTreeMap::from([("acc".to_owned(), found)]);
        let said = check_metric("acc", Which::Last, Some(0.9), None, &metrics).expect_err("it is no number");
        assert_eq!(said.message, "acc is no number, at least 0.9 was expected");
        assert_eq!(said.causes, ["`95%` was found for it"]);
        assert!(!said.hints[0].contains("zero"), "{said:?}");
    }

    #[test]
    fn all_that_is_unmet_is_named_in_one_failure() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        std::fs::write(folder.path().join("empty.json"), "").expect("a file can be written");
        std::fs::write(folder.path().join("full.json"), "1").expect("a file can be written");
        let expectations = [
            Expectation::Artifact("empty.json".to_owned()),
            Expectation::Artifact("*.json".to_owned()),
            Expectation::Artifact("model/**".to_owned()),
            Expectation::Artifact("[".to_owned()),
            Expectation::Output("done".to_owned()),
        ];
        let metrics = BTreeMap::new();
        let before = Before::of(&[], folder.path());
        let evidence = Evidence {
            metrics: &metrics,
            folder: folder.path(),
            before: &before,
            printed: &OutputSearch::new(&expectations),
        };

        let unmet: Vec<Diagnostic> = expectations
            .iter()
            .filter_map(|expectation| match check(expectation, evidence) {
                Checked::Unmet(diagnostic) => Some(diagnostic),
                Checked::Met { .. } | Checked::NotLookedAt(_) => None,
            })
            .collect();

        let codes: Vec<Code> = unmet.iter().map(|diagnostic| diagnostic.code).collect();
        assert_eq!(
            codes,
            [
                Code::ArtifactEmpty,
                Code::ArtifactMissing,
                Code::ArtifactPattern,
                Code::OutputMissing
            ]
        );
        let failure = failure(unmet).expect("something is unmet");
        assert_eq!(failure.class, FailureClass::Expectation);
        assert!(
            failure
                .diagnostic
                .message
                .starts_with("4 expectations do not hold:\n- ")
                && failure
                    .diagnostic
                    .message
                    .ends_with("\n- no cell printed \"done\""),
            "each in a line of its own: {failure:?}"
        );
        let lines = failure.diagnostic.message.lines().skip(1);
        let subjects = lines.filter_map(|line| line.trim_start_matches("- ").split(',').next());
        let subjects: Vec<&str> = subjects.collect();
        assert!(
            failure
                .diagnostic
                .hints
                .iter()
                .all(|hint| subjects.iter().any(|subject| hint.starts_with(subject))),
            "a hint names what it is for: {failure:?}"
        );
        assert_eq!(super::failure(Vec::new()), None);
    }

    #[test]
    fn a_file_of_before_is_expected_only_where_something_wrote_to_it() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let file = |name: &str| folder.path().join(name);
        for name in ["old.json", "same.json", "over.json"] {
            std::fs::write(file(name), "1").expect("a file can be written");
        }
        std::fs::create_dir(file("data")).expect("a folder can be made");
        std::fs::write(file("data/old.csv"), "1").expect("a file can be written");
        let patterns = ["*.json", "data/**"].map(str::to_owned);
        let before = Before::of(&patterns, folder.path());
        let unmet = |pattern: &str| {
            check_artifact(pattern, folder.path(), &before)
                .err()
                .map(|found| found.code)
        };

        assert_eq!(unmet("old.json"), Some(Code::ArtifactUntouched));
        assert_eq!(unmet("*.json"), Some(Code::ArtifactUntouched));
        assert_eq!(unmet("data"), Some(Code::ArtifactUntouched));
        // The clock of a file system ticks in milliseconds.
        while unmet("same.json").is_some() {
            std::fs::write(file("same.json"), "1").expect("a file can be written");
        }
        std::fs::write(file("new.json"), "1").expect("a file can be written");
        std::fs::rename(file("new.json"), file("over.json")).expect("it can be moved");
        assert_eq!(unmet("over.json"), None, "another file is in its place");
        assert_eq!(unmet("*.json"), None, "one is new");
        assert_eq!(unmet("old.json"), Some(Code::ArtifactUntouched));
        std::fs::write(file("data/new.csv"), "1").expect("a file can be written");
        assert_eq!(unmet("data"), None);
    }
}

//! Check runs of what is not run: they are concluded at once, so that a branch can require the check of any blueprint.

use blueproof_core::{domain::Subject, hex::hex, view::RunView};
use blueproof_diagnostic::{Diagnostic, SourceLocation};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::{ANNOTATION_TITLE_AT_MOST, GPU_TESTS, MESSAGE_AT_MOST, name_of};
use crate::{
    api::{Annotation, CheckConclusion, CheckOutput, CheckRunState},
    markdown::{self, Document, fence},
    plan::{Plan, PlannedBlueprint, Refused},
};

/// What the `external_id` of a check run without a run begins with. No attempt is called so.
const NO_RUN: &str = "no-run:";
/// The most characters of one problem.
const PROBLEM_AT_MOST: usize = 6_000;

/// Returns the check runs of what a pull request needs no run for, or has none: of the blueprints that it does not concern those that are
/// `required`, and all that cannot be run as it is written. `at` is when they are concluded.
///
/// The same plan gives the same `external_id`s.
pub fn without_run(plan: &Plan, is_required: impl Fn(&str) -> bool, at: Timestamp) -> Vec<CheckOutput> {
    let unconcerned = plan
        .unconcerned
        .iter()
        .map(|blueprint| unconcerned(blueprint, at));
    let unconcerned = unconcerned.filter(|check| is_required(&check.name));
    let untested = plan.untested.iter().map(|blueprint| untested(blueprint, at));
    let refused = plan.refused.iter().map(|refused| refuse(refused, at));
    unconcerned.chain(untested).chain(refused).collect()
}

/// Returns the check run that shows a run which has passed with the same content at another commit.
pub fn passed_with_same_content(passed: &RunView, at: Timestamp) -> CheckOutput {
    let Subject {
        blueprint,
        profile,
        head,
        ..
    } = &passed.subject;
    let told = format!(
        "{} has passed with the same content, at commit {head}: every file that this blueprint is made of is the same there.",
        passed.id
    );
    CheckOutput {
        name: name_of(blueprint, profile.as_ref()),
        external_id: format!("{NO_RUN}same:{}", passed.id),
        title: format!("Passed as {} with the same content", passed.id),
        summary: told,
        ..concluded(CheckConclusion::Success, at)
    }
}

/// Returns a check run that is concluded so, and says nothing yet.
fn concluded(conclusion: CheckConclusion, at: Timestamp) -> CheckOutput {
    CheckOutput {
        name: String::new(),
        external_id: String::new(),
        details_url: None,
        state: CheckRunState::Completed { conclusion, at },
        started_at: None,
        title: String::new(),
        summary: String::new(),
        text: String::new(),
        annotations: Vec::new(),
        actions: Vec::new(),
    }
}

fn untested(blueprint: &PlannedBlueprint, at: Timestamp) -> CheckOutput {
    CheckOutput {
        name: name_of(&blueprint.name, blueprint.profile.as_ref()),
        external_id: format!("{NO_RUN}untested"),
        title: "Not tested in the merge queue".into(),
        summary: "No run has passed with this content, and the policy of the default branch has `mergeQueue: neutral`.".into(),
        ..concluded(CheckConclusion::Neutral, at)
    }
}

fn unconcerned(blueprint: &PlannedBlueprint, at: Timestamp) -> CheckOutput {
    CheckOutput {
        name: name_of(&blueprint.name, blueprint.profile.as_ref()),
        external_id: format!("{NO_RUN}unconcerned"),
        title: "Not concerned".into(),
        summary: "Nothing that is changed is in the blueprint's folder, or one of its `spec.triggers.paths`. It is not run.".into(),
        ..concluded(CheckConclusion::Neutral, at)
    }
}

fn refuse(refused: &Refused, at: Timestamp) -> CheckOutput {
    let name = match &refused.blueprint {
        Some(blueprint) => name_of(&blueprint.name, blueprint.profile.as_ref()),
        None => GPU_TESTS.into(),
    };
    let first = refused.problems.first().map_or("", |problem| &problem.message);
    let mut summary = Document::default();
    summary.push("It cannot be run as it is written, so that there is nothing to approve. A push that mends it is looked at anew.");
    for problem in &refused.problems {
        summary.push(&fence(&format!("{problem:#}"), PROBLEM_AT_MOST));
    }
    let annotations = refused.problems.iter().filter_map(annotation);
    CheckOutput {
        name,
        external_id: format!("{NO_RUN}refused:{}", digest(&refused.problems)),
        title: markdown::plain(&format!("Cannot be run: {first}"), CheckOutput::TITLE_AT_MOST),
        summary: summary.finish(),
        annotations: annotations.take(CheckOutput::ANNOTATIONS_AT_MOST).collect(),
        ..concluded(CheckConclusion::Failure, at)
    }
}

/// Returns what names these problems, so that others are shown anew.
fn digest(problems: &[Diagnostic]) -> String {
    let told: Vec<String> = problems.iter().map(|problem| format!("{problem:#}")).collect();
    hex(&Sha256::digest(told.join("\n"))[..16])
}

/// Returns what is said of a line, where a problem has one in a file of the repository.
fn annotation(problem: &Diagnostic) -> Option<Annotation> {
    let SourceLocation { file, line, .. } = problem.place.as_ref()?;
    let line = (*line)?;
    let is_inside = !file.starts_with('/') && file.split('/').all(|part| !matches!(part, "" | "." | ".."));
    let is_plain = markdown::line(file) == *file;
    (is_inside && is_plain).then(|| Annotation {
        path: file.clone(),
        start_line: line,
        end_line: line,
        message: markdown::plain(&format!("{}: {}", problem.code, problem.message), MESSAGE_AT_MOST),
        title: markdown::plain(&problem.message, ANNOTATION_TITLE_AT_MOST),
    })
}

#[cfg(test)]
mod tests {
    use blueproof_diagnostic::Code;

    use super::*;

    fn planned(name: &str, profile: Option<&str>) -> PlannedBlueprint {
        PlannedBlueprint {
            name: name.parse().expect("a name"),
            profile: profile.map(|profile| profile.parse().expect("a name")),
        }
    }

    fn plan(file: &str, message: &str) -> Plan {
        let problem = Diagnostic::error(Code::UnknownKey, message);
        Plan {
            unconcerned: vec![planned("a", None), planned("b", Some("gpu2"))],
            refused: vec![Refused {
                blueprint: Some(planned("c", None)),
                problems: vec![problem.at(SourceLocation {
                    line: Some(7),
                    ..SourceLocation::file(file)
                })],
            }],
            ..Plan::default()
        }
    }

    #[test]
    fn what_is_not_concerned_is_told_only_where_it_is_required_and_what_is_refused_always() {
        let at = Timestamp::UNIX_EPOCH;
        let checks = without_run(
            &plan("c/blueprint.yaml", "unknown key `x`"),
            |name| name == "GPU · b (gpu2)",
            at,
        );
        let told: Vec<_> = checks.iter().map(|check| (&*check.name, check.state)).collect();
        let completed = |conclusion| CheckRunState::Completed { conclusion, at };
        assert_eq!(
            told,
            [
                ("GPU · b (gpu2)", completed(CheckConclusion::Neutral)),
                ("GPU · c", completed(CheckConclusion::Failure))
            ]
        );
        let line = &checks[1].annotations[0];
        assert_eq!((&*line.path, line.start_line), ("c/blueprint.yaml", 7));
    }

    #[test]
    fn other_problems_are_another_check_run() {
        let of = |message: &str| {
            let checks = without_run(&plan("../c", message), |_| false, Timestamp::UNIX_EPOCH);
            checks.into_iter().next().expect("it is refused")
        };
        assert_eq!(of("one").external_id, of("one").external_id);
        assert_ne!(of("one").external_id, of("another").external_id);
        assert!(
            of("one").annotations.is_empty(),
            "the file is not of the repository"
        );
    }
}

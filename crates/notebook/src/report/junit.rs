//! The report as JUnit XML: a test case for each code cell and each expectation.

use blueproof_core::{
    attempt::CellEnd,
    domain::{Failure, FailureClass, Verdict},
};
use blueproof_diagnostic::Diagnostic;
use jiff::SignedDuration;
use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestRerun, TestSuite};

use super::{Cell, ExpectationReport, ExpectationResult, FailedLine, Report, html::class_name};
use crate::{ipynb::CellKind, text::shown};

/// Returns the report as JUnit XML. Where the verdict is a failure, at least one case is none that passed.
pub(super) fn render(report: &Report) -> String {
    let mut suite = TestSuite::new(report.blueprint.as_str());
    suite.set_time(report.took.unsigned_abs());
    let notebook = report.notebook.display().to_string();
    let failure = match &report.verdict {
        Verdict::Failed(failure) => Some(&**failure),
        Verdict::Passed | Verdict::Stopped => None,
    };
    let failed = report.failed_line.as_ref();
    let code = report.cells.iter().filter(|cell| cell.kind == CellKind::Code);
    let code: Vec<&Cell> = code.collect();
    let cells = code.iter().map(|cell| cell_case(cell, failure, failed));
    let expectations = report.expectations.iter();
    let expectations = expectations.map(|expectation| expectation_case(expectation, failed));
    let mut cases: Vec<TestCase> = cells.chain(expectations).collect();
    if let Some(failure) = failure
        && !cases
            .iter()
            .any(|case| matches!(case.status, TestCaseStatus::NonSuccess { .. }))
    {
        cases.push(whole_case(report, failure));
    }
    if report.verdict == Verdict::Passed {
        add_flaky(report, &code, &mut cases);
    }
    if report.verdict == Verdict::Stopped {
        let why = match report.attempt {
            Some(_) => "it was stopped on request",
            None => "it ended before it had an attempt",
        };
        cases.push(TestCase::new(whole(report), skipped(why)));
    }
    for mut case in cases {
        case.set_classname(notebook.as_str());
        suite.add_test_case(case);
    }
    let mut junit = Junit::new("blueproof");
    junit.set_time(report.took.unsigned_abs()).add_test_suite(suite);
    junit.to_string().expect("a report in memory can be written")
}

/// Returns what the case is called that tells what no cell and no expectation tells.
fn whole(report: &Report) -> &'static str {
    match report.attempt {
        Some(_) => "the attempt as a whole",
        None => "the run as a whole",
    }
}

fn whole_case(report: &Report, failure: &Failure) -> TestCase {
    let mut case = TestCase::new(whole(report), not_passed(kind(failure.class), failure));
    if let Some(failed) = &report.failed_line {
        add_place(&mut case, failed);
    }
    case
}

fn cell_case(cell: &Cell, failure: Option<&Failure>, failed: Option<&FailedLine>) -> TestCase {
    let here = failure.filter(|failure| {
        failure
            .cell
            .as_ref()
            .is_some_and(|place| place.cell == cell.position)
    });
    let status = match (cell.end, here) {
        (Some(CellEnd::Ok | CellEnd::RaisedAsAllowed), None) => TestCaseStatus::success(),
        (Some(CellEnd::KernelDied | CellEnd::Interrupted | CellEnd::Unknown), None) => {
            described(NonSuccessKind::Error, "the cell did not come to its end")
        }
        (Some(CellEnd::Raised), None) => described(NonSuccessKind::Failure, "the cell raised"),
        (_, Some(failure)) => not_passed(kind(failure.class), failure),
        (None, None) => skipped("it did not run"),
    };
    let first = cell.first_line().unwrap_or("(empty)");
    let brief: String = shown(first).chars().take(80).collect();
    let mut case = TestCase::new(format!("{}: {brief}", cell.label()), status);
    case.set_time(cell.took.unwrap_or(SignedDuration::ZERO).unsigned_abs());
    if let Some(failed) = failed.filter(|_| here.is_some()) {
        add_place(&mut case, failed);
    }
    case
}

/// Adds the file and the line. No standard has these two, but pytest writes them, and tools that annotate a checkout go by them.
fn add_place(case: &mut TestCase, failed: &FailedLine) {
    let file = shown(&failed.file_in_repository().display().to_string());
    case.extra.insert("file".into(), file.into());
    if let Some(line) = failed.line {
        case.extra.insert("line".into(), line.to_string().into());
    }
}

/// Adds to a pass the failures that came before it, each to the cell that failed, or else to a case of the whole attempt.
fn add_flaky(report: &Report, code: &[&Cell], cases: &mut Vec<TestCase>) {
    let mut as_a_whole: Option<TestCase> = None;
    for earlier in &report.earlier {
        let Verdict::Failed(failure) = &earlier.verdict else {
            continue;
        };
        let failed = failure.cell.as_ref();
        let at = failed.and_then(|place| code.iter().position(|cell| cell.position == place.cell));
        let case = match at {
            Some(at) => &mut cases[at],
            None => as_a_whole.get_or_insert_with(|| TestCase::new(whole(report), TestCaseStatus::success())),
        };
        case.status.add_rerun(rerun(failure));
    }
    cases.extend(as_a_whole);
}

fn rerun(failure: &Failure) -> TestRerun {
    let diagnostic = &failure.diagnostic;
    // Of surefire's two elements the one that tools know, whoever was to blame.
    let mut rerun = TestRerun::new(NonSuccessKind::Failure);
    rerun
        .set_message(shown(&diagnostic.message))
        .set_type(format!("{} {}", class_name(failure.class), diagnostic.code))
        .set_description(words(diagnostic));
    rerun
}

fn expectation_case(expectation: &ExpectationReport, failed: Option<&FailedLine>) -> TestCase {
    let status = match &expectation.result {
        ExpectationResult::Met { .. } => TestCaseStatus::success(),
        ExpectationResult::Unmet(diagnostic) => {
            let mut status = described(NonSuccessKind::Failure, &shown(&diagnostic.message));
            status
                .set_type(diagnostic.code.to_string())
                .set_description(words(diagnostic));
            status
        }
        ExpectationResult::Unchecked => skipped("the run ended before it was looked at"),
        ExpectationResult::NotLookedAt(why) => skipped(&shown(why)),
    };
    let is_unmet = matches!(expectation.result, ExpectationResult::Unmet(_));
    let mut case = TestCase::new(format!("expects {}", shown(&expectation.text)), status);
    if let Some(failed) = failed.filter(|_| is_unmet) {
        add_place(&mut case, failed);
    }
    case
}

/// JUnit's failures are of what is tested, its errors of everything around.
fn kind(class: FailureClass) -> NonSuccessKind {
    match class {
        FailureClass::Notebook | FailureClass::Workload | FailureClass::Expectation => {
            NonSuccessKind::Failure
        }
        FailureClass::Timeout(_) | FailureClass::Infrastructure | FailureClass::Config => {
            NonSuccessKind::Error
        }
    }
}

fn not_passed(kind: NonSuccessKind, failure: &Failure) -> TestCaseStatus {
    let diagnostic = &failure.diagnostic;
    let mut status = described(kind, &shown(&diagnostic.message));
    status
        .set_type(format!("{} {}", class_name(failure.class), diagnostic.code))
        .set_description(words(diagnostic));
    status
}

fn described(kind: NonSuccessKind, message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(message);
    status
}

fn skipped(why: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(why);
    status
}

fn words(diagnostic: &Diagnostic) -> String {
    let mut lines = vec![format!("{}: {}", diagnostic.code, diagnostic.message)];
    lines.extend(diagnostic.place.iter().map(|place| format!("  at {place}")));
    lines.extend(
        diagnostic
            .causes
            .iter()
            .map(|cause| format!("  caused by: {cause}")),
    );
    lines.extend(diagnostic.hints.iter().map(|hint| format!("  hint: {hint}")));
    lines
        .iter()
        .map(|line| shown(line))
        .collect::<Vec<_>>()
        .join("\n")
}

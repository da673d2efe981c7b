//! The report as JUnit XML: a test case for each code cell and each expectation.

use blueproof_core::{
    attempt::CellEnd,
    diagnostic::Diagnostic,
    domain::{Failure, FailureClass, Verdict},
};
use jiff::SignedDuration;
use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestSuite};

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
    let code = report.cells.iter().filter(|cell| cell.kind == CellKind::Code);
    let cells = code.map(|cell| cell_case(cell, failure, report.failed_line.as_ref()));
    let expectations = report.expectations.iter().map(expectation_case);
    let mut cases: Vec<TestCase> = cells.chain(expectations).collect();
    if let Some(failure) = failure
        && !cases
            .iter()
            .any(|case| matches!(case.status, TestCaseStatus::NonSuccess { .. }))
    {
        cases.push(TestCase::new(
            whole(report),
            not_passed(kind(failure.class), failure),
        ));
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
        // No standard has these two, but pytest writes them, and tools that annotate a checkout go by them.
        let file = shown(&failed.file_in_repository().display().to_string());
        case.extra.insert("file".into(), file.into());
        case.extra.insert("line".into(), failed.line.to_string().into());
    }
    case
}

fn expectation_case(expectation: &ExpectationReport) -> TestCase {
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
    };
    TestCase::new(format!("expects {}", shown(&expectation.text)), status)
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

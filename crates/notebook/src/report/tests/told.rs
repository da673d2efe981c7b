//! What the page and the JUnit file say of how a run ended.

use blueproof_core::{
    attempt::Machine,
    domain::{Revision, TimeLimit},
};

use super::{super::failed_line::FailedLine, *};

fn failed_as(class: FailureClass, cell: Option<u32>) -> Verdict {
    let diagnostic = Diagnostic::error(Code::CellRaised, "it was lost");
    let mut failure = Failure::outside_cells(class, diagnostic);
    failure.cell = cell.map(|cell| CellPlace {
        cell,
        line: Some(1),
        source: None,
        ..CellPlace::default()
    });
    Verdict::Failed(Box::new(failure))
}

#[test]
fn each_ending_has_words_of_its_own_on_the_page() {
    for (verdict, word) in [
        (Verdict::Passed, "Passed"),
        (Verdict::Stopped, "Stopped"),
        (failed_as(FailureClass::Notebook, None), "Failed"),
        (failed_as(FailureClass::Workload, None), "Failed"),
        (failed_as(FailureClass::Expectation, None), "Not as expected"),
        (
            failed_as(FailureClass::Timeout(TimeLimit::Cell), None),
            "Timed out",
        ),
        (
            failed_as(FailureClass::Timeout(TimeLimit::Startup), None),
            "Timed out",
        ),
        (
            failed_as(FailureClass::Infrastructure, None),
            "Infrastructure failed",
        ),
        (failed_as(FailureClass::Config, None), "Refused"),
    ] {
        let page = Parsed::parse_document(&html::render(&Report { verdict, ..report() }));
        assert_eq!(texts(&page, ".chip"), [word]);
    }
}

#[test]
fn files_that_can_do_no_harm_are_linked_and_others_are_named() {
    let mut report = report();
    let file = |path: &str| ArtifactReport {
        path: path.into(),
        size: Bytes(3),
        sha256: String::new(),
    };
    report.artifacts = vec![file("out/model.json"), file("out/page.html")];
    report.files.push(FileReport {
        path: "attempts/2/kernel.log".into(),
        size: Bytes(5),
    });
    let page = Parsed::parse_document(&html::render(&report));
    let selector = Selector::parse("a").expect("it is a selector");
    let links: Vec<&str> = page.select(&selector).filter_map(|a| a.attr("href")).collect();
    for link in [
        "./attempts/2/executed.ipynb",
        "./attempts/2/kernel.log",
        "./attempts/2/artifacts/out/model.json",
    ] {
        assert!(links.contains(&link), "{link}: {links:?}");
    }
    let all = page.root_element().text().collect::<String>();
    assert!(
        all.contains("out/page.html") && !links.concat().contains("page.html"),
        "{links:?}"
    );
}

#[test]
fn a_formula_is_shown_as_its_source_rather_than_as_an_object() {
    let display = |plain: &str| json!({"output_type": "display_data", "data": {"text/latex": "$\\frac{1}{n}$", "text/plain": plain}});
    let shown = |plain: &str| {
        let report = report_of("# T", "f", &[display(plain)]);
        texts(&Parsed::parse_document(&html::render(&report)), ".printed").concat()
    };
    assert_eq!(shown("<IPython.core.display.Math object>"), "$\\frac{1}{n}$");
    assert_eq!(shown("<IPython.core.display.Latex object>"), "$\\frac{1}{n}$");
    assert_eq!(shown("1/n"), "1/n", "what can be read stays");
}

#[test]
fn a_word_of_what_is_expected_is_not_broken_on_a_small_screen() {
    let page = html::render(&report());
    assert!(page.contains("<table class=\"expected\">"), "{page}");
    let (_, small) = page
        .split_once("@media (max-width: 640px)")
        .expect("it is thought of");
    assert!(small.contains(".expected tr { display: grid;"), "{small}");
    assert!(
        page.contains(".expected td { overflow-wrap: break-word; }"),
        "{page}"
    );
}

#[test]
fn what_nobody_looks_at_is_said_to_be_so_and_not_that_the_run_had_ended() {
    let mut report = report();
    let why = "nobody looks at TrainJobs on this machine";
    report.expectations[0].result = ExpectationResult::NotLookedAt(why.to_owned());
    let junit = junit::render(&report);
    assert!(
        junit.contains(&format!("<skipped message=\"{why}\"/>")),
        "{junit}"
    );
    assert!(!junit.contains("ended before"), "{junit}");
    let page = Parsed::parse_document(&html::render(&report));
    assert_eq!(texts(&page, "td.actual"), [why]);
}

#[test]
fn the_page_says_on_which_machine_with_which_profile_and_of_which_commit() {
    let told = Report {
        profile: serde_json::from_value(json!("full")).ok(),
        revision: Some(Revision {
            commit: "1a2b3c4d5e".into(),
            branch: Some("main".into()),
            has_uncommitted_changes: true,
        }),
        pull_request: Some(7),
        machine: serde_json::from_value::<Machine>(json!({"host": "gpu-<b>1", "system": "Linux"})).ok(),
        ..report()
    };
    let page = Parsed::parse_document(&html::render(&told));
    let names = texts(&page, ".facts:not(.given) dt");
    let values = texts(&page, ".facts:not(.given) dd");
    for (name, value) in [
        ("profile", "full"),
        ("commit", "1a2b3c4 on main, with uncommitted changes"),
        ("pull request", "#7"),
        ("machine", "gpu-<b>1"),
    ] {
        let at = names.iter().position(|one| one == name).expect(name);
        assert_eq!(values[at], value);
    }
}

#[test]
fn a_pass_that_came_only_after_a_retry_is_flaky_in_junit() {
    let mut late = report_of("# T", "1 / 0", &[]);
    late.cells[1].end = Some(CellEnd::Ok);
    let earlier = |verdict| EarlierAttempt {
        attempt: RunId(41).attempt(1),
        verdict,
    };
    late.earlier = vec![earlier(failed_as(FailureClass::Notebook, Some(2)))];
    let junit = junit::render(&late);
    let (_, cell) = junit
        .split_once("<testcase name=\"cell 2: 1 / 0\"")
        .expect(&junit);
    let (cell, _) = cell.split_once("</testcase>").expect(&junit);
    assert!(
        cell.contains("<flakyFailure message=\"it was lost\" type=\"notebook BP0401\">"),
        "{junit}"
    );
    assert!(junit.contains("failures=\"0\" errors=\"0\""), "{junit}");

    late.earlier = vec![earlier(failed_as(FailureClass::Infrastructure, None)); 2];
    let junit = junit::render(&late);
    let wholes: Vec<_> = junit.split("<testcase name=\"the attempt as a whole\"").collect();
    let [_, whole] = wholes[..] else {
        panic!("{junit}");
    };
    let flaky = whole.matches("<flakyFailure message=\"it was lost\"").count();
    assert_eq!(flaky, 2, "{junit}");

    late.earlier = vec![earlier(Verdict::Stopped)];
    assert!(
        !junit::render(&late).contains("flaky"),
        "giving way is no failure"
    );
}

#[test]
fn an_expectation_that_does_not_hold_is_told_also_where_nothing_is_left_to_make_a_table_of() {
    let mut report = report();
    report.verdict = failed_as(FailureClass::Expectation, None);
    let Verdict::Failed(failure) = &mut report.verdict else {
        unreachable!("it is made above");
    };
    failure.diagnostic.message = "1 expectation does not hold:\n- loss is 3, at most 1 was expected".into();
    report.expectations.clear();
    assert!(html::render(&report).contains("loss is 3, at most 1 was expected"));
}

#[test]
fn what_fails_outside_of_cells_names_the_notebooks_file_in_junit() {
    let failed_line = Some(FailedLine {
        file: "/checkout/nb.ipynb".into(),
        line: None,
    });
    for class in [
        FailureClass::Config,
        FailureClass::Timeout(TimeLimit::Startup),
        FailureClass::Infrastructure,
    ] {
        let report = Report {
            verdict: failed_as(class, None),
            failed_line: failed_line.clone(),
            ..report()
        };
        let junit = junit::render(&report);
        assert_eq!(junit.matches("file=\"/checkout/nb.ipynb\"").count(), 1, "{junit}");
        assert!(!junit.contains("line=\""), "{junit}");
    }
    let unmet = Diagnostic::error(Code::MetricOutOfBounds, "loss 5 > 0.4");
    let mut report = report();
    report.expectations[0].result = ExpectationResult::Unmet(unmet);
    report.verdict = failed_as(FailureClass::Expectation, None);
    report.failed_line = failed_line;
    assert_eq!(
        junit::render(&report)
            .matches("file=\"/checkout/nb.ipynb\"")
            .count(),
        1
    );
}

//! The report of a friendly notebook, and of notebooks that try to break out of it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use blueproof_core::{
    attempt::{CellEnd, Record, RecordKind},
    domain::{CellPlace, Cpus, Failure, FailureClass, GpuUse, RunId},
};
use scraper::{Html as Parsed, Selector};
use serde_json::{Value, json};

use super::*;
use crate::environment::Package;

mod hostile;
mod told;

fn name(text: &str) -> BlueprintName {
    serde_json::from_value(json!(text)).expect("it is a name")
}

/// An attempt of a notebook with these outputs in its one code cell, which is cell 2.
fn report_of(prose: &str, source: &str, outputs: &[Value]) -> Report {
    let notebook = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
        {"cell_type": "markdown", "source": prose, "metadata": {}},
        {"cell_type": "code", "source": [source], "outputs": outputs, "metadata": {}, "execution_count": 1},
    ]});
    let ended = Record {
        at: Timestamp::UNIX_EPOCH,
        kind: RecordKind::CellEnded {
            cell: 2,
            end: CellEnd::Ok,
            took: SignedDuration::from_millis(1234),
        },
    };
    Report {
        cells: cells(&notebook.to_string(), [&ended]).expect("it is a notebook"),
        ..report()
    }
}

/// Two devices of which half of the time was seen.
fn half_seen() -> GpuUse {
    GpuUse {
        devices: 2,
        allocated_seconds: 2.6,
        seen_seconds: 1.3,
        busy_seconds: Some(0.91),
        joules: None,
        peak_utilization: Some(1.0),
        peak_memory: Some(Bytes(3 << 30)),
    }
}

fn usage() -> Usage {
    Usage {
        duration: SignedDuration::from_millis(1300),
        cpu_granted: Cpus::cores(1),
        cpu_time: None,
        memory_peak: Some(Bytes(123_456_789)),
        gpu: Some(half_seen()),
    }
}

fn environment() -> EnvironmentReport {
    EnvironmentReport {
        python: "3.12.4".to_owned(),
        key: "py3.12-0123".to_owned(),
        tool: "uv".to_owned(),
        packages: vec![Package {
            name: "numpy".to_owned(),
            version: "2.5.0".to_owned(),
        }],
    }
}

/// An attempt that passed, of a notebook without cells.
fn report() -> Report {
    Report {
        run: RunId(41),
        attempt: Some(RunId(41).attempt(2)),
        earlier: vec![EarlierAttempt {
            attempt: RunId(41).attempt(1),
            verdict: Verdict::Stopped,
        }],
        blueprint: name("nano-lm"),
        profile: None,
        head: Head::Snapshot("ab".repeat(32)),
        pull_request: None,
        revision: None,
        parameters: BTreeMap::new(),
        requested_by: Actor::Local("ada".to_owned()),
        machine: None,
        version: None,
        notebook: "examples/nano-lm/nano-lm.ipynb".into(),
        began_at: Timestamp::UNIX_EPOCH,
        took: SignedDuration::from_millis(1500),
        verdict: Verdict::Passed,
        notices: Vec::new(),
        stages: vec![StageReport {
            name: "env".to_owned(),
            detail: "python 3.12 + numpy 2.5 (cached)".to_owned(),
            took: Some(SignedDuration::from_millis(21)),
        }],
        cells: Vec::new(),
        metrics: BTreeMap::from([(
            "final_loss".to_owned(),
            MetricResult {
                last: Some(0.352),
                count: 4,
                trace: vec![2.5, 1.2, 0.6, 0.352],
            },
        )]),
        expectations: vec![ExpectationReport {
            text: "final_loss <= 0.629".to_owned(),
            result: ExpectationResult::Met {
                actual: Some("0.352".to_owned()),
            },
            bounds: None,
        }],
        usage: Some(usage()),
        figures: Figures {
            average_queue_seconds: Some(12.5),
            average_build_seconds: Some(3.25),
            ..Figures::default()
        },
        environment: Some(environment()),
        files: vec![FileReport {
            path: "attempts/2/executed.ipynb".into(),
            size: Bytes(1),
        }],
        artifacts_folder: Some("attempts/2/artifacts".into()),
        artifacts: Vec::new(),
        reproduce: vec!["blueproof run nano-lm".to_owned()],
        failed_line: None,
        caveats: Vec::new(),
        comparison: None,
    }
}

fn failed(mut report: Report, message: &str) -> Report {
    report.verdict = Verdict::Failed(Box::new(Failure {
        class: FailureClass::Notebook,
        diagnostic: Diagnostic::error(Code::CellRaised, message)
            .because(message)
            .hint(message),
        cell: Some(CellPlace {
            cell: 2,
            line: Some(1),
            source: Some(message.to_owned()),
            ..CellPlace::default()
        }),
    }));
    report
}

pub(super) fn seconds(seconds: f64) -> SignedDuration {
    SignedDuration::from_secs_f64(seconds)
}

fn texts(page: &Parsed, selector: &str) -> Vec<String> {
    let selector = Selector::parse(selector).expect("it is a selector");
    page.select(&selector)
        .map(|element| element.text().collect::<String>())
        .collect()
}

#[test]
fn the_page_says_what_failed_where_and_what_to_do_before_anything_else() {
    let mut report = failed(
        report_of("# Title", "a = 1\nb = 0\na / b", &[]),
        "ZeroDivisionError: division by zero",
    );
    if let Verdict::Failed(failure) = &mut report.verdict {
        failure.cell = Some(CellPlace {
            cell: 2,
            line: Some(3),
            source: Some("a / b".to_owned()),
            ..CellPlace::default()
        });
        failure.diagnostic.hints = vec!["look at b".to_owned()];
    }
    report.cells[1].end = Some(CellEnd::Raised);
    let page = Parsed::parse_document(&html::render(&report));

    let said = texts(&page, "section.verdict").concat();
    for words in [
        "notebook",
        "BP0401",
        "ZeroDivisionError: division by zero",
        "cell 2",
        "line 3",
        "a / b",
        "look at b",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(texts(&page, ".code .here"), ["a / b"]);
    assert_eq!(texts(&page, "h1")[0], "nano-lm r-41.2");
    assert_eq!(texts(&page, ".chip"), ["Failed"]);
    assert_eq!(texts(&page, ".time .n"), ["1.2 s"]);
}

#[test]
fn several_expectations_that_do_not_hold_are_told_once_by_the_table_with_hints_that_name_theirs() {
    let unmet = [
        ("loss 5 > 0.4", None),
        ("no cell printed \"done\"", Some("print it")),
    ];
    let unmet = unmet.map(|(message, hint)| {
        let diagnostic = Diagnostic::error(Code::MetricOutOfBounds, message);
        hint.into_iter().fold(diagnostic, Diagnostic::hint)
    });
    let mut report = report_of("# Title", "a = 1", &[]);
    report.verdict = Verdict::Failed(Box::new(
        crate::measure::failure(unmet.to_vec()).expect("something is unmet"),
    ));
    let expectation = report.expectations[0].clone();
    report.expectations = unmet
        .into_iter()
        .map(|diagnostic| ExpectationReport {
            result: ExpectationResult::Unmet(diagnostic),
            ..expectation.clone()
        })
        .collect();
    let page = Parsed::parse_document(&html::render(&report));
    assert_eq!(texts(&page, ".verdict .what"), ["2 expectations do not hold"]);
    assert_eq!(texts(&page, ".verdict .whole"), [""; 0], "the table says it");
    assert_eq!(
        texts(&page, ".verdict .hints li"),
        ["no cell printed \"done\": print it"]
    );
    assert_eq!(
        texts(&page, "td.actual"),
        ["loss 5 > 0.4", "no cell printed \"done\""]
    );
}

#[test]
fn the_page_is_at_most_half_as_large_again_as_the_outputs_and_a_hundred_kilobytes() {
    let image = STANDARD.encode([&b"\x89PNG\r\n\x1a\n"[..], &[7; 900_000]].concat());
    let coloured: String = (0..50_000).map(|n| format!("\x1b[3{}mx", n % 8)).collect();
    let shown = |mime: &str, text: String| json!({"output_type": "display_data", "data": {mime: text, "text/plain": "x"}});
    let rows: [(&str, Value); 7] = [
        (
            "tags that close themselves",
            shown("text/html", format!("<table>{}", "<td>".repeat(50_000))),
        ),
        ("prose of emphasis", shown("text/markdown", "*a* ".repeat(50_000))),
        (
            "an image",
            json!({"output_type": "display_data", "data": {"image/png": image}}),
        ),
        (
            "markup characters",
            json!({"output_type": "stream", "text": "<&>".repeat(300_000)}),
        ),
        (
            "short lines",
            json!({"output_type": "stream", "text": "<\n".repeat(300_000)}),
        ),
        (
            "a colour for each character",
            json!({"output_type": "stream", "text": coloured}),
        ),
        (
            "a table",
            json!({"output_type": "display_data", "data": {"text/html": format!("<table>{}</table>", "<tr><td>1</td></tr>".repeat(9000))}}),
        ),
    ];
    for (why, output) in rows {
        let size = output.to_string().len();
        let html = html::render(&report_of("", "", &[output]));
        assert!(
            html.len() * 2 <= size * 3 + 200_000,
            "{why}: {} of {size}",
            html.len()
        );
    }
}

#[test]
fn long_output_keeps_its_beginning_and_its_end() {
    let text: String = (0..200_000).map(|n| format!("line {n}\n")).collect();
    let report = report_of("", "", &[json!({"output_type": "stream", "text": text})]);
    let shown = texts(&Parsed::parse_document(&html::render(&report)), ".outputs pre").concat();

    assert!(shown.starts_with("line 0\n") && shown.ends_with("line 199999"));
    assert!(shown.contains("lines are left out here") && shown.len() < 300_000);
}

#[test]
fn code_shows_what_would_be_hidden() {
    let report = report_of("", "safe()\r\nx = 1 \u{202e}# no\rrun()", &[]);
    let page = Parsed::parse_document(&html::render(&report));
    assert_eq!(
        texts(&page, ".code .l"),
        ["safe()", "x = 1 ⟨U+202E⟩# no", "run()"]
    );
}

#[test]
fn what_programs_read_says_its_version_and_the_verdict() {
    let report = failed(
        report_of("# T", "1 / 0", &[]),
        "ZeroDivisionError: division by zero",
    );
    let document: Value = serde_json::from_str(&render(&report, ReportKind::Json)).expect("it is JSON");
    assert_eq!(document["apiVersion"], "blueproof.dev/v1alpha1");
    assert_eq!(document["verdict"]["failed"]["diagnostic"]["code"], "BP0401");
}

#[test]
fn junit_has_a_case_for_each_code_cell_and_expectation_and_one_that_tells_the_failure() {
    let mut report = failed(
        report_of("# T", "1 / 0", &[]),
        "ZeroDivisionError: division\x1b[0m by zero",
    );
    report.expectations[0].result = ExpectationResult::Unchecked;
    report.cells[1].end = Some(CellEnd::Raised);
    let expected = "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites name=\"blueproof\" tests=\"2\" skipped=\"1\" failures=\"1\" errors=\"0\" time=\"1.500\">
    <testsuite name=\"nano-lm\" tests=\"2\" skipped=\"1\" errors=\"0\" failures=\"1\" time=\"1.500\">
        <testcase name=\"cell 2: 1 / 0\" classname=\"examples/nano-lm/nano-lm.ipynb\" time=\"1.234\">
            <failure message=\"ZeroDivisionError: division by zero\" type=\"notebook BP0401\">BP0401: ZeroDivisionError: division by zero
  caused by: ZeroDivisionError: division by zero
  hint: ZeroDivisionError: division by zero</failure>
        </testcase>
        <testcase name=\"expects final_loss &lt;= 0.629\" classname=\"examples/nano-lm/nano-lm.ipynb\">
            <skipped message=\"the run ended before it was looked at\"/>
        </testcase>
    </testsuite>
</testsuites>
";
    assert_eq!(junit::render(&report), expected);

    report.cells.clear();
    assert!(junit::render(&report).contains("<testcase name=\"the attempt as a whole\""));
}

#[test]
fn a_run_that_was_over_before_it_had_an_attempt_says_so_and_why() {
    let mut stopped = report();
    stopped.attempt = None;
    stopped.earlier.clear();
    stopped.expectations.clear();
    stopped.verdict = Verdict::Stopped;
    let refused = failed(stopped.clone(), "asks for 4000 cpu");

    let page = Parsed::parse_document(&html::render(&stopped));
    assert_eq!(texts(&page, "h1")[0], "nano-lm r-41");
    assert_eq!(texts(&page, ".chip"), ["Stopped"]);
    assert!(junit::render(&stopped).contains(
        "<testcase name=\"the run as a whole\" classname=\"examples/nano-lm/nano-lm.ipynb\">
            <skipped message=\"it ended before it had an attempt\"/>"
    ));
    let page = Parsed::parse_document(&html::render(&refused));
    assert!(
        texts(&page, "section.verdict")
            .concat()
            .contains("asks for 4000 cpu")
    );
    let junit = junit::render(&refused);
    assert!(junit.contains("name=\"the run as a whole\"") && junit.contains("asks for 4000 cpu"));
}

#[test]
fn what_is_no_notebook_is_refused() {
    for text in ["", "[]", "{\"cells\": 1}", "{\"cells\": [{}]}"] {
        assert_eq!(
            cells(text, []).expect_err("it is none").code,
            Code::ExecutedNotebook,
            "{text}"
        );
    }
}

#[test]
fn the_page_tells_what_was_used_and_how_much_of_it_was_seen() {
    let page = html::render(&report());
    for (name, value) in [
        ("gpu", "2 for 2.6 GPU-s"),
        ("gpu busy", "70 % of 1.3 GPU-s that were seen"),
        ("gpu peak", "100 %"),
        ("gpu memory peak", "3.0 GiB"),
        ("gpu energy", "not read"),
        ("queue to admission", "12.5 s"),
        ("start to verdict", "3.3 s"),
    ] {
        let row = format!("<dt>{name}</dt><dd>{value}</dd>");
        assert!(page.contains(&row), "{row}: {page}");
    }
}

#[test]
fn a_long_message_stands_in_a_box_of_its_own_below_its_first_words() {
    let message = format!("ValueError: {}\nsecond line", "long ".repeat(400));
    let page = html::render(&failed(report_of("", "1 / 0", &[]), &message));
    let page = Parsed::parse_document(&page);

    let headline = texts(&page, "section.verdict .what").concat();
    assert!(
        headline.starts_with("ValueError: long") && headline.ends_with('…'),
        "{headline}"
    );
    assert!(headline.chars().count() < 200, "{headline}");
    assert!(
        texts(&page, "section.verdict .whole")
            .concat()
            .ends_with("second line")
    );
}

#[test]
fn the_failure_stands_above_what_was_not_enforced_and_long_parts_are_folded() {
    let source = "x = 1\n".repeat(100);
    let text = json!({"output_type": "stream", "text": "line\n".repeat(100)});
    let mut report = report_of("", &source, &[text]);
    report.caveats.push("no network was asked for".to_owned());
    let folded = texts(
        &Parsed::parse_document(&html::render(&report)),
        "details > summary",
    );
    assert!(folded.contains(&"100 lines of code".to_owned()), "{folded:?}");
    assert!(
        folded.contains(&"output, 100 lines shown".to_owned()),
        "{folded:?}"
    );

    let page = html::render(&failed(report, "ValueError"));
    let at = |text: &str| page.find(text).expect("it is there");
    assert!(at("ValueError") < at("no network was asked for"));
    let folded = texts(&Parsed::parse_document(&page), ".cell details");
    assert_eq!(folded, Vec::<String>::new(), "the cell that failed is open");
}

#[test]
fn pages_with_many_cells_have_an_index_and_errors_lead_to_the_next() {
    let cell = |position: u32| Cell {
        position,
        kind: crate::ipynb::CellKind::Code,
        source: "x".to_owned(),
        outputs: Vec::new(),
        end: Some(if position.is_multiple_of(4) {
            CellEnd::Raised
        } else {
            CellEnd::Ok
        }),
        took: None,
        gpu: None,
    };
    let mut report = report();
    report.cells = (1..=10).map(cell).collect();
    let page = Parsed::parse_document(&html::render(&report));

    assert_eq!(texts(&page, ".index a").len(), 10);
    assert_eq!(texts(&page, ".index a.fail"), ["4", "8"]);
    assert_eq!(texts(&page, "#cell-4 .head a"), ["next error ↓"]);
    assert_eq!(texts(&page, "#cell-8 .head a"), Vec::<String>::new());
}

#[test]
fn the_page_says_where_a_run_came_from_and_what_a_met_expectation_found() {
    let mut report = report();
    report.revision = Some(Revision {
        commit: "1a2b3c4d".repeat(5),
        branch: Some("main".to_owned()),
        has_uncommitted_changes: true,
    });
    report.parameters = BTreeMap::from([("epochs".to_owned(), json!(3))]);
    report.version = Some("1.2.3".to_owned());
    let page = html::render(&report);
    for (name, value) in [
        ("commit", "1a2b3c4 on main, with uncommitted changes"),
        ("asked by", "ada"),
        ("blueproof", "1.2.3"),
    ] {
        let row = format!("<dt>{name}</dt><dd>{value}</dd>");
        assert!(page.contains(&row), "{row}: {page}");
    }
    assert!(
        page.contains("<dt>epochs</dt><dd class=\"mono\">3</dd>"),
        "{page}"
    );
    assert_eq!(texts(&Parsed::parse_document(&page), ".actual"), ["0.352"]);
}

//! A run beside the last one that passed, and what programs are told.

use std::fs;

use crate::common::{Checkout, Home};

const SPEC: &str =
    "  metrics: [{name: loss, from: {regex: 'loss: (\\S+)'}}]\n  expect: {loss: {last: {max: 1}}}\n";

#[test]
fn a_run_that_fails_is_compared_with_the_last_that_passed_in_terminal_page_and_json() {
    let (home, checkout) = (Home::new(), Checkout::new(&["print('loss: 0.5')"], SPEC));
    let passed = home.blueproof(&["run", checkout.typed()]);
    assert_eq!(passed.code, Some(0), "{passed:?}");
    assert!(!passed.stdout.contains("last passed"), "{passed:?}");

    let notebook = checkout.path().join("nb.ipynb");
    let edited = fs::read_to_string(&notebook)
        .expect("a file")
        .replace("0.5", "1.5");
    fs::write(&notebook, edited).expect("a file");
    let failed = home.blueproof(&["run", checkout.typed()]);

    assert_eq!(failed.code, Some(1), "{failed:?}");
    for said in [
        "= last passed: r-1, ",
        "= since then: cell 1 edited",
        "= then and now: loss 0.5 → 1.5 (+200.0 %)",
    ] {
        assert!(failed.stdout.contains(said), "{said}: {failed:?}");
    }
    let page = fs::read_to_string(home.run_folder("r-2").join("report.html")).expect("a report");
    assert!(page.contains("Since r-1.1 passed"), "{page}");
    assert!(page.contains("href=\"./attempts/1/executed.ipynb\""), "{page}");
    let report = fs::read_to_string(home.run_folder("r-2").join("report.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["comparison"]["attempt"], "r-1.1");
    assert_eq!(report["comparison"]["packages"], serde_json::json!([]));
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));

    let again = home.blueproof(&["run", checkout.typed(), "-o", "json"]);
    let again = again.json();
    assert_eq!(again["comparison"]["metrics"][0]["percent"], 200.0);
    if home.is_local() {
        let file = again["reportFile"].as_str().expect("it has a report");
        assert!(fs::exists(file).expect("a path") && file.ends_with("r-3/report.html"));
    }
    assert_eq!(again["notices"], serde_json::json!([]));
}

#[test]
fn who_asks_for_json_gets_one_document_whatever_goes_wrong() {
    let (home, checkout) = (Home::new(), Checkout::new(&["1"], "  metrics: [{name: loss}]\n"));
    let rows: [(&[&str], &str); 4] = [
        (&["run", checkout.typed(), "-o", "json"], "BP0"),
        (&["run", "nowhere/at-all", "-o", "json"], "BP0201"),
        (
            &["run", checkout.typed(), "--prfile", "x", "-o", "json"],
            "BP0101",
        ),
        (&["wait", "r-9", "-o", "json"], "BP0"),
    ];
    for (typed, code) in rows {
        let answer = home.blueproof(typed);
        let document = answer.json();
        assert_eq!(document["kind"], "Error", "{answer:?}");
        assert_eq!(document["exitCode"], answer.code.expect("it exits"), "{answer:?}");
        let said = document["errors"][0]["code"].as_str().expect("a code");
        assert!(said.starts_with(code), "{answer:?}");
        assert!(answer.stderr.contains(said), "people are told, too: {answer:?}");
    }
}

#[test]
fn what_a_run_was_given_and_what_is_expected_of_it_is_described() {
    let spec = format!("  parameters: {{lr: {{type: float, default: 0.5}}}}\n{SPEC}");
    let (home, checkout) = (Home::new(), Checkout::new(&["print('loss:', lr * 4)"], &spec));
    let failed = home.blueproof(&["run", checkout.typed(), "-p", "lr=0.75"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let described = home.blueproof(&["describe", "run", "r-1"]).stdout;
    let (_, given) = described.split_once("\nParameters\n").expect(&described);
    assert!(
        given.starts_with("  PARAMETER  VALUE\n  lr         0.75\n"),
        "{described}"
    );
    let (_, expected) = described.split_once("\nExpectations\n").expect(&described);
    let row = expected.lines().nth(1).expect(&described);
    assert!(
        row.contains("loss") && row.contains(" no ") && row.contains('3'),
        "{described}"
    );
}

#[test]
fn what_is_not_enforced_is_among_the_notices_of_a_document() {
    let (home, checkout) = (Home::new(), Checkout::new(&["1"], "  network: none\n"));
    let ran = home.blueproof(&["run", checkout.typed(), "-o", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let document = ran.json();
    assert_eq!(document["notices"][0]["code"], "BP0454", "{document}");
    let message = document["notices"][0]["message"].as_str().expect("it says what");
    assert!(message.starts_with("no network was asked for"), "{message}");
}

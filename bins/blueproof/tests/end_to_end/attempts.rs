//! Attempts of a run: an earlier one by its number, and how long they took.

use std::fs;

use serde_json::json;

use crate::common::{Checkout, Home};

#[test]
fn an_earlier_attempt_is_looked_at_by_its_number() {
    let home = Home::new();
    let mended = home.path().join("mended");
    let cell = format!(
        "import os\nis_mended = os.path.exists({mended:?})\nprint('mended' if is_mended else 'broken')\n\
         open('out.txt', 'w').write(str(is_mended))\nassert is_mended, 'not mended yet'"
    );
    let checkout = Checkout::new(&[&cell], "  artifacts: [out.txt]\n");
    assert_eq!(home.blueproof(&["run", checkout.typed()]).code, Some(1));
    fs::write(mended, "").expect("a file");
    assert_eq!(home.blueproof(&["retry", "last"]).code, Some(0));
    let told = |arguments: &[&str]| {
        let answer = home.blueproof(arguments);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        answer.stdout
    };

    let first = told(&["logs", "last", "--attempt", "1"]);
    assert!(first.starts_with("── cell 1\nbroken\n"), "{first}");
    assert_eq!(told(&["logs", "last", "--attempt", "2"]), told(&["logs", "last"]));
    assert_eq!(told(&["logs", "last"]), "── cell 1\nmended\n");

    let kept = |number| told(&["artifacts", "last", "--attempt", number]);
    // A scheduler lists them by their names, which are the same.
    assert_eq!(kept("1") != kept("2"), home.is_local());
    assert_eq!(kept("2"), told(&["artifacts", "last"]));

    let run = told(&["get", "run", "last", "--attempt", "1", "-o", "json"]);
    let run: serde_json::Value = serde_json::from_str(&run).expect("a document");
    assert_eq!(run["state"], json!({ "ended": "failed" }));
    assert_eq!(run["attempts"].as_array().map(Vec::len), Some(1));
    let row = told(&["get", "run", "last", "--attempt", "1"]);
    assert!(row.contains("AssertionError: not mended yet"), "{row}");

    let junit = |number| told(&["report", "last", "--attempt", number, "--format", "junit"]);
    assert!(junit("1").contains("not mended yet"), "{}", junit("1"));
    assert_eq!(junit("2"), told(&["report", "last", "--format", "junit"]));
    let page = home.blueproof(&["report", "last", "--attempt", "1"]);
    assert_eq!(page.code, Some(2));
    assert!(page.stderr.contains("--attempt 1 --format html"), "{page:?}");
}

#[test]
fn an_attempt_that_is_not_there_is_told_with_those_that_are() {
    let home = Home::new();
    let checkout = Checkout::new(&["x = 1"], "");
    assert_eq!(home.blueproof(&["run", checkout.typed()]).code, Some(0));
    for command in ["logs", "report", "artifacts", "get run"] {
        let mut arguments: Vec<&str> = command.split(' ').collect();
        arguments.extend(["r-1", "--attempt", "3"]);
        let answer = home.blueproof(&arguments);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.stderr.contains("r-1 has no attempt 3"), "{answer:?}");
        assert!(answer.stderr.contains("it has attempt 1 alone"), "{answer:?}");
    }
    let many = home.blueproof(&["get", "runs", "--attempt", "1"]);
    assert_eq!(many.code, Some(2));
    assert!(many.stderr.contains("`--attempt` is of one run"), "{many:?}");
}

#[test]
fn a_run_that_failed_in_several_attempts_says_how_many() {
    let home = Home::new();
    let kill =
        "import os, signal\nparent = int(os.environ['JPY_PARENT_PID'])\nos.kill(parent, signal.SIGKILL)";
    let checkout = Checkout::new(&[kill], "  retries: {infrastructure: 1}\n");
    let answer = home.blueproof(&["run", checkout.typed()]);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    let verdict = answer
        .stdout
        .lines()
        .find(|line| line.starts_with("INFRASTRUCTURE"));
    let verdict = verdict.expect("a verdict");
    assert!(verdict.contains(" · the last of 2 attempts"), "{verdict}");
}

#[test]
fn the_verdict_the_table_and_the_document_tell_one_time_of_a_run() {
    let (home, checkout) = (Home::new(), Checkout::new(&["import time\ntime.sleep(0.3)"], ""));
    let ran = home.blueproof(&["run", checkout.typed()]);
    let verdict = ran.stdout.lines().next().expect("a verdict");
    let told = verdict.split_once(" in ").expect("a time").1;
    let told = told.split(" · ").next().expect("a time");

    let table = home.blueproof(&["get", "runs"]).stdout;
    assert!(table.contains(&format!("  {told}\n")), "{verdict}\n{table}");
    let described = home.blueproof(&["describe", "run", "r-1"]).stdout;
    assert!(described.contains(told), "{verdict}\n{described}");
}

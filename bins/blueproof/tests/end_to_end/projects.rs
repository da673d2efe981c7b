//! Which run is the last one: the newest of the project that somebody stands in.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::common::{Answer, Checkout, Home};

fn typed_in(home: &Home, checkout: &Checkout, arguments: &[&str]) -> Answer {
    let mut command = home.command(arguments);
    command.current_dir(checkout.path());
    command.output().expect("it starts").into()
}

fn last_in(home: &Home, checkout: &Checkout) -> Value {
    typed_in(home, checkout, &["get", "run", "last", "-o", "json"]).json()["id"].clone()
}

#[test]
fn the_last_run_is_the_newest_of_the_project_that_one_stands_in() {
    let home = Home::new();
    let (one, two) = (Checkout::new(&["1"], ""), Checkout::new(&["2"], ""));
    let never = Checkout::new(&["3"], "");
    for checkout in [&one, &two] {
        let ran = typed_in(&home, checkout, &["run", "."]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    assert_eq!(last_in(&home, &one), "r-1");
    assert_eq!(last_in(&home, &two), "r-2");

    let below = std::fs::create_dir(one.path().join("below"));
    below.expect("a folder");
    let mut below = home.command(&["get", "run", "last", "-o", "name"]);
    below.current_dir(one.path().join("below"));
    assert_eq!(Answer::from(below.output().expect("it starts")).stdout, "r-1\n");

    let nothing = typed_in(&home, &never, &["why", "last"]);
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    assert!(
        nothing
            .stderr
            .contains("the newest run elsewhere is r-2 of story, in "),
        "{nothing:?}"
    );
}

#[test]
fn a_run_that_was_tried_once_more_is_the_last_one() {
    let home = Home::new();
    let checkout = Checkout::new(&["1"], "");
    for _ in 0..2 {
        typed_in(&home, &checkout, &["run", "."]);
    }
    assert_eq!(last_in(&home, &checkout), "r-2");

    let again = typed_in(&home, &checkout, &["retry", "r-1"]);

    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stderr.starts_with("tries r-1 of story, in "), "{again:?}");
    assert_eq!(last_in(&home, &checkout), "r-1");
}

#[test]
fn outside_of_any_project_the_last_run_is_shown_and_never_changed() {
    let home = Home::new();
    let checkout = Checkout::new(&["1"], "");
    typed_in(&home, &checkout, &["run", "."]);

    let shown = home.blueproof(&["get", "run", "last", "-o", "json"]);
    assert_eq!(shown.json()["state"], json!({ "ended": "passed" }));
    assert!(
        shown.stderr.starts_with("`last` is r-1 of story, in "),
        "{shown:?}"
    );
    for change in ["cancel", "retry"] {
        let refused = home.blueproof(&[change, "last"]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(
            refused.stderr.contains("the current folder is of no project"),
            "{refused:?}"
        );
    }
}

#[test]
fn a_quiet_run_says_its_verdict_and_nothing_else() {
    let home = Home::new();
    let (good, bad) = (Checkout::new(&["1"], ""), Checkout::new(&["1 / 0"], ""));
    let passed = home.blueproof(&["run", good.typed(), "--quiet"]);
    assert_eq!(passed.stdout.lines().count(), 1, "{passed:?}");
    assert!(passed.stdout.starts_with("PASS story r-1 in "), "{passed:?}");
    assert_eq!(passed.stderr, "");

    let failed = home.blueproof(&["run", bad.typed(), "-q"]);
    assert_eq!((failed.code, failed.stderr.as_str()), (Some(1), ""), "{failed:?}");
    assert!(failed.stdout.contains("ZeroDivisionError"), "{failed:?}");

    let waited = home.blueproof(&["wait", "r-1", "-q"]);
    assert_eq!(waited.stdout, passed.stdout);
}

#[test]
fn what_a_run_says_may_be_written_into_the_folder_that_it_tests() {
    let home = Home::new();
    let checkout = Checkout::new(
        &[
            "import os\nassert not os.path.exists('run.log')",
            "assert os.path.exists('old.log')",
        ],
        "",
    );
    std::fs::write(checkout.path().join("old.log"), "of another run").expect("a file");
    let log = checkout.path().join("run.log");
    for stdout_too in [true, false] {
        let file = std::fs::File::create(&log).expect("a file");
        let mut command = home.command(&["run", "."]);
        command.current_dir(checkout.path()).stdout(Stdio::null());
        if stdout_too {
            command.stdout(file.try_clone().expect("a file"));
        }
        let ended = command.stderr(file).status().expect("it starts");
        let said = std::fs::read_to_string(&log).expect("it is there");
        assert!(ended.success(), "{said}");
        assert!(!said.is_empty(), "it was written there");
        std::fs::remove_file(&log).expect("it is there");
    }
}

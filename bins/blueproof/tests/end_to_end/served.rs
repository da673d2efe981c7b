//! Commands that ask a scheduler.

use serde_json::json;

use crate::common::{Checkout, Held, Home};

#[test]
fn a_run_on_a_scheduler_is_told_logged_and_reported_as_one_on_a_store() {
    let (home, checkout) = (Home::served(), Checkout::new(&["print('done')"], ""));
    let ran = home.blueproof(&["run", checkout.typed()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.starts_with("PASS story r-1"), "{ran:?}");
    assert!(ran.stderr.contains("scheduler at unix:"), "{ran:?}");
    for (arguments, expected) in [
        (&["logs", "last"][..], "done"),
        (&["get", "runs"], "passed"),
        (&["describe", "run", "last"], "Passed"),
        (&["why", "last"], "every cell ran"),
        (&["report", "last", "--format", "json"], "blueproof.dev/v1alpha1"),
        (&["quota", "get"], "local"),
        (&["metrics"], "blueproof_"),
        (&["get", "events"], "requested"),
        (&["get", "commands"], "taken"),
        (&["audit"], "admitted"),
    ] {
        let answer = home.blueproof(arguments);
        assert_eq!(answer.code, Some(0), "{arguments:?}: {answer:?}");
        let found = answer.stdout.to_lowercase().contains(&expected.to_lowercase());
        assert!(found, "{arguments:?}: {answer:?}");
    }
    let page = home.blueproof(&["report", "last"]).stdout;
    assert!(
        page.trim().ends_with("/r-1.html") && page.lines().count() == 1,
        "{page}"
    );
    let page = std::fs::read_to_string(page.trim()).expect("a copy of it");
    let printed = home.blueproof(&["report", "last", "--format", "html"]).stdout;
    assert_eq!(page, printed);
}

#[test]
fn a_run_that_fails_and_one_that_is_cancelled_end_as_on_a_store() {
    let home = Home::served();
    let fails = Checkout::new(&["raise ValueError('no')"], "");
    let failed = home.blueproof(&["run", fails.typed()]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.stdout.contains("ValueError: no"), "{failed:?}");
    let held = Held::new(&home, "held");
    let detached = home.blueproof(&["run", held.typed(), "--detach"]);
    assert_eq!(detached.code, Some(0), "{detached:?}");
    home.until_printed("r-2", "held waits");
    let cancelled = home.blueproof(&["cancel", "r-2"]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    assert_eq!(home.last()["state"], json!({"ended": "cancelled"}));
}

#[test]
fn an_upgrade_under_load_loses_and_doubles_nothing() {
    let mut home = Home::served();
    let held = Held::new(&home, "held");
    let follower = home.start(&["run", held.typed()]);
    home.until_printed("r-1", "held waits");
    let quick = Checkout::new(&["print('quick')"], "");
    let waiting = [(); 3].map(|()| home.start(&["run", quick.typed()]));
    // One that is typed while nobody is there is told so, and is not what this is about.
    while home
        .blueproof(&["get", "runs", "-o", "name"])
        .stdout
        .lines()
        .count()
        < 4
    {}
    home.restart_server();
    held.let_go();
    let followed = follower.end();
    assert_eq!(followed.code, Some(0), "{followed:?}");
    for answer in waiting.map(|run| run.end()) {
        assert_eq!(answer.code, Some(0), "{answer:?}");
    }
    let runs = home.blueproof(&["get", "runs", "-o", "json"]).json();
    let runs = runs["items"].as_array().expect("a list").clone();
    assert_eq!(runs.len(), 4, "{runs:?}");
    for run in runs {
        assert_eq!(run["attempts"].as_array().map(Vec::len), Some(1), "{run}");
    }
}

#[test]
fn a_scheduler_that_is_not_there_is_told_of_at_once() {
    let home = Home::served();
    let mut command = home.command(&["get", "runs"]);
    let nobody = home.path().join("nobody.sock");
    command.env("BLUEPROOF_SERVER", format!("unix:{}", nobody.display()));
    let output = command.output().expect("it starts");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("BP1005") && said.contains("nobody.sock"), "{said}");
}

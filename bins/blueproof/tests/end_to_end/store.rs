//! What `store` says of a real store with real runs, and what it removes.

use std::process::Command;

use crate::common::{Checkout, Home};

/// Returns a home in which a notebook ran so many times.
fn home(runs: usize) -> (Home, Checkout) {
    let home = Home::local("a store is looked after on the machine where it is");
    let checkout = Checkout::new(&["print(1)"], "");
    for _ in 0..runs {
        let run = home.blueproof(&["run", "-q", checkout.typed()]);
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    (home, checkout)
}

/// Loses the row of a run, as another program could.
fn lose_row(home: &Home, run: u64) {
    let code = "import sqlite3, sys; store = sqlite3.connect(sys.argv[1]); store.execute('DELETE FROM run WHERE id = ?', sys.argv[2:]); store.commit()";
    let done = Command::new("python3")
        .args(["-c", code])
        .arg(home.store())
        .arg(run.to_string())
        .status();
    assert!(done.expect("Python").success());
}

#[test]
fn a_store_is_whole_until_something_is_lost_and_is_repaired() {
    let (home, checkout) = home(1);
    let whole = home.blueproof(&["store", "check"]);
    assert_eq!(whole.code, Some(0), "{whole:?}");
    assert!(whole.stdout.starts_with("the store is whole: ") && whole.stdout.contains(", 1 run\n"));

    assert_eq!(home.blueproof(&["run", "-q", checkout.typed()]).code, Some(0));
    lose_row(&home, 1);
    let lost = home.blueproof(&["why", "r-1"]);
    assert_eq!(lost.code, Some(2), "{lost:?}");
    assert!(lost.stderr.contains("the row of r-1 is missing"), "{lost:?}");
    assert!(!lost.stderr.contains("retention") && lost.stderr.contains("`blueproof store repair`"));
    let broken = home.blueproof(&["store", "check"]);
    assert_eq!(broken.code, Some(1), "{broken:?}");
    assert!(broken.stderr.contains("BP0710") && broken.stderr.contains("the row of r-1 is missing"));
    let repaired = home.blueproof(&["store", "repair"]);
    assert_eq!(
        (repaired.code, repaired.stdout.contains("repaired 1 problem")),
        (Some(0), true)
    );
    assert_eq!(home.last()["state"]["ended"], "passed", "{:?}", home.last());
    assert_eq!(home.blueproof(&["store", "check"]).code, Some(0));
}

#[test]
fn runs_beyond_a_limit_are_removed_with_what_they_left_and_told_to_be_gone() {
    let (home, _checkout) = home(3);
    let prune =
        |more: &[&str]| home.blueproof(&[&["store", "prune", "--retention-runs", "1"], more].concat());
    let would = prune(&["--dry-run"]);
    assert_eq!(would.code, Some(0), "{would:?}");
    assert!(
        would.stdout.contains(" OUTPUT ") && would.stdout.contains(" TO REMOVE "),
        "{would:?}"
    );
    assert!(
        would.stderr.contains("would free ") && would.stderr.contains("Ki"),
        "{would:?}"
    );
    assert!(would.stdout.contains("r-1") && would.stdout.contains("r-2") && !would.stdout.contains("r-3"));
    assert!(home.run_folder("r-1").is_dir(), "nothing is removed yet");
    let as_json = prune(&["--dry-run", "-o", "json"]);
    let plan: serde_json::Value = serde_json::from_str(&as_json.stdout).expect("JSON");
    assert_eq!(
        (&plan["kind"], &plan["items"][1]["run"]),
        (&"PrunePlan".into(), &"r-2".into())
    );

    let pruned = prune(&[]);
    assert_eq!(pruned.code, Some(0), "{pruned:?}");
    assert!(pruned.stderr.contains("removed 2 runs"), "{pruned:?}");
    assert!(!home.run_folder("r-1").exists() && home.run_folder("r-3").is_dir());
    let gone = home.blueproof(&["describe", "run", "r-2"]);
    assert_eq!(gone.code, Some(2), "{gone:?}");
    assert!(gone.stderr.contains("r-2 is not kept any more"), "{gone:?}");
    assert!(gone.stderr.contains("limits of a retention"), "{gone:?}");
    let whole = home.blueproof(&["store", "check"]);
    assert!(
        whole.stdout.contains("3 runs, 2 of them not kept any more"),
        "{whole:?}"
    );
    assert_eq!(home.blueproof(&["get", "runs", "-o", "name"]).stdout, "r-3\n");
}

#[test]
fn of_a_run_whose_output_was_removed_the_run_itself_is_told() {
    let (home, _checkout) = home(1);
    let pruned = home.blueproof(&["store", "prune", "--retention-output", "0"]);
    assert_eq!(pruned.code, Some(0), "{pruned:?}");
    assert!(!home.run_folder("r-1").exists());
    let told = home.blueproof(&["describe", "run", "r-1"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    let logs = home.blueproof(&["logs", "r-1"]);
    assert!(
        logs.code != Some(0) && logs.stderr.contains("what was kept of r-1 is gone"),
        "{logs:?}"
    );
    let retried = home.blueproof(&["retry", "-q", "r-1"]);
    assert_eq!(retried.code, Some(0), "{retried:?}");
    assert!(home.run_folder("r-1").is_dir());
}

#[test]
fn a_store_that_was_named_and_is_not_there_is_an_error() {
    let home = Home::local("a scheduler has a store from its beginning");
    let missing = home.blueproof(&["--store", "/nope/x.db", "store", "check"]);
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(
        missing.stderr.contains("/nope/x.db") && missing.stderr.contains("hint"),
        "{missing:?}"
    );
    let mut usual = home.command(&["store", "check"]);
    let usual = usual.env_remove("BLUEPROOF_STORE").output().expect("it starts");
    assert_eq!(usual.status.code(), Some(0), "{usual:?}");
}

#[test]
fn limits_are_needed_and_must_make_sense() {
    let home = Home::new();
    for arguments in [
        &["store", "prune"][..],
        &["store", "prune", "--retention-age", "-1d"],
        &["store", "prune", "--retention-runs", "some"],
        &["store", "prune", "--retention-output", "lots"],
    ] {
        let refused = home.blueproof(arguments);
        assert_eq!(refused.code, Some(2), "{arguments:?}: {refused:?}");
    }
}

//! Several commands on one store: whoever leads, and whoever dies.

use std::fs;

use serde_json::json;

use crate::common::{Checkout, Held, Home};

#[test]
fn two_runs_at_once_on_one_store_both_pass() {
    let (home, checkout) = (Home::new(), Checkout::new(&["print('done')"], ""));
    let both = [(); 2].map(|()| home.start(&["run", checkout.typed()]));
    let mut ids: Vec<String> = both
        .into_iter()
        .map(|run| {
            let answer = run.end();
            assert_eq!(answer.code, Some(0), "{answer:?}");
            let verdict = answer.stdout.strip_prefix("PASS story ").expect("it passed");
            verdict.split(' ').next().expect("an id").to_owned()
        })
        .collect();
    ids.sort();
    assert_eq!(ids, ["r-1", "r-2"]);
}

#[test]
fn when_the_process_that_leads_is_killed_another_takes_over() {
    let home = Home::new();
    let (first, second) = (Held::new(&home, "first"), Held::new(&home, "second"));
    let leader = home.start(&["run", first.typed()]);
    home.until_printed("r-1", "first waits");
    let follower = home.start(&["run", second.typed()]);
    home.until_printed("r-2", "second waits");

    leader.kill_nine();
    first.let_go();
    second.let_go();

    assert_eq!(leader.end().code, None, "it was killed");
    let answer = follower.end();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.stdout.starts_with("PASS story r-2"), "{answer:?}");
    let answer = home.blueproof(&["wait", "r-1"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let run = home.blueproof(&["get", "run", "r-1", "-o", "json"]).json();
    assert_eq!(run["attempts"].as_array().map(Vec::len), Some(1), "it ran once");
    home.assert_nothing_goes_on();
}

#[test]
fn a_detached_run_ends_without_anybody_and_can_be_waited_for() {
    let home = Home::new();
    let held = Held::new(&home, "held");
    let detached = home.blueproof(&["run", held.typed(), "--detach"]);
    assert_eq!(
        (detached.code, detached.stdout.as_str()),
        (Some(0), "r-1\n"),
        "{detached:?}"
    );
    let pending = home.blueproof(&["wait", "last", "--timeout", "0s"]);
    assert_eq!(
        (pending.code, pending.stdout.as_str()),
        (Some(8), ""),
        "{pending:?}"
    );
    assert!(pending.stderr.contains("r-1 is not over yet ("), "{pending:?}");
    held.let_go();
    let waited = home.blueproof(&["wait", "last"]);
    assert_eq!(waited.code, Some(0), "{waited:?}");
    assert!(waited.stdout.starts_with("PASS story r-1"), "{waited:?}");
}

#[test]
fn a_detached_run_goes_on_when_the_process_that_led_at_its_start_is_done() {
    let home = Home::new();
    let (first, second) = (Held::new(&home, "first"), Held::new(&home, "second"));
    let leader = home.start(&["run", first.typed()]);
    home.until_printed("r-1", "first waits");
    assert_eq!(
        home.blueproof(&["run", second.typed(), "--detach"]).stdout,
        "r-2\n"
    );
    home.until_printed("r-2", "second waits");
    first.let_go();
    assert_eq!(leader.end().code, Some(0));

    second.let_go();

    let run = home.until_settled("r-2");
    assert_eq!(run["state"], json!({ "ended": "passed" }));
}

#[test]
fn another_process_can_cancel_a_run() {
    let home = Home::new();
    let held = Held::new(&home, "held");
    let run = home.start(&["run", held.typed()]);
    home.until_printed("last", "held waits");

    let cancelled = home.blueproof(&["cancel", "last"]);

    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    assert_eq!(run.end().code, Some(130));
    assert_eq!(home.last()["state"], json!({ "ended": "cancelled" }));
    home.assert_nothing_goes_on();
}

#[test]
fn several_runs_are_cancelled_at_once_and_none_where_one_is_not_known() {
    let home = Home::with(vec![("BLUEPROOF_LOCAL_CPU", "1".into())]);
    let (first, second) = (Held::new(&home, "first"), Held::new(&home, "second"));
    for held in [&first, &second] {
        let asked = home.blueproof(&["run", held.typed(), "--detach"]);
        assert_eq!(asked.code, Some(0), "{asked:?}");
    }
    home.until_printed("r-1", "first waits");
    let unknown = home.blueproof(&["cancel", "r-1", "r-9"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    let going_on = home.blueproof(&["get", "runs", "--status", "running", "-o", "name"]);
    assert_eq!(going_on.stdout, "r-1\n", "none was ended");

    let both = home.blueproof(&["cancel", "r-1", "r-2"]);

    assert_eq!(both.code, Some(0), "{both:?}");
    for run in ["r-1", "r-2"] {
        let ended = home.blueproof(&["get", "run", run, "-o", "json"]).json();
        assert_eq!(
            ended["state"],
            serde_json::json!({ "ended": "cancelled" }),
            "{run}"
        );
    }
}

#[test]
fn a_run_that_is_cancelled_before_it_had_an_attempt_has_a_report_that_says_so() {
    let home = Home::with(vec![("BLUEPROOF_LOCAL_CPU", "1".into())]);
    let (first, second) = (Held::new(&home, "first"), Held::new(&home, "second"));
    let leader = home.start(&["run", first.typed()]);
    home.until_printed("r-1", "first waits");
    assert_eq!(
        home.blueproof(&["run", second.typed(), "--detach"]).stdout,
        "r-2\n"
    );

    let cancelled = home.blueproof(&["cancel", "r-2"]);

    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    let junit = home.blueproof(&["report", "r-2", "--format", "junit"]);
    assert!(
        junit.stdout.contains("it ended before it had an attempt"),
        "{junit:?}"
    );
    let html = home.blueproof(&["report", "r-2", "--format", "html"]);
    assert!(html.stdout.contains("cancelled before any attempt"), "{html:?}");
    first.let_go();
    assert_eq!(leader.end().code, Some(0));
}

#[test]
fn who_stops_waiting_gets_the_run_as_it_stands() {
    let home = Home::new();
    let held = Held::new(&home, "held");
    let run = home.start(&["run", held.typed()]);
    home.until_printed("r-1", "held waits");

    let pending = home.blueproof(&["wait", "r-1", "--timeout", "0s", "-o", "json"]);
    assert_eq!(pending.code, Some(8), "{pending:?}");
    let (mut told, mut listed) = (pending.json(), home.last());
    for run in [&mut told, &mut listed] {
        // It is worked out again while the run goes on.
        let outlook = run.as_object_mut().expect("a run").remove("outlook");
        assert!(outlook.is_some(), "{run}");
    }
    assert_eq!(told, listed, "as `get run` prints it");
    let both = home.blueproof(&["wait", "r-1", "r-1", "--timeout", "0s", "-o", "json"]);
    assert_eq!(both.json()["items"][1]["state"], "running", "{both:?}");

    held.let_go();
    assert_eq!(run.end().code, Some(0));
}

#[test]
fn a_detached_retry_is_told_as_the_run_that_it_is_of() {
    let home = Home::new();
    let held = Held::new(&home, "held");
    held.let_go();
    assert_eq!(home.blueproof(&["run", held.typed()]).code, Some(0));
    held.hold();

    let again = home.blueproof(&["retry", "r-1", "--detach", "-o", "json"]);

    assert_eq!(again.code, Some(0), "{again:?}");
    let run = again.json();
    assert_eq!((&run["kind"], &run["id"]), (&json!("Run"), &json!("r-1")));
    assert_eq!(run["endedAt"], json!(null), "it is taken up: {run}");
    held.let_go();
    let run = home.until_settled("r-1");
    assert_eq!(run["attempts"][1]["id"], "r-1.2");
}

#[test]
fn a_retry_is_another_attempt_of_the_same_run() {
    let home = Home::new();
    let mended = home.path().join("mended");
    let cell = format!("import os\nassert os.path.exists({mended:?}), 'not mended yet'");
    let checkout = Checkout::new(&[&cell], "");
    let failed = home.blueproof(&["run", checkout.typed()]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    fs::write(mended, "").expect("a file");

    let again = home.blueproof(&["retry", "last"]);

    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stdout.starts_with("PASS story r-1"), "{again:?}");
    let run = home.last();
    let attempts: Vec<_> = run["attempts"].as_array().expect("attempts").iter().collect();
    let ids: Vec<_> = attempts.iter().map(|attempt| &attempt["id"]).collect();
    assert_eq!(ids, ["r-1.1", "r-1.2"]);
    assert_eq!(run["state"], json!({ "ended": "passed" }));
    assert!(run["failure"].is_null(), "{run}");
    assert!(again.stderr.contains("attempt 2 in queue"), "{again:?}");
    assert!(
        !again.stderr.contains("✗"),
        "what the first attempt came to is not told: {again:?}"
    );
}

#[test]
fn a_run_whose_queue_is_gone_is_not_tried_once_more() {
    let (home, checkout) = (Home::new(), Checkout::new(&["x = 1"], ""));
    assert_eq!(home.blueproof(&["run", "-q", checkout.typed()]).code, Some(0));
    let yaml = home.blueproof(&["quota", "get", "-o", "yaml"]).stdout;
    fs::write(
        home.path().join("queues.yaml"),
        yaml.replace("name: local", "name: other"),
    )
    .expect("a file");
    let applied = home.blueproof(&["quota", "apply", "-f", "queues.yaml"]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    let again = home.blueproof(&["retry", "r-1"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.stderr.contains("BP0802"), "{again:?}");
}

#[test]
fn logs_are_followed_until_the_run_is_over() {
    let home = Home::new();
    let held = Held::new(&home, "held");
    let run = home.start(&["run", held.typed()]);
    home.until_printed("last", "held waits");
    let follower = home.start(&["logs", "-f", "last"]);

    held.let_go();
    let followed = follower.end();

    assert_eq!(followed.code, Some(0), "{followed:?}");
    assert_eq!(followed.stdout, "── cell 1\nheld waits\nheld went on\n");
    assert_eq!(run.end().code, Some(0));
}

//! What the program answers, as people type and read it: `tests/cmd/*.trycmd`.
//!
//! `TRYCMD=overwrite cargo test -p blueproof --test cli` writes the answers anew; read the difference.

mod told;

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Output, Stdio},
};

use blueproof_core::{
    domain::{RunId, Verdict},
    engine,
    event::Event,
    ports::{Deliveries as _, DeliveryState, Leadership, ReceivedDelivery},
    sqlite::SqliteStore,
};
use blueproof_diagnostic::{Code, Diagnostic};
use told::{store, story, tell};
use trycmd::TestCases;

/// Returns the program, with nothing of whoever runs the tests.
fn blueproof(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blueproof"));
    command
        .args(arguments)
        .env_clear()
        .env("HOME", home)
        .current_dir(home);
    command.env("BLUEPROOF_STORE", home.join("blueproof.db"));
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns test cases that see nothing of whoever runs them.
fn cases(home: &Path) -> TestCases {
    let cases = TestCases::new();
    cases.env("HOME", home.display().to_string());
    for variable in [
        "BLUEPROOF_CONFIG",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
        "CLICOLOR_FORCE",
    ] {
        cases.env(variable, "");
    }
    cases.env("NO_COLOR", "1");
    cases.env("COLUMNS", "100");
    cases
}

#[tokio::test]
async fn runs_are_listed_described_and_explained() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("blueproof.db");
    drop(store(&path).await);
    let cases = cases(home.path());
    cases.env("BLUEPROOF_STORE", path.display().to_string());
    cases.case("tests/cmd/runs/*.trycmd").run();
}

#[tokio::test]
async fn queues_are_listed_described_and_compared() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("blueproof.db");
    drop(store(&path).await);
    let cases = cases(home.path());
    cases.env("BLUEPROOF_STORE", path.display().to_string());
    cases.case("tests/cmd/quota/*.trycmd").run();
}

#[tokio::test]
async fn queues_are_tried_out() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("blueproof.db");
    drop(store(&path).await);
    let cases = cases(home.path());
    cases.env("BLUEPROOF_STORE", path.display().to_string());
    cases.case("tests/cmd/simulate/*.trycmd").run();
}

/// Makes a store with a delivery of each kind.
async fn store_deliveries(path: &Path) {
    let store = SqliteStore::open(path).expect("a store");
    let unreadable = Diagnostic::error(Code::DeliveryUnreadable, "the delivery cannot be read");
    let given_up = DeliveryState::GivenUp {
        problem: Box::new(unreadable.because("expected value at line 1 column 1")),
    };
    let done = DeliveryState::Done {
        outcome: "looked at what it is about".into(),
    };
    let opened = r#"{"action": "opened", "number": 12, "repository": {"full_name": "kubeflow/trainer"}}"#;
    let told = [
        (
            "72d3162e-cc78-11e3-81ab-4c9367dc0958",
            "pull_request",
            opened,
            Some(done),
        ),
        (
            "0b989ba4-242f-11e5-81e1-c7b6966d2516",
            "issue_comment",
            "no JSON \u{1b}[2J",
            Some(given_up),
        ),
        ("7200a2b1-0000-11e3-81ab-4c9367dc0958", "push", "{}", None),
    ];
    for (id, event, body, state) in told {
        let delivery = ReceivedDelivery {
            id: id.into(),
            event: event.into(),
            received_at: story::at(0),
            body: body.into(),
        };
        store.receive(delivery).await.expect("a write");
        if let Some(state) = state {
            store
                .note_delivery(id, story::at(1), state)
                .await
                .expect("a write");
        }
    }
}

#[tokio::test]
async fn deliveries_are_listed_and_shown() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("blueproof.db");
    store_deliveries(&path).await;
    let cases = cases(home.path());
    cases.env("BLUEPROOF_STORE", path.display().to_string());
    cases.case("tests/cmd/webhook/*.trycmd").run();
}

#[test]
fn without_any_run_nothing_is_made() {
    let home = tempfile::tempdir().expect("a folder");
    let cases = cases(home.path());
    cases.env(
        "BLUEPROOF_STORE",
        home.path().join("below/blueproof.db").display().to_string(),
    );
    cases.case("tests/cmd/empty/*.trycmd").run();
    drop(cases);
    let left = std::fs::read_dir(home.path()).expect("it is there").count();
    assert_eq!(left, 0, "reading makes no file");
}

#[test]
fn before_the_first_run_the_usual_store_is_empty_and_is_said_to_be_missing() {
    let home = tempfile::tempdir().expect("a folder");
    let cases = cases(home.path());
    cases.env("BLUEPROOF_STORE", "");
    cases.case("tests/cmd/before/*.trycmd").run();
    drop(cases);
    let left = std::fs::read_dir(home.path()).expect("it is there").count();
    assert_eq!(left, 0, "reading makes no file");
}

#[test]
fn help_and_mistakes_are_answered() {
    let home = tempfile::tempdir().expect("a folder");
    let cases = cases(home.path());
    cases.env("BLUEPROOF_STORE", "/data/blueproof.db");
    cases.env("BLUEPROOF_ENVIRONMENTS", "/cache/environments");
    cases.case("tests/cmd/help/*.trycmd").run();
}

#[tokio::test]
async fn a_run_that_somebody_drives_is_not_said_to_be_left_alone() {
    let home = tempfile::tempdir().expect("a folder");
    let store = store(&home.path().join("blueproof.db")).await;
    let listed = |leading: &str| {
        let output: Output = blueproof(home.path(), &["get", "runs", "-o", "name"])
            .output()
            .expect("it starts");
        assert_eq!(text(&output.stdout).lines().count(), 6, "{leading}");
        text(&output.stderr)
    };
    let term = store.try_lead().await.expect("a lock").expect("it is free");
    assert_eq!(listed("while somebody drives"), "");
    drop(term);
    assert!(listed("afterwards").contains("BP0108"));
}

#[tokio::test]
async fn whoever_watches_is_told_that_nobody_drives() {
    let home = tempfile::tempdir().expect("a folder");
    drop(store(&home.path().join("blueproof.db")).await);
    for arguments in [&["get", "runs", "--watch"][..], &["logs", "-f", "r-3"]] {
        let mut watcher = blueproof(home.path(), arguments);
        watcher.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut watcher = watcher.spawn().expect("it starts");

        let stderr = BufReader::new(watcher.stderr.take().expect("it is piped"));
        let said = stderr.lines().next().expect("it goes on").expect("text");

        assert!(
            said.starts_with("warning[BP0108]: no process drives r-"),
            "{said}"
        );
        watcher.kill().expect("it runs until it is stopped");
        watcher.wait().expect("it ends");
    }
}

#[tokio::test]
async fn whoever_watches_sees_a_run_again_when_it_has_changed() {
    let home = tempfile::tempdir().expect("a folder");
    let store = store(&home.path().join("blueproof.db")).await;
    let (mut scheduler, _) = engine::replay(&store).await.expect("a read");
    let mut watcher = blueproof(home.path(), &["get", "run", "r-3", "--watch", "-o", "json"]);
    let mut watcher = watcher.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(watcher.stdout.take().expect("it is piped")).lines();
    let mut next_state = || {
        let line = lines.next().expect("it goes on").expect("text");
        let run: serde_json::Value = serde_json::from_str(&line).expect("a document a line");
        assert_eq!(run["id"], "r-3");
        run["state"].clone()
    };
    assert_eq!(next_state(), "running");
    let attempt = RunId(3).attempt(1);
    let finished = blueproof_core::testing::finished(attempt, Verdict::Passed);
    tell(&store, &mut scheduler, story::at(61), finished).await;
    tell(&store, &mut scheduler, story::at(61), Event::Released { attempt }).await;
    let mut last = next_state();
    while last == "running" {
        last = next_state();
    }
    assert_eq!(last, serde_json::json!({ "ended": "passed" }));
    watcher.kill().expect("it runs until it is stopped");
    watcher.wait().expect("it ends");
}

#[tokio::test]
async fn a_log_that_was_written_out_is_replayed_as_the_store_is() {
    let home = tempfile::tempdir().expect("a folder");
    drop(store(&home.path().join("blueproof.db")).await);
    let answer = |arguments: &[&str]| {
        let output = blueproof(home.path(), arguments).output().expect("it starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    std::fs::write(
        home.path().join("log.jsonl"),
        answer(&["get", "events", "-o", "jsonl"]),
    )
    .expect("room");
    std::fs::write(
        home.path().join("queues.yaml"),
        answer(&["quota", "get", "-o", "yaml"]),
    )
    .expect("room");
    for since in [&[][..], &["--since", "10m"]] {
        let whatif =
            |log: &[&str]| answer(&[&["whatif", "-f", "queues.yaml", "-o", "json"], log, since].concat());
        let of_store = whatif(&[]);
        assert!(of_store.contains("digest"), "{of_store}");
        assert_eq!(whatif(&["--log", "log.jsonl"]), of_store);
    }
}

#[test]
fn nobody_reading_the_answer_is_no_mistake() {
    let home = tempfile::tempdir().expect("a folder");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = blueproof(home.path(), &["explain"])
        .stdout(writer)
        .output()
        .expect("it starts");
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (Some(0), String::new())
    );
}

#[test]
fn an_answer_that_cannot_be_written_is() {
    let home = tempfile::tempdir().expect("a folder");
    let full = File::options()
        .write(true)
        .open("/dev/full")
        .expect("Linux has it");
    let output = blueproof(home.path(), &["explain"])
        .stdout(full)
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(3));
    assert!(
        text(&output.stderr).starts_with("error[BP0107]"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn colour_is_used_where_it_is_asked_for() {
    let home = tempfile::tempdir().expect("a folder");
    let shown = |color: &[&str], variable: (&str, &str)| {
        let mut command = blueproof(home.path(), &["why", "r-1"]);
        let output = command
            .args(color)
            .env(variable.0, variable.1)
            .output()
            .expect("it starts");
        text(&output.stderr).contains('\u{1b}')
    };
    assert!(!shown(&[], ("TERM", "xterm")), "a pipe has no colour");
    assert!(
        shown(&["--color", "always"], ("NO_COLOR", "1")),
        "a flag goes before the environment"
    );
    assert!(shown(&[], ("CLICOLOR_FORCE", "1")));
    assert!(!shown(&["--color", "never"], ("CLICOLOR_FORCE", "1")));
}

#[tokio::test]
async fn every_run_is_written_as_its_schema_says() {
    let home = tempfile::tempdir().expect("a folder");
    drop(store(&home.path().join("blueproof.db")).await);
    let json = |arguments: &[&str]| -> serde_json::Value {
        let output = blueproof(home.path(), arguments).output().expect("it starts");
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let keys = |object: &serde_json::Value| -> Vec<String> {
        object.as_object().expect("an object").keys().cloned().collect()
    };
    let schema = json(&["schema", "run"]);
    let items = json(&["get", "runs", "-o", "json"]);
    for run in items["items"].as_array().expect("a list") {
        let (written, known) = (keys(run), keys(&schema["properties"]));
        assert!(written.iter().all(|key| known.contains(key)), "{written:?}");
        let required = schema["required"].as_array().expect("a list").iter();
        let missing = required.filter(|key| run.get(key.as_str().expect("text")).is_none());
        assert_eq!(missing.count(), 0, "{written:?}");
        assert_eq!(run["kind"], schema["properties"]["kind"]["const"]);
        assert_eq!(run["apiVersion"], schema["properties"]["apiVersion"]["const"]);
    }
}

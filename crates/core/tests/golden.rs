//! Logs that earlier versions wrote: each is opened, comes to what it told of then, and is driven on to its end.

use std::{
    fs,
    path::{Path, PathBuf},
};

use blueproof_core::{
    action::Action,
    domain::{RunState, Verdict},
    engine,
    event::Event,
    ports::LoggedFact,
    scheduler::{Replay, Scheduler},
    sqlite::SqliteStore,
    testing::finished,
    view::RunView,
};
use blueproof_diagnostic::Code;
use rusqlite::{Connection, params};
use serde::Deserialize;
use serde_json::Value;

/// The tables of a store as the last binary made them that logged inputs alone.
const TABLES: &str = "
    CREATE TABLE event (seq INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE run (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, view TEXT NOT NULL) STRICT;
    CREATE TABLE command (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, at TEXT NOT NULL,
        taken INTEGER NOT NULL DEFAULT 0, body TEXT NOT NULL) STRICT;
    CREATE INDEX command_waiting ON command (id) WHERE taken = 0;
    CREATE INDEX event_quota ON event (seq) WHERE kind = 'quotaApplied';
    CREATE TABLE identity (only INTEGER PRIMARY KEY CHECK (only = 1), id TEXT NOT NULL, folder TEXT NOT NULL,
        secret BLOB NOT NULL) STRICT;
    INSERT INTO identity VALUES (1, 'golden', 'golden', randomblob(32));
    PRAGMA application_id = 0x42507266;
    PRAGMA user_version = 4;";

/// A line of a golden log: what was logged, or at its end each run as the store showed it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Input { at: String, event: Value },
    Fact(Box<LoggedFact>),
    View { view: Box<RunView> },
}

fn logs(version: &str) -> Vec<(PathBuf, Vec<Line>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(version);
    let entries = fs::read_dir(folder).expect("golden logs are there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a file");
        let lines = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line of a golden log"));
        let lines = lines.collect();
        (path, lines)
    };
    paths.into_iter().map(read).collect()
}

/// Makes a store as the last binary left it that logged inputs alone.
fn first_store(path: &Path, lines: &[Line]) {
    let connection = Connection::open(path).expect("a file");
    connection.execute_batch(TABLES).expect("tables");
    for line in lines {
        match line {
            Line::Input { at, event } => {
                let kind = event["kind"].as_str().expect("a kind");
                let insert = "INSERT INTO event (at, kind, body) VALUES (?1, ?2, ?3)";
                connection
                    .execute(insert, params![at, kind, event.to_string()])
                    .expect("a row");
            }
            Line::View { view } => {
                let body = serde_json::to_string(view).expect("plain data");
                let insert = "INSERT INTO run (id, key, view) VALUES (?1, ?2, ?3)";
                connection
                    .execute(insert, params![view.id.0, view.request_key.0, body])
                    .expect("a row");
            }
            Line::Fact(_) => panic!("a log of the first version has no decisions"),
        }
    }
}

fn views(lines: Vec<Line>) -> Vec<RunView> {
    let views = lines.into_iter().filter_map(|line| match line {
        Line::View { view } => Some(*view),
        Line::Input { .. } | Line::Fact(_) => None,
    });
    views.collect()
}

/// Drives on in a world that answers everything, until nothing remains to be done but to approve.
fn drive_on(scheduler: &mut Scheduler) {
    let mut now = scheduler.now();
    for _ in 0..2_000 {
        if scheduler.is_idle() {
            return;
        }
        let answers: Vec<_> = scheduler.outstanding().into_iter().filter_map(answer).collect();
        if answers.is_empty() {
            now = now.max(scheduler.next_wakeup().expect("something is still to come"));
            scheduler.handle(now, Event::Tick);
        }
        for event in answers {
            scheduler.handle(now, event);
            scheduler.check();
        }
    }
    panic!("it comes to no end");
}

fn answer(action: Action) -> Option<Event> {
    match action {
        Action::Reserve(reservation) => {
            let attempt = reservation.attempt;
            let place = "here".into();
            Some(Event::Reserved { attempt, place })
        }
        Action::Start(start) => Some(Event::Started {
            attempt: start.attempt,
        }),
        Action::Observe { attempt, .. } => Some(finished(attempt, Verdict::Passed)),
        Action::Stop { attempt, .. } => Some(finished(attempt, Verdict::Stopped)),
        Action::Release { attempt, .. } => Some(Event::Released { attempt }),
        Action::Report { view, .. } => Some(Event::Reported {
            run: view.id,
            attempts: u32::try_from(view.attempts.len()).expect("few"),
        }),
    }
}

#[tokio::test]
async fn a_log_of_the_first_version_is_migrated_without_loss_and_driven_on() {
    let folder = tempfile::tempdir().expect("a folder");
    for (golden, lines) in logs("v1") {
        let name = golden.file_stem().expect("a name").to_string_lossy().into_owned();
        let path = folder.path().join(&name).with_extension("db");
        first_store(&path, &lines);

        let store = SqliteStore::open(&path).expect("it is migrated");
        let (mut scheduler, _) = engine::replay(&store).await.expect("a replay");
        scheduler.check();
        assert_eq!(scheduler.decided(), 0, "{name}: what was decided is in the log");
        assert_eq!(scheduler.runs().collect::<Vec<_>>(), views(lines), "{name}");
        let running = scheduler
            .runs()
            .filter(|run| run.state == RunState::Running)
            .count();
        let observed = |action: &Action| matches!(action, Action::Observe { .. } | Action::Stop { .. });
        let left = scheduler.outstanding().into_iter().filter(observed).count();
        assert!(left >= running, "{name}: each running attempt is somebody's");
        drive_on(&mut scheduler);
    }
}

#[tokio::test]
async fn a_log_of_facts_comes_to_what_it_told_of() {
    for (golden, lines) in logs("v2") {
        let name = golden.display();
        let mut replay = Replay::new();
        for line in &lines {
            if let Line::Fact(logged) = line {
                replay.apply(logged.at, &logged.fact);
            }
        }
        let mut scheduler = replay.finish();
        scheduler.check();
        assert_eq!(scheduler.decided(), 0, "{name}");
        assert_eq!(scheduler.runs().collect::<Vec<_>>(), views(lines), "{name}");
        drive_on(&mut scheduler);
    }
}

#[test]
fn a_log_that_comes_out_otherwise_than_the_store_says_is_refused_and_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("b.db");
    let (_, lines) = logs("v1").swap_remove(0);
    first_store(&path, &lines);
    let connection = Connection::open(&path).expect("a file");
    let other =
        "UPDATE run SET view = json_set(view, '$.attempts', json('[]'), '$.state', 'queued') WHERE id = 1";
    connection.execute(other, []).expect("a row");
    drop(connection);

    let error = SqliteStore::open(&path).expect_err("it is another present");
    let told = error.diagnostic.causes.join("; ");
    assert!(told.contains("r-1 comes out otherwise"), "{told}");
    let connection = Connection::open(&path).expect("a file");
    let version: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .expect("a pragma");
    let events: i64 = connection
        .query_row("SELECT count(*) FROM event", [], |row| row.get(0))
        .expect("it is there");
    assert_eq!(version, 4);
    assert!(events > 0, "nothing was changed");
}

#[test]
fn a_log_with_a_gap_or_an_unknown_kind_is_refused_with_its_position_and_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let damages = [
        ("DELETE FROM event WHERE seq = 2", "fact 3 of the log"),
        (
            "UPDATE event SET kind = 'dreamt', body = '{\"kind\":\"dreamt\"}' WHERE seq = 2",
            "fact 2 of the log, of kind `dreamt`",
        ),
    ];
    for (number, (damage, told)) in damages.into_iter().enumerate() {
        let path = folder.path().join(format!("{number}.db"));
        let (_, lines) = logs("v1").swap_remove(0);
        first_store(&path, &lines);
        Connection::open(&path)
            .and_then(|damaged| damaged.execute(damage, []))
            .expect("a row");
        let before = fs::read(&path).expect("a file");
        let error = SqliteStore::open(&path).expect_err("it cannot be read");
        assert_eq!(error.diagnostic.code, Code::FactUnreadable);
        assert!(error.diagnostic.message.contains(told), "{error}");
        let connection = Connection::open(&path).expect("a file");
        let version: i64 = connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .expect("a pragma");
        assert_eq!(version, 4, "{} bytes stay", before.len());
    }
}

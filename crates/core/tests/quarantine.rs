//! Commands and news that the engine cannot work with: each is quarantined with its reason, and stops nothing else.

use std::{path::Path, sync::Arc};

use blueproof_core::{
    attempt::RecordKind,
    domain::{Cpus, RequestKey, Resources},
    engine::{Engine, Ports},
    event::{Event, StopMode},
    policy::Policy,
    ports::{Answer, Clock, Clusters, Command, Seq, Store},
    scheduler::{Scheduler, Step},
    sqlite::SqliteStore,
    testing::{self, FakeClock, FakeCluster, FakeReporter, MemoryStore},
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;
use rusqlite::{Connection, params};

fn two_cores() -> Resources {
    Resources {
        cpu: Cpus::cores(2),
        memory: "1Gi".parse().expect("an amount"),
        ..Resources::default()
    }
}

fn ports(store: &Arc<dyn Store>) -> Ports {
    Ports {
        store: store.clone(),
        clusters: Clusters::one(Arc::new(FakeCluster::passing(two_cores()))),
        reporters: vec![Arc::<FakeReporter>::default()],
        clock: Arc::<FakeClock>::default(),
    }
}

async fn engine(store: &Arc<dyn Store>) -> Engine {
    let engine = Engine::open(ports(store), Policy::local(two_cores())).await;
    engine.expect("a store that works")
}

async fn ask(store: &Arc<dyn Store>, key: &str) {
    let request = Box::new(testing::request(key, "nano-lm"));
    let now = FakeClock::default().now();
    let command = Command::Run { request };
    store.submit(now, command).await.expect("a store that works");
}

async fn answer(store: &Arc<dyn Store>, key: &str) -> Option<Answer> {
    let stored = store.command(&RequestKey(key.into())).await.expect("a read");
    stored.expect("it was left").answer
}

fn settled(runs: usize) -> impl Fn(&Scheduler) -> bool {
    move |scheduler| scheduler.runs().filter(|run| run.settled).count() == runs
}

fn problem(answer: Option<Answer>) -> Diagnostic {
    match answer {
        Some(Answer::Quarantined(problem)) => *problem,
        other => panic!("it is not quarantined: {other:?}"),
    }
}

/// Leaves a command as another version, or a disk that fails, would.
fn leave(path: &Path, key: &str, kind: &str, body: &str) {
    let connection = Connection::open(path).expect("a file");
    let insert = "INSERT INTO command (key, at, kind, body) VALUES (?1, '2026-01-02T03:04:05Z', ?2, ?3)";
    connection
        .execute(insert, params![key, kind, body])
        .expect("a row");
}

/// Decides as the scheduler does, but for the request of one key, in the middle of which it fails.
fn fails_on_the_second(scheduler: &mut Scheduler, now: Timestamp, input: Event) -> Step {
    let is_second = matches!(&input, Event::Requested { request } if request.key.0 == "second");
    let step = scheduler.handle(now, input);
    assert!(!is_second, "the test says so");
    step
}

/// Fails on each report that was written: news, which nobody left as a command.
fn fails_on_reports(scheduler: &mut Scheduler, now: Timestamp, input: Event) -> Step {
    assert!(!matches!(input, Event::Reported { .. }), "the test says so");
    scheduler.handle(now, input)
}

fn always_fails(_: &mut Scheduler, _: Timestamp, _: Event) -> Step {
    panic!("the test says so")
}

#[tokio::test]
async fn a_command_that_cannot_be_read_is_quarantined_and_stops_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("b.db");
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path).expect("a store"));
    leave(&path, "newer", "dream", r#"{"kind":"dream","key":"newer"}"#);
    ask(&store, "first").await;
    leave(&path, "garbage", "run", "\u{1}{");
    ask(&store, "last").await;

    engine(&store)
        .await
        .run_until(settled(2))
        .await
        .expect("it goes on");
    for (key, cause) in [
        ("newer", "unknown variant `dream`"),
        ("garbage", "line 1 column 1"),
    ] {
        let problem = problem(answer(&store, key).await);
        assert_eq!(problem.code, Code::CommandQuarantined);
        assert!(
            problem.message.contains(&format!("the command `{key}`")),
            "{problem:?}"
        );
        assert!(problem.causes[0].contains(cause), "{problem:?}");
    }
    assert_eq!(answer(&store, "first").await, Some(Answer::Taken));
    assert_eq!(store.commands().await.expect("a read"), [], "none waits");
    let kept: String = Connection::open(&path)
        .and_then(|file| {
            file.query_row("SELECT body FROM command WHERE key = 'newer'", [], |row| {
                row.get(0)
            })
        })
        .expect("it stays as it was left");
    assert!(kept.contains("dream"));
}

#[tokio::test]
async fn a_command_about_which_deciding_fails_is_quarantined_and_leaves_no_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("b.db");
    let stores: [Arc<dyn Store>; 2] = [
        Arc::new(MemoryStore::default()),
        Arc::new(SqliteStore::open(&path).expect("a store")),
    ];
    for store in stores {
        for key in ["first", "second", "third"] {
            ask(&store, key).await;
        }
        let mut engine = engine(&store).await.deciding_by(fails_on_the_second);
        engine.run_until(settled(2)).await.expect("it goes on");

        let problem = problem(answer(&store, "second").await);
        assert_eq!(
            (problem.code, &*problem.causes[0]),
            (Code::CommandQuarantined, "the test says so")
        );
        assert_eq!(engine.take_quarantined(), [problem], "and whoever leads is told");
        assert_eq!(engine.take_quarantined(), []);
        let keys: Vec<String> = engine.scheduler().runs().map(|run| run.request_key.0).collect();
        assert_eq!(keys, ["first", "third"]);
        engine.scheduler().check();
        let log = store.facts(Seq(0), 1000).await.expect("a read");
        let requested = log.iter().filter(|logged| logged.fact.kind() == "requested");
        assert_eq!(requested.count(), 2, "nothing of it is in the log");
        let (again, _) = blueproof_core::engine::replay(&*store).await.expect("a replay");
        assert!(
            again.runs().eq(engine.scheduler().runs()),
            "the log tells what is known"
        );
    }
}

#[tokio::test]
async fn news_about_which_deciding_fails_are_quarantined_and_stop_nothing_else() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    ask(&store, "first").await;
    let mut engine = engine(&store).await.deciding_by(fails_on_reports);
    let ended = |scheduler: &Scheduler| scheduler.runs().any(|run| run.ended_at.is_some());
    engine.run_until(ended).await.expect("it goes on");
    ask(&store, "second").await;
    let both_ended =
        |scheduler: &Scheduler| scheduler.runs().filter(|run| run.ended_at.is_some()).count() == 2;
    engine.run_until(both_ended).await.expect("it goes on");
    engine.scheduler().check();
    let told = engine.take_quarantined();
    assert!(
        told.iter().all(|problem| problem.message.contains("`reported`")),
        "{told:?}"
    );
    assert!(!told.is_empty());
}

#[tokio::test]
async fn where_every_step_fails_nothing_is_decided_and_no_command_is_blamed() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    ask(&store, "first").await;
    let mut engine = engine(&store).await.deciding_by(always_fails);
    let error = engine
        .run_until(settled(1))
        .await
        .expect_err("nothing can be decided");
    assert_eq!(error.diagnostic.code, Code::DecidingFailed);
    assert_eq!(
        answer(&store, "first").await,
        None,
        "it waits for a binary that can"
    );
}

#[test]
fn answers_and_records_of_earlier_versions_are_read_under_their_names_of_then() {
    let answer = r#"{"setAside":{"severity":"error","code":"BP0707","message":"m"}}"#;
    let answer: Answer = serde_json::from_str(answer).expect("it is read");
    assert!(matches!(answer, Answer::Quarantined(_)));
    let record: RecordKind =
        serde_json::from_str(r#"{"kind":"devicesUnfit","devices":{}}"#).expect("it is read");
    assert!(matches!(record, RecordKind::DevicesUnhealthy { .. }));
    let how: StopMode = serde_json::from_str(r#""end""#).expect("it is read");
    assert_eq!(how, StopMode::Terminate);
}

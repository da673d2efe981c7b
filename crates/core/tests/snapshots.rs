//! What a scheduler had come to, kept beside the log: opening begins there, and what cannot be trusted is passed over.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use blueproof_core::{
    domain::{Actor, Resources, RunId, Verdict},
    engine::{self, Engine, Ports},
    event::{Call, Event, StopMode},
    fact::Fact,
    policy::Policy,
    ports::{Batch, CallError, Clusters, Command, LoggedFact, Retry, Seq, Store, StoreClient},
    scheduler::{Replay, SNAPSHOT_VERSION, Scheduler, Snapshot},
    sqlite::SqliteStore,
    testing::{FakeClock, FakeCluster, FakeReporter, MemoryStore, finished, request},
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::objects::{AdmissionFairSharing, AdmissionMode, LocalQueueUsers};
use jiff::{SignedDuration, Timestamp};
use rusqlite::Connection;
use serde_json::Value;

fn quota() -> Resources {
    Resources {
        cpu: blueproof_core::domain::Cpus::cores(2),
        memory: "8Gi".parse().expect("an amount"),
        ..Resources::default()
    }
}

fn requested(key: &str) -> Event {
    Event::Requested {
        request: Box::new(request(key, "nano-lm")),
    }
}

/// Returns a scheduler that was asked for these runs, and the facts of it.
fn asked(keys: &[&str]) -> (Scheduler, Vec<(Timestamp, Fact)>) {
    let mut scheduler = Scheduler::new(Policy::local(Resources::default()));
    let policy = Box::new(Policy::local(quota()));
    let inputs = keys.iter().map(|key| requested(key));
    let mut facts = Vec::new();
    for input in [Event::Configured { policy }].into_iter().chain(inputs) {
        let step = scheduler.handle(Timestamp::UNIX_EPOCH, input);
        facts.extend(step.facts.into_iter().map(|fact| (step.at, fact)));
    }
    (scheduler, facts)
}

/// Appends facts, and returns where the log ends then.
async fn append(store: &dyn Store, after: Seq, facts: Vec<(Timestamp, Fact)>) -> Seq {
    let batch = Batch {
        facts,
        ..Batch::default()
    };
    store.append(after, batch).await.expect("a store that works")
}

async fn put(store: &dyn Store, at: Seq, version: u32, bytes: &[u8]) {
    let put = store.put_snapshot(at, version, bytes.to_vec());
    put.await.expect("a store that works");
}

/// Returns by which request keys runs are known once the store is opened.
async fn known(store: &dyn Store) -> Vec<String> {
    let (scheduler, policy) = engine::replay(store).await.expect("a store that works");
    assert_eq!(policy, Some(Policy::local(quota())));
    assert_eq!(scheduler.decided(), 0);
    scheduler.runs().map(|run| run.request_key.0).collect()
}

/// A log of one run, and a snapshot that says that there were two: whoever begins with it can be told from whoever does not.
struct Marked {
    store: MemoryStore,
    last: Seq,
    snapshot: Vec<u8>,
}

impl Marked {
    async fn new() -> Self {
        let store = MemoryStore::default();
        let (_, facts) = asked(&["a"]);
        let last = append(&store, Seq(0), facts).await;
        let (two, _) = asked(&["a", "only in the snapshot"]);
        let snapshot = two.snapshot().to_bytes();
        Self {
            store,
            last,
            snapshot,
        }
    }
}

#[tokio::test]
async fn opening_begins_at_the_snapshot_and_goes_on_with_the_facts_after_it() {
    let Marked {
        store,
        last,
        snapshot,
    } = Marked::new().await;
    assert_eq!(known(&store).await, ["a"]);
    put(&store, last, SNAPSHOT_VERSION, &snapshot).await;
    append(
        &store,
        last,
        vec![(Timestamp::UNIX_EPOCH, Fact::Input(requested("c")))],
    )
    .await;
    assert_eq!(known(&store).await, ["a", "only in the snapshot", "c"]);
}

#[tokio::test]
async fn a_snapshot_that_is_of_another_version_or_cut_off_or_contradicts_itself_is_passed_over() {
    let Marked {
        store,
        last,
        snapshot,
    } = Marked::new().await;
    put(&store, last, SNAPSHOT_VERSION + 1, &snapshot).await;
    assert_eq!(known(&store).await, ["a"]);
    put(&store, last, SNAPSHOT_VERSION, &snapshot[..snapshot.len() / 2]).await;
    assert_eq!(known(&store).await, ["a"]);

    let mut value: Value = serde_json::from_slice(&snapshot).expect("it is JSON");
    value["runs"].as_array_mut().expect("a list").pop();
    let without = serde_json::to_vec(&value).expect("plain data");
    put(&store, last, SNAPSHOT_VERSION, &without).await;
    assert_eq!(known(&store).await, ["a"], "one is in the queue and is no run");

    let mut value: Value = serde_json::from_slice(&snapshot).expect("it is JSON");
    let workload = &mut value["queue"]["admission"]["workloads"][0]["workload"];
    workload["cluster_queue"] = "nowhere".into();
    let elsewhere = serde_json::to_vec(&value).expect("plain data");
    put(&store, last, SNAPSHOT_VERSION, &elsewhere).await;
    assert_eq!(known(&store).await, ["a"], "one is in a queue that is not there");
}

#[tokio::test]
async fn a_damaged_snapshot_of_a_file_is_passed_over_for_the_one_before_and_then_for_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("b.db");
    let store = SqliteStore::open(&path).expect("a store");
    let (_, facts) = asked(&["a"]);
    let last = append(&store, Seq(0), facts).await;
    for (at, mark) in [(Seq(last.0 - 1), "older"), (last, "newer")] {
        let (marked, _) = asked(&["a", mark]);
        put(&store, at, SNAPSHOT_VERSION, &marked.snapshot().to_bytes()).await;
    }
    let change = |sql: &str, at: Seq| {
        let other = Connection::open(&path).expect("a file");
        assert_eq!(other.execute(sql, [at.0]).expect("a change"), 1);
    };
    assert_eq!(known(&store).await, ["a", "newer"]);
    change(
        "UPDATE snapshot SET body = substr(body, 1, length(body) - 1) WHERE seq = ?1",
        last,
    );
    let before = known(&store).await;
    assert_eq!(before[..2], ["a", "older"], "it was cut off");
    change(
        "UPDATE snapshot SET body = CAST(replace(CAST(body AS TEXT), 'older', 'other') AS BLOB) WHERE seq = ?1",
        Seq(last.0 - 1),
    );
    assert_eq!(known(&store).await, ["a"], "its checksum is another's");
}

#[tokio::test]
async fn an_engine_writes_the_state_down_every_so_many_facts_and_the_next_one_begins_there() {
    let store = Arc::new(MemoryStore::default());
    let ports = Ports {
        store: store.clone(),
        clusters: Clusters::one(Arc::new(FakeCluster::passing(quota()))),
        reporters: vec![Arc::new(FakeReporter::default())],
        clock: Arc::new(FakeClock::default()),
    };
    // Facts that change nothing: nobody knows of that run.
    let nothing = Event::Reported {
        run: RunId(99),
        attempts: 1,
    };
    let facts = vec![(Timestamp::UNIX_EPOCH, Fact::Input(nothing)); 4_094];
    append(&*store, Seq(0), facts).await;
    let newest = async || store.snapshot(SNAPSHOT_VERSION).await.expect("a read");
    assert_eq!(newest().await, None);
    // Its own facts, of the policy and of what the cluster has, are the last ones that it takes.
    let engine = Engine::open(ports.clone(), Policy::local(quota()));
    drop(engine.await.expect("a store that works"));
    let (at, bytes) = newest().await.expect("it was written down");
    assert_eq!(at, Seq(4_096));
    let snapshot = Snapshot::from_bytes(&bytes).expect("it is one");
    let replay = Replay::from_snapshot(snapshot).expect("it is whole");
    assert_eq!(replay.scheduler().policy(), Some(&Policy::local(quota())));

    let request = Box::new(request("a", "nano-lm"));
    let submitted = store.submit(Timestamp::UNIX_EPOCH, Command::Run { request });
    submitted.await.expect("a store that works");
    let engine = Engine::open(ports, Policy::local(quota()));
    let mut engine = engine.await.expect("a store that works");
    let done = |scheduler: &Scheduler| scheduler.runs().any(|run| run.settled);
    engine.run_until(done).await.expect("a store that works");
    assert_eq!(
        newest().await.map(|(at, _)| at),
        Some(Seq(4_096)),
        "few facts came"
    );
    assert_eq!(known(&*store).await, ["a"]);
}

#[tokio::test]
async fn a_snapshot_that_cannot_be_written_or_read_keeps_nothing_from_going_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("b.db");
    let store = Arc::new(SqliteStore::open(&path).expect("a store"));
    let ports = Ports {
        store: store.clone(),
        clusters: Clusters::one(Arc::new(FakeCluster::passing(quota()))),
        reporters: vec![Arc::new(FakeReporter::default())],
        clock: Arc::new(FakeClock::default()),
    };
    let nothing = Event::Reported {
        run: RunId(99),
        attempts: 1,
    };
    let facts = vec![(Timestamp::UNIX_EPOCH, Fact::Input(nothing)); 4_090];
    append(&*store, Seq(0), facts).await;
    let engine = Engine::open(ports, Policy::local(quota()));
    let mut engine = engine.await.expect("a store that works");
    let other = Connection::open(&path).expect("a file");
    other.execute_batch("DROP TABLE snapshot").expect("a change");

    let request = Box::new(request("a", "nano-lm"));
    let submitted = store.submit(Timestamp::UNIX_EPOCH, Command::Run { request });
    submitted.await.expect("a store that works");
    let done = |scheduler: &Scheduler| scheduler.runs().any(|run| run.settled);
    engine
        .run_until(done)
        .await
        .expect("the log takes what is decided");
    assert!(
        store.snapshot(SNAPSHOT_VERSION).await.is_err(),
        "there is no table"
    );
    let last = store.facts(Seq(4_096), 100).await.expect("a read");
    assert!(!last.is_empty(), "it was to be written down on the way");
    assert_eq!(known(&*store).await, ["a"]);
}

/// Adds each place of a value with the type of what is there.
fn shape(value: &Value, place: &str, shapes: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(items) => {
            for item in items {
                shape(item, &format!("{place}[]"), shapes);
            }
            "list"
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                shape(field, &format!("{place}.{name}"), shapes);
            }
            "object"
        }
    };
    shapes.insert(format!("{place} {kind}"));
}

fn add_shape(scheduler: &Scheduler, shapes: &mut BTreeSet<String>) {
    let value = serde_json::to_value(scheduler.snapshot()).expect("plain data");
    shape(&value, "", shapes);
}

fn failed(call: Call, retry: Retry) -> Event {
    let diagnostic = Box::new(Diagnostic::error(Code::AttemptLost, "it happened"));
    let error = Box::new(CallError { diagnostic, retry });
    Event::CallFailed { call, error }
}

/// A scheduler whose queue goes by what each author had, and of which calls failed: what the golden logs do not have.
fn by_usage() -> Scheduler {
    let mut objects = Policy::local(quota()).default_objects();
    let queue = objects.cluster_queues.get_mut("local").expect("the default one");
    queue.admission_mode = AdmissionMode::UsageBasedAdmissionFairSharing;
    let local = objects.local_queues.get_mut("local").expect("the default one");
    local.users = LocalQueueUsers::Author;
    objects.admission_fair_sharing = Some(AdmissionFairSharing {
        usage_half_life_time: SignedDuration::from_hours(1),
        usage_sampling_interval: SignedDuration::from_mins(5),
        resource_weights: [("cpu".to_owned(), 1.0)].into(),
    });
    let by = Actor::Local("ada".into());
    let (mut scheduler, _) = asked(&[]);
    let objects = Box::new(objects);
    scheduler.handle(Timestamp::UNIX_EPOCH, Event::QuotaApplied { objects, by });
    let mut with_parameters = request("b", "nano-lm");
    with_parameters.job.work = serde_json::json!({ "parameters": { "epochs": 3 } });
    let with_parameters = Event::Requested {
        request: Box::new(with_parameters),
    };
    let (by, how) = (Actor::Local("ada".into()), StopMode::Terminate);
    let passed = RunId(2).attempt(1);
    for input in [
        requested("a"),
        failed(Call::Reserve(RunId(1).attempt(1)), Retry::Later),
        with_parameters,
        Event::Reserved {
            attempt: passed,
            place: "here".into(),
        },
        Event::Started { attempt: passed },
        finished(passed, Verdict::Passed),
        requested("c"),
        Event::CancelRequested {
            run: RunId(3),
            by,
            how,
            via: None,
        },
        failed(Call::Report(RunId(2)), Retry::Never),
    ] {
        scheduler.handle(Timestamp::UNIX_EPOCH, input);
    }
    scheduler
}

/// The golden logs of facts lead everywhere, and replaying them decides nothing: whatever rules change, the shape stays.
#[test]
fn what_a_snapshot_looks_like_changes_only_with_its_version() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut shapes = BTreeSet::new();
    add_shape(&by_usage(), &mut shapes);
    for entry in fs::read_dir(golden.join("v2")).expect("golden logs are there") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("a file");
        let mut replay = Replay::new();
        // Behind the facts are the runs as they were shown.
        let facts = text.lines().map_while(|line| serde_json::from_str(line).ok());
        for LoggedFact { at, fact, .. } in facts {
            replay.apply(at, &fact);
            add_shape(replay.scheduler(), &mut shapes);
        }
    }
    let mut told = format!("version {SNAPSHOT_VERSION}\n");
    told.extend(shapes.into_iter().map(|shape| shape + "\n"));

    let path = golden.join("snapshot.shape");
    if std::env::var_os("WRITE_SNAPSHOT_SHAPE").is_some() {
        fs::write(&path, &told).expect("a file");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let (told, expected): (BTreeSet<_>, BTreeSet<_>) = (told.lines().collect(), expected.lines().collect());
    let changes: Vec<_> = told.symmetric_difference(&expected).collect();
    assert!(
        changes.is_empty(),
        "what a snapshot has is another: raise SNAPSHOT_VERSION, and run this once with WRITE_SNAPSHOT_SHAPE=1\n{changes:#?}"
    );
}

#[test]
fn a_clock_that_goes_back_after_a_quiet_time_moves_limits_in_a_replay_as_it_did_then() {
    let at = |seconds| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
    let (mut scheduler, mut facts) = asked(&[]);
    for key in ["a", "b", "c"] {
        let mut request = request(key, "nano-lm");
        request.job.timeouts.queue = Some(SignedDuration::from_secs(300));
        let request = Box::new(request);
        let step = scheduler.handle(at(0), Event::Requested { request });
        facts.extend(step.facts.into_iter().map(|fact| (step.at, fact)));
    }
    let quiet = scheduler.handle(at(16), Event::Tick);
    assert_eq!(quiet.facts, [], "what time it was then is in no fact");
    let step = scheduler.handle(at(-400), Event::Tick);
    facts.extend(step.facts.into_iter().map(|fact| (step.at, fact)));

    let mut replay = Replay::new();
    for (at, fact) in &facts {
        replay.apply(*at, fact);
    }
    let replayed = replay.finish();
    assert_eq!(scheduler.next_wakeup(), Some(at(300 - 416)));
    assert_eq!(replayed.next_wakeup(), scheduler.next_wakeup());
}

//! The engine with every outside thing faked, and every backend of core held to its contract.

use std::sync::{Arc, Mutex};

use blueproof_core::{
    domain::{Ending, RequestKey, RunId, RunState, Verdict},
    engine::{Engine, Ports},
    fact::Fact,
    policy::Policy,
    ports::{CallError, Clock, Clusters, Command, Leadership, Seq, Store, StoreClient},
    scheduler::Scheduler,
    sqlite::SqliteStore,
    testing::{
        self, FakeClock, FakeCluster, FakeReporter, MemoryDeliveries, MemoryStore, contract, two_cores,
    },
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::{SignedDuration, Timestamp};
use rusqlite::Connection;

struct World {
    store: Arc<dyn Store>,
    cluster: Arc<FakeCluster>,
    reporter: Arc<FakeReporter>,
    clock: Arc<FakeClock>,
}

impl World {
    fn new(cluster: FakeCluster) -> Self {
        Self {
            store: Arc::new(MemoryStore::default()),
            cluster: Arc::new(cluster),
            reporter: Arc::default(),
            clock: Arc::default(),
        }
    }

    async fn engine(&self) -> Engine {
        let ports = Ports {
            store: self.store.clone(),
            clusters: Clusters::one(self.cluster.clone()),
            reporters: vec![self.reporter.clone()],
            clock: self.clock.clone(),
        };
        Engine::open(ports, Policy::local(two_cores()))
            .await
            .expect("a store that works")
    }

    async fn ask(&self, key: &str) {
        let request = Box::new(testing::request(key, "nano-lm"));
        self.store
            .submit(self.clock.now(), Command::Run { request })
            .await
            .expect("a store that works");
    }
}

fn settled(runs: usize) -> impl Fn(&Scheduler) -> bool {
    move |scheduler| scheduler.runs().filter(|run| run.settled).count() == runs
}

#[tokio::test]
async fn a_wish_becomes_a_report() {
    let world = World::new(FakeCluster::passing(two_cores()));
    world.ask("a").await;
    let mut engine = world.engine().await;
    engine.run_until(settled(1)).await.expect("a store that works");
    let report = world.reporter.report_of(RunId(1)).expect("it is reported");
    assert_eq!(report.state, RunState::Ended(Ending::Passed));
    assert_eq!(world.cluster.left(), []);
    let stored = world
        .store
        .run_of(&RequestKey("a".into()))
        .await
        .expect("a read")
        .expect("it is stored");
    assert!(stored.settled);
    assert_eq!(world.store.commands().await.expect("a read"), []);
}

#[tokio::test]
async fn two_engines_at_once_lose_no_request_and_mix_up_no_run() {
    let world = World::new(FakeCluster::passing(two_cores()));
    let mut engines = [world.engine().await, world.engine().await];
    for (nth, key) in ["a", "b", "c", "d", "e", "f"].into_iter().enumerate() {
        world.ask(key).await;
        let engine = &mut engines[nth % 2];
        while let Err(error) = engine.run_until(settled(nth + 1)).await {
            assert!(error.is_overtaken(), "{error}");
            *engine = world.engine().await;
        }
    }
    for (key, number) in ["a", "b", "c", "d", "e", "f"].into_iter().zip(1..) {
        let run = world.store.run_of(&RequestKey(key.into())).await.expect("a read");
        let run = run.expect("no request is lost");
        assert_eq!((run.id, run.attempts.len()), (RunId(number), 1), "{key}");
    }
    let log = world.store.facts(Seq(0), 1000).await.expect("a read");
    let reserved = log.iter().filter(|logged| logged.fact.kind() == "reserved");
    assert_eq!(reserved.count(), 6, "nothing is decided twice");
}

#[tokio::test]
async fn an_engine_that_dies_is_followed_by_one_that_takes_over() {
    let world = World::new(FakeCluster::waiting(two_cores()));
    for key in ["a", "b", "c"] {
        world.ask(key).await;
    }
    let mut first = world.engine().await;
    let running = |count| {
        move |scheduler: &Scheduler| {
            scheduler
                .runs()
                .filter(|run| run.state == RunState::Running)
                .count()
                == count
        }
    };
    first.run_until(running(2)).await.expect("a store that works");
    drop(first);
    world
        .cluster
        .finish(RunId(1).attempt(1), testing::outcome(Verdict::Passed));

    let mut second = world.engine().await;
    let third_runs = |scheduler: &Scheduler| {
        scheduler
            .view(RunId(3))
            .is_some_and(|view| view.state == RunState::Running)
    };
    second.run_until(third_runs).await.expect("a store that works");
    for run in [2, 3] {
        world
            .cluster
            .finish(RunId(run).attempt(1), testing::outcome(Verdict::Passed));
    }
    second.run_until(settled(3)).await.expect("a store that works");
    for run in 1..=3 {
        assert_eq!(
            world.cluster.starts(RunId(run).attempt(1)),
            1,
            "r-{run} started once"
        );
    }
}

#[tokio::test]
async fn an_engine_that_dies_after_any_event_changes_nothing_in_the_end() {
    let quiet = World::new(FakeCluster::passing(two_cores()));
    quiet.ask("a").await;
    quiet
        .engine()
        .await
        .run_until(settled(1))
        .await
        .expect("a store that works");
    let expected = quiet.store.run(RunId(1)).await.expect("a read");
    let facts = quiet.store.facts(Seq(0), 100).await.expect("a read");
    let inputs = facts
        .iter()
        .filter(|logged| matches!(logged.fact, Fact::Input(_)));
    for survives in 1..=inputs.count() {
        let world = World::new(FakeCluster::passing(two_cores()));
        world.ask("a").await;
        let mut engine = world.engine().await;
        let mut seen = 0;
        let dies = |_: &Scheduler| {
            seen += 1;
            seen > survives
        };
        engine.run_until(dies).await.expect("a store that works");
        drop(engine);
        world
            .engine()
            .await
            .run_until(settled(1))
            .await
            .expect("a store that works");
        assert_eq!(
            world.store.run(RunId(1)).await.expect("a read"),
            expected,
            "after {survives}"
        );
        assert_eq!(world.cluster.starts(RunId(1).attempt(1)), 1);
        assert_eq!(world.cluster.left(), []);
    }
}

/// A clock that leaps to whatever is waited for.
#[derive(Default)]
struct LeapingClock(Mutex<Timestamp>);

#[async_trait::async_trait]
impl Clock for LeapingClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().expect("nobody panics with it")
    }

    async fn sleep_until(&self, until: Timestamp) {
        // Once, so that what is ready at the same moment is seen before the leap.
        tokio::task::yield_now().await;
        let mut now = self.0.lock().expect("nobody panics with it");
        *now = until.max(*now);
    }
}

/// How a run with one failing call came out, and whether a failed call and a tick were part of it.
type Came = (RunState, bool, usize, bool);

/// Tells the story of a call that fails once, to an engine that dies after so many looks, and to the next one.
async fn one_call_fails_and_the_engine_dies_after(survives: usize) -> Came {
    let world = World::new(FakeCluster::passing(two_cores()));
    let trouble = Diagnostic::error(Code::AttemptLost, "not just now");
    world.cluster.fail_next(CallError::later(trouble));
    world.ask("a").await;
    let clock = Arc::new(LeapingClock::default());
    let open = async || {
        let (store, cluster, reporter) = (world.store.clone(), world.cluster.clone(), world.reporter.clone());
        let clock = clock.clone();
        let ports = Ports {
            store,
            clusters: Clusters::one(cluster),
            reporters: vec![reporter],
            clock,
        };
        Engine::open(ports, Policy::local(two_cores()))
            .await
            .expect("a store that works")
    };
    let mut engine = open().await;
    let mut seen = 0;
    let dies = |scheduler: &Scheduler| {
        seen += 1;
        seen > survives || settled(1)(scheduler)
    };
    engine.run_until(dies).await.expect("a store that works");
    drop(engine);
    open()
        .await
        .run_until(settled(1))
        .await
        .expect("a store that works");
    assert_eq!(world.cluster.starts(RunId(1).attempt(1)), 1, "after {survives}");
    assert_eq!(world.cluster.left(), [], "after {survives}");
    let facts = world.store.facts(Seq(0), 100).await.expect("a read");
    let has = |kind: &str| facts.iter().any(|logged| logged.fact.kind() == kind);
    let view = world
        .store
        .run(RunId(1))
        .await
        .expect("a read")
        .expect("it is known");
    (
        view.state,
        view.settled,
        view.attempts.len(),
        has("callFailed") && has("callRepeated"),
    )
}

#[tokio::test]
async fn an_engine_that_dies_after_a_failed_call_or_a_tick_changes_nothing_in_the_end() {
    let undisturbed = one_call_fails_and_the_engine_dies_after(usize::MAX).await;
    assert_eq!(undisturbed, (RunState::Ended(Ending::Passed), true, 1, true));
    for survives in 1..=12 {
        let (state, is_settled, attempts, _) = one_call_fails_and_the_engine_dies_after(survives).await;
        let came = (state, is_settled, attempts);
        assert_eq!(
            came,
            (undisturbed.0, undisturbed.1, undisturbed.2),
            "after {survives}"
        );
    }
}

#[tokio::test]
async fn a_call_that_fails_once_is_made_again_when_its_time_has_come() {
    let world = World::new(FakeCluster::passing(two_cores()));
    let trouble = Diagnostic::error(Code::AttemptLost, "not just now");
    world.cluster.fail_next(CallError::later(trouble));
    world.ask("a").await;
    let mut engine = world.engine().await;
    let failed = |scheduler: &Scheduler| scheduler.next_wakeup().is_some();
    engine.run_until(failed).await.expect("a store that works");
    world.clock.advance(SignedDuration::from_secs(1));
    engine.run_until(settled(1)).await.expect("a store that works");
    assert_eq!(
        world.reporter.report_of(RunId(1)).expect("reported").state,
        RunState::Ended(Ending::Passed)
    );
}

#[tokio::test]
async fn the_store_in_memory_keeps_the_contract() {
    contract::store_keeps_its_promises(&MemoryStore::default()).await;
    contract::deliveries_keep_their_promises(&MemoryDeliveries::default()).await;
}

#[tokio::test]
async fn the_store_in_sqlite_keeps_the_contract() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("b.db")).expect("a store");
    contract::store_keeps_its_promises(&store).await;
    contract::deliveries_keep_their_promises(&store).await;
}

#[tokio::test]
async fn the_cluster_in_memory_keeps_the_contract() {
    let passing = testing::start_action(1, testing::request("a", "nano-lm"));
    let endless = testing::start_action(2, testing::request("b", "nano-lm"));
    let unstarted = testing::start_action(3, testing::request("c", "nano-lm"));
    let cluster = FakeCluster::waiting(two_cores());
    let ends = async {
        cluster
            .until_running(|running| running.contains(&passing.attempt))
            .await;
        cluster.finish(passing.attempt, testing::outcome(Verdict::Passed));
    };
    tokio::join!(
        ends,
        contract::cluster_keeps_its_promises(&cluster, &passing, &endless, &unstarted)
    );
}

#[tokio::test]
async fn projections_can_be_made_again_from_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("b.db");
    let store = Arc::new(SqliteStore::open(&path).expect("a store"));
    let world = World {
        store: store.clone(),
        ..World::new(FakeCluster::passing(two_cores()))
    };
    world.ask("a").await;
    world
        .engine()
        .await
        .run_until(settled(1))
        .await
        .expect("a store that works");
    let before = store.runs(10).await.expect("a read");
    drop(Connection::open(&path).and_then(|file| file.execute("DELETE FROM run", [])));
    store.repair(|_, _| ()).await.expect("a store that works");
    assert_eq!(store.runs(10).await.expect("a read"), before);
    assert_eq!(before.len(), 1);
}

#[tokio::test]
async fn one_process_leads_at_a_time_and_others_read_and_wish() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("b.db");
    let (leader, other) = (
        SqliteStore::open(&path).expect("a store"),
        SqliteStore::open(&path).expect("the same"),
    );
    let leadership = leader
        .try_lead()
        .await
        .expect("a lock file")
        .expect("nobody leads yet");
    assert!(other.try_lead().await.expect("a lock file").is_none());
    let seen = leader.changed(None).await;
    let request = Box::new(testing::request("a", "nano-lm"));
    other
        .submit(Timestamp::UNIX_EPOCH, Command::Run { request })
        .await
        .expect("a wish");
    leader.changed(Some(seen)).await;
    assert_eq!(leader.commands().await.expect("a read").len(), 1);
    drop(leadership);
    assert!(other.try_lead().await.expect("a lock file").is_some());
}

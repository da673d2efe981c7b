//! What the row of a run says: how it waits, where it is, and when it is likely to go on.

use std::{collections::BTreeSet, sync::Arc};

use blueproof_core::{
    domain::{Cpus, Resources, RunId, Verdict},
    engine::{Engine, Ports},
    policy::Policy,
    ports::{Clock, Clusters, Command, Seq, StoreClient},
    scheduler::{Effort, Scheduler},
    testing::{self, FakeClock, FakeCluster, FakeReporter, MemoryStore},
    view::RunView,
};
use jiff::SignedDuration;

fn quota() -> Resources {
    Resources {
        cpu: Cpus::cores(2),
        memory: "100Gi".parse().expect("an amount"),
        ..Resources::default()
    }
}

struct World {
    store: Arc<MemoryStore>,
    cluster: Arc<FakeCluster>,
    clock: Arc<FakeClock>,
}

impl World {
    async fn engine_with(runs: usize) -> (Self, Engine) {
        let world = Self {
            store: Arc::default(),
            cluster: Arc::new(FakeCluster::waiting(quota())),
            clock: Arc::default(),
        };
        for run in 0..runs {
            world.ask(run).await;
        }
        let engine = world.engine().await;
        (world, engine)
    }

    async fn engine(&self) -> Engine {
        let ports = Ports {
            store: self.store.clone(),
            clusters: Clusters::one(self.cluster.clone()),
            reporters: vec![Arc::<FakeReporter>::default()],
            clock: self.clock.clone(),
        };
        Engine::open(ports, Policy::local(quota()))
            .await
            .expect("a store that works")
    }

    async fn ask(&self, run: usize) {
        let request = Box::new(testing::request(&format!("run {run}"), "nano-lm"));
        let asked = self
            .store
            .submit(self.clock.now(), Command::Run { request })
            .await;
        asked.expect("a store that works");
    }

    async fn row(&self, run: u64) -> RunView {
        let row = self.store.run(RunId(run)).await.expect("a read");
        row.expect("it is there")
    }

    /// Returns the rows that were worked out since a second ago.
    async fn fresh(&self) -> usize {
        let rows = self.store.runs(usize::MAX).await.expect("a read");
        let now = self.clock.now();
        let fresh = rows.iter().filter_map(|row| row.outlook.as_ref());
        fresh.filter(|outlook| outlook.as_of == now).count()
    }
}

fn running(runs: usize) -> impl Fn(&Scheduler) -> bool {
    use blueproof_core::domain::RunState;
    move |scheduler| {
        let running = scheduler.runs().filter(|run| run.state == RunState::Running);
        running.count() == runs
    }
}

/// Lets a little time pass, and the rows be worked out again.
async fn refresh(world: &World, engine: &mut Engine) {
    world.clock.advance(SignedDuration::from_secs(60));
    engine.run_until(|_| true).await.expect("a store that works");
}

#[tokio::test]
async fn a_row_says_what_the_scheduler_says_at_its_time() {
    for runs in [3, 12, 40] {
        let (world, mut engine) = World::engine_with(runs).await;
        engine.run_until(running(2)).await.expect("a store that works");
        refresh(&world, &mut engine).await;
        let scheduler = engine.scheduler();
        for row in world.store.runs(usize::MAX).await.expect("a read") {
            let outlook = row.outlook.expect("all of so few are worked out");
            let estimates = scheduler.estimates(outlook.as_of, &BTreeSet::from([row.id]));
            assert_eq!(outlook.as_of, world.clock.now(), "{}", row.id);
            assert_eq!(outlook.reason, scheduler.why(row.id), "{}", row.id);
            assert_eq!(outlook.estimate, estimates.get(&row.id).copied(), "{}", row.id);
            if !outlook.unblocked_by.is_empty() || runs <= 12 {
                assert_eq!(outlook.unblocked_by, scheduler.unblocked_by(row.id), "{}", row.id);
            }
            let waits = outlook.reason.is_some_and(|reason| reason.queued().is_some());
            let position = outlook.position.map(|of| (of.position, of.waiting));
            let expected = waits.then(|| (row.id.0 as usize - 2, runs - 2));
            assert_eq!(position, expected, "{}", row.id);
        }
    }
}

#[tokio::test]
async fn what_a_step_changes_has_its_row_at_once_and_the_others_in_a_second() {
    let (world, mut engine) = World::engine_with(4).await;
    engine.run_until(running(2)).await.expect("a store that works");
    world.clock.advance(SignedDuration::from_millis(500));
    world
        .cluster
        .finish(RunId(1).attempt(1), testing::outcome(Verdict::Passed));
    let third = |scheduler: &Scheduler| {
        scheduler
            .view(RunId(3))
            .is_some_and(|run| !run.attempts.is_empty())
    };
    engine.run_until(third).await.expect("a store that works");
    let row = world.row(3).await.outlook.expect("it changed");
    assert_eq!(
        (row.as_of, row.position),
        (world.clock.now(), None),
        "it has quota"
    );
    let behind = world.row(4).await.outlook.expect("it waits");
    assert_eq!(
        behind.position.map(|of| of.position),
        Some(1),
        "what is left behind tells the end"
    );
}

#[tokio::test]
async fn lists_in_a_row_stay_short_however_many_wait() {
    let (world, mut engine) = World::engine_with(300).await;
    engine.run_until(running(2)).await.expect("a store that works");
    for _ in 0..2 {
        refresh(&world, &mut engine).await;
    }
    let row = world.row(300).await;
    let (_, queued) = row.waits().and_then(|reason| reason.queued()).expect("it waits");
    assert_eq!(
        (queued.ahead.len(), queued.n_ahead, queued.last_ahead),
        (8, Some(297), Some(RunId(299)))
    );
    let size = serde_json::to_string(&row.outlook).expect("plain data").len();
    assert!(size < 2_000, "{size} bytes");
}

#[tokio::test]
async fn an_event_costs_as_many_rows_however_many_wait_and_each_has_its_turn() {
    for runs in [1_000, 5_000] {
        let (world, mut engine) = World::engine_with(runs).await;
        engine.run_until(running(2)).await.expect("a store that works");
        world.clock.advance(SignedDuration::from_secs(60));
        assert_eq!(world.fresh().await, 0);
        refresh(&world, &mut engine).await;
        assert!(world.fresh().await <= 512, "{runs}: {}", world.fresh().await);
        let before = world.store.facts(Seq(0), usize::MAX).await.expect("a read").len();
        for _ in 0..runs / 100 {
            refresh(&world, &mut engine).await;
        }
        let rows = world.store.runs(usize::MAX).await.expect("a read");
        let known = rows
            .iter()
            .filter(|row| row.outlook.as_ref().is_some_and(|of| of.as_of.as_second() >= 60));
        assert_eq!(known.count(), runs, "each has its turn");
        let after = world.store.facts(Seq(0), usize::MAX).await.expect("a read").len();
        assert_eq!(before, after, "a row is no fact");
    }
}

#[tokio::test]
async fn nothing_is_said_of_a_run_that_is_settled() {
    let (world, mut engine) = World::engine_with(1).await;
    engine.run_until(running(1)).await.expect("a store that works");
    world
        .cluster
        .finish(RunId(1).attempt(1), testing::outcome(Verdict::Passed));
    let settled = |scheduler: &Scheduler| scheduler.runs().all(|run| run.settled);
    engine.run_until(settled).await.expect("a store that works");
    assert_eq!(world.row(1).await.outlook, None);
    let all = engine
        .scheduler()
        .outlooks(world.clock.now(), &[RunId(1)].into(), Effort::ALL);
    assert!(all.is_empty());
}

#[tokio::test]
async fn a_run_is_not_said_to_be_the_next_where_nobody_counted_who_is_before_it() {
    let (_, mut engine) = World::engine_with(20).await;
    engine.run_until(running(2)).await.expect("a store that works");
    let last = BTreeSet::from([RunId(20)]);
    let until = |line: usize| {
        let effort = Effort {
            line,
            searches: 0,
            estimated: 0,
        };
        let outlooks = engine
            .scheduler()
            .outlooks(FakeClock::default().now(), &last, effort);
        let reason = outlooks[&RunId(20)].reason.clone().expect("it waits");
        reason.unblocked_by()
    };
    assert_eq!(
        until(20),
        "r-19, which is before it, has been admitted, and 1 cpu, 1Mi memory are free"
    );
    assert_eq!(
        until(1),
        "whoever is before it has been admitted, and 1 cpu, 1Mi memory are free"
    );
}

//! Several clusters side by side, and clusters that have something else than before.

use std::sync::Arc;

use blueproof_core::{
    domain::{
        AttemptId, ClusterName, Ending, Inventory, QueueName, RequestKey, Resources, RunId, RunRequest,
        RunState, Verdict, default_objects,
    },
    engine::{Engine, Ports},
    event::Event,
    pending::PendingReason,
    policy::Policy,
    ports::{AttemptNews, Clusters, Command, StoreClient},
    scheduler::Scheduler,
    testing::{FakeClock, FakeCluster, FakeReporter, MemoryStore, outcome, request, two_cores},
};
use blueproof_diagnostic::Code;
use blueproof_queue::objects::{LocalQueue, Objects};
use jiff::{SignedDuration, Timestamp};

/// Two clusters, each with a queue of its own name.
struct World {
    store: Arc<MemoryStore>,
    east: Arc<FakeCluster>,
    west: Arc<FakeCluster>,
    clock: Arc<FakeClock>,
}

impl World {
    async fn new() -> Self {
        let cluster = || Arc::new(FakeCluster::waiting(two_cores()));
        let world = Self {
            store: Arc::default(),
            east: cluster(),
            west: cluster(),
            clock: Arc::default(),
        };
        world.apply("quota", queues(&["east", "west"])).await;
        world
    }

    async fn apply(&self, key: &str, objects: Objects) {
        let quota = Command::ApplyQuota {
            key: RequestKey(key.into()),
            objects: Box::new(objects),
            by: request("quota", "nano-lm").requested_by,
        };
        self.submit(quota).await;
    }

    async fn ask(&self, key: &str, queue: &str) {
        let request = Box::new(asking(key, queue));
        self.submit(Command::Run { request }).await;
    }

    async fn submit(&self, command: Command) {
        self.store
            .submit(Timestamp::UNIX_EPOCH, command)
            .await
            .expect("a store that works");
    }

    async fn open(&self, clusters: Clusters) -> Engine {
        let ports = Ports {
            store: self.store.clone(),
            clusters,
            reporters: vec![Arc::new(FakeReporter::default())],
            clock: self.clock.clone(),
        };
        let engine = Engine::open(ports, Policy::local(two_cores())).await;
        engine.expect("a store that works")
    }

    fn both(&self) -> Clusters {
        Clusters::default()
            .with("east".into(), self.east.clone())
            .with("west".into(), self.west.clone())
    }
}

/// Returns a queue for each cluster, with all that one has.
fn queues(clusters: &[&str]) -> Objects {
    let plain = default_objects(two_cores());
    let mut objects = Objects {
        flavors: plain.flavors.clone(),
        ..Objects::default()
    };
    for cluster in clusters {
        let mut queue = plain.cluster_queues["local"].clone();
        queue.cluster = Some((*cluster).into());
        objects.cluster_queues.insert((*cluster).into(), queue);
        let local = LocalQueue {
            cluster_queue: (*cluster).into(),
            ..LocalQueue::default()
        };
        objects.local_queues.insert((*cluster).into(), local);
    }
    objects
}

fn asking(key: &str, queue: &str) -> RunRequest {
    RunRequest {
        queue: queue.parse::<QueueName>().expect("a name"),
        ..request(key, "nano-lm")
    }
}

fn first(run: u64) -> AttemptId {
    RunId(run).attempt(1)
}

fn all_run(runs: u64) -> impl FnMut(&Scheduler) -> bool {
    move |scheduler| {
        scheduler.runs().len() as u64 == runs && scheduler.runs().all(|run| run.state == RunState::Running)
    }
}

#[tokio::test]
async fn each_run_is_carried_out_on_the_cluster_of_its_queue_and_on_no_other() {
    let world = World::new().await;
    world.ask("a", "east").await;
    world.ask("b", "west").await;
    let mut engine = world.open(world.both()).await;
    engine.run_until(all_run(2)).await.expect("a store that works");
    let (east, west) = (world.east.running(), world.west.running());
    assert_eq!((east, west), (vec![first(1)], vec![first(2)]));
    let place = |run: u64| {
        let view = engine.scheduler().view(RunId(run)).expect("it is known");
        view.attempts[0].place.clone().expect("it has one").cluster
    };
    assert_eq!((place(1), place(2)), ("east".into(), "west".into()));
}

#[tokio::test]
async fn what_a_cluster_says_of_an_attempt_that_is_on_another_changes_nothing() {
    let world = World::new().await;
    world.ask("a", "east").await;
    let mut engine = world.open(world.both()).await;
    engine.run_until(all_run(1)).await.expect("a store that works");
    let passed = || AttemptNews::Finished {
        outcome: Box::new(outcome(Verdict::Passed)),
        ended_at: None,
    };
    // Another scheduler that shares the west counts its runs from one as well.
    world.west.tell_news(first(1), passed());
    world.west.tell_news(first(1), AttemptNews::Released);
    world.west.change_inventory(Resources::default());
    let west = ClusterName::from("west");
    let heard = |scheduler: &Scheduler| {
        scheduler
            .inventory(&west)
            .is_some_and(|has| has.nodes[0].allocatable.is_empty())
    };
    engine.run_until(heard).await.expect("a store that works");
    let view = engine.scheduler().view(RunId(1)).expect("it is known");
    assert_eq!(view.state, RunState::Running);
    // Its own cluster is heard.
    world.east.tell_news(first(1), passed());
    let over = |scheduler: &Scheduler| scheduler.runs().all(|run| run.settled);
    engine.run_until(over).await.expect("a store that works");
    let view = engine.scheduler().view(RunId(1)).expect("it is known");
    assert_eq!(view.state, RunState::Ended(Ending::Passed));
    engine.scheduler().check();
}

#[tokio::test]
async fn an_attempt_stays_on_its_cluster_whatever_its_queue_says_later() {
    let world = World::new().await;
    world.ask("a", "east").await;
    let mut engine = world.open(world.both()).await;
    engine.run_until(all_run(1)).await.expect("a store that works");
    let mut moved = queues(&["east", "west"]);
    let queue = moved.cluster_queues.get_mut("east").expect("it is there");
    queue.cluster = Some("west".into());
    world.apply("moved", moved).await;
    world.ask("b", "east").await;
    drop(engine);

    let mut engine = world.open(world.both()).await;
    world.east.finish(first(1), outcome(Verdict::Passed));
    let next_runs = |scheduler: &Scheduler| {
        scheduler
            .view(RunId(2))
            .is_some_and(|run| run.state == RunState::Running)
    };
    engine.run_until(next_runs).await.expect("a store that works");
    assert_eq!(
        (world.east.left(), world.west.running()),
        (vec![], vec![first(2)])
    );
    engine.scheduler().check();
}

#[tokio::test]
async fn a_cluster_that_is_not_configured_is_named_and_waited_for() {
    let world = World::new().await;
    world.ask("a", "west").await;
    let only_east = Clusters::default().with("east".into(), world.east.clone());
    let mut engine = world.open(only_east).await;
    let fails = |scheduler: &Scheduler| {
        scheduler
            .view(RunId(1))
            .is_some_and(|run| !run.failing_calls.is_empty())
    };
    engine.run_until(fails).await.expect("a store that works");
    let view = engine.scheduler().view(RunId(1)).expect("it is known");
    let why = &view.failing_calls[0].last;
    assert_eq!(why.code, Code::ClusterUnknown);
    assert_eq!(why.message, "there is no cluster `west` here");
    drop(engine);

    world.clock.advance(SignedDuration::from_secs(1));
    let mut engine = world.open(world.both()).await;
    engine.run_until(all_run(1)).await.expect("a store that works");
    assert_eq!(world.west.running(), [first(1)]);
}

#[tokio::test]
async fn no_more_is_promised_than_a_machine_has_by_now_and_what_was_promised_stays() {
    let world = World::new().await;
    let machine = Arc::new(FakeCluster::waiting(two_cores()));
    let store: Arc<MemoryStore> = Arc::default();
    let ports = Ports {
        store: store.clone(),
        clusters: Clusters::one(machine.clone()),
        reporters: vec![Arc::new(FakeReporter::default())],
        clock: Arc::new(FakeClock::default()),
    };
    let world = World { store, ..world };
    world.ask("a", "local").await;
    let engine = Engine::open(ports, Policy::local(two_cores())).await;
    let mut engine = engine.expect("a store that works");
    engine.run_until(all_run(1)).await.expect("a store that works");

    let half = asking("a", "local").job.gang();
    machine.change_inventory(half);
    let local = ClusterName::default();
    let is_less = |scheduler: &Scheduler| {
        scheduler
            .inventory(&local)
            .is_some_and(|has| has.capacity() == half)
    };
    engine.run_until(is_less).await.expect("a store that works");
    world.ask("b", "local").await;
    let waits = |scheduler: &Scheduler| scheduler.why(RunId(2)).is_some();
    engine.run_until(waits).await.expect("a store that works");
    assert_eq!(machine.running(), [first(1)], "what runs goes on");
    assert!(
        matches!(
            engine.scheduler().why(RunId(2)),
            Some(PendingReason::WaitingForQuota { .. })
        ),
        "{:?}",
        engine.scheduler().why(RunId(2))
    );
    engine.scheduler().check();

    machine.finish(first(1), outcome(Verdict::Passed));
    machine.change_inventory(two_cores());
    let next_runs = |scheduler: &Scheduler| {
        scheduler
            .view(RunId(2))
            .is_some_and(|run| run.state == RunState::Running)
    };
    engine.run_until(next_runs).await.expect("a store that works");
    engine.scheduler().check();
}

#[test]
fn an_inventory_that_comes_twice_is_logged_once_where_nothing_changed() {
    let mut scheduler = Scheduler::new(Policy::local(two_cores()));
    let inventory = Inventory::of_one_node("a", two_cores(), "a cluster");
    let changed = Event::InventoryChanged {
        cluster: ClusterName::default(),
        inventory: Box::new(inventory),
    };
    let now = Timestamp::UNIX_EPOCH;
    scheduler.handle(now, changed.clone());
    let before = scheduler.snapshot().to_bytes();
    scheduler.handle(now, changed);
    assert_eq!(scheduler.snapshot().to_bytes(), before);
}

//! An engine whose cluster decides about quota: what that tells is why runs wait, and what it makes up harms nobody.

use std::sync::Arc;

use blueproof_core::{
    domain::{
        Actor, AttemptId, Cpus, Ending, Placement, Priority, RequestKey, Resources, RunId, RunState, Verdict,
        default_objects,
    },
    engine::{Engine, Ports},
    fact::{Decision, Fact},
    policy::Policy,
    ports::{AttemptNews, Clock, Clusters, Command, Seq, StoreClient},
    scheduler::Scheduler,
    testing::{self, FakeClock, FakeCluster, FakeReporter, MemoryStore, contract},
};
use blueproof_queue::objects::{Admission, Objects, WithinClusterQueue};

fn one_core() -> Resources {
    Resources {
        cpu: Cpus::cores(1),
        memory: "1Gi".parse().expect("an amount"),
        ..Resources::default()
    }
}

/// One queue, about which the cluster decides; a run of higher priority preempts one of lower.
fn objects() -> Objects {
    let mut objects = default_objects(one_core());
    let queue = objects.cluster_queues.get_mut("local").expect("the only one");
    queue.admission = Admission::External;
    queue.preemption.within_cluster_queue = WithinClusterQueue::LowerPriority;
    objects
}

struct World {
    store: Arc<MemoryStore>,
    cluster: Arc<FakeCluster>,
    clock: Arc<FakeClock>,
}

impl World {
    async fn begin() -> (Self, Engine) {
        let world = Self {
            store: Arc::default(),
            cluster: Arc::new(FakeCluster::admitting(one_core(), objects())),
            clock: Arc::default(),
        };
        let (objects, by) = (Box::new(objects()), Actor::Local("admin".into()));
        world
            .submit(Command::ApplyQuota {
                key: RequestKey("queues".into()),
                objects,
                by,
            })
            .await;
        let engine = world.engine().await;
        (world, engine)
    }

    async fn engine(&self) -> Engine {
        let ports = Ports {
            store: self.store.clone(),
            clusters: Clusters::one(self.cluster.clone()),
            reporters: vec![Arc::new(FakeReporter::default())],
            clock: self.clock.clone(),
        };
        let engine = Engine::open(ports, Policy::local(one_core())).await;
        engine.expect("a store that works")
    }

    async fn submit(&self, command: Command) {
        let submitted = self.store.submit(self.clock.now(), command).await;
        submitted.expect("a store that works");
    }

    async fn ask(&self, key: &str, priority: i32) {
        let mut request = testing::request(key, "nano-lm");
        request.priority = Priority(priority);
        let request = Box::new(request);
        self.submit(Command::Run { request }).await;
    }
}

async fn until(engine: &mut Engine, holds: impl Fn(&Scheduler) -> bool) {
    engine.run_until(holds).await.expect("a store that works");
}

fn is_in(run: RunId, state: RunState) -> impl Fn(&Scheduler) -> bool {
    move |scheduler| scheduler.view(run).is_some_and(|view| view.state == state)
}

fn first(run: RunId) -> AttemptId {
    run.attempt(1)
}

const LOW: RunId = RunId(1);
const HIGH: RunId = RunId(2);

#[tokio::test]
async fn a_run_that_its_cluster_preempts_is_evicted_and_comes_back_at_no_cost() {
    let (world, mut engine) = World::begin().await;
    world.ask("low", 0).await;
    until(&mut engine, is_in(LOW, RunState::Running)).await;
    world.ask("high", 9).await;
    until(&mut engine, is_in(HIGH, RunState::Running)).await;
    let why = |scheduler: &Scheduler| scheduler.why(LOW).map(|why| why.to_string());
    until(&mut engine, |scheduler| {
        why(scheduler).is_some_and(|why| why.contains("WaitingForQuota"))
    })
    .await;

    // A scheduler that is started anew asks again, and hears the same.
    let mut engine = world.engine().await;
    world
        .cluster
        .finish(first(HIGH), testing::outcome(Verdict::Passed));
    until(&mut engine, is_in(LOW, RunState::Running)).await;
    world
        .cluster
        .finish(LOW.attempt(2), testing::outcome(Verdict::Passed));
    until(&mut engine, is_in(LOW, RunState::Ended(Ending::Passed))).await;

    let low = world.store.run(LOW).await.expect("a read").expect("it is stored");
    let eviction = low.attempts[0].eviction.as_ref().expect("it was evicted");
    assert_eq!(
        eviction.to_string(),
        "because to make room: another of its queue goes first (InClusterQueue)"
    );
    let place = low.attempts[1].place.as_ref().expect("it had one");
    assert_eq!(place.flavors["driver"]["cpu"], "local");
    let log = world.store.facts(Seq(0), 1000).await.expect("a read");
    let used = log.iter().any(|logged| {
        matches!(
            &logged.fact,
            Fact::Decision(Decision::Requeued { retry: Some(_), .. })
        )
    });
    assert!(!used, "no retry was used");
}

#[tokio::test]
async fn a_run_that_is_cancelled_while_it_waits_in_its_cluster_leaves_nothing_there() {
    let (world, mut engine) = World::begin().await;
    world.ask("a", 0).await;
    until(&mut engine, is_in(LOW, RunState::Running)).await;
    world.ask("b", 0).await;
    until(&mut engine, |scheduler| {
        scheduler
            .why(HIGH)
            .is_some_and(|why| why.as_str() == "WaitingForQuota")
    })
    .await;
    assert_eq!(world.cluster.pending(), [first(HIGH)]);
    world
        .submit(Command::Cancel {
            key: RequestKey("cancel".into()),
            run: HIGH,
            by: Actor::Local("ada".into()),
            how: blueproof_core::event::StopMode::Terminate,
        })
        .await;
    until(&mut engine, |scheduler| {
        scheduler.view(HIGH).is_some_and(|view| view.settled)
    })
    .await;
    assert_eq!(world.cluster.left(), [first(LOW)]);
}

#[tokio::test]
async fn what_a_cluster_makes_up_is_released_or_passed_over() {
    let (world, mut engine) = World::begin().await;
    world.ask("a", 0).await;
    until(&mut engine, is_in(LOW, RunState::Running)).await;
    let unasked = [LOW.attempt(2), LOW.attempt(7), RunId(9).attempt(1)];
    for attempt in unasked {
        for news in [
            AttemptNews::Reserved(Placement::on("nowhere")),
            AttemptNews::Running,
            AttemptNews::Evicted {
                reason: "no word at all".into(),
                message: "x".repeat(1 << 16),
            },
            AttemptNews::Lost {
                message: String::new(),
            },
        ] {
            world.cluster.tell_news(attempt, news);
        }
    }
    world
        .cluster
        .finish(first(LOW), testing::outcome(Verdict::Passed));
    until(&mut engine, |scheduler| {
        scheduler.view(LOW).is_some_and(|view| view.settled)
    })
    .await;
    let run = world.store.run(LOW).await.expect("a read").expect("it is stored");
    assert_eq!(
        (run.state, run.attempts.len()),
        (RunState::Ended(Ending::Passed), 1)
    );
    let log = world.store.facts(Seq(0), 1000).await.expect("a read");
    let bytes = log
        .iter()
        .map(|logged| serde_json::to_string(&logged.fact).expect("plain data").len());
    assert!(bytes.max() < Some(4096), "what a cluster says is shortened");
}

#[tokio::test]
async fn the_cluster_in_memory_keeps_the_contract() {
    let cluster = FakeCluster::admitting(one_core(), objects());
    let starts = [1, 2, 3]
        .map(|number| testing::start_action(number, testing::request(&format!("run-{number}"), "nano-lm")));
    contract::admission_keeps_its_promises(&cluster, &cluster, starts.each_ref()).await;
    assert_eq!(cluster.left(), []);
}

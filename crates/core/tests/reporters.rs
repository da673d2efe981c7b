//! Reporters side by side: each is told of the newest status, at its own pace.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use blueproof_core::{
    domain::{Actor, PodSets, RequestKey, Resources, RunId, RunState, Verdict},
    engine::{Engine, Ports},
    event::StopMode,
    policy::Policy,
    ports::{
        CallError, CallbackReporter, Clock, Clusters, Command, Interest, Reporter, RunStatus, StoreClient,
    },
    scheduler::Scheduler,
    testing::{self, FakeClock, FakeCluster, FakeReporter, MemoryStore, contract, two_cores},
    view::ReportView,
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::SignedDuration;

struct World {
    store: Arc<MemoryStore>,
    cluster: Arc<FakeCluster>,
    clock: Arc<FakeClock>,
}

impl World {
    async fn of_one_run(cluster: FakeCluster) -> Self {
        let world = Self {
            store: Arc::default(),
            cluster: Arc::new(cluster),
            clock: Arc::default(),
        };
        let request = Box::new(testing::request("a", "nano-lm"));
        let asked = world
            .store
            .submit(world.clock.now(), Command::Run { request })
            .await;
        asked.expect("a store that works");
        world
    }

    async fn engine(&self, reporters: Vec<Arc<dyn Reporter>>) -> Engine {
        let ports = Ports {
            store: self.store.clone(),
            clusters: Clusters::one(self.cluster.clone()),
            reporters,
            clock: self.clock.clone(),
        };
        Engine::open(ports, Policy::local(two_cores()))
            .await
            .expect("a store that works")
    }
}

/// Returns a reporter that keeps what it is told.
fn keeping() -> (Arc<dyn Reporter>, Arc<Mutex<Vec<RunStatus>>>) {
    let told: Arc<Mutex<Vec<RunStatus>>> = Arc::default();
    let keeps = Arc::clone(&told);
    let reporter = CallbackReporter::new("keeps", move |status| {
        keeps.lock().expect("no panic").push(status.clone());
        Ok(())
    });
    (Arc::new(reporter), told)
}

/// Fails each time, or never answers.
struct Broken {
    hangs: bool,
    called: Arc<AtomicUsize>,
}

#[async_trait]
impl Reporter for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn interest(&self) -> Interest {
        Interest::EveryChange
    }

    async fn report(&self, _: &RunStatus) -> Result<(), CallError> {
        self.called.fetch_add(1, Ordering::SeqCst);
        if self.hangs {
            std::future::pending::<()>().await;
        }
        Err(CallError::never(Diagnostic::error(
            Code::ReportUnwritten,
            "no such place",
        )))
    }
}

fn in_state(state: impl Fn(RunState) -> bool) -> impl Fn(&Scheduler) -> bool {
    move |scheduler| scheduler.view(RunId(1)).is_some_and(|run| state(run.state))
}

fn settled(scheduler: &Scheduler) -> bool {
    scheduler.view(RunId(1)).is_some_and(|run| run.settled)
}

#[tokio::test]
async fn each_status_that_is_told_is_newer_than_the_one_before_and_the_last_is_the_end() {
    let world = World::of_one_run(FakeCluster::passing(two_cores())).await;
    let (reporter, told) = keeping();
    let mut engine = world.engine(vec![reporter]).await;
    engine.run_until(settled).await.expect("a store that works");
    let told = told.lock().expect("no panic").clone();
    assert!(told.len() > 1, "changes are told before the end");
    assert!(told.windows(2).all(|two| two[0].revision < two[1].revision));
    let end = told.last().expect("one");
    assert!(matches!(end.view.state, RunState::Ended(_)));
    assert!(told[0].view.outlook.is_some(), "its row comes with it");
}

#[tokio::test]
async fn one_that_hangs_holds_up_no_other() {
    let world = World::of_one_run(FakeCluster::waiting(two_cores())).await;
    let ((keeps, told), called) = (keeping(), Arc::<AtomicUsize>::default());
    let broken = Broken {
        hangs: true,
        called: called.clone(),
    };
    let mut engine = world.engine(vec![Arc::new(broken), keeps]).await;
    let running = in_state(|state| state == RunState::Running);
    engine.run_until(running).await.expect("a store that works");
    world
        .cluster
        .finish(RunId(1).attempt(1), testing::outcome(Verdict::Passed));
    let other_knows = |_: &Scheduler| {
        let told = told.lock().expect("no panic");
        told.last()
            .is_some_and(|status| matches!(status.view.state, RunState::Ended(_)))
    };
    let mut run = Box::pin(engine.run_until(other_knows));
    let bound = std::time::Duration::from_millis(20);
    while !told
        .lock()
        .expect("no panic")
        .iter()
        .any(|status| matches!(status.view.state, RunState::Ended(_)))
    {
        let _ = tokio::time::timeout(bound, &mut run).await;
    }
    drop(run);
    assert_eq!(called.load(Ordering::SeqCst), 1, "one call at a time");
    assert!(!settled(engine.scheduler()), "one has not acknowledged the end");
}

#[tokio::test]
async fn one_that_fails_for_good_is_given_up_and_the_others_have_the_end() {
    let world = World::of_one_run(FakeCluster::passing(two_cores())).await;
    let ((keeps, told), called) = (keeping(), Arc::<AtomicUsize>::default());
    let broken = Broken {
        hangs: false,
        called: called.clone(),
    };
    let mut engine = world.engine(vec![Arc::new(broken), keeps]).await;
    engine.run_until(settled).await.expect("a store that works");
    let view = engine.scheduler().view(RunId(1)).expect("it is known");
    let ReportView::GivenUp(problem) = view.report else {
        panic!("{:?}", view.report);
    };
    assert_eq!(problem.message, "`broken`: no such place");
    let told = told.lock().expect("no panic");
    assert!(
        told.iter()
            .any(|status| matches!(status.view.state, RunState::Ended(_)))
    );
    assert!(called.load(Ordering::SeqCst) >= 1);
}

#[tokio::test]
async fn after_a_restart_the_newest_status_is_told_again() {
    let world = World::of_one_run(FakeCluster::waiting(two_cores())).await;
    let (first, _) = keeping();
    let mut engine = world.engine(vec![first]).await;
    let running = in_state(|state| state == RunState::Running);
    engine.run_until(&running).await.expect("a store that works");
    drop(engine);
    let (second, told) = keeping();
    let mut engine = world.engine(vec![second]).await;
    let is_told = |_: &Scheduler| !told.lock().expect("no panic").is_empty();
    engine.run_until(is_told).await.expect("a store that works");
    let told = told.lock().expect("no panic");
    assert_eq!(
        told.first().map(|status| status.view.state),
        Some(RunState::Running)
    );
}

#[tokio::test]
async fn a_run_that_moves_up_in_its_line_is_told_anew() {
    let world = World::of_one_run(FakeCluster::waiting(two_cores())).await;
    for key in ["b", "c", "d"] {
        let mut request = Box::new(testing::request(key, key));
        request.job.pod_sets = PodSets::of_amounts(two_cores(), Resources::default());
        let asked = world
            .store
            .submit(world.clock.now(), Command::Run { request })
            .await;
        asked.expect("a store that works");
    }
    let (reporter, told) = keeping();
    let mut engine = world.engine(vec![reporter]).await;
    let position_of = |run: u64| {
        let told = told.lock().expect("no panic");
        let newest = told.iter().rev().find(|status| status.view.id == RunId(run))?;
        let outlook = newest.view.outlook.as_ref()?;
        Some(outlook.position.as_ref()?.position)
    };
    engine
        .run_until(|_| position_of(4) == Some(3))
        .await
        .expect("a store that works");
    let request = Command::Cancel {
        key: RequestKey("stop".into()),
        run: RunId(3),
        by: Actor::Local("ada".into()),
        how: StopMode::Terminate,
    };
    let asked = world.store.submit(world.clock.now(), request).await;
    asked.expect("a store that works");
    world.clock.advance(SignedDuration::from_secs(1));
    engine
        .run_until(|_| position_of(4) == Some(2))
        .await
        .expect("a store that works");
    assert_eq!(position_of(2), Some(1));
}

#[tokio::test]
async fn the_reporters_of_core_keep_the_contract() {
    let world = World::of_one_run(FakeCluster::passing(two_cores())).await;
    let (keeps, told) = keeping();
    let mut engine = world.engine(vec![keeps.clone()]).await;
    engine.run_until(settled).await.expect("a store that works");
    let end = told.lock().expect("no panic").last().cloned().expect("it ended");
    contract::reporter_keeps_its_promises(&*keeps, &end).await;
    contract::reporter_keeps_its_promises(&FakeReporter::default(), &end).await;
}

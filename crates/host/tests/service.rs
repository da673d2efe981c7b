//! A service that leads, follows, answers, and stops.

use std::sync::Arc;

use blueproof_core::{
    domain::{Ending, RequestKey, RunState},
    engine::Ports,
    policy::Policy,
    ports::{Clusters, Command, StoreClient},
    scheduler::Scheduler,
    testing::{FakeClock, FakeCluster, FakeLease, FakeReporter, MemoryStore, request, two_cores},
};
use blueproof_host::{Host, Service, ServiceStatus, Target};
use jiff::Timestamp;

/// What outlives the processes of a test.
struct World {
    store: Arc<MemoryStore>,
    cluster: Arc<FakeCluster>,
    lease: FakeLease,
}

impl Default for World {
    fn default() -> Self {
        Self {
            store: Arc::default(),
            cluster: Arc::new(FakeCluster::passing(two_cores())),
            lease: FakeLease::default(),
        }
    }
}

impl World {
    fn host(&self) -> Host {
        let ports = Ports {
            store: self.store.clone(),
            clusters: Clusters::one(self.cluster.clone()),
            reporters: vec![Arc::new(FakeReporter::default())],
            clock: Arc::new(FakeClock::default()),
        };
        Host::new(ports, Arc::new(self.lease.clone()), Policy::local(two_cores()))
    }

    fn service(&self) -> Arc<Service> {
        Arc::new(Service::new(self.host()))
    }

    async fn ask(&self, key: &str) -> Target {
        let request = Box::new(request(key, "nano-lm"));
        let left = self.store.submit(Timestamp::UNIX_EPOCH, Command::Run { request });
        left.await.expect("a store that works");
        Target::Request(RequestKey(key.into()))
    }
}

fn run(service: &Arc<Service>) -> tokio::task::JoinHandle<()> {
    let service = Arc::clone(service);
    tokio::spawn(async move { service.run().await })
}

async fn until(service: &Service, wanted: ServiceStatus) {
    let mut standing = service.standing();
    standing
        .wait_for(|standing| *standing == wanted)
        .await
        .expect("the service is there");
}

#[tokio::test]
async fn it_works_answers_and_stops() {
    let world = World::default();
    let service = world.service();
    assert_eq!(service.ask(Scheduler::now).await, None, "nothing works yet");
    let running = run(&service);
    until(&service, ServiceStatus::Leading).await;
    let target = world.ask("first").await;
    let settled = target.until(&*world.store, |view| view.settled).await;
    let view = settled.expect("a store that works");
    assert_eq!(view.state, RunState::Ended(Ending::Passed));
    let known = service.ask(|scheduler| scheduler.runs().len()).await;
    assert_eq!(known, Some(1));
    service.stop();
    running.await.expect("it returns");
    until(&service, ServiceStatus::Stopped).await;
    assert_eq!(service.ask(Scheduler::now).await, None, "nothing works any more");
}

#[tokio::test]
async fn another_takes_over_when_the_leader_stops_or_loses_its_lease() {
    let world = World::default();
    let (first, second) = (world.service(), world.service());
    let one = run(&first);
    until(&first, ServiceStatus::Leading).await;
    let other = run(&second);
    until(&second, ServiceStatus::Following).await;
    first.stop();
    one.await.expect("it returns");
    until(&second, ServiceStatus::Leading).await;
    let target = world.ask("after the first").await;
    let settled = target.until(&*world.store, |view| view.settled).await;
    settled.expect("a store that works");

    world.lease.expire();
    world.lease.until_held().await;
    until(&second, ServiceStatus::Leading).await;
    second.stop();
    other.await.expect("it returns");
}

#[tokio::test]
async fn who_lost_the_lease_appends_nothing_more() {
    let world = World::default();
    let service = world.service();
    let running = run(&service);
    until(&service, ServiceStatus::Leading).await;
    // Another process, which believes that it leads.
    let ports = world.host().ports().clone();
    let other = Host::new(ports, Arc::new(FakeLease::default()), Policy::local(two_cores()));
    let target = world.ask("for both").await;
    other
        .until(&target, |view| view.settled)
        .await
        .expect("a store that works");
    let target = world.ask("for either").await;
    let settled = target.until(&*world.store, |view| view.settled).await;
    settled.expect("a store that works");
    let runs = world.store.runs(10).await.expect("a store that works");
    assert_eq!(runs.len(), 2, "nothing is there twice");
    assert!(
        runs.iter().all(|run| run.attempts.len() == 1),
        "and nothing ran twice"
    );
    service.stop();
    running.await.expect("it returns");
}

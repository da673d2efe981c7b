//! Deliveries that are stored and worked on later: after an outage, twice, and those that nobody can read.

use blueproof_core::{
    domain::RunState,
    ports::{Deliveries, DeliveryClient as _, DeliveryState, Receipt, ReceivedDelivery},
    testing::MemoryDeliveries,
};
use blueproof_diagnostic::Code;
use blueproof_github::{
    api::RepositoryId,
    testing::FakeDelivery,
    worker::{DeliveryWorker, Pass},
};

use crate::world::{REPOSITORY, World};

async fn store(world: &World, deliveries: &MemoryDeliveries) {
    for delivery in world.github.take_deliveries() {
        let id = format!("{}-{}", delivery.event, delivery.body.len());
        receive(world, deliveries, &id, delivery).await;
    }
}

async fn receive(world: &World, deliveries: &MemoryDeliveries, id: &str, delivery: FakeDelivery) -> Receipt {
    use blueproof_core::ports::Clock as _;
    let received = ReceivedDelivery {
        id: id.replace('_', "-"),
        event: delivery.event.to_string(),
        received_at: world.clock.now(),
        body: delivery.body,
    };
    deliveries.receive(received).await.expect("a write")
}

async fn pass(worker: &mut DeliveryWorker) -> Pass {
    worker.pass().await.expect("the store works")
}

#[tokio::test]
async fn an_hour_without_github_loses_nothing_and_lets_nothing_start() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (mut worker, deliveries) = world.worker();
    let (ada, head) = (world.ada.clone(), world.head(number));
    world
        .github
        .comment(REPOSITORY, number, &ada, &format!("/gpu-test {head}"));
    store(&world, &deliveries).await;
    world.github.go_down();
    let mut waits = Vec::new();
    for _ in 0..60 {
        let Pass::Again { at } = pass(&mut worker).await else {
            panic!("GitHub is down");
        };
        use blueproof_core::ports::Clock as _;
        waits.push(at.duration_since(world.clock.now()).as_secs());
        world.pass_minutes(1);
        world.decide().await;
        assert_eq!(world.state(1).await, RunState::AwaitingApproval);
    }
    assert_eq!(waits[..8], [1, 2, 4, 8, 16, 32, 60, 60]);
    world.github.recover();
    assert_eq!(pass(&mut worker).await, Pass::Idle);
    world.until_running(1).await;
}

#[tokio::test]
async fn a_push_that_could_not_be_handled_leaves_open_which_head_a_later_comment_is_of() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (mut worker, deliveries) = world.worker();
    let (ada, mallory) = (world.ada.clone(), world.mallory.clone());
    world.github.push(REPOSITORY, number, &mallory);
    store(&world, &deliveries).await;
    world.github.go_down();
    pass(&mut worker).await;
    world.github.recover();
    world.pass_minutes(10);
    world.github.comment(REPOSITORY, number, &ada, "/gpu-test");
    store(&world, &deliveries).await;
    pass(&mut worker).await;
    world.decide().await;
    assert!(world.cluster.running().is_empty());
    assert_eq!(world.approvals().await, 0);
}

#[tokio::test]
async fn what_cannot_be_read_is_given_up_at_once_and_keeps_no_other_waiting() {
    let mut world = World::new().await;
    let (mut worker, deliveries) = world.worker();
    let broken = [
        ("pull_request", &b"{"[..]),
        ("check_run", b"\xff\xfe"),
        ("push", b"{\"ref\": 7}"),
    ];
    for (nth, (event, body)) in broken.into_iter().enumerate() {
        let delivery = FakeDelivery {
            event: event.parse().expect("a name"),
            body: body.to_vec(),
        };
        receive(&world, &deliveries, &format!("broken-{nth}"), delivery).await;
    }
    let mallory = world.mallory.clone();
    world.github.open(REPOSITORY, &mallory, &["examples/mnist/a.py"]);
    world
        .github
        .take_deliveries()
        .into_iter()
        .last()
        .expect("it is told");
    world
        .github
        .push_to_main(REPOSITORY, &[("OWNERS", "approvers: [")]);
    store(&world, &deliveries).await;
    assert_eq!(pass(&mut worker).await, Pass::Idle);
    let codes: Vec<_> = deliveries
        .deliveries(10)
        .await
        .expect("a read")
        .into_iter()
        .filter_map(|delivery| match delivery.state {
            DeliveryState::GivenUp { problem } => Some(problem.code),
            DeliveryState::Pending { .. } | DeliveryState::Done { .. } => None,
        })
        .collect();
    let unreadable = [Code::DeliveryUnreadable; 3];
    let expected: Vec<_> = [Code::EntitlementUnreadable]
        .into_iter()
        .chain(unreadable)
        .collect();
    assert_eq!(codes, expected);
}

#[tokio::test]
async fn a_delivery_that_is_asked_for_again_is_worked_on_only_where_it_was_not() {
    let mut world = World::new().await;
    let number = world.opened().await;
    let (mut worker, deliveries) = world.worker();
    let (ada, head) = (world.ada.clone(), world.head(number));
    world
        .github
        .comment(REPOSITORY, number, &ada, &format!("/gpu-test {head}"));
    let delivery = world.github.take_deliveries().remove(0);
    assert_eq!(
        receive(&world, &deliveries, "one", delivery.clone()).await,
        Receipt::Stored
    );
    assert_eq!(pass(&mut worker).await, Pass::Idle);
    world.until_running(1).await;
    assert_eq!(
        receive(&world, &deliveries, "one", delivery).await,
        Receipt::Duplicate
    );
    assert_eq!(pass(&mut worker).await, Pass::Idle);
    assert!(deliveries.replay_delivery("one").await.expect("a write"));
    assert_eq!(pass(&mut worker).await, Pass::Idle);
    world.decide().await;
    assert_eq!(world.approvals().await, 1);
    let (told, _) = deliveries
        .delivery("one")
        .await
        .expect("a read")
        .expect("it is there");
    assert_eq!(
        told.state,
        DeliveryState::Done {
            outcome: "done".into()
        }
    );
}

#[tokio::test]
async fn what_is_about_a_repository_that_is_not_followed_is_passed_over() {
    let mut world = World::new().await;
    let other = RepositoryId(8);
    world.github.add_repository(other, "evil/other", &[]);
    let number = world.github.open(other, &world.mallory, &["a"]);
    let mallory = world.mallory.clone();
    world.github.comment(other, number, &mallory, "/gpu-test");
    let (mut worker, deliveries) = world.worker();
    worker.follow([REPOSITORY].into());
    store(&world, &deliveries).await;
    let asked = world.github.n_calls("pull_request");
    assert_eq!(pass(&mut worker).await, Pass::Idle);
    assert_eq!(
        world.github.n_calls("pull_request"),
        asked,
        "GitHub is asked nothing"
    );
    assert_eq!(world.runs().await, []);
}

//! Deliveries that were lost while nobody took them.

use std::sync::Arc;

use blueproof_core::{
    domain::RunState,
    ports::{Clock as _, Deliveries as _, Receipt, ReceivedDelivery},
    testing::{FakeClock, MemoryDeliveries},
};
use blueproof_github::{
    api::{ApiError, ApiRetry, AppHook, HookCursor, HookDelivery, HookDeliveryId, HookPage, MockAppHook},
    redelivery::{Look, Redelivery},
    rest::AppTokens,
    testing::{FakeFailure, FakeGitHub, HttpFake},
    webhook::DeliveryId,
    worker::Pass,
};
use blueproof_scale_set::{AppInstallation, AppKey};
use jiff::{SignedDuration, Timestamp};

use crate::world::{REPOSITORY, World};

const NOTHING: Look = Look {
    n_asked: 0,
    has_more: false,
};

fn asked(n_asked: usize) -> Look {
    Look { n_asked, ..NOTHING }
}

fn of(hook: Arc<dyn AppHook>, deliveries: &Arc<MemoryDeliveries>, clock: &Arc<FakeClock>) -> Redelivery {
    Redelivery::new(hook, deliveries.clone(), clock.clone(), FakeGitHub::INSTALLATION)
}

/// Takes in what is sent once more.
async fn receive(world: &World, deliveries: &MemoryDeliveries, status: u16) -> Vec<Receipt> {
    let mut receipts = Vec::new();
    for (name, delivery) in world.github.take_redeliveries(status) {
        let received = ReceivedDelivery {
            id: name.into(),
            event: delivery.event.into(),
            received_at: world.clock.now(),
            body: delivery.body,
        };
        receipts.push(deliveries.receive(received).await.expect("a write"));
    }
    receipts
}

/// A server that was down for an hour: an approval by a comment and a push to the default branch were lost.
async fn after_an_hour(mut world: World, hook: Arc<dyn AppHook>) {
    let number = world.opened().await;
    let (mut worker, deliveries) = world.worker();
    let (ada, head) = (world.ada.clone(), world.head(number));
    world
        .github
        .comment(REPOSITORY, number, &ada, &format!("/gpu-test {head}"));
    world.github.comment(REPOSITORY, number, &ada, "looks good");
    world.github.comment(REPOSITORY, number, &ada, "/gpu-why");
    assert_eq!(world.github.lose_deliveries().len(), 3);
    world.pass_minutes(60);
    assert_eq!(world.state(1).await, RunState::AwaitingApproval);

    let mut redelivery = of(hook.clone(), &deliveries, &world.clock);
    assert_eq!(redelivery.look().await.expect("an answer"), asked(3));
    assert_eq!(
        redelivery.look().await.expect("an answer"),
        NOTHING,
        "each is asked for once"
    );
    assert_eq!(receive(&world, &deliveries, 202).await, [Receipt::Stored; 3]);
    assert_eq!(worker.pass().await.expect("the store works"), Pass::Idle);
    world.until_running(1).await;
    assert_eq!(world.approvals().await, 1);

    // After a restart nothing is remembered, and GitHub's account says that all of it has come.
    let mut restarted = of(hook, &deliveries, &world.clock);
    assert_eq!(restarted.look().await.expect("an answer"), NOTHING);
    assert_eq!(receive(&world, &deliveries, 202).await, [Receipt::Stored; 0]);
    assert_eq!(worker.pass().await.expect("the store works"), Pass::Idle);
    assert_eq!(world.approvals().await, 1);
}

#[tokio::test]
async fn what_was_lost_in_an_hour_is_asked_for_once_and_worked_on_once() {
    let world = World::new().await;
    let hook = world.github.clone();
    after_an_hour(world, hook).await;
}

#[tokio::test]
async fn through_the_rest_api_what_was_lost_is_asked_for_as_the_app_itself() {
    let world = World::new().await;
    let http = HttpFake::start(world.github.clone()).await;
    let installation = AppInstallation {
        issuer: "99".into(),
        installation: 12,
        key: AppKey::from_pem(include_str!("../../../scale-set/src/testing/app-key.pem")).expect("a key"),
    };
    let tokens = AppTokens::new(&http.address(), installation, world.clock.clone()).expect("an address");
    after_an_hour(world, Arc::new(tokens)).await;
    let paths: Vec<String> = http
        .requests()
        .await
        .iter()
        .map(|one| one.url.path().to_owned())
        .collect();
    assert!(
        paths.iter().all(|path| path.starts_with("/app/hook/deliveries")),
        "{paths:?}"
    );
    let attempts = paths.iter().filter(|path| path.ends_with("/attempts"));
    assert_eq!(attempts.count(), 3);
}

#[tokio::test]
async fn what_is_stored_was_asked_for_by_hand_or_is_anothers_is_not_asked_for() {
    let world = World::new().await;
    let deliveries = Arc::<MemoryDeliveries>::default();
    let number = world.github.open(REPOSITORY, &world.mallory, &[]);
    world.github.comment(REPOSITORY, number, &world.ada, "/gpu-why");
    let names = world.github.lose_deliveries();
    // Our answer to this one was lost, and it is stored.
    let stored = ReceivedDelivery {
        id: names[0].clone().into(),
        event: "push".into(),
        received_at: world.clock.now(),
        body: b"{}".to_vec(),
    };
    deliveries.receive(stored).await.expect("a write");
    let by_hand = world
        .github
        .hook_deliveries(None)
        .await
        .expect("an answer")
        .deliveries;
    for sending in by_hand.iter().filter(|sending| sending.name != names[0]) {
        world.github.redeliver(sending.id).await.expect("an answer");
    }
    world.github.take_redeliveries(502);
    let mut redelivery = of(world.github.clone(), &deliveries, &world.clock);
    assert_eq!(redelivery.look().await.expect("an answer"), NOTHING);
    let mut of_another = Redelivery::new(
        world.github.clone(),
        Arc::<MemoryDeliveries>::default(),
        world.clock.clone(),
        4711,
    );
    assert_eq!(of_another.look().await.expect("an answer"), NOTHING);
}

#[tokio::test]
async fn a_look_that_fails_is_gone_on_with_and_asks_for_nothing_twice() {
    let world = World::new().await;
    let deliveries = Arc::<MemoryDeliveries>::default();
    for _ in 0..60 {
        world.github.open(REPOSITORY, &world.mallory, &[]);
    }
    let n_lost = world.github.lose_deliveries().len();
    let mut redelivery = of(world.github.clone(), &deliveries, &world.clock);
    world.github.fail("hook_deliveries", FakeFailure::NotReached);
    let failed = redelivery.look().await.expect_err("nobody answers");
    assert_eq!(
        (failed.retry(), failed.to_string().as_str()),
        (ApiRetry::Later, "could not look for lost deliveries")
    );
    world.github.recover();
    let first = redelivery.look().await.expect("an answer");
    assert_eq!(
        first,
        Look {
            n_asked: 50,
            has_more: true
        },
        "no more at once than GitHub allows"
    );
    world.github.fail("redeliver", FakeFailure::Refused);
    let rest = redelivery.look().await.expect("an answer");
    assert_eq!(
        rest,
        asked(n_lost - 50),
        "what GitHub refuses is not asked for again"
    );
    world.github.recover();
    assert_eq!(redelivery.look().await.expect("an answer"), NOTHING);
    assert_eq!(world.github.take_redeliveries(202).len(), 50);
}

#[tokio::test]
async fn an_account_without_an_end_and_one_of_long_ago_are_looked_through_no_further_than_needed() {
    let clock = Arc::new(FakeClock::default());
    clock.advance(SignedDuration::from_secs(1_800_000_000));
    let now = clock.now();
    let page = move |days: i64| {
        let delivery = HookDelivery {
            id: HookDeliveryId(1),
            name: "one".parse::<DeliveryId>().expect("a name"),
            delivered_at: now - SignedDuration::from_hours(24 * days),
            is_redelivery: false,
            status: 0,
            installation: None,
        };
        let next = Some(HookCursor("again".into()));
        HookPage {
            deliveries: vec![delivery],
            next,
        }
    };
    let deliveries = Arc::<MemoryDeliveries>::default();
    let mut old = MockAppHook::new();
    old.expect_hook_deliveries()
        .times(1)
        .returning(move |_| Ok(page(4)));
    let looked = of(Arc::new(old), &deliveries, &clock).look().await;
    assert_eq!(looked.expect("an answer"), NOTHING, "GitHub sends nothing so old");
    let mut endless = MockAppHook::new();
    endless
        .expect_hook_deliveries()
        .times(100)
        .returning(move |_| Ok(page(1)));
    endless.expect_redeliver().times(1).returning(|_| Ok(()));
    let looked = of(Arc::new(endless), &deliveries, &clock).look().await;
    assert_eq!(looked.expect("an answer"), asked(1));
}

#[tokio::test]
async fn a_later_look_goes_no_further_back_than_the_last_one() {
    let clock = Arc::new(FakeClock::default());
    clock.advance(SignedDuration::from_secs(1_800_000_000));
    let sent = |id: u64, minutes: i64, now: Timestamp| HookDelivery {
        id: HookDeliveryId(id),
        name: format!("name-{id}").parse().expect("a name"),
        delivered_at: now - SignedDuration::from_mins(minutes),
        is_redelivery: false,
        status: 200,
        installation: None,
    };
    let now = clock.now();
    let mut hook = MockAppHook::new();
    let mut n_pages = 0;
    hook.expect_hook_deliveries().times(4).returning(move |from| {
        n_pages += 1;
        let id = from.map_or(1, |HookCursor(from)| from.parse().expect("a number"));
        // The first look meets three pages; the second one ends at what is older than the overlap.
        let next = (id < 3).then(|| HookCursor((id + 1).to_string()));
        let minutes = [0, 30, 60][usize::try_from(id - 1).expect("small")] + if n_pages > 3 { 11 } else { 0 };
        Ok::<_, ApiError>(HookPage {
            deliveries: vec![sent(id, minutes, now)],
            next,
        })
    });
    let deliveries = Arc::<MemoryDeliveries>::default();
    let mut redelivery = of(Arc::new(hook), &deliveries, &clock);
    for _ in 0..2 {
        assert_eq!(redelivery.look().await.expect("an answer"), NOTHING);
    }
}

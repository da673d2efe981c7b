//! Deliveries of webhooks: shown, worked on again and sent by hand, on a store and through a scheduler.

use std::{fs, net::SocketAddr, sync::Arc};

use blueproof_core::{
    ports::{Deliveries as _, DeliveryClient as _, DeliveryState, ReceivedDelivery},
    sqlite::SqliteStore,
    testing::{FakeClock, MemoryDeliveries},
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_github::{
    receiver::Receiver,
    webhook::{WebhookSecret, WebhookSecrets},
};
use jiff::Timestamp;
use serde_json::json;
use tokio::{net::TcpListener, runtime::Runtime};

use crate::common::{Answer, Home};

const ID: &str = "72d3162e-cc78-11e3-81ab-4c9367dc0958";
const SECRET: &str = "a secret of the webhook";

/// Stores a delivery that was given up.
fn store_given_up(home: &Home) -> SqliteStore {
    fs::create_dir_all(home.store().parent().expect("it has one")).expect("a folder");
    let store = SqliteStore::open(&home.store()).expect("a store");
    let delivery = ReceivedDelivery {
        id: ID.into(),
        event: "issue_comment".into(),
        received_at: Timestamp::UNIX_EPOCH,
        body: br#"{"action": "created", "repository": {"full_name": "kubeflow/trainer"}}"#.to_vec(),
    };
    let problem = Diagnostic::error(Code::DeliveryUnreadable, "the delivery cannot be read");
    let given_up = DeliveryState::GivenUp {
        problem: Box::new(problem),
    };
    Runtime::new().expect("a runtime").block_on(async {
        store.receive(delivery).await.expect("a write");
        let noted = store.note_delivery(ID, Timestamp::UNIX_EPOCH, given_up);
        noted.await.expect("a write");
    });
    store
}

fn read_and_replay(home: &Home) {
    let store = store_given_up(home);
    let listed = home.blueproof(&["webhook", "list", "-o", "json"]).json();
    assert_eq!(listed["items"][0]["id"], ID);
    assert_eq!(listed["items"][0]["action"], "created");
    assert!(
        listed["items"][0]["state"]["givenUp"]["problem"]["code"] == "BP1104",
        "{listed}"
    );
    let shown = home.blueproof(&["webhook", "show", "72d3", "-o", "json"]).json();
    assert_eq!(
        shown["payload"]["repository"],
        json!({ "full_name": "kubeflow/trainer" })
    );
    let payload = home.blueproof(&["webhook", "show", ID, "--payload"]);
    assert!(
        payload.stdout.starts_with(r#"{"action": "created""#),
        "{payload:?}"
    );
    let replayed = home.blueproof(&["webhook", "replay", "72d3"]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let pending = Runtime::new()
        .expect("a runtime")
        .block_on(store.pending_deliveries(9));
    assert_eq!(pending.expect("a read").len(), 1);
    let unknown = home.blueproof(&["webhook", "replay", "none"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("BP1111"), "{unknown:?}");
}

#[test]
fn a_delivery_that_was_given_up_is_shown_and_worked_on_again() {
    read_and_replay(&Home::local("the same through a scheduler is the test below"));
}

#[test]
fn through_a_scheduler_deliveries_are_shown_and_worked_on_again_as_on_a_store() {
    read_and_replay(&Home::served());
}

/// Where webhooks are taken, as GitHub finds it.
struct Hooks {
    deliveries: Arc<MemoryDeliveries>,
    address: SocketAddr,
    runtime: Runtime,
}

impl Hooks {
    fn listen() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let deliveries = Arc::<MemoryDeliveries>::default();
        let secrets = WebhookSecrets::one(WebhookSecret::new(SECRET).expect("long enough"));
        let receiver = Receiver::new(
            secrets,
            deliveries.clone(),
            Arc::<FakeClock>::default(),
            Arc::default(),
        );
        let listener = runtime
            .block_on(TcpListener::bind("127.0.0.1:0"))
            .expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        runtime.spawn(async move { axum::serve(listener, receiver.router()).await });
        Self {
            deliveries,
            address,
            runtime,
        }
    }

    fn url(&self) -> String {
        format!("http://{}/webhooks/github", self.address)
    }
}

fn send(home: &Home, to: &str, secret: &str, more: &[&str]) -> Answer {
    for (name, text) in [
        ("payload.json", "{\"action\": \"created\"}\n"),
        ("secret", secret),
    ] {
        fs::write(home.path().join(name), text).expect("room");
    }
    let sent = [
        "webhook",
        "send",
        "payload.json",
        "--secret-file",
        "secret",
        "--event",
        "push",
        "--to",
        to,
    ];
    home.blueproof(&[&sent, more].concat())
}

#[test]
fn what_is_sent_by_hand_is_taken_once_and_only_with_the_secret() {
    let (home, hooks) = (Home::local("nothing is read of a store"), Hooks::listen());
    let (to, named) = (hooks.url(), ["--delivery", ID]);
    let answers = [
        (send(&home, &to, SECRET, &named), Some(0), "stored"),
        (send(&home, &to, SECRET, &named), Some(0), "known already"),
        (send(&home, &to, "another secret of 16", &[]), Some(1), "401"),
        (
            send(&home, "http://gpu.example.org/", SECRET, &[]),
            Some(2),
            "without TLS",
        ),
        (
            send(&home, "http://127.0.0.1:1/", SECRET, &[]),
            Some(3),
            "was not reached",
        ),
    ];
    for (answer, code, said) in answers {
        assert_eq!(answer.code, code, "{answer:?}");
        assert!(format!("{answer:?}").contains(said), "{said}: {answer:?}");
        assert!(
            !format!("{answer:?}").contains("secret of"),
            "no secret is shown: {answer:?}"
        );
    }
    let stored = hooks
        .runtime
        .block_on(hooks.deliveries.deliveries(9))
        .expect("a read");
    assert_eq!(stored.len(), 1);
    assert_eq!((stored[0].id.as_str(), stored[0].event.as_str()), (ID, "push"));
}

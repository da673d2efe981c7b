//! What is promised of deliveries.

use blueproof_diagnostic::{Code, Diagnostic};
use jiff::{SignedDuration, Timestamp};

use crate::ports::{
    Deliveries, DeliveryAbout, DeliveryState, Receipt, ReceivedDelivery, StoredDelivery, TRIED_OFTEN,
};

/// Puts deliveries to their promises. They are empty before, and are not afterwards.
pub async fn deliveries_keep_their_promises(deliveries: &dyn Deliveries) {
    each_is_kept_whole_and_once(deliveries).await;
    what_was_given_up_is_tried_again(deliveries).await;
    what_was_tried_often_keeps_no_other_waiting(deliveries).await;
    what_is_to_be_worked_on_is_never_removed(deliveries).await;
    a_list_says_what_each_is_about(deliveries).await;
}

fn delivery(id: &str, minute: i64) -> ReceivedDelivery {
    ReceivedDelivery {
        id: id.into(),
        event: "push".into(),
        received_at: at(minute),
        body: vec![0, 0xff, b'{', b'\n'],
    }
}

fn at(minute: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minute)
}

fn done() -> DeliveryState {
    DeliveryState::Done {
        outcome: "looked".into(),
    }
}

fn given_up() -> DeliveryState {
    DeliveryState::GivenUp {
        problem: Box::new(Diagnostic::error(Code::Usage, "it cannot be read")),
    }
}

async fn pending(deliveries: &dyn Deliveries) -> Vec<String> {
    let pending = deliveries.pending_deliveries(100).await.expect("a read");
    pending.into_iter().map(|delivery| delivery.id).collect()
}

async fn each_is_kept_whole_and_once(deliveries: &dyn Deliveries) {
    for (id, minute) in [("b", 2), ("a", 1)] {
        let receipt = deliveries.receive(delivery(id, minute)).await.expect("a write");
        assert_eq!(receipt, Receipt::Stored);
    }
    let other = ReceivedDelivery {
        body: b"another".to_vec(),
        ..delivery("b", 9)
    };
    let receipt = deliveries.receive(other).await.expect("a write");
    assert_eq!(receipt, Receipt::Duplicate, "it was there before");
    assert_eq!(
        pending(deliveries).await,
        ["b", "a"],
        "those that came first are first"
    );
    let (known, body) = deliveries
        .delivery("b")
        .await
        .expect("a read")
        .expect("it is there");
    assert_eq!((known.size, known.received_at), (4, at(2)));
    assert_eq!(body, delivery("b", 2).body, "it stays as it came first");
    assert_eq!(deliveries.delivery("c").await.expect("a read"), None);
}

async fn what_was_given_up_is_tried_again(deliveries: &dyn Deliveries) {
    let note = async |id, state| deliveries.note_delivery(id, at(5), state).await.expect("a write");
    note("b", done()).await;
    note("a", given_up()).await;
    note("unheard-of", done()).await;
    assert_eq!(pending(deliveries).await, [""; 0]);
    let receive = async |id| deliveries.receive(delivery(id, 6)).await.expect("a write");
    assert_eq!(receive("b").await, Receipt::Duplicate, "it was worked on");
    assert_eq!(receive("a").await, Receipt::Again, "it was not");
    assert_eq!(pending(deliveries).await, ["a"]);
    assert!(deliveries.replay_delivery("b").await.expect("a write"));
    assert!(!deliveries.replay_delivery("c").await.expect("a write"));
    assert_eq!(pending(deliveries).await, ["b", "a"]);
    let all = deliveries.deliveries(1).await.expect("a read");
    assert_eq!(
        (all.len(), all[0].id.as_str(), all[0].noted_at),
        (1, "a", Some(at(5)))
    );
}

async fn what_was_tried_often_keeps_no_other_waiting(deliveries: &dyn Deliveries) {
    for _ in 0..TRIED_OFTEN {
        assert_eq!(pending(deliveries).await, ["b", "a"]);
        let again = DeliveryState::Pending { problem: None };
        deliveries
            .note_delivery("b", at(6), again)
            .await
            .expect("a write");
    }
    assert_eq!(pending(deliveries).await, ["a", "b"]);
}

async fn what_is_to_be_worked_on_is_never_removed(deliveries: &dyn Deliveries) {
    deliveries
        .note_delivery("b", at(7), done())
        .await
        .expect("a write");
    assert_eq!(deliveries.prune_deliveries(at(2)).await.expect("a write"), 0);
    assert_eq!(deliveries.prune_deliveries(at(60)).await.expect("a write"), 1);
    assert_eq!(pending(deliveries).await, ["a"]);
    assert_eq!(deliveries.delivery("b").await.expect("a read"), None);
}

async fn a_list_says_what_each_is_about(deliveries: &dyn Deliveries) {
    let told = ReceivedDelivery {
        body: br#"{"action": "opened", "repository": {"full_name": "kubeflow/trainer"}}"#.to_vec(),
        ..delivery("d", 8)
    };
    deliveries.receive(told).await.expect("a write");
    let huge = ReceivedDelivery {
        body: vec![b' '; DeliveryAbout::BODY_AT_MOST + 1],
        ..delivery("e", 9)
    };
    deliveries.receive(huge).await.expect("a write");
    let listed = deliveries.deliveries(3).await.expect("a read");
    let about = |delivery: StoredDelivery| (delivery.id, delivery.action, delivery.repository);
    let (action, repository) = (Some("opened".to_owned()), Some("kubeflow/trainer".to_owned()));
    let expected = [
        ("e".to_owned(), None, None),
        ("d".to_owned(), action, repository),
        ("a".to_owned(), None, None),
    ];
    assert_eq!(listed.into_iter().map(about).collect::<Vec<_>>(), expected);
    let one = deliveries.delivery("d").await.expect("a read");
    let (one, _) = one.expect("it is there");
    assert_eq!(about(one), expected[1]);
}

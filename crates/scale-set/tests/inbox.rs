//! What every inbox promises.

use std::collections::BTreeSet;

use blueproof_scale_set::{
    EventKey, EventKind, Inbox, MessageId, MessageStage, RawMessage, RunnerRequestId, ScaleSetId,
    SqliteInbox, testing::MemoryInbox,
};

const SET: ScaleSetId = ScaleSetId(1);

fn message(id: i64, text: &str) -> RawMessage {
    RawMessage {
        id: MessageId(id),
        text: text.into(),
    }
}

fn key(request: i64) -> EventKey {
    EventKey {
        request: RunnerRequestId(request),
        kind: EventKind::from("JobAssigned".to_owned()),
    }
}

/// Goes through the life of some messages.
async fn keeps_its_promises(inbox: &dyn Inbox) {
    assert_eq!(inbox.last_message(SET).await.expect("it works"), None);
    for id in [7, 5, 7] {
        inbox
            .append(SET, &message(id, "first"))
            .await
            .expect("it is kept");
    }
    inbox
        .append(SET, &message(7, "again"))
        .await
        .expect("it is known");
    inbox
        .append(ScaleSetId(2), &message(9, "of another"))
        .await
        .expect("it is kept");
    assert_eq!(
        inbox.last_message(SET).await.expect("it works"),
        Some(MessageId(7))
    );

    inbox
        .record(SET, MessageId(5), MessageStage::Received, &[key(1)])
        .await
        .expect("it is kept");
    inbox
        .record(SET, MessageId(5), MessageStage::Applied, &[key(1), key(2)])
        .await
        .expect("it is kept");
    let left = inbox.unacknowledged(SET).await.expect("it works");
    let ids: Vec<_> = left
        .iter()
        .map(|message| (message.raw.id.0, &*message.raw.text))
        .collect();
    assert_eq!(ids, [(5, "first"), (7, "first")]);
    assert_eq!(left[0].stage, MessageStage::Applied);
    assert_eq!(left[0].applied, BTreeSet::from([key(1), key(2)]));

    inbox.acknowledge(SET, MessageId(5)).await.expect("it is kept");
    inbox
        .record(SET, MessageId(7), MessageStage::Quarantined, &[])
        .await
        .expect("it is kept");
    inbox.acknowledge(SET, MessageId(7)).await.expect("it is kept");
    assert_eq!(inbox.unacknowledged(SET).await.expect("it works"), []);
    let known = inbox.get(SET, MessageId(5)).await.expect("it works");
    assert_eq!(known.map(|message| message.stage), Some(MessageStage::Applied));
    assert_eq!(
        inbox.quarantined(SET).await.expect("it works"),
        [message(7, "first")]
    );
    assert_eq!(inbox.get(SET, MessageId(9)).await.expect("it works"), None);
}

#[tokio::test]
async fn an_inbox_in_memory_keeps_its_promises() {
    keeps_its_promises(&MemoryInbox::default()).await;
}

#[tokio::test]
async fn an_inbox_of_sqlite_keeps_its_promises_and_its_messages() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("inbox.sqlite");
    keeps_its_promises(&SqliteInbox::open(&path).expect("it is made")).await;

    let inbox = SqliteInbox::open(&path).expect("it is there");
    assert_eq!(
        inbox.last_message(SET).await.expect("it works"),
        Some(MessageId(7))
    );
    assert_eq!(
        inbox.unacknowledged(ScaleSetId(2)).await.expect("it works").len(),
        1
    );
}

#[tokio::test]
async fn messages_of_long_ago_are_forgotten_but_for_those_in_quarantine() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let inbox = SqliteInbox::open(&folder.path().join("inbox.sqlite")).expect("it is made");
    for id in 1..=1100 {
        inbox.append(SET, &message(id, "m")).await.expect("it is kept");
        let stage = if id == 3 {
            MessageStage::Quarantined
        } else {
            MessageStage::Applied
        };
        inbox
            .record(SET, MessageId(id), stage, &[key(id)])
            .await
            .expect("it is kept");
        inbox.acknowledge(SET, MessageId(id)).await.expect("it is kept");
    }
    for (id, is_known) in [(2, false), (3, true), (99, false), (101, true), (1100, true)] {
        let known = inbox.get(SET, MessageId(id)).await.expect("it works");
        assert_eq!(known.is_some(), is_known, "message {id}");
    }
}

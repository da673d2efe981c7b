//! Deliveries that are read through the API keep the promises of the store behind it.

use std::sync::Arc;

use async_trait::async_trait;
use blueproof_core::{
    ports::{
        Deliveries, DeliveryClient, DeliveryState, PendingDelivery, Receipt, ReceivedDelivery, StoreError,
        StoredDelivery,
    },
    testing::{MemoryDeliveries, contract},
};
use blueproof_diagnostic::Code;
use blueproof_host::{ServerClient, api::Role};
use jiff::Timestamp;

use super::support::{On, Served};

/// Deliveries whose leader is beside them, and whose others ask the API.
struct Through {
    client: ServerClient,
    deliveries: Arc<MemoryDeliveries>,
}

#[async_trait]
impl DeliveryClient for Through {
    async fn deliveries(&self, limit: usize) -> Result<Vec<StoredDelivery>, StoreError> {
        self.client.deliveries(limit).await
    }

    async fn delivery(&self, id: &str) -> Result<Option<(StoredDelivery, Vec<u8>)>, StoreError> {
        self.client.delivery(id).await
    }

    async fn replay_delivery(&self, id: &str) -> Result<bool, StoreError> {
        self.client.replay_delivery(id).await
    }
}

#[async_trait]
impl Deliveries for Through {
    async fn receive(&self, delivery: ReceivedDelivery) -> Result<Receipt, StoreError> {
        self.deliveries.receive(delivery).await
    }

    async fn pending_deliveries(&self, limit: usize) -> Result<Vec<PendingDelivery>, StoreError> {
        self.deliveries.pending_deliveries(limit).await
    }

    async fn note_delivery(&self, id: &str, at: Timestamp, state: DeliveryState) -> Result<(), StoreError> {
        self.deliveries.note_delivery(id, at, state).await
    }

    async fn prune_deliveries(&self, before: Timestamp) -> Result<usize, StoreError> {
        self.deliveries.prune_deliveries(before).await
    }
}

#[tokio::test]
async fn deliveries_behind_a_socket_keep_their_promises() {
    let served = Served::on(On::Socket).await;
    let through = Through {
        client: served.client(None),
        deliveries: served.deliveries.clone(),
    };
    contract::deliveries_keep_their_promises(&through).await;
}

async fn receive(served: &Served, id: &str) {
    let delivery = ReceivedDelivery {
        id: id.into(),
        event: "push".into(),
        received_at: Timestamp::UNIX_EPOCH,
        body: b"<script>alert(1)</script>".to_vec(),
    };
    served.deliveries.receive(delivery).await.expect("a write");
}

#[tokio::test]
async fn every_role_reads_deliveries_and_only_an_admin_has_one_worked_on_again() {
    let served = Served::on(On::Loopback).await;
    receive(&served, "one").await;
    let nobody = served
        .client(None)
        .deliveries(1)
        .await
        .expect_err("nobody is let in");
    assert_eq!(nobody.diagnostic.code, Code::NotAuthenticated);
    for role in Role::ALL {
        let client = served.client(Some(served.token(role)));
        assert_eq!(client.deliveries(9).await.expect("every role reads").len(), 1);
        assert!(client.delivery("one").await.expect("every role reads").is_some());
        let done = DeliveryState::Done {
            outcome: "looked".into(),
        };
        let noted = served
            .deliveries
            .note_delivery("one", Timestamp::UNIX_EPOCH, done);
        noted.await.expect("a write");
        let replayed = client.replay_delivery("one").await;
        let pending = served.deliveries.pending_deliveries(9).await.expect("a read");
        match role {
            Role::Read | Role::Run | Role::Approve => {
                let refused = replayed.expect_err("the role is too low");
                assert_eq!((refused.diagnostic.code, pending.len()), (Code::RoleTooLow, 0));
            }
            Role::Admin => {
                assert!(replayed.expect("it may"));
                assert_eq!(pending.len(), 1);
            }
        }
    }
}

#[tokio::test]
async fn a_payload_is_sent_as_it_came_and_is_a_page_for_nobody() {
    let served = Served::on(On::Loopback).await;
    receive(&served, "one").await;
    let request = served.http().get(served.url("/api/v1/deliveries/one/payload"));
    let response = request.bearer_auth(served.token(Role::Read)).send().await;
    let response = response.expect("an answer");
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    assert_eq!(header("content-type"), Some("application/octet-stream"));
    assert_eq!(header("x-content-type-options"), Some("nosniff"));
    let body = response.bytes().await.expect("a body");
    assert_eq!(&*body, b"<script>alert(1)</script>");
}

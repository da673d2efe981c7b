//! A webhook as GitHub sends it, and as others do.

use std::{net::SocketAddr, sync::Arc};

use async_trait::async_trait;
use blueproof_core::{
    ports::{
        Deliveries, DeliveryClient, DeliveryState, PendingDelivery, Receipt, ReceivedDelivery, StoreError,
        StoredDelivery,
    },
    testing::{FakeClock, MemoryDeliveries},
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_github::{
    receiver::{Receiver, WEBHOOK_PATH},
    webhook::{Delivery, WebhookSecret, WebhookSecrets},
};
use jiff::Timestamp;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

const ID: &str = "72d3162e-cc78-11e3-81ab-4c9367dc0958";

fn secret() -> WebhookSecret {
    WebhookSecret::new("0123456789abcdef").expect("it is long enough")
}

struct Hook {
    address: SocketAddr,
    received: Arc<Notify>,
}

impl Hook {
    async fn on(deliveries: Arc<dyn Deliveries>) -> Self {
        let received = Arc::new(Notify::new());
        let clock = Arc::new(FakeClock::default());
        let receiver = Receiver::new(WebhookSecrets::one(secret()), deliveries, clock, received.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        tokio::spawn(async move { axum::serve(listener, receiver.router()).await });
        Self { address, received }
    }

    /// Sends a body with these headers, and returns the status and the body of the answer.
    async fn send(&self, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
        let mut request = format!("POST {WEBHOOK_PATH} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("content-length: {}\r\n\r\n", body.len());
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        stream.write_all(request.as_bytes()).await.expect("a connection");
        // Whoever refuses early may have closed it by now.
        let _ = stream.write_all(body).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).expect("the answer is text");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        let (_, told) = answer.split_once("\r\n\r\n").unwrap_or_default();
        (status.expect("a status"), told.trim_end().to_owned())
    }

    async fn signed(&self, body: &[u8]) -> (u16, String) {
        let signature = secret().sign(body);
        let headers = [
            ("x-github-delivery", ID),
            ("x-github-event", "ping"),
            ("x-hub-signature-256", &signature),
            ("content-type", "application/json"),
        ];
        self.send(&headers, body).await
    }
}

#[tokio::test]
async fn a_delivery_is_stored_before_it_is_acknowledged_and_once() {
    let deliveries = Arc::new(MemoryDeliveries::default());
    let hook = Hook::on(deliveries.clone()).await;
    assert_eq!(hook.signed(b"{}").await, (202, "stored".into()));
    hook.received.notified().await;
    assert_eq!(hook.signed(b"{}").await, (200, "known already".into()));
    let (stored, body) = deliveries
        .delivery(ID)
        .await
        .expect("a read")
        .expect("it is stored");
    assert_eq!((stored.event.as_str(), body.as_slice()), ("ping", &b"{}"[..]));
}

/// A25 of the list of attacks.
#[tokio::test]
async fn what_is_not_githubs_is_not_stored_and_told_no_more_than_that() {
    let deliveries = Arc::new(MemoryDeliveries::default());
    let hook = Hook::on(deliveries.clone()).await;
    let (status, told) = hook.send(&[], b"{}").await;
    assert_eq!(status, 401);
    assert_eq!(
        told,
        "the delivery has no header `X-Hub-Signature-256`: the webhook has no secret"
    );
    let forged = WebhookSecret::new("fedcba9876543210")
        .expect("long enough")
        .sign(b"{}");
    let headers = [("x-hub-signature-256", &*forged), ("x-github-delivery", "../x")];
    assert_eq!(hook.send(&headers, b"{}").await.0, 401);
    let signature = secret().sign(b"a=b");
    let form = [
        ("x-hub-signature-256", &*signature),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    assert_eq!(hook.send(&form, b"a=b").await.0, 415);
    assert_eq!(hook.send(&form[..1], b"a=b").await.0, 400);
    let large = vec![b' '; Delivery::LARGEST + 1];
    assert_eq!(hook.signed(&large).await.0, 413);
    assert_eq!(deliveries.deliveries(10).await.expect("a read"), []);
}

#[tokio::test]
async fn what_cannot_be_stored_is_not_acknowledged() {
    let hook = Hook::on(Arc::new(FullDisk)).await;
    let (status, told) = hook.signed(b"{}").await;
    assert_eq!(status, 503);
    assert_eq!(
        told,
        "the delivery could not be stored; ask GitHub for another try"
    );
}

#[tokio::test]
async fn bodies_that_never_end_keep_out_other_large_ones_alone() {
    let deliveries = Arc::new(MemoryDeliveries::default());
    let hook = Hook::on(deliveries.clone()).await;
    let mut endless = Vec::new();
    let large = vec![b' '; 1 << 20];
    // Those that came are not all being read at once: the first that finds no room says so.
    loop {
        let mut stream = TcpStream::connect(hook.address).await.expect("it listens");
        let begun = format!("POST {WEBHOOK_PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: 9999999\r\n\r\n");
        stream.write_all(begun.as_bytes()).await.expect("a connection");
        endless.push(stream);
        if endless.len() >= 8 && hook.send(&[], &large).await.0 == 503 {
            break;
        }
    }
    assert_eq!(hook.signed(b"{}").await, (202, "stored".into()));
}

/// A store that has no room.
struct FullDisk;

fn full() -> StoreError {
    Diagnostic::error(Code::StoreBroken, "the disk is full").into()
}

#[async_trait]
impl DeliveryClient for FullDisk {
    async fn deliveries(&self, _: usize) -> Result<Vec<StoredDelivery>, StoreError> {
        Err(full())
    }

    async fn delivery(&self, _: &str) -> Result<Option<(StoredDelivery, Vec<u8>)>, StoreError> {
        Err(full())
    }

    async fn replay_delivery(&self, _: &str) -> Result<bool, StoreError> {
        Err(full())
    }
}

#[async_trait]
impl Deliveries for FullDisk {
    async fn receive(&self, _: ReceivedDelivery) -> Result<Receipt, StoreError> {
        Err(full())
    }

    async fn pending_deliveries(&self, _: usize) -> Result<Vec<PendingDelivery>, StoreError> {
        Err(full())
    }

    async fn note_delivery(&self, _: &str, _: Timestamp, _: DeliveryState) -> Result<(), StoreError> {
        Err(full())
    }

    async fn prune_deliveries(&self, _: Timestamp) -> Result<usize, StoreError> {
        Err(full())
    }
}

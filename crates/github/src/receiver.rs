//! Where GitHub sends its webhooks.
//!
//! A delivery is stored before GitHub is told that it arrived, and nothing of it is looked at but its signature: it is worked on later.
//! Whoever has no secret can make us read a body and no more, within seconds, and large ones a few at a time.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::State,
    http::{HeaderMap, StatusCode, header::CONTENT_LENGTH},
    response::{IntoResponse, Response},
    routing::post,
};
use blueproof_core::ports::{Clock, Deliveries, Receipt, ReceivedDelivery};
use tokio::{
    sync::{Notify, Semaphore},
    time::timeout,
};

use crate::webhook::{Delivery, DeliveryProblem, Headers, WebhookSecrets};

/// The path of the webhook.
pub const WEBHOOK_PATH: &str = "/webhooks/github";

/// A body of no more bytes than this is read whoever sends it: nearly all of GitHub's are smaller.
const SMALL: usize = 256 << 10;
/// How many larger ones are read at once: together they take 200 MB at most. Whoever sends eight that never end keeps out other
/// large ones, and no small one.
const LARGE_AT_ONCE: usize = 8;
/// How long a body may take. GitHub gives up on us after ten seconds.
const READ_WITHIN: Duration = Duration::from_secs(8);

/// Takes deliveries in.
#[derive(Clone)]
pub struct Receiver {
    inner: Arc<Inner>,
}

struct Inner {
    secrets: WebhookSecrets,
    deliveries: Arc<dyn Deliveries>,
    clock: Arc<dyn Clock>,
    large: Semaphore,
    received: Arc<Notify>,
}

impl Receiver {
    /// Returns a receiver that stores what is signed with one of these secrets, and wakes whoever waits for `received`.
    pub fn new(
        secrets: WebhookSecrets,
        deliveries: Arc<dyn Deliveries>,
        clock: Arc<dyn Clock>,
        received: Arc<Notify>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                secrets,
                deliveries,
                clock,
                large: Semaphore::new(LARGE_AT_ONCE),
                received,
            }),
        }
    }

    /// Returns the route that GitHub sends to.
    pub fn router(self) -> Router {
        Router::new().route(WEBHOOK_PATH, post(receive)).with_state(self)
    }
}

/// Why a delivery is not taken, as it is answered: whoever set the webhook up sees it among its recent deliveries.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("too many large deliveries come at once; ask GitHub for another try")]
    Busy,
    #[error("the body did not come within {} seconds", READ_WITHIN.as_secs())]
    Slow,
    #[error(transparent)]
    Delivery(#[from] DeliveryProblem),
    #[error("the delivery could not be stored; ask GitHub for another try")]
    NotStored,
}

async fn receive(
    State(receiver): State<Receiver>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, &'static str), Refusal> {
    let inner = &receiver.inner;
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok());
    let is_small = length.is_some_and(|length: usize| length <= SMALL);
    let _permit = match is_small {
        true => None,
        false => Some(inner.large.try_acquire().map_err(|_| Refusal::Busy)?),
    };
    let most = if is_small { SMALL } else { Delivery::LARGEST };
    let body = timeout(READ_WITHIN, to_bytes(body, most)).await;
    // A body that breaks off is too short for its signature, and one that does not end is too long.
    let body = body
        .map_err(|_| Refusal::Slow)?
        .map_err(|_| DeliveryProblem::TooLarge)?;
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let said = Headers {
        delivery: text("x-github-delivery"),
        event: text("x-github-event"),
        signature: text("x-hub-signature-256"),
        content_type: text("content-type"),
    };
    let delivery = Delivery::receive(&inner.secrets, said, body.into(), inner.clock.now())?;
    let stored = inner.deliveries.receive(ReceivedDelivery {
        id: delivery.id.into(),
        event: delivery.event.into(),
        received_at: delivery.received_at,
        body: delivery.body,
    });
    let receipt = stored.await.map_err(|error| {
        tracing::error!(code = %error.diagnostic.code, "a delivery could not be stored: {error}");
        Refusal::NotStored
    })?;
    inner.received.notify_one();
    Ok(answer(receipt))
}

fn answer(receipt: Receipt) -> (StatusCode, &'static str) {
    match receipt {
        Receipt::Stored => (StatusCode::ACCEPTED, "stored\n"),
        Receipt::Again => (StatusCode::ACCEPTED, "to be tried again\n"),
        Receipt::Duplicate => (StatusCode::OK, "known already\n"),
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::Busy | Self::NotStored => StatusCode::SERVICE_UNAVAILABLE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Delivery(DeliveryProblem::Signature(_)) => StatusCode::UNAUTHORIZED,
            Self::Delivery(DeliveryProblem::TooLarge) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Delivery(DeliveryProblem::ContentType) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Delivery(DeliveryProblem::Id | DeliveryProblem::Event) => StatusCode::BAD_REQUEST,
        };
        (status, format!("{self}\n")).into_response()
    }
}

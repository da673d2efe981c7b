//! The scheduler's API over HTTP (feature `api`).
//!
//! What may be read of a store, and left in it, is served as it stands: the resources are the types of the ports, in JSON. Each
//! path begins with the API's version; within one, members are added and none changes its meaning. Whoever asks again with the
//! same key changes nothing twice. `/openapi.json` describes all of it, made from the types.
//!
//! On a unix socket the user that the scheduler runs as, and the superuser, may do everything; everybody else, and on any other
//! address everybody, needs a token ([`Tokens`]) whose [`Role`] goes so far.

mod access;
mod commands;
mod deliveries;
mod description;
mod error;
mod extract;
mod facts;
mod listen;
mod outputs;
mod queues;
mod routes;
mod runs;
mod status;
mod tokens;
mod turns;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use aide::openapi::OpenApi;
use axum::{
    Extension, Json, Router,
    extract::{DefaultBodyLimit, Request},
    http::StatusCode,
    middleware::{self, Next},
    response::Response,
    routing::get,
};
use blueproof_core::{
    metrics::Exposition,
    ports::{AttemptOutput, DeliveryClient, StoreClient},
};

use access::Caller;
pub use access::Role;
pub use description::description;
use description::{as_served, describe};
use error::ApiError;
pub use listen::{Address, ListenError, Listening};
use routes::routes;
pub use status::{StandingKind, Status};
pub use tokens::{Token, Tokens};
use turns::Turns;

use crate::Service;

/// The most that a request's body may have: queues of a thousand teams have less.
const BODY_AT_MOST: usize = 8 << 20;

/// How long a request's body may take to come. Those who only listen have none.
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// What the API serves.
pub struct Api {
    store: Arc<dyn StoreClient>,
    deliveries: Arc<dyn DeliveryClient>,
    output: Arc<dyn AttemptOutput>,
    service: Arc<Service>,
    tokens: Tokens,
    turns: Turns,
    version: String,
    metrics: Vec<MetricsWriter>,
}

/// Writes metrics that the scheduler does not know of.
pub type MetricsWriter = Box<dyn Fn(&mut Exposition) + Send + Sync>;

impl Api {
    /// Returns the API of a service and its store. `version` is the program's.
    pub fn new(
        store: Arc<dyn StoreClient>,
        deliveries: Arc<dyn DeliveryClient>,
        output: Arc<dyn AttemptOutput>,
        service: Arc<Service>,
        tokens: Tokens,
        version: impl Into<String>,
    ) -> Self {
        Self {
            store,
            deliveries,
            output,
            service,
            tokens,
            turns: Turns::default(),
            version: version.into(),
            metrics: Vec::new(),
        }
    }

    /// Has metrics served beside the scheduler's.
    #[must_use]
    pub fn with_metrics(mut self, writer: MetricsWriter) -> Self {
        self.metrics.push(writer);
        self
    }

    /// Returns what answers requests, and the description of them.
    pub fn router(self) -> (Router, OpenApi) {
        let api = Arc::new(self);
        let mut description = OpenApi::default();
        let version = api.version.clone();
        let known = routes()
            // Inside of the next one: nothing is read of whoever is not known, or has too many requests already.
            .layer(middleware::from_fn(in_time))
            .layer(middleware::from_fn_with_state(
                Arc::clone(&api),
                access::authenticate,
            ))
            .with_state(Arc::clone(&api))
            .finish_api_with(&mut description, |of| describe(of, &version));
        let described = as_served(&description);
        let app = known
            .route("/healthz", get(status::healthz))
            .route("/readyz", get(status::readyz).with_state(api))
            .route("/openapi.json", get(async || Json(described)))
            .method_not_allowed_fallback(wrong_method)
            .fallback(nothing_there)
            .layer(DefaultBodyLimit::max(BODY_AT_MOST))
            .layer(middleware::from_fn(write_down));
        (app, description)
    }
}

/// Returns how many are wanted, within what may be asked for.
fn bounded(limit: Option<u32>, (usual, most): (u32, u32)) -> Result<usize, ApiError> {
    let limit = limit.unwrap_or(usual);
    if !(1..=most).contains(&limit) {
        let why = format!("`limit` is {limit}, and goes from 1 to {most}");
        return Err(ApiError::malformed(StatusCode::BAD_REQUEST, &why));
    }
    Ok(limit as usize)
}

async fn nothing_there(request: Request) -> ApiError {
    ApiError::missing(format_args!("`{}`", request.uri().path()))
}

async fn wrong_method() -> ApiError {
    let why = "the path is there, and the method is not; the header `Allow` names those that are";
    ApiError::malformed(StatusCode::METHOD_NOT_ALLOWED, why)
}

/// Logs what was asked and how long the answer took to begin: neither who asks, nor what stands after the question mark.
async fn write_down(request: Request, next: Next) -> Response {
    let began = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    let (status, took) = (response.status().as_u16(), began.elapsed());
    match status {
        401 | 403 => tracing::info!(%method, path, status, ?took, "refused"),
        500.. => tracing::warn!(%method, path, status, ?took, "could not answer"),
        _ => tracing::debug!(%method, path, status, ?took, "answered"),
    }
    response
}

/// Reads a body before anything is done with it, so that one that does not come keeps nothing waiting.
async fn in_time(request: Request, next: Next) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let read = tokio::time::timeout(BODY_WITHIN, axum::body::to_bytes(body, BODY_AT_MOST)).await;
    let bytes = match read {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => {
            let why = format!("the body is cut off, or has more than {BODY_AT_MOST} bytes");
            return Err(ApiError::malformed(StatusCode::PAYLOAD_TOO_LARGE, &why));
        }
        Err(_) => {
            let why = "the body did not come in time";
            return Err(ApiError::malformed(StatusCode::REQUEST_TIMEOUT, why));
        }
    };
    Ok(next.run(Request::from_parts(parts, bytes.into())).await)
}

/// Returns what answers on a connection from a user of this machine.
fn from_peer(app: &Router, uid: Option<u32>) -> Router {
    match uid {
        Some(uid) => app.clone().layer(Extension(access::Peer { uid })),
        None => app.clone(),
    }
}

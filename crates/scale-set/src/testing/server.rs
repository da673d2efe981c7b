//! The model on loopback, for clients that speak HTTP.

use std::io;

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::State,
    response::IntoResponse,
};
use tokio::{net::TcpListener, task::JoinHandle};

use super::service::FakeService;
use crate::transport::Request;

/// The most that a request may have.
const BODY_AT_MOST: usize = 1024 * 1024;

/// The service on a free port of loopback, until it is dropped.
#[derive(Debug)]
pub struct FakeServer {
    base: String,
    serving: JoinHandle<()>,
}

impl FakeServer {
    /// Serves a service, whose model's URLs are from now on the server's.
    pub async fn start(service: FakeService) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let base = format!("http://{}", listener.local_addr()?);
        service.with(|model, _| model.options.base.clone_from(&base));
        let router = Router::new().fallback(answer).with_state(service);
        let serving = tokio::spawn(async move {
            // It ends with its task, and an error of one connection is that connection's.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { base, serving })
    }

    /// Returns where it is, such as `http://127.0.0.1:4711`.
    pub fn base(&self) -> &str {
        &self.base
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(
    State(service): State<FakeService>,
    request: axum::extract::Request,
) -> axum::response::Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_AT_MOST).await else {
        return reqwest::StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let Ok(url) = format!("http://fake{}", parts.uri).parse() else {
        return reqwest::StatusCode::BAD_REQUEST.into_response();
    };
    let request = Request {
        method: parts.method,
        url,
        headers: parts.headers,
        body: body.to_vec(),
    };
    match service.answer(&request).await {
        Some(response) => (response.status, response.headers, Body::from(response.body)).into_response(),
        // HTTP has no way to say so; this is what a proxy would.
        None => reqwest::StatusCode::GATEWAY_TIMEOUT.into_response(),
    }
}

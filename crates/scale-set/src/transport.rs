//! How requests travel: a small trait, and reqwest behind it.
//!
//! A transport makes one attempt. What may be repeated is said in [`retry`](crate::retry), and what an answer means in
//! [`client`](crate::client).

use std::{fmt, time::Duration};

use async_trait::async_trait;
use reqwest::{Method, StatusCode, Url, header::HeaderMap, redirect};

/// How long a connection may take to be made.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);

/// How long an answer may take: a poll is held by the service for some fifty seconds.
const ANSWER_WITHIN: Duration = Duration::from_secs(300);

/// The most that an answer may have: fifty messages are some hundred kilobytes.
const BODY_AT_MOST: usize = 16 * 1024 * 1024;

/// A request. Its `Debug` shows neither headers nor body, which have secrets.
#[derive(Clone)]
pub struct Request {
    /// Its method.
    pub method: Method,
    /// Where it goes.
    pub url: Url,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body; empty is none.
    pub body: Vec<u8>,
}

/// An answer, read to its end.
#[derive(Clone)]
pub struct Response {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

/// Whether a request that failed can have been carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It never reached the service.
    NotSent,
    /// It may have reached it: the connection broke later.
    Unknown,
}

/// A request that got no answer.
#[derive(Debug, thiserror::Error)]
#[error("no answer came")]
pub struct TransportError {
    /// Whether the request can have been carried out.
    pub delivery: Delivery,
    /// Why.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Carries requests to the service, each once.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends a request and reads its answer, whatever its status. Dropping the future gives the request up.
    async fn send(&self, request: Request) -> Result<Response, TransportError>;
}

/// The transport of the real service: reqwest, with TLS by rustls and ring.
#[derive(Debug, Clone)]
pub struct HttpTransport(reqwest::Client);

impl HttpTransport {
    /// Makes a transport with connections of its own. Clones share them.
    pub fn new() -> Result<Self, TransportError> {
        // Where the program has chosen one already, that stays.
        let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_WITHIN)
            .timeout(ANSWER_WITHIN)
            .redirect(redirect::Policy::none())
            .build();
        client.map(Self).map_err(TransportError::of)
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn send(&self, request: Request) -> Result<Response, TransportError> {
        let sent = self
            .0
            .request(request.method, request.url)
            .headers(request.headers);
        let mut answer = sent.body(request.body).send().await.map_err(TransportError::of)?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(TransportError::of)? {
            if body.len() + piece.len() > BODY_AT_MOST {
                return Err(TransportError::too_large());
            }
            body.extend_from_slice(&piece);
        }
        Ok(Response {
            status,
            headers,
            body,
        })
    }
}

impl TransportError {
    fn of(error: reqwest::Error) -> Self {
        let is_not_sent = error.is_connect() || error.is_builder();
        Self {
            delivery: if is_not_sent {
                Delivery::NotSent
            } else {
                Delivery::Unknown
            },
            // A queue's URL may carry more than an address.
            source: error.without_url().into(),
        }
    }

    fn too_large() -> Self {
        Self {
            delivery: Delivery::Unknown,
            source: format!("the answer has more than {BODY_AT_MOST} bytes").into(),
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.url.path())
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} bytes", self.status, self.body.len())
    }
}

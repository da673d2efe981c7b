//! A request taken apart, and what is answered.

use jiff::Timestamp;
use reqwest::{
    Method, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde_json::{Value, json};

use crate::transport::{Request, Response};

/// What comes of a request.
#[derive(Debug)]
pub enum Reply {
    /// It is answered.
    Answer(Response),
    /// It is held: ask again when something happened, and at the latest then.
    Hold {
        /// When it is answered in any case.
        until: Timestamp,
    },
    /// It was carried out, and the connection breaks.
    Lost,
}

/// A request, taken apart.
pub(super) struct Asked<'a> {
    pub(super) method: &'a Method,
    pub(super) parts: Vec<&'a str>,
    pub(super) body: &'a [u8],
    query: Vec<(String, String)>,
    headers: &'a HeaderMap,
}

impl<'a> Asked<'a> {
    pub(super) fn of(request: &'a Request) -> Self {
        let path = request.url.path();
        let parts = path
            .split('/')
            .filter(|part| !part.is_empty() && !["tenant", "api", "v3"].contains(part));
        Self {
            method: &request.method,
            parts: parts.collect(),
            body: &request.body,
            query: request.url.query_pairs().into_owned().collect(),
            headers: &request.headers,
        }
    }

    pub(super) fn query(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the token behind a word such as `Bearer `.
    pub(super) fn token(&self, word: &str) -> Option<&str> {
        self.headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix(word)
    }

    pub(super) fn capacity(&self) -> usize {
        let text = self
            .headers
            .get("X-ScaleSetMaxCapacity")
            .and_then(|value| value.to_str().ok());
        text.and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(self.body).unwrap_or_default()
    }
}

pub(super) fn text(status: StatusCode, body: &str) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Response {
        status,
        headers,
        body: body.into(),
    }
}

pub(super) fn answer(status: StatusCode, body: &Value) -> Reply {
    let mut response = text(status, &body.to_string());
    response
        .headers
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Reply::Answer(response)
}

pub(super) fn refuse(status: StatusCode, type_name: &str) -> Reply {
    answer(
        status,
        &json!({"typeName": type_name, "message": "the fake refuses"}),
    )
}

pub(super) fn empty(status: StatusCode) -> Reply {
    Reply::Answer(Response {
        status,
        headers: HeaderMap::new(),
        body: Vec::new(),
    })
}

//! One call: sent, repeated as its policy says, and its answer taken apart.

use std::{sync::Arc, time::Duration};

use reqwest::{
    Method, StatusCode, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT},
};
use serde::de::DeserializeOwned;

use crate::{
    error::{Cause, Correlation, Error, Refusal, without_mark},
    retry::{Idempotency, RetryPolicy},
    secret::Secret,
    transport::{Request, Response, Transport},
};

/// What is to be called.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// What it is for, behind "could not".
    pub(crate) doing: String,
    /// What is sent.
    pub(crate) request: Request,
    /// What a repeat would do.
    pub(crate) class: Idempotency,
    /// The statuses of success.
    pub(crate) expected: Expected,
}

/// The statuses of success of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    /// This one.
    Status(StatusCode),
    /// Either of these.
    Either(StatusCode, StatusCode),
    /// Any from 200 to 299.
    Success,
}

/// Sends calls.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) policy: RetryPolicy,
}

/// An answer of success.
pub(crate) struct Answer {
    doing: String,
    response: Response,
}

impl Call {
    pub(crate) fn new(doing: impl Into<String>, method: Method, url: Url) -> Self {
        let class = if method == Method::POST {
            Idempotency::Once
        } else {
            Idempotency::Repeatable
        };
        Self {
            doing: doing.into(),
            request: Request {
                method,
                url,
                headers: HeaderMap::new(),
                body: Vec::new(),
            },
            class,
            expected: Expected::Status(StatusCode::OK),
        }
    }

    /// Says what a repeat would do.
    pub(crate) fn class(mut self, class: Idempotency) -> Self {
        self.class = class;
        self
    }

    /// Says which statuses are a success.
    pub(crate) fn expecting(mut self, expected: Expected) -> Self {
        self.expected = expected;
        self
    }

    /// Sends a body of JSON.
    pub(crate) fn json(mut self, body: &impl serde::Serialize) -> Self {
        self.request.body = serde_json::to_vec(body).expect("plain data is JSON");
        self.header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
    }

    /// Sets a header.
    pub(crate) fn header(mut self, name: impl Into<HeaderName>, value: HeaderValue) -> Self {
        self.request.headers.insert(name.into(), value);
        self
    }

    /// Says who asks.
    pub(crate) fn agent(self, agent: &HeaderValue) -> Self {
        self.header(USER_AGENT, agent.clone())
    }

    /// Sends a token after a word such as `Bearer`.
    pub(crate) fn authorize(self, word: &str, token: &Secret) -> Result<Self, Error> {
        let value = HeaderValue::from_str(&format!("{word} {}", token.expose()));
        let mut value = value.map_err(|error| self.fails(Cause::Credentials(error.into())))?;
        value.set_sensitive(true);
        Ok(self.header(AUTHORIZATION, value))
    }

    fn fails(&self, cause: Cause) -> Error {
        Error::new(&self.doing, Correlation::default(), cause)
    }
}

impl Expected {
    fn has(self, status: StatusCode) -> bool {
        match self {
            Expected::Status(one) => status == one,
            Expected::Either(one, other) => status == one || status == other,
            Expected::Success => status.is_success(),
        }
    }
}

impl Caller {
    /// Sends a call, and again where its policy and its class allow it.
    pub(crate) async fn send(&self, call: &Call) -> Result<Answer, Error> {
        let mut n_repeats = 0;
        loop {
            let error = match self.send_once(call).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(pause) = self.policy.pause(call.class, &error, n_repeats) else {
                return Err(error);
            };
            tracing::debug!(
                doing = call.doing,
                ?pause,
                error = &error as &dyn std::error::Error,
                "repeating a call"
            );
            self.pause(pause).await;
            n_repeats += 1;
        }
    }

    async fn pause(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
    }

    async fn send_once(&self, call: &Call) -> Result<Answer, Error> {
        let sent = self.transport.send(call.request.clone()).await;
        let response = sent.map_err(|error| call.fails(Cause::Transport(error)))?;
        if call.expected.has(response.status) {
            return Ok(Answer {
                doing: call.doing.clone(),
                response,
            });
        }
        let correlation = Correlation::of(&response.headers);
        let cause = Cause::Refused(Refusal::of(&response));
        Err(Error::new(&call.doing, correlation, cause))
    }
}

impl Answer {
    /// Returns the status.
    pub(crate) fn status(&self) -> StatusCode {
        self.response.status
    }

    /// Returns the body as text, without a byte order mark; `None` if there is none.
    pub(crate) fn text(&self) -> Option<String> {
        let body = without_mark(&self.response.body);
        (!body.trim_ascii().is_empty()).then(|| String::from_utf8_lossy(body).into_owned())
    }

    /// Reads the body.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let text = self.text().ok_or_else(|| self.fails(Cause::EmptyBody))?;
        serde_json::from_str(&text).map_err(|error| self.unreadable(error))
    }

    /// Says that the body is not what was expected.
    pub(crate) fn unreadable(&self, error: impl std::error::Error + Send + Sync + 'static) -> Error {
        self.fails(Cause::Unreadable(error.into()))
    }

    /// Says that a call which was answered has failed all the same.
    pub(crate) fn fails(&self, cause: Cause) -> Error {
        Error::new(&self.doing, Correlation::of(&self.response.headers), cause)
    }
}

//! How many requests of one caller are answered at a time, so that nobody keeps the others out, and for how long: a token that is
//! removed or expires ends what is sent for it.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    response::Response,
};
use blueproof_diagnostic::{Code, Diagnostic};
use http_body::{Frame, SizeHint};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Interval, interval_at},
};

use super::ApiError;

/// A quarter of the connections that there may be. A follower has its turn until it goes away.
const OF_A_CALLER: usize = 256;

/// The turns of every caller there was: as many as there are tokens.
#[derive(Default)]
pub(super) struct Turns(Mutex<HashMap<String, Arc<Semaphore>>>);

/// One request that is being answered.
pub(super) struct Turn {
    _permit: OwnedSemaphorePermit,
}

/// How often it is looked whether the caller of an answer that goes on is still let in.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Says whether a caller is still let in.
pub(super) type LetIn = Box<dyn Fn() -> bool + Send>;

/// A body, and the turn that lasts until it is sent or its client is gone.
struct Sent {
    body: Body,
    look: Interval,
    is_let_in: LetIn,
    _turn: Turn,
}

impl Turns {
    /// Gives a caller a turn. Does not wait.
    pub(super) fn take(&self, caller: &str) -> Result<Turn, ApiError> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_caller = turns
            .entry(caller.to_owned())
            .or_insert_with(|| Arc::new(Semaphore::new(OF_A_CALLER)));
        let permit = Arc::clone(of_caller).try_acquire_owned();
        permit
            .map(|permit| Turn { _permit: permit })
            .map_err(|_| too_many(caller))
    }
}

impl Turn {
    /// Lasts until a response is sent, or its caller is not let in any more.
    pub(super) fn until_sent(self, response: Response, is_let_in: LetIn) -> Response {
        let sent = |body| Sent {
            body,
            look: interval_at(Instant::now() + LOOK_AGAIN, LOOK_AGAIN),
            is_let_in,
            _turn: self,
        };
        response.map(|body| Body::new(sent(body)))
    }
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        while self.look.poll_tick(context).is_ready() {
            if !(self.is_let_in)() {
                return Poll::Ready(Some(Err(axum::Error::new(NotLetIn))));
            }
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The token of a caller counts no more.
#[derive(Debug, thiserror::Error)]
#[error("the token was removed, or has expired")]
struct NotLetIn;

fn too_many(caller: &str) -> ApiError {
    let message = format!("`{caller}` has {OF_A_CALLER} requests that are being answered");
    let diagnostic = Diagnostic::error(Code::TooManyRequests, message);
    ApiError::too_many(
        diagnostic.hint("close followers that nobody reads, or give each program a token of its own"),
    )
}

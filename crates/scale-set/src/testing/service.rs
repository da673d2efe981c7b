//! The model in process: a transport that reaches it without a network.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::Notify;

use super::{model::Model, reply::Reply};
use crate::{
    clock::Clock,
    transport::{Delivery, Request, Response, Transport, TransportError},
};

/// The service, in process. Clones are the same one.
#[derive(Clone)]
pub struct FakeService {
    model: Arc<Mutex<Model>>,
    changed: Arc<Notify>,
    clock: Clock,
    delay: Duration,
}

impl FakeService {
    /// Returns a service that goes by a clock.
    pub fn new(model: Model, clock: Clock) -> Self {
        Self {
            model: Arc::new(Mutex::new(model)),
            changed: Arc::default(),
            clock,
            delay: Duration::ZERO,
        }
    }

    /// Says how long each answer takes.
    #[must_use]
    pub fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Looks at the model or changes it; polls that are held are answered if there is something now.
    pub fn with<T>(&self, look: impl FnOnce(&mut Model, Timestamp) -> T) -> T {
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = look(&mut model, self.clock.now());
        drop(model);
        self.changed.notify_waiters();
        seen
    }

    /// Answers a request; `None` is that its connection breaks.
    pub(super) async fn answer(&self, request: &Request) -> Option<Response> {
        tokio::time::sleep(self.delay).await;
        let since = self.clock.now();
        loop {
            // Before the model is asked, so that nothing that happens in between is missed.
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.ask(since, request) {
                Reply::Answer(response) => {
                    self.changed.notify_waiters();
                    return Some(response);
                }
                Reply::Lost => return None,
                Reply::Hold { until } => {
                    let left = Duration::try_from(until.duration_since(self.clock.now()));
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep(left.unwrap_or_default()) => {}
                    }
                }
            }
        }
    }

    fn ask(&self, since: Timestamp, request: &Request) -> Reply {
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        model.respond(self.clock.now(), since, request)
    }
}

#[async_trait]
impl Transport for FakeService {
    async fn send(&self, request: Request) -> Result<Response, TransportError> {
        self.answer(&request).await.ok_or_else(|| TransportError {
            delivery: Delivery::Unknown,
            source: "the connection was reset".into(),
        })
    }
}

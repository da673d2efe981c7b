//! The loop of one scale set: poll, keep, handle, acquire, acknowledge.
//!
//! A message is kept before anything is done about it and acknowledged after all was done, so that a crash anywhere in between loses
//! nothing. A message that cannot be handled does not block those behind it. A listener is a future: many share a thread.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{
    client::Client,
    demand::{Demand, DemandLedger},
    error::{Error, RefusalKind, Retry},
    inbox::{EventKey, Inbox, InboxError, MessageStage, StoredMessage},
    message::{Event, Job, Message},
    session::{Connected, Poll, Session, SessionOptions, SessionReport},
    types::{MessageId, RunnerRequestId, ScaleSetId, Statistics},
};

/// How many turns in a row may fail by a refusal that is for good if it is meant: with the pauses between them, some minutes.
const DOUBTED_TURNS: u32 = 10;

/// Why an event was not handled.
pub type HandlerError = Box<dyn std::error::Error + Send + Sync>;

/// What is done about a scale set's messages.
#[async_trait]
pub trait Handler: Send {
    /// Handles an event. Each event of a message is told once, and again only after an error, or where the process died before that
    /// could be kept. The service may tell the same in another message.
    async fn on_event(&mut self, event: &Event) -> Result<(), HandlerError>;

    /// Is told how many jobs need a runner, after each answer of the service.
    async fn on_demand(&mut self, demand: Demand);

    /// Returns whether to acquire a job that is offered.
    fn offer(&mut self, _job: &Job) -> Offer {
        Offer::Acquire
    }

    /// Is told which jobs were acquired.
    async fn on_acquired(&mut self, _jobs: &[RunnerRequestId]) {}
}

/// What to do about a job that is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// Take it.
    Acquire,
    /// Leave it to others.
    Decline,
}

/// How a listener works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerOptions {
    /// How its session is kept.
    pub session: SessionOptions,
    /// How often a message is tried before it is quarantined.
    pub tries: u32,
    /// The pause between tries.
    pub try_pause: Duration,
    /// How long statistics are doubted that are zero and should not be.
    pub grace: Duration,
}

/// What a listener has done, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListenerReport {
    /// Messages that came, those that came again among them.
    pub n_messages: u64,
    /// Events that were handled.
    pub n_events: u64,
    /// Tries to handle an event that failed.
    pub n_failed_tries: u64,
    /// Messages that were quarantined.
    pub n_quarantined: u64,
    /// Jobs that were acquired.
    pub n_acquired: u64,
    /// Polls that were given up since the capacity shrank.
    pub n_interrupted_polls: u64,
}

/// Why a listener ended that nobody asked to.
#[derive(Debug, thiserror::Error)]
#[error("the listener of scale set {scale_set} cannot go on")]
pub struct ListenerError {
    scale_set: ScaleSetId,
    #[source]
    cause: ListenerCause,
}

/// What keeps a listener from going on.
#[derive(Debug, thiserror::Error)]
pub enum ListenerCause {
    /// The service refuses for good.
    #[error(transparent)]
    Call(#[from] Error),
    /// Messages cannot be kept.
    #[error(transparent)]
    Inbox(#[from] InboxError),
}

/// The loop of one scale set.
pub struct Listener<H> {
    client: Client,
    scale_set: ScaleSetId,
    session: Session,
    inbox: Arc<dyn Inbox>,
    handler: H,
    capacity: watch::Receiver<u32>,
    demand: DemandLedger,
    options: ListenerOptions,
    report: watch::Sender<ListenerReport>,
    is_resumed: bool,
}

/// Whether a message has just come, so that its statistics hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrival {
    Now,
    Before,
}

impl ListenerOptions {
    /// Returns the usual ones, for a session's owner such as a host's name.
    pub fn of(owner: impl Into<String>) -> Self {
        Self {
            session: SessionOptions::of(owner),
            tries: 5,
            try_pause: Duration::from_secs(1),
            grace: Duration::from_secs(300),
        }
    }
}

impl ListenerError {
    /// Returns what keeps it from going on.
    pub fn cause(&self) -> &ListenerCause {
        &self.cause
    }
}

impl<H: Handler> Listener<H> {
    /// Describes a listener. `capacity` is how many jobs may be with the scale set at a time: let it be zero until that is known. The
    /// service is told at once when it shrinks, and with the next poll when it grows.
    pub fn new(
        client: &Client,
        scale_set: ScaleSetId,
        inbox: Arc<dyn Inbox>,
        handler: H,
        capacity: watch::Receiver<u32>,
        options: ListenerOptions,
    ) -> Self {
        Self {
            client: client.clone(),
            scale_set,
            session: Session::new(client, scale_set, options.session.clone()),
            inbox,
            handler,
            capacity,
            demand: DemandLedger::new(options.grace),
            options,
            report: watch::Sender::new(ListenerReport::default()),
            is_resumed: false,
        }
    }

    /// Returns what it has done, now and at each change.
    pub fn report(&self) -> watch::Receiver<ListenerReport> {
        self.report.subscribe()
    }

    /// Returns what its session has been through, now and at each change.
    pub fn session_report(&self) -> watch::Receiver<SessionReport> {
        self.session.report()
    }

    /// Runs until `stop` has a value that is `true`, or is dropped. Closes its session, and returns the handler.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<H, ListenerError> {
        let mut n_failures = 0;
        if let Err(error) = self.restore().await {
            return Err(self.ends(error.into()).await);
        }
        while !is_stopped(&stop) {
            match self.turn(&mut stop).await {
                Ok(()) => n_failures = 0,
                Err(ListenerCause::Call(error)) if may_pass(&error, n_failures) => {
                    tracing::warn!(scale_set = %self.scale_set, error = &error as &dyn std::error::Error, "a turn of the listener failed");
                    let pause = self.client.policy().backoff(n_failures);
                    n_failures += 1;
                    tokio::select! {
                        () = stopped(&mut stop) => {}
                        () = tokio::time::sleep(pause) => {}
                    }
                }
                Err(cause) => return Err(self.ends(cause).await),
            }
        }
        if let Err(error) = self.session.close().await {
            tracing::warn!(scale_set = %self.scale_set, error = &error as &dyn std::error::Error, "the session stays open");
        }
        Ok(self.handler)
    }

    /// Takes in which jobs were live when an earlier process ended.
    async fn restore(&mut self) -> Result<(), InboxError> {
        for raw in self.inbox.known(self.scale_set).await? {
            // What cannot be read was quarantined.
            if let Ok(message) = raw.read() {
                self.demand.restore(&message.events);
            }
        }
        Ok(())
    }

    async fn ends(&mut self, cause: ListenerCause) -> ListenerError {
        // What it could not do is in `cause`; that the session stays open as well only costs the next client a while.
        let _ = self.session.close().await;
        ListenerError {
            scale_set: self.scale_set,
            cause,
        }
    }

    async fn turn(&mut self, stop: &mut watch::Receiver<bool>) -> Result<(), ListenerCause> {
        if self.session.connect(stopped(stop)).await? == Connected::Interrupted {
            return Ok(());
        }
        if let Some(statistics) = self.session.take_statistics() {
            self.tell_demand(&[], Some(statistics)).await;
        }
        if !self.is_resumed {
            for message in self.inbox.unacknowledged(self.scale_set).await? {
                self.finish(message, Arrival::Before).await?;
            }
            self.is_resumed = true;
        }
        let last = self.inbox.last_message(self.scale_set).await?;
        match self.poll(last, stop).await? {
            Poll::Message(raw) => {
                self.count(|report| report.n_messages += 1);
                // Until it is acknowledged, a failure leads back to what is kept.
                self.is_resumed = false;
                self.inbox.append(self.scale_set, &raw).await?;
                if let Some(message) = self.inbox.get(self.scale_set, raw.id).await? {
                    self.finish(message, Arrival::Now).await?;
                }
                self.is_resumed = true;
            }
            Poll::Nothing => self.tell_demand(&[], None).await,
            Poll::Interrupted => {}
        }
        Ok(())
    }

    async fn poll(
        &mut self,
        last: Option<MessageId>,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Poll, ListenerCause> {
        let offered = *self.capacity.borrow_and_update();
        let mut capacity = self.capacity.clone();
        let interrupted = async {
            tokio::select! {
                () = stopped(stop) => {}
                () = shrunk(&mut capacity, offered) => {}
            }
        };
        let poll = self.session.poll(last, offered, interrupted).await?;
        if poll == Poll::Interrupted {
            self.count(|report| report.n_interrupted_polls += 1);
        }
        Ok(poll)
    }

    /// Does all that is left to do about a message.
    async fn finish(&mut self, stored: StoredMessage, arrival: Arrival) -> Result<(), ListenerCause> {
        let id = stored.raw.id;
        let message = stored.raw.read();
        match (&message, stored.stage) {
            (Ok(message), MessageStage::Received) => self.apply(message, stored.applied).await?,
            (Err(error), MessageStage::Received) => self.quarantine(id, error).await?,
            (Ok(_) | Err(_), MessageStage::Applied | MessageStage::Quarantined) => {}
        }
        if let Ok(message) = &message {
            if arrival == Arrival::Now {
                self.tell_demand(&message.events, message.statistics).await;
            }
            self.acquire(message).await?;
        }
        self.session.acknowledge(id).await?;
        Ok(self.inbox.acknowledge(self.scale_set, id).await?)
    }

    /// Tells the handler those events that it was not told, each until it succeeds or has been tried often enough.
    async fn apply(
        &mut self,
        message: &Message,
        mut applied: BTreeSet<EventKey>,
    ) -> Result<(), ListenerCause> {
        let mut done = Vec::new();
        let mut failed = None;
        for event in &message.events {
            let key = EventKey {
                request: event.request(),
                kind: event.kind(),
            };
            if applied.contains(&key) {
                continue;
            }
            match self.try_event(event).await {
                Ok(()) => {
                    applied.insert(key.clone());
                    done.push(key);
                }
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            let stage = MessageStage::Received;
            self.inbox
                .record(self.scale_set, message.id, stage, &done)
                .await?;
            return self.quarantine(message.id, &*error).await;
        }
        let stage = MessageStage::Applied;
        Ok(self
            .inbox
            .record(self.scale_set, message.id, stage, &done)
            .await?)
    }

    async fn try_event(&mut self, event: &Event) -> Result<(), HandlerError> {
        let mut n_tries = 1;
        loop {
            let error = match self.handler.on_event(event).await {
                Ok(()) => {
                    self.count(|report| report.n_events += 1);
                    return Ok(());
                }
                Err(error) => error,
            };
            self.count(|report| report.n_failed_tries += 1);
            if n_tries >= self.options.tries {
                return Err(error);
            }
            n_tries += 1;
            tokio::time::sleep(self.options.try_pause).await;
        }
    }

    async fn quarantine(
        &mut self,
        message: MessageId,
        error: &(dyn std::error::Error + Send + Sync + 'static),
    ) -> Result<(), ListenerCause> {
        tracing::error!(scale_set = %self.scale_set, %message, error = error as &dyn std::error::Error, "a message is quarantined");
        self.count(|report| report.n_quarantined += 1);
        let stage = MessageStage::Quarantined;
        Ok(self.inbox.record(self.scale_set, message, stage, &[]).await?)
    }

    async fn acquire(&mut self, message: &Message) -> Result<(), ListenerCause> {
        let mut jobs = Vec::new();
        for event in &message.events {
            if let Event::Available(job) = event
                && self.handler.offer(job) == Offer::Acquire
            {
                jobs.push(job.runner_request_id);
            }
        }
        let granted = self.session.acquire(&jobs).await?;
        if !granted.is_empty() {
            self.count(|report| report.n_acquired += granted.len() as u64);
            self.handler.on_acquired(&granted).await;
        }
        Ok(())
    }

    async fn tell_demand(&mut self, events: &[Event], statistics: Option<Statistics>) {
        let now = self.client.clock().now();
        self.demand.observe(now, events, statistics);
        self.handler.on_demand(self.demand.demand(now)).await;
    }

    fn count(&self, change: impl FnOnce(&mut ListenerReport)) {
        self.report.send_modify(change);
    }
}

/// Returns whether to go on after a call that failed. The service also refuses tokens, and denies that there is what there is, while
/// it is out of order: that is believed after a while.
fn may_pass(error: &Error, n_failures: u32) -> bool {
    let is_doubtful = matches!(
        error.refusal_kind(),
        Some(RefusalKind::Unauthorized | RefusalKind::NotFound | RefusalKind::ScaleSetNotFound)
    );
    matches!(error.retry(), Retry::Later(_)) || is_doubtful && n_failures < DOUBTED_TURNS
}

fn is_stopped(stop: &watch::Receiver<bool>) -> bool {
    *stop.borrow() || stop.has_changed().is_err()
}

/// Waits until the listener is to stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error is that nobody can ask any more.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Waits until there is less capacity than was offered. One that nobody can change stays.
async fn shrunk(capacity: &mut watch::Receiver<u32>, offered: u32) {
    if capacity.wait_for(|capacity| *capacity < offered).await.is_err() {
        std::future::pending::<()>().await;
    }
}

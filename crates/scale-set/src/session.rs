//! A session, by which one client at a time reads a scale set's messages, and how it is kept.
//!
//! Tokens expire, services forget sessions, and a process that was killed leaves one behind. None of that ends the process here:
//! a token is refreshed, a lost session is opened anew, and one that another client holds is waited for.

use std::{future::Future, time::Duration};

use jiff::Timestamp;
use reqwest::{Method, StatusCode, Url, header::HeaderValue};
use tokio::sync::watch;

use crate::{
    call::{Answer, Call, Expected},
    client::Client,
    credentials::expiry,
    error::{Cause, Error, RefusalKind, Retry},
    message::RawMessage,
    types::{MessageId, RunnerRequestId, ScaleSetId, SessionGrant, Statistics},
};

/// What tells the service how many jobs the scale set can have.
const CAPACITY: &str = "X-ScaleSetMaxCapacity";

/// How a session is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOptions {
    /// Who has the session, as others see it. The same name after a restart changes nothing: the service goes by the session.
    pub owner: String,
    /// How long before it expires the queue's token is refreshed. Scale sets of one process do so at different times, half a minute
    /// apart at most.
    pub refresh_before: Duration,
    /// The first pause while another client has the session, or the service is out of order. Each one after it is twice as long.
    pub first_pause: Duration,
    /// The longest such pause. It bounds how late a session that becomes free is taken over.
    pub longest_pause: Duration,
    /// How often the service may say that there is no such scale set before that is believed: it also says so when it is out of order.
    pub not_found_tries: u32,
}

/// A session of a scale set.
#[derive(Debug)]
pub struct Session {
    client: Client,
    scale_set: ScaleSetId,
    options: SessionOptions,
    open: Option<OpenSession>,
    /// The last one that the service said was lost.
    lost: Option<uuid::Uuid>,
    /// Failed tries to open it since it was last open.
    n_failures: u32,
    n_not_found: u32,
    /// Those of the last opening, until somebody takes them.
    statistics: Option<Statistics>,
    report: watch::Sender<SessionReport>,
}

#[derive(Debug)]
struct OpenSession {
    grant: SessionGrant,
    expires_at: Option<Timestamp>,
}

/// How a session fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// It is not open: not yet, or no more.
    Closed,
    /// It is open since then.
    Open(Timestamp),
    /// Another client has it since then, or one that was killed: it is waited for.
    HeldByAnother(Timestamp),
    /// It was lost then, or could not be opened, and is tried again.
    Recovering(Timestamp),
    /// Since then the service has said that there is no such scale set.
    ScaleSetNotFound(Timestamp),
}

/// What a session has been through, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionReport {
    /// How it fares.
    pub state: SessionState,
    /// How often one was opened.
    pub n_opened: u64,
    /// How often of these another one had been lost.
    pub n_recreated: u64,
    /// How often its token was refreshed.
    pub n_refreshed: u64,
    /// How often another client had it.
    pub n_conflicts: u64,
    /// How often an answer to a poll had no body.
    pub n_empty: u64,
}

/// What came of a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Poll {
    /// A message, which comes again until it is acknowledged.
    Message(RawMessage),
    /// Nothing is new.
    Nothing,
    /// It was given up, as the caller asked.
    Interrupted,
}

/// Whether a session could be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connected {
    /// It is open.
    Open,
    /// The waiting was given up, as the caller asked.
    Interrupted,
}

impl SessionOptions {
    /// Returns the usual ones for an owner, such as a host's name.
    pub fn of(owner: impl Into<String>) -> Self {
        Self {
            owner: owner.into(),
            refresh_before: Duration::from_secs(600),
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(30),
            not_found_tries: 20,
        }
    }
}

impl Session {
    /// Describes a session. It is opened when it is first needed.
    pub fn new(client: &Client, scale_set: ScaleSetId, options: SessionOptions) -> Self {
        let report = SessionReport {
            state: SessionState::Closed,
            n_opened: 0,
            n_recreated: 0,
            n_refreshed: 0,
            n_conflicts: 0,
            n_empty: 0,
        };
        Self {
            client: client.of_scale_set(scale_set),
            scale_set,
            options,
            open: None,
            lost: None,
            n_failures: 0,
            n_not_found: 0,
            statistics: None,
            report: watch::Sender::new(report),
        }
    }

    /// Returns what it has been through, now and at each change.
    pub fn report(&self) -> watch::Receiver<SessionReport> {
        self.report.subscribe()
    }

    /// Takes the statistics that came with its last opening.
    pub fn take_statistics(&mut self) -> Option<Statistics> {
        self.statistics.take()
    }

    /// Waits until it is open, for as long as it takes: while another client has it, and while the service is out of order. The
    /// waiting ends when `interrupted` does. An error is one that time does not mend.
    pub async fn connect(&mut self, interrupted: impl Future<Output = ()>) -> Result<Connected, Error> {
        tokio::pin!(interrupted);
        while self.open.is_none() {
            // Never given up half way: an opening whose answer nobody reads leaves a session that nobody has.
            let Err(error) = self.try_open().await else {
                break;
            };
            let pause = self.pause_after(error)?;
            tokio::select! {
                biased;
                () = &mut interrupted => return Ok(Connected::Interrupted),
                () = tokio::time::sleep(pause) => {}
            }
        }
        Ok(Connected::Open)
    }

    /// Waits for a message with a larger number than `last`. The service answers after some fifty seconds where there is none. It
    /// gives out jobs as long as no more than `capacity` are with the scale set; zero stops it. The poll is given up when
    /// `interrupted` ends, and nothing is lost by that.
    pub async fn poll(
        &mut self,
        last: Option<MessageId>,
        capacity: u32,
        interrupted: impl Future<Output = ()>,
    ) -> Result<Poll, Error> {
        tokio::pin!(interrupted);
        self.refresh_if_due().await?;
        let error = tokio::select! {
            biased;
            () = &mut interrupted => return Ok(Poll::Interrupted),
            polled = self.poll_once(last, capacity) => match polled {
                Ok(poll) => return Ok(self.noted(poll)),
                Err(error) => error,
            },
        };
        self.recover(error).await?;
        tokio::select! {
            biased;
            () = &mut interrupted => Ok(Poll::Interrupted),
            polled = self.poll_once(last, capacity) => polled.map(|poll| self.noted(poll)),
        }
    }

    /// Tells the service that a message was worked off. One that is gone is a success.
    pub async fn acknowledge(&mut self, message: MessageId) -> Result<(), Error> {
        let first = match self.acknowledge_once(message).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        self.recover(first).await?;
        match self.acknowledge_once(message).await {
            Err(error) if error.refusal_kind() == Some(RefusalKind::NotFound) => Ok(()),
            other => other,
        }
    }

    /// Acquires jobs that are offered, and returns those that were granted. Asking twice does no harm.
    pub async fn acquire(&mut self, jobs: &[RunnerRequestId]) -> Result<Vec<RunnerRequestId>, Error> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let first = match self.acquire_once(jobs).await {
            Ok(granted) => return Ok(granted),
            Err(error) => error,
        };
        self.recover(first).await?;
        self.acquire_once(jobs).await
    }

    /// Closes it, so that the next client need not wait. One that is lost is a success.
    pub async fn close(&mut self) -> Result<(), Error> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        self.enter(SessionState::Closed);
        match self
            .client
            .close_session(self.scale_set, open.grant.session_id)
            .await
        {
            Err(error) if is_lost(&error) => Ok(()),
            other => other,
        }
    }

    async fn poll_once(&self, last: Option<MessageId>, capacity: u32) -> Result<Option<Answer>, Error> {
        let grant = &self.opened()?.grant;
        let mut url = self.queue_url(grant)?;
        if let Some(last) = last.filter(|last| last.0 > 0) {
            url.query_pairs_mut()
                .append_pair("lastMessageId", &last.to_string());
        }
        let doing = format!("poll the messages of scale set {}", self.scale_set);
        let accept = HeaderValue::from_static("application/json; api-version=6.0-preview");
        let call = Call::new(doing, Method::GET, url)
            .expecting(Expected::Either(StatusCode::OK, StatusCode::ACCEPTED))
            .header(reqwest::header::ACCEPT, accept)
            .header(capacity_header(), HeaderValue::from(capacity));
        let answer = self
            .client
            .ask_queue(call, &grant.message_queue_access_token)
            .await?;
        Ok((answer.status() == StatusCode::OK).then_some(answer))
    }

    /// Reads the answer to a poll. One without a body says nothing, and is counted.
    fn noted(&self, answer: Option<Answer>) -> Poll {
        let Some(answer) = answer else {
            return Poll::Nothing;
        };
        let message = answer.text().and_then(|text| RawMessage::of(text).ok());
        match message {
            Some(message) => Poll::Message(message),
            None => {
                self.count(|report| report.n_empty += 1);
                Poll::Nothing
            }
        }
    }

    async fn acknowledge_once(&self, message: MessageId) -> Result<(), Error> {
        let grant = &self.opened()?.grant;
        let mut url = self.queue_url(grant)?;
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().push(&message.to_string());
        }
        let doing = format!("acknowledge message {message} of scale set {}", self.scale_set);
        let call = Call::new(doing, Method::DELETE, url).expecting(Expected::Status(StatusCode::NO_CONTENT));
        self.client
            .ask_queue(call, &grant.message_queue_access_token)
            .await
            .map(drop)
    }

    async fn acquire_once(&self, jobs: &[RunnerRequestId]) -> Result<Vec<RunnerRequestId>, Error> {
        let token = &self.opened()?.grant.message_queue_access_token;
        self.client.acquire_jobs(self.scale_set, token, jobs).await
    }

    /// Makes a call possible again that failed: a token that expired is refreshed, and a session that is lost is opened anew.
    async fn recover(&mut self, error: Error) -> Result<(), Error> {
        if error.refusal_kind() == Some(RefusalKind::Unauthorized) || is_lost(&error) {
            return self.refresh().await;
        }
        Err(error)
    }

    async fn refresh_if_due(&mut self) -> Result<(), Error> {
        let spread = Duration::from_secs(self.scale_set.0.unsigned_abs() % 30);
        let now = self.client.clock().now();
        let is_due = self
            .open
            .as_ref()
            .and_then(|open| open.expires_at)
            .is_some_and(|expires_at| {
                let left = expires_at.duration_since(now);
                Duration::try_from(left).map_or(true, |left| left < self.options.refresh_before + spread)
            });
        if is_due { self.refresh().await } else { Ok(()) }
    }

    async fn refresh(&mut self) -> Result<(), Error> {
        let session = self.opened()?.grant.session_id;
        match self.client.refresh_session(self.scale_set, session).await {
            Ok(grant) => {
                self.hold(grant);
                self.count(|report| report.n_refreshed += 1);
                Ok(())
            }
            // That the whole scale set is gone is said in outages, too: the session may still be there.
            Err(error) if error.refusal_kind() == Some(RefusalKind::NotFound) => {
                self.lose();
                self.try_open().await
            }
            Err(error) => Err(error),
        }
    }

    async fn try_open(&mut self) -> Result<(), Error> {
        let opened = self
            .client
            .open_session(self.scale_set, &self.options.owner)
            .await;
        let grant = match opened {
            Ok(grant) => grant,
            Err(error) => {
                self.note_failure(&error);
                self.close_lost(&error).await;
                return Err(error);
            }
        };
        self.lost = None;
        self.statistics = grant.statistics;
        self.hold(grant);
        (self.n_failures, self.n_not_found) = (0, 0);
        self.count(|report| {
            report.n_recreated += u64::from(report.n_opened > 0);
            report.n_opened += 1;
        });
        self.enter(SessionState::Open(self.client.clock().now()));
        Ok(())
    }

    /// Closes the session that was said to be lost, where the service says now that one is open: it may be that one.
    async fn close_lost(&mut self, error: &Error) {
        let is_conflict = error.refusal_kind() == Some(RefusalKind::SessionConflict);
        if let Some(lost) = self.lost.take_if(|_| is_conflict) {
            // If it is another client's after all, that one's stays, and is waited for.
            let _ = self.client.close_session(self.scale_set, lost).await;
        }
    }

    fn hold(&mut self, grant: SessionGrant) {
        let expires_at = expiry(&grant.message_queue_access_token);
        // A token that is young and about to expire all the same would be refreshed before each poll.
        let now = self.client.clock().now();
        let is_long = |at: &Timestamp| *at > now + self.options.refresh_before * 2;
        self.open = Some(OpenSession {
            grant,
            expires_at: expires_at.filter(is_long),
        });
    }

    fn lose(&mut self) {
        self.lost = self.open.take().map(|open| open.grant.session_id);
        self.enter(SessionState::Recovering(self.client.clock().now()));
    }

    fn note_failure(&mut self, error: &Error) {
        let now = self.client.clock().now();
        self.n_failures += 1;
        match error.refusal_kind() {
            Some(RefusalKind::SessionConflict) => {
                self.count(|report| report.n_conflicts += 1);
                self.enter(SessionState::HeldByAnother(now));
            }
            Some(RefusalKind::ScaleSetNotFound | RefusalKind::NotFound) => {
                self.n_not_found += 1;
                self.enter(SessionState::ScaleSetNotFound(now));
            }
            Some(
                RefusalKind::RunnerExists
                | RefusalKind::RunnerNotFound
                | RefusalKind::JobStillRunning
                | RefusalKind::Unauthorized
                | RefusalKind::Unavailable
                | RefusalKind::Unknown,
            )
            | None => self.enter(SessionState::Recovering(now)),
        }
    }

    /// Returns how long to wait before the next try, or the error if no try will succeed.
    fn pause_after(&self, error: Error) -> Result<Duration, Error> {
        let is_missing = is_lost(&error) && self.n_not_found < self.options.not_found_tries;
        let asked = match error.retry() {
            Retry::Later(asked) => asked,
            Retry::Never if is_missing => None,
            Retry::Never => return Err(error),
        };
        let factor = 2_u32.saturating_pow(self.n_failures.saturating_sub(1));
        let pause = self.options.first_pause.saturating_mul(factor);
        Ok(pause
            .max(asked.unwrap_or_default())
            .min(self.options.longest_pause))
    }

    fn opened(&self) -> Result<&OpenSession, Error> {
        self.open.as_ref().ok_or_else(|| {
            let doing = format!("use the session of scale set {}", self.scale_set);
            Error::new(doing, crate::error::Correlation::default(), Cause::SessionClosed)
        })
    }

    fn queue_url(&self, grant: &SessionGrant) -> Result<Url, Error> {
        Url::parse(&grant.message_queue_url).map_err(|error| {
            let doing = format!("find the queue of scale set {}", self.scale_set);
            Error::new(
                doing,
                crate::error::Correlation::default(),
                Cause::Unreadable(error.into()),
            )
        })
    }

    /// Enters a state. One that goes on keeps the time at which it began.
    fn enter(&self, state: SessionState) {
        self.report.send_if_modified(|report| {
            let goes_on = std::mem::discriminant(&report.state) == std::mem::discriminant(&state);
            let is_new = !goes_on || matches!(state, SessionState::Open(_));
            if is_new {
                report.state = state;
            }
            is_new
        });
    }

    fn count(&self, change: impl FnOnce(&mut SessionReport)) {
        self.report.send_modify(change);
    }
}

impl SessionReport {
    /// Returns for how long it has been open; `None` if it is not.
    pub fn age(&self, now: Timestamp) -> Option<Duration> {
        match self.state {
            SessionState::Open(since) => now.duration_since(since).try_into().ok(),
            SessionState::Closed
            | SessionState::HeldByAnother(_)
            | SessionState::Recovering(_)
            | SessionState::ScaleSetNotFound(_) => None,
        }
    }
}

fn capacity_header() -> reqwest::header::HeaderName {
    CAPACITY.parse().expect("a header's name")
}

/// Whether the service says that there is no such session or scale set.
fn is_lost(error: &Error) -> bool {
    matches!(
        error.refusal_kind(),
        Some(RefusalKind::NotFound | RefusalKind::ScaleSetNotFound)
    )
}

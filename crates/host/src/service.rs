//! Leading for as long as the process is to serve.

use std::{
    convert::Infallible,
    fmt,
    future::{Future, pending},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use blueproof_core::{
    engine::{Engine, Waker},
    ports::{Clock, RemovableOutput, Store, StoreError, Term},
    scheduler::Scheduler,
};
use blueproof_diagnostic::Diagnostic;
use tokio::{
    sync::{oneshot, watch},
    time::sleep,
};

use crate::{Host, Pruned, Retention, RetentionError, host::LOOK_FOR_TURN};

/// How long it waits at first before it tries again what failed, and how long at most.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));

/// How often what is beyond a retention is removed.
const PRUNE_EVERY: Duration = Duration::from_hours(1);

/// What is asked of the scheduler while it works.
type Question = Box<dyn FnOnce(&Scheduler) + Send>;

/// A host that serves: it leads whenever nobody else does, and tries again what fails, until it is told to stop.
///
/// What it tells and is told goes through `&self`, so that an API can stand beside [`Service::run`].
pub struct Service {
    host: Host,
    standing: watch::Sender<ServiceStatus>,
    stops: watch::Sender<bool>,
    questions: Mutex<Questions>,
    retaining: Option<Retaining>,
}

/// What a service keeps, and who is told what it removed.
struct Retaining {
    retention: Retention,
    output: Arc<dyn RemovableOutput>,
    tell: Box<dyn Fn(Result<Pruned, RetentionError>) + Send + Sync>,
}

/// How a service stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceStatus {
    /// It has not come to lead or to follow yet.
    Starting,
    /// It leads: what is asked for is decided here.
    Leading,
    /// Another process leads.
    Following,
    /// Nothing can be decided or written, and it is tried again.
    Failing(Box<Diagnostic>),
    /// It was told to stop, and has stopped.
    Stopped,
}

/// What is asked of the scheduler, and what wakes the engine to answer; `None` while there is no engine.
#[derive(Default)]
struct Questions {
    waiting: Vec<Question>,
    waker: Option<Waker>,
}

impl Service {
    /// Returns a service that does nothing yet.
    pub fn new(host: Host) -> Self {
        Self {
            host,
            standing: watch::Sender::new(ServiceStatus::Starting),
            stops: watch::Sender::new(false),
            questions: Mutex::default(),
            retaining: None,
        }
    }

    /// Has what is beyond a retention removed once an hour while this process leads, and at first as soon as it does. `tell` is told
    /// what came of it each time.
    pub fn retaining(
        self,
        retention: Retention,
        output: Arc<dyn RemovableOutput>,
        tell: impl Fn(Result<Pruned, RetentionError>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            retaining: Some(Retaining {
                retention,
                output,
                tell: Box::new(tell),
            }),
            ..self
        }
    }

    /// Returns the host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns how it stands, and each change of that.
    pub fn standing(&self) -> watch::Receiver<ServiceStatus> {
        self.standing.subscribe()
    }

    /// Tells [`Service::run`] to return. What was taken in is in the log by then, with what follows from it; attempts go on by
    /// themselves, and the next leader takes them over. Does not wait.
    pub fn stop(&self) {
        self.stops.send_replace(true);
        if let Some(waker) = &self.questions().waker {
            waker.wake();
        }
    }

    /// Asks the scheduler that works here. `None` where this process does not lead. Waits for the input in hand at most.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Scheduler) -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, answer) = oneshot::channel();
        {
            let mut questions = self.questions();
            let waker = questions.waker.clone()?;
            // Whoever asked may have gone meanwhile.
            let question = |scheduler: &Scheduler| drop(sender.send(question(scheduler)));
            questions.waiting.push(Box::new(question));
            waker.wake();
        }
        answer.await.ok()
    }

    /// Leads and follows until it is told to [stop](Self::stop). To be called once.
    pub async fn run(&self) {
        let mut stops = self.stops.subscribe();
        let mut pause = PAUSES.0;
        while !self.is_stopping() {
            match self.take_turn().await {
                Ok(wait) => {
                    pause = PAUSES.0;
                    unless(&mut stops, sleep(wait)).await;
                }
                Err(error) => {
                    self.standing
                        .send_replace(ServiceStatus::Failing(error.diagnostic));
                    unless(&mut stops, sleep(pause)).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
        self.standing.send_replace(ServiceStatus::Stopped);
    }

    /// Leads for as long as it can. Returns when to look again.
    async fn take_turn(&self) -> Result<Duration, StoreError> {
        match self.host.try_lead().await? {
            Some(term) => self.lead(&*term).await.map(|()| Duration::ZERO),
            None => {
                self.standing.send_if_modified(|standing| {
                    let is_new = *standing != ServiceStatus::Following;
                    *standing = ServiceStatus::Following;
                    is_new
                });
                Ok(LOOK_FOR_TURN)
            }
        }
    }

    async fn lead(&self, term: &dyn Term) -> Result<(), StoreError> {
        let led = async {
            let mut engine = self.host.open_engine().await?;
            self.questions().waker = Some(engine.waker());
            self.standing.send_replace(ServiceStatus::Leading);
            self.work(&mut engine).await
        };
        let led = tokio::select! {
            led = led => led,
            () = term.lost() => Ok(()),
            never = self.prune_again_and_again() => match never {},
        };
        *self.questions() = Questions::default();
        match led {
            Err(error) if error.is_overtaken() => Ok(()),
            other => other,
        }
    }

    async fn work(&self, engine: &mut Engine) -> Result<(), StoreError> {
        loop {
            let worked = engine.run_until(|_| self.is_stopping() || self.is_asked()).await;
            engine
                .take_quarantined()
                .iter()
                .for_each(|problem| self.host.tell(problem));
            worked?;
            self.answer(engine.scheduler());
            if self.is_stopping() {
                return Ok(());
            }
        }
    }

    async fn prune_again_and_again(&self) -> Infallible {
        let Some(retaining) = self.retaining.as_ref().filter(|of| !of.retention.is_unlimited()) else {
            return pending().await;
        };
        loop {
            (retaining.tell)(
                retaining
                    .prune(&self.host.ports().store, &self.host.ports().clock)
                    .await,
            );
            sleep(PRUNE_EVERY).await;
        }
    }

    fn answer(&self, scheduler: &Scheduler) {
        let questions = std::mem::take(&mut self.questions().waiting);
        questions.into_iter().for_each(|question| question(scheduler));
    }

    fn is_asked(&self) -> bool {
        !self.questions().waiting.is_empty()
    }

    fn is_stopping(&self) -> bool {
        *self.stops.borrow()
    }

    fn questions(&self) -> MutexGuard<'_, Questions> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Retaining {
    async fn prune(&self, store: &Arc<dyn Store>, clock: &Arc<dyn Clock>) -> Result<Pruned, RetentionError> {
        let (store, now) = (&**store, clock.now());
        let plan = self.retention.plan(store, &*self.output, now).await?;
        Ok(plan.carry_out(store, &*self.output, now, |_| ()).await?)
    }
}

/// Waits for something, and no longer than until it is told to stop.
async fn unless(stops: &mut watch::Receiver<bool>, wait: impl Future<Output = ()>) {
    tokio::select! {
        () = wait => {}
        // Whoever tells it is there for as long as the service.
        _ = stops.wait_for(|stops| *stops) => {}
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let standing = self.standing.borrow();
        f.debug_struct("Service")
            .field("standing", &*standing)
            .finish_non_exhaustive()
    }
}

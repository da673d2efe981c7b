//! Calls to ports that are under way.

use std::{collections::BTreeMap, sync::Arc};

use tokio::{sync::Mutex, task::JoinSet};

use super::Ports;
use crate::{
    action::{Action, StartAction},
    domain::{AttemptId, RunId},
    event::{Call, Event},
    ports::{CallError, Observation},
};

/// Calls to ports that are under way, and the events that come of them.
pub(super) struct Calls {
    ports: Ports,
    under_way: JoinSet<Option<Event>>,
    turns: BTreeMap<RunId, Turn>,
}

/// Calls about one run are made one at a time, in the order in which they were wanted. Watching is not a turn.
type Turn = Arc<Mutex<()>>;

impl Calls {
    pub(super) fn new(ports: Ports) -> Self {
        Self {
            ports,
            under_way: JoinSet::new(),
            turns: BTreeMap::new(),
        }
    }

    pub(super) fn begin(&mut self, action: Action) {
        let call = action.call();
        let run = match call {
            Call::Report(run) => run,
            Call::Reserve(id) | Call::Start(id) | Call::Observe(id) | Call::Stop(id) | Call::Release(id) => {
                id.run
            }
        };
        self.turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        let turn = Arc::clone(self.turns.entry(run).or_default());
        let ports = self.ports.clone();
        self.under_way.spawn(async move {
            match perform(&ports, action, turn).await {
                Ok(event) => event,
                Err(error) => Some(Event::CallFailed {
                    call,
                    error: Box::new(error),
                }),
            }
        });
    }

    /// Waits for the next event that comes of a call; for ever, when none is under way. Safe to drop.
    pub(super) async fn next(&mut self) -> Event {
        loop {
            match self.under_way.join_next().await {
                Some(done) => {
                    if let Some(event) = done.expect("a port call does not panic") {
                        return event;
                    }
                }
                None => std::future::pending().await,
            }
        }
    }

    /// Returns an event that a call has already come to.
    pub(super) fn try_next(&mut self) -> Option<Event> {
        while let Some(done) = self.under_way.try_join_next() {
            let event = done.expect("a port call does not panic");
            if event.is_some() {
                return event;
            }
        }
        None
    }
}

async fn perform(ports: &Ports, action: Action, turn: Turn) -> Result<Option<Event>, CallError> {
    let cluster = &*ports.cluster;
    match action {
        Action::Reserve { attempt, resources } => {
            let _turn = turn.lock().await;
            let place = cluster.reserve(attempt, resources).await?;
            Ok(Some(Event::Reserved { attempt, place }))
        }
        Action::Start(start) => start_and_watch(ports, &start, turn).await.map(Some),
        Action::Observe { attempt } => {
            drop(turn);
            let observed = cluster.observe(attempt, Some(&Observation::Running)).await?;
            Ok(Some(event_of(attempt, observed)))
        }
        Action::Stop { attempt, how } => {
            let _turn = turn.lock().await;
            cluster.stop(attempt, how).await?;
            Ok(None)
        }
        Action::Release { attempt } => {
            let _turn = turn.lock().await;
            cluster.release(attempt).await?;
            Ok(Some(Event::Released { attempt }))
        }
        Action::Report {
            view,
            request,
            passed,
        } => {
            let _turn = turn.lock().await;
            ports.reporter.report(&view, &request, passed.as_deref()).await?;
            let attempts = u32::try_from(view.attempts.len()).expect("fewer attempts than u32 can count");
            Ok(Some(Event::Reported {
                run: view.id,
                attempts,
            }))
        }
    }
}

async fn start_and_watch(ports: &Ports, start: &StartAction, turn: Turn) -> Result<Event, CallError> {
    let held = turn.lock().await;
    ports.cluster.start(start).await?;
    drop(held);
    drop(turn);
    let observed = ports.cluster.observe(start.attempt, None).await?;
    Ok(event_of(start.attempt, observed))
}

fn event_of(attempt: AttemptId, observed: Observation) -> Event {
    match observed {
        Observation::Running => Event::Started { attempt },
        Observation::Finished { outcome, ended_at } => Event::Finished {
            attempt,
            outcome,
            ended_at,
        },
    }
}

//! Calls to ports that are under way, and what comes of them.

use std::collections::{BTreeMap, VecDeque};

use tokio::{sync::mpsc, task::JoinSet};

use super::Ports;
use crate::{
    action::Action,
    domain::RunId,
    event::Event,
    ports::{AttemptNews, CallError, News},
};

/// Calls to ports that are under way, and the inputs that come of them.
///
/// Calls about one run are made one at a time, in the order in which they were wanted, on whichever runtime: the next one
/// begins when the one before has returned.
pub(super) struct Calls {
    ports: Ports,
    news: mpsc::Receiver<News>,
    under_way: JoinSet<(RunId, Option<Event>)>,
    /// What is still to be called for each run of which a call is under way.
    waiting: BTreeMap<RunId, VecDeque<Action>>,
}

impl Calls {
    pub(super) fn new(ports: Ports) -> Self {
        let news = ports.cluster.news();
        Self {
            ports,
            news,
            under_way: JoinSet::new(),
            waiting: BTreeMap::new(),
        }
    }

    pub(super) fn begin(&mut self, action: Action) {
        let run = action.call().run();
        match self.waiting.get_mut(&run) {
            Some(waiting) => waiting.push_back(action),
            None => {
                self.waiting.insert(run, VecDeque::new());
                self.spawn(run, action);
            }
        }
    }

    fn spawn(&mut self, run: RunId, action: Action) {
        let ports = self.ports.clone();
        self.under_way.spawn(async move {
            let call = action.call();
            let done = perform(&ports, action).await.unwrap_or_else(|error| {
                let error = Box::new(error);
                Some(Event::CallFailed { call, error })
            });
            (run, done)
        });
    }

    /// Goes on with the next call about a run, and returns what came of the last one.
    fn go_on(&mut self, (run, done): (RunId, Option<Event>)) -> Option<Event> {
        let next = self.waiting.get_mut(&run).and_then(VecDeque::pop_front);
        match next {
            Some(action) => self.spawn(run, action),
            None => {
                self.waiting.remove(&run);
            }
        }
        done
    }

    /// Waits for the next input that comes of a call, or that a cluster tells; for ever, where there is none. Safe to drop.
    pub(super) async fn next(&mut self) -> Event {
        loop {
            tokio::select! {
                Some(done) = self.under_way.join_next() => {
                    if let Some(event) = self.go_on(done.expect("a port call does not panic")) {
                        return event;
                    }
                }
                Some(news) = self.news.recv() => return event_of(news),
                else => std::future::pending().await,
            }
        }
    }

    /// Returns an input that is there already.
    pub(super) fn try_next(&mut self) -> Option<Event> {
        while let Some(done) = self.under_way.try_join_next() {
            let event = self.go_on(done.expect("a port call does not panic"));
            if event.is_some() {
                return event;
            }
        }
        self.news.try_recv().ok().map(event_of)
    }
}

async fn perform(ports: &Ports, action: Action) -> Result<Option<Event>, CallError> {
    let cluster = &*ports.cluster;
    match action {
        Action::Reserve(reservation) => cluster.reserve(&reservation).await.map(|()| None),
        Action::Start(start) => cluster.start(&start).await.map(|()| None),
        Action::Observe { attempt } => cluster.observe(attempt).await.map(|()| None),
        Action::Stop { attempt, how } => cluster.stop(attempt, how).await.map(|()| None),
        Action::Release { attempt } => cluster.release(attempt).await.map(|()| None),
        Action::Report {
            view,
            request,
            passed,
        } => {
            ports.reporter.report(&view, &request, passed.as_deref()).await?;
            let attempts = u32::try_from(view.attempts.len()).expect("fewer attempts than u32 can count");
            let run = view.id;
            Ok(Some(Event::Reported { run, attempts }))
        }
    }
}

fn event_of(News { attempt, news }: News) -> Event {
    match news {
        AttemptNews::Pending { reason, message } => Event::Pending {
            attempt,
            reason,
            message,
        },
        AttemptNews::Reserved(place) => Event::Reserved { attempt, place },
        AttemptNews::Running => Event::Started { attempt },
        AttemptNews::Finished { outcome, ended_at } => Event::Finished {
            attempt,
            outcome,
            ended_at,
        },
        AttemptNews::Released => Event::Released { attempt },
        AttemptNews::Failed { call, error } => {
            let error = Box::new(error);
            Event::CallFailed { call, error }
        }
    }
}

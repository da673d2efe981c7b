//! Calls to ports that are under way, and what comes of them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use tokio::{sync::mpsc, task::JoinSet};

use super::{Ports, reports::Reports};
use crate::{
    action::Action,
    domain::RunId,
    event::Event,
    ports::{AttemptNews, CallError, ClusterDriver, News, Retry, RunStatus, Seq, Store, StoreClient},
    view::RunView,
};

/// The most bytes that are kept of what a cluster says.
const MOST_SAID: usize = 2_000;

/// Calls to ports that are under way, and the inputs that come of them.
///
/// Calls about one run are made one at a time, in the order in which they were wanted, on whichever runtime: the next one
/// begins when the one before has returned.
pub(super) struct Calls {
    store: Arc<dyn Store>,
    cluster: Arc<dyn ClusterDriver>,
    reports: Reports,
    news: mpsc::Receiver<News>,
    under_way: JoinSet<(RunId, Option<Event>)>,
    /// What is still to be called for each run of which a call is under way.
    waiting: BTreeMap<RunId, VecDeque<(Action, Seq)>>,
}

impl Calls {
    pub(super) fn new(ports: Ports) -> Self {
        let news = ports.cluster.news();
        Self {
            reports: Reports::new(ports.reporters, ports.clock),
            store: ports.store,
            cluster: ports.cluster,
            news,
            under_way: JoinSet::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// Returns what tells reporters.
    pub(super) fn reports(&self) -> &Reports {
        &self.reports
    }

    /// Begins to carry an action out, or does so after others about its run. `at` is the fact that it follows from.
    pub(super) fn begin(&mut self, action: Action, at: Seq) {
        let run = action.call().run();
        match self.waiting.get_mut(&run) {
            Some(waiting) => waiting.push_back((action, at)),
            None => {
                self.waiting.insert(run, VecDeque::new());
                self.spawn(run, action, at);
            }
        }
    }

    fn spawn(&mut self, run: RunId, action: Action, at: Seq) {
        let (store, cluster) = (Arc::clone(&self.store), Arc::clone(&self.cluster));
        let reports = self.reports.clone();
        self.under_way.spawn(async move {
            let call = action.call();
            let done = perform(&*store, &*cluster, &reports, action, at)
                .await
                .unwrap_or_else(|error| {
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
            Some((action, at)) => self.spawn(run, action, at),
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

async fn perform(
    store: &dyn StoreClient,
    cluster: &dyn ClusterDriver,
    reports: &Reports,
    action: Action,
    at: Seq,
) -> Result<Option<Event>, CallError> {
    match action {
        Action::Reserve(reservation) => cluster.reserve(&reservation).await.map(|()| None),
        Action::Start(start) => cluster.start(&start).await.map(|()| None),
        Action::Observe { attempt } => cluster.observe(attempt).await.map(|()| None),
        Action::Stop { attempt, how } => cluster.stop(attempt, how).await.map(|()| None),
        Action::Release { attempt } => cluster.release(attempt).await.map(|()| None),
        Action::Report { view, request } => {
            let attempts = u32::try_from(view.attempts.len()).expect("fewer attempts than u32 can count");
            let run = view.id;
            let status = RunStatus {
                revision: at.0,
                passed: passed_before(store, &view).await?,
                view: *view,
                request: (*request).clone(),
            };
            reports.tell_end(status).await?;
            Ok(Some(Event::Reported { run, attempts }))
        }
    }
}

/// Returns the run that had passed last when this one ended, as the store has it now.
async fn passed_before(store: &dyn StoreClient, view: &RunView) -> Result<Option<RunView>, CallError> {
    let Some(pass) = &view.last_pass else {
        return Ok(None);
    };
    let passed = store.run(pass.attempt.run).await;
    passed.map_err(|error| CallError {
        diagnostic: error.diagnostic,
        retry: Retry::Later,
    })
}

/// Returns the beginning of what a cluster says: it is kept in the log.
fn shortened(mut said: String) -> String {
    if said.len() > MOST_SAID {
        said.truncate(said.floor_char_boundary(MOST_SAID));
        said.push('…');
    }
    said
}

fn event_of(News { attempt, news }: News) -> Event {
    match news {
        AttemptNews::Pending { reason, message } => Event::Pending {
            attempt,
            reason: shortened(reason),
            message: shortened(message),
        },
        AttemptNews::Reserved(place) => Event::Reserved { attempt, place },
        AttemptNews::Running => Event::Started { attempt },
        AttemptNews::Finished { outcome, ended_at } => Event::Finished {
            attempt,
            outcome,
            ended_at,
        },
        AttemptNews::Evicted { reason, message } => Event::Evicted {
            attempt,
            reason,
            message: shortened(message),
        },
        AttemptNews::Lost { message } => Event::Lost {
            attempt,
            message: shortened(message),
        },
        AttemptNews::Released => Event::Released { attempt },
        AttemptNews::Failed { call, error } => {
            let error = Box::new(error);
            Event::CallFailed { call, error }
        }
    }
}

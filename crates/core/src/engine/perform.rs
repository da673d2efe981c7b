//! Calls to ports that are under way, and what comes of them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use blueproof_diagnostic::{Code, Diagnostic};
use futures_util::{
    FutureExt, StreamExt,
    stream::{self, BoxStream, SelectAll},
};
use tokio::{sync::mpsc, task::JoinSet};

use super::{Ports, reports::Reports};
use crate::{
    action::Action,
    domain::{ClusterName, RunId},
    event::Event,
    ports::{CallError, ClusterDriver, Clusters, News, Retry, RunStatus, Seq, Store, StoreClient},
    view::RunView,
};

/// Something that came of a call, or that a cluster tells.
pub(super) enum Came {
    Event(Event),
    News(ClusterName, News),
}

/// What one cluster tells, with its name.
type NewsOf = BoxStream<'static, (ClusterName, News)>;

fn news_of(name: ClusterName, mut news: mpsc::Receiver<News>) -> NewsOf {
    stream::poll_fn(move |context| {
        let next = news.poll_recv(context);
        next.map(|next| Some((name.clone(), next?)))
    })
    .boxed()
}

/// Calls to ports that are under way, and the inputs that come of them.
///
/// Calls about one run are made one at a time, in the order in which they were wanted, on whichever runtime: the next one
/// begins when the one before has returned.
pub(super) struct Calls {
    store: Arc<dyn Store>,
    clusters: Arc<Clusters>,
    reports: Reports,
    news: SelectAll<NewsOf>,
    under_way: JoinSet<(RunId, Option<Event>)>,
    /// What is still to be called for each run of which a call is under way.
    waiting: BTreeMap<RunId, VecDeque<(Action, Seq)>>,
}

impl Calls {
    pub(super) fn new(ports: Ports) -> Self {
        let clusters = ports.clusters.iter();
        let news = clusters.map(|(name, driver)| news_of(name.clone(), driver.news()));
        Self {
            reports: Reports::new(ports.reporters, ports.clock),
            store: ports.store,
            news: news.collect(),
            clusters: Arc::new(ports.clusters),
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
        let (store, clusters) = (Arc::clone(&self.store), Arc::clone(&self.clusters));
        let reports = self.reports.clone();
        self.under_way.spawn(async move {
            let call = action.call();
            let done = perform(&*store, &clusters, &reports, action, at)
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

    /// Waits for what comes of a call next, or what a cluster tells; for ever, where there is none. Safe to drop.
    pub(super) async fn next(&mut self) -> Came {
        loop {
            tokio::select! {
                Some(done) = self.under_way.join_next() => {
                    if let Some(event) = self.go_on(done.expect("a port call does not panic")) {
                        return Came::Event(event);
                    }
                }
                Some((cluster, news)) = self.news.next() => return Came::News(cluster, news),
                else => std::future::pending().await,
            }
        }
    }

    /// Returns what is there already.
    pub(super) fn try_next(&mut self) -> Option<Came> {
        while let Some(done) = self.under_way.try_join_next() {
            let event = self.go_on(done.expect("a port call does not panic"));
            if let Some(event) = event {
                return Some(Came::Event(event));
            }
        }
        let (cluster, news) = self.news.next().now_or_never()??;
        Some(Came::News(cluster, news))
    }
}

async fn perform(
    store: &dyn StoreClient,
    clusters: &Clusters,
    reports: &Reports,
    action: Action,
    at: Seq,
) -> Result<Option<Event>, CallError> {
    match action {
        Action::Reserve(reservation) => {
            let driver = driver(clusters, &reservation.cluster)?;
            driver.reserve(&reservation).await.map(|()| None)
        }
        Action::Start(start) => {
            let driver = driver(clusters, &start.cluster)?;
            driver.start(&start).await.map(|()| None)
        }
        Action::Observe { attempt, cluster } => {
            let driver = driver(clusters, &cluster)?;
            driver.observe(attempt).await.map(|()| None)
        }
        Action::Stop {
            attempt,
            cluster,
            how,
        } => {
            let driver = driver(clusters, &cluster)?;
            driver.stop(attempt, how).await.map(|()| None)
        }
        Action::Release { attempt, cluster } => {
            let driver = driver(clusters, &cluster)?;
            driver.release(attempt).await.map(|()| None)
        }
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

/// Returns the driver of a cluster. One that is missing may be back with the next configuration, so that it is tried again.
fn driver<'a>(clusters: &'a Clusters, name: &ClusterName) -> Result<&'a dyn ClusterDriver, CallError> {
    let driver = clusters.get(name).map(|driver| &**driver);
    driver.ok_or_else(|| {
        let known: Vec<String> = clusters.iter().map(|(name, _)| format!("`{name}`")).collect();
        let missing = Diagnostic::error(Code::ClusterUnknown, format!("there is no cluster `{name}` here"));
        let known = known.join(", ");
        CallError::later(missing.hint(format!(
            "there is {known}; a ClusterQueue names its cluster in `blueproof.dev/cluster`"
        )))
    })
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

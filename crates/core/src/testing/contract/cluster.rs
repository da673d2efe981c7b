//! What every cluster driver promises.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::{
    action::StartAction,
    domain::{AttemptId, Outcome, Placement, Verdict},
    event::StopMode,
    ports::{AttemptNews, ClusterDriver, News, Retry},
    testing::{quota_request, reservation},
};

/// The longest that anything here may take on a slow machine.
const BOUND: Duration = Duration::from_secs(120);

/// The news of a driver, one attempt's at a time.
pub struct NewsOf<'a> {
    cluster: &'a dyn ClusterDriver,
    news: mpsc::Receiver<News>,
}

impl<'a> NewsOf<'a> {
    /// Listens to a driver from now on.
    pub fn listen(cluster: &'a dyn ClusterDriver) -> Self {
        let news = cluster.news();
        Self { cluster, news }
    }

    /// Returns the next that is told of an attempt; what is told of others is passed over.
    ///
    /// # Panics
    /// When nothing is told of it within two minutes.
    pub async fn next(&mut self, attempt: AttemptId) -> AttemptNews {
        loop {
            let news = within(self.news.recv()).await.expect("news go on");
            if let News::Attempt { attempt: of, news } = news
                && of == attempt
            {
                return news;
            }
        }
    }

    async fn begin_with_the_inventory(&mut self) {
        let first = within(self.news.recv()).await;
        let Some(News::Inventory(inventory)) = first else {
            panic!("the inventory comes first, and not {first:?}")
        };
        assert!(!inventory.description.is_empty(), "it says what it is");
        let known = inventory.nodes.iter().all(|node| {
            let capacity = |resource: &String| node.capacity.get(resource).copied().unwrap_or_default();
            let mut given = node.allocatable.iter();
            given.all(|(resource, amount)| *amount <= capacity(resource))
        });
        assert!(known, "no node can give more than it has: {inventory:?}");
    }

    /// Asks for a place for an attempt, and returns it.
    ///
    /// # Panics
    /// When it gets none.
    pub async fn place(&mut self, start: &StartAction) -> Placement {
        let asked = self
            .cluster
            .reserve(&reservation(start.attempt, &start.job().pod_sets))
            .await;
        assert_eq!(asked, Ok(()), "{}: a place is asked for", start.attempt);
        loop {
            match self.next(start.attempt).await {
                AttemptNews::Pending { .. } => {}
                AttemptNews::Reserved(placement) => return placement,
                other @ (AttemptNews::Running
                | AttemptNews::Finished { .. }
                | AttemptNews::Evicted { .. }
                | AttemptNews::Lost { .. }
                | AttemptNews::Released
                | AttemptNews::Failed { .. }) => {
                    panic!("{}: told {other:?} instead of a place", start.attempt)
                }
            }
        }
    }

    /// Returns how an attempt ended, once it has.
    ///
    /// # Panics
    /// When it is told that nothing is left of it, or something failed, before that.
    pub async fn outcome(&mut self, attempt: AttemptId) -> Outcome {
        loop {
            match self.next(attempt).await {
                AttemptNews::Finished { outcome, .. } => return *outcome,
                AttemptNews::Running | AttemptNews::Reserved(_) | AttemptNews::Pending { .. } => {}
                other @ (AttemptNews::Evicted { .. }
                | AttemptNews::Lost { .. }
                | AttemptNews::Released
                | AttemptNews::Failed { .. }) => {
                    panic!("{attempt}: told {other:?} instead of an end")
                }
            }
        }
    }

    /// Has an attempt removed, and returns once nothing is left of it.
    ///
    /// # Panics
    /// When that fails.
    pub async fn release(&mut self, attempt: AttemptId) {
        assert_eq!(
            self.cluster.release(attempt).await,
            Ok(()),
            "{attempt}: it is released"
        );
        loop {
            match self.next(attempt).await {
                AttemptNews::Released => return,
                AttemptNews::Failed { call, error } => panic!("{attempt}: {call:?} failed: {error:?}"),
                AttemptNews::Finished { .. }
                | AttemptNews::Running
                | AttemptNews::Reserved(_)
                | AttemptNews::Evicted { .. }
                | AttemptNews::Lost { .. }
                | AttemptNews::Pending { .. } => {}
            }
        }
    }
}

/// Puts a driver to everything that the port promises, with three attempts that nothing else uses: `passing` ends well by
/// itself, `endless` runs until it is stopped, and `unstarted` is never started.
///
/// # Panics
/// When a promise is not kept.
pub async fn cluster_keeps_its_promises(
    cluster: &dyn ClusterDriver,
    passing: &StartAction,
    endless: &StartAction,
    unstarted: &StartAction,
) {
    let mut news = NewsOf::listen(cluster);
    news.begin_with_the_inventory().await;
    // Nothing was ever asked for it.
    news.release(passing.attempt).await;
    an_attempt_passes(cluster, &mut news, passing).await;
    an_attempt_is_released_that_never_began(cluster, &mut news, unstarted).await;
    a_request_for_quota_is_taken_or_refused_for_good(cluster, &mut news, unstarted).await;
    an_attempt_is_stopped_and_news_are_taken_up_again(cluster, news, endless).await;
}

async fn an_attempt_passes(cluster: &dyn ClusterDriver, news: &mut NewsOf<'_>, start: &StartAction) {
    let attempt = start.attempt;
    place_and_start_twice(cluster, news, start).await;
    let outcome = news.outcome(attempt).await;
    assert_eq!(outcome.verdict, Verdict::Passed);
    assert_eq!(
        cluster.start(start).await,
        Ok(()),
        "starting what is over is a success"
    );
    assert_eq!(news.outcome(attempt).await, outcome, "and starts nothing");
    assert_eq!(
        cluster.stop(attempt, StopMode::Terminate).await,
        Ok(()),
        "stopping what is over is a success"
    );
    news.release(attempt).await;
    // Releasing may be repeated.
    news.release(attempt).await;
}

async fn an_attempt_is_released_that_never_began(
    cluster: &dyn ClusterDriver,
    news: &mut NewsOf<'_>,
    start: &StartAction,
) {
    assert_eq!(
        cluster
            .reserve(&reservation(start.attempt, &start.job().pod_sets))
            .await,
        Ok(())
    );
    assert_eq!(
        cluster.stop(start.attempt, StopMode::Terminate).await,
        Ok(()),
        "stopping what never began is a success"
    );
    news.release(start.attempt).await;
}

async fn a_request_for_quota_is_taken_or_refused_for_good(
    cluster: &dyn ClusterDriver,
    news: &mut NewsOf<'_>,
    start: &StartAction,
) {
    let asked = cluster.reserve(&quota_request(start)).await;
    if let Err(refused) = asked {
        assert_eq!(refused.retry, Retry::Never, "nothing here decides about quota");
    }
    // Whatever it asked for, it asks no more.
    news.release(start.attempt).await;
}

async fn an_attempt_is_stopped_and_news_are_taken_up_again(
    cluster: &dyn ClusterDriver,
    mut news: NewsOf<'_>,
    start: &StartAction,
) {
    let attempt = start.attempt;
    place_and_start_twice(cluster, &mut news, start).await;
    until_it_runs(&mut news, attempt).await;
    drop(news);

    let mut news = NewsOf::listen(cluster);
    news.begin_with_the_inventory().await;
    assert_eq!(cluster.observe(attempt).await, Ok(()));
    until_it_runs(&mut news, attempt).await;
    assert_eq!(cluster.stop(attempt, StopMode::Terminate).await, Ok(()));
    assert_eq!(
        cluster.stop(attempt, StopMode::Terminate).await,
        Ok(()),
        "stopping may be repeated"
    );
    assert_eq!(news.outcome(attempt).await.verdict, Verdict::Stopped);
    news.release(attempt).await;
}

async fn until_it_runs(news: &mut NewsOf<'_>, attempt: AttemptId) {
    loop {
        match news.next(attempt).await {
            AttemptNews::Running => return,
            AttemptNews::Reserved(_) | AttemptNews::Pending { .. } => {}
            other @ (AttemptNews::Finished { .. }
            | AttemptNews::Evicted { .. }
            | AttemptNews::Lost { .. }
            | AttemptNews::Released
            | AttemptNews::Failed { .. }) => {
                panic!("{attempt}: told {other:?} instead of that it runs")
            }
        }
    }
}

async fn place_and_start_twice(cluster: &dyn ClusterDriver, news: &mut NewsOf<'_>, start: &StartAction) {
    let place = news.place(start).await;
    assert_eq!(news.place(start).await, place, "repeating gives the same place");
    assert_eq!(cluster.start(start).await, Ok(()));
    assert_eq!(cluster.start(start).await, Ok(()), "starting may be repeated");
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, work)
        .await
        .expect("it is told within two minutes")
}

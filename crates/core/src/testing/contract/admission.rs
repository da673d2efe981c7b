//! What a cluster driver promises beyond the rest where its cluster decides about quota.

use super::NewsOf;
use crate::{
    action::StartAction,
    domain::{AttemptId, Placement, Verdict},
    event::StopMode,
    ports::{AttemptNews, ClusterDriver},
    testing::quota_request,
};

/// What happens to attempts that nobody here asked for.
pub trait Upset {
    /// Has the cluster take the quota of an attempt back, for this reason.
    fn evict(&self, attempt: AttemptId, reason: &str);

    /// Has the cluster lose an attempt.
    fn lose(&self, attempt: AttemptId);
}

/// Puts a driver whose cluster decides about quota to what it promises of that, with attempts that nothing else uses. There is
/// quota for one of them at a time, and each runs until it is stopped.
///
/// # Panics
/// When a promise is not kept.
pub async fn admission_keeps_its_promises(
    cluster: &dyn ClusterDriver,
    upset: &dyn Upset,
    [first, second, third]: [&StartAction; 3],
) {
    let mut news = NewsOf::listen(cluster);
    a_place_comes_with_flavors(cluster, &mut news, first).await;
    a_wait_has_a_reason(cluster, &mut news, second).await;
    a_request_that_waits_is_taken_back(cluster, &mut news, third).await;
    drop(news);

    // Nobody listened for a while. It waits as it did.
    let mut news = NewsOf::listen(cluster);
    a_wait_has_a_reason(cluster, &mut news, second).await;
    an_evicted_attempt_keeps_its_quota_until_it_is_released(cluster, upset, &mut news, first).await;
    // Its turn has come.
    placed(&mut news, second.attempt).await;
    an_attempt_is_lost(cluster, upset, &mut news, second).await;
    a_released_request_may_be_made_again(cluster, &mut news, third).await;
}

async fn ask(cluster: &dyn ClusterDriver, start: &StartAction) {
    let asked = cluster.reserve(&quota_request(start)).await;
    assert_eq!(asked, Ok(()), "{}: quota is asked for", start.attempt);
}

async fn place(cluster: &dyn ClusterDriver, news: &mut NewsOf<'_>, start: &StartAction) -> Placement {
    ask(cluster, start).await;
    placed(news, start.attempt).await
}

async fn placed(news: &mut NewsOf<'_>, attempt: AttemptId) -> Placement {
    loop {
        match news.next(attempt).await {
            AttemptNews::Reserved(placement) => return placement,
            AttemptNews::Pending { .. } => {}
            other @ (AttemptNews::Running
            | AttemptNews::Finished { .. }
            | AttemptNews::Evicted { .. }
            | AttemptNews::Lost { .. }
            | AttemptNews::Released
            | AttemptNews::Failed { .. }) => panic!("{attempt}: told {other:?} instead of a place"),
        }
    }
}

async fn a_place_comes_with_flavors(cluster: &dyn ClusterDriver, news: &mut NewsOf<'_>, start: &StartAction) {
    let placement = place(cluster, news, start).await;
    assert!(
        placement.flavors.values().any(|flavors| !flavors.is_empty()),
        "{placement:?}: of which flavors"
    );
    assert_eq!(
        place(cluster, news, start).await,
        placement,
        "repeating gives the same place"
    );
}

async fn a_wait_has_a_reason(cluster: &dyn ClusterDriver, news: &mut NewsOf<'_>, start: &StartAction) {
    ask(cluster, start).await;
    let told = news.next(start.attempt).await;
    let AttemptNews::Pending { reason, message } = &told else {
        panic!("{}: told {told:?} instead of why it waits", start.attempt);
    };
    assert!(!reason.is_empty() && !message.is_empty(), "{told:?}");
}

async fn a_request_that_waits_is_taken_back(
    cluster: &dyn ClusterDriver,
    news: &mut NewsOf<'_>,
    start: &StartAction,
) {
    ask(cluster, start).await;
    assert_eq!(cluster.stop(start.attempt, StopMode::Terminate).await, Ok(()));
    news.release(start.attempt).await;
}

async fn an_evicted_attempt_keeps_its_quota_until_it_is_released(
    cluster: &dyn ClusterDriver,
    upset: &dyn Upset,
    news: &mut NewsOf<'_>,
    start: &StartAction,
) {
    let attempt = start.attempt;
    assert_eq!(cluster.start(start).await, Ok(()));
    upset.evict(attempt, "PodsReadyTimeout");
    loop {
        match news.next(attempt).await {
            AttemptNews::Evicted { reason, message } => {
                assert_eq!(reason.as_str(), "PodsReadyTimeout", "in the word of the cluster");
                assert!(!message.is_empty(), "and in words");
                break;
            }
            AttemptNews::Reserved(_) | AttemptNews::Running => {}
            other @ (AttemptNews::Pending { .. }
            | AttemptNews::Finished { .. }
            | AttemptNews::Lost { .. }
            | AttemptNews::Released
            | AttemptNews::Failed { .. }) => panic!("{attempt}: told {other:?} instead of its eviction"),
        }
    }
    assert_eq!(cluster.stop(attempt, StopMode::Interrupt).await, Ok(()));
    assert_eq!(news.outcome(attempt).await.verdict, Verdict::Stopped);
    news.release(attempt).await;
}

async fn an_attempt_is_lost(
    cluster: &dyn ClusterDriver,
    upset: &dyn Upset,
    news: &mut NewsOf<'_>,
    start: &StartAction,
) {
    let attempt = start.attempt;
    assert_eq!(cluster.start(start).await, Ok(()));
    upset.lose(attempt);
    loop {
        match news.next(attempt).await {
            AttemptNews::Lost { message } => {
                assert!(!message.is_empty(), "it is told how");
                break;
            }
            AttemptNews::Reserved(_) | AttemptNews::Running => {}
            other @ (AttemptNews::Pending { .. }
            | AttemptNews::Finished { .. }
            | AttemptNews::Evicted { .. }
            | AttemptNews::Released
            | AttemptNews::Failed { .. }) => panic!("{attempt}: told {other:?} instead of its loss"),
        }
    }
    news.release(attempt).await;
}

async fn a_released_request_may_be_made_again(
    cluster: &dyn ClusterDriver,
    news: &mut NewsOf<'_>,
    start: &StartAction,
) {
    place(cluster, news, start).await;
    news.release(start.attempt).await;
}

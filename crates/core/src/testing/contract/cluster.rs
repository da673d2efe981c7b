//! What every cluster driver promises.

use std::time::Duration;

use crate::{
    action::StartAction,
    domain::{Outcome, Verdict},
    event::StopMode,
    ports::{ClusterDriver, Observation},
};

/// The longest that anything here may take on a slow machine.
const BOUND: Duration = Duration::from_secs(120);

/// Puts a driver to everything that the port promises, with two attempts that nothing else uses: `passing` ends well
/// by itself, `endless` runs until it is stopped.
///
/// # Panics
/// When a promise is not kept.
pub async fn cluster_keeps_its_promises(
    cluster: &dyn ClusterDriver,
    passing: &StartAction,
    endless: &StartAction,
) {
    assert_eq!(
        cluster.release(passing.attempt).await,
        Ok(()),
        "releasing what never was is a success"
    );
    an_attempt_passes(cluster, passing).await;
    an_attempt_is_stopped(cluster, endless).await;
}

async fn an_attempt_passes(cluster: &dyn ClusterDriver, start: &StartAction) {
    place_and_start_twice(cluster, start).await;
    let outcome = outcome_of(cluster, start).await;
    assert_eq!(outcome.verdict, Verdict::Passed);
    assert_eq!(
        cluster.start(start).await,
        Ok(()),
        "starting what is over is a success"
    );
    assert_eq!(outcome_of(cluster, start).await, outcome, "and starts nothing");
    assert_eq!(
        cluster.stop(start.attempt, StopMode::End).await,
        Ok(()),
        "stopping what is over is a success"
    );
    release_twice(cluster, start).await;
}

async fn an_attempt_is_stopped(cluster: &dyn ClusterDriver, start: &StartAction) {
    place_and_start_twice(cluster, start).await;
    let observed = within(cluster.observe(start.attempt, None)).await;
    assert_eq!(observed, Ok(Observation::Running));
    assert_eq!(cluster.stop(start.attempt, StopMode::End).await, Ok(()));
    assert_eq!(
        cluster.stop(start.attempt, StopMode::End).await,
        Ok(()),
        "stopping may be repeated"
    );
    assert_eq!(outcome_of(cluster, start).await.verdict, Verdict::Stopped);
    release_twice(cluster, start).await;
}

async fn place_and_start_twice(cluster: &dyn ClusterDriver, start: &StartAction) {
    let asked = start.job().gang();
    let place = cluster.reserve(start.attempt, asked).await.expect("a place");
    assert_eq!(
        cluster.reserve(start.attempt, asked).await,
        Ok(place),
        "repeating gives the same place"
    );
    assert_eq!(cluster.start(start).await, Ok(()));
    assert_eq!(cluster.start(start).await, Ok(()), "starting may be repeated");
}

async fn release_twice(cluster: &dyn ClusterDriver, start: &StartAction) {
    assert_eq!(within(cluster.release(start.attempt)).await, Ok(()));
    assert_eq!(
        within(cluster.release(start.attempt)).await,
        Ok(()),
        "releasing may be repeated"
    );
}

async fn outcome_of(cluster: &dyn ClusterDriver, start: &StartAction) -> Outcome {
    match within(cluster.observe(start.attempt, Some(&Observation::Running))).await {
        Ok(Observation::Finished { outcome, .. }) => *outcome,
        other => panic!("{}: observed {other:?} instead of an end", start.attempt),
    }
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, work)
        .await
        .expect("it ends within two minutes")
}

//! What every provider of runners promises.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::{
    event::StopMode,
    ports::{Retry, Runner, RunnerName, RunnerNews, RunnerProvider, RunnerState},
};

/// The longest that anything here may take on a slow machine.
const BOUND: Duration = Duration::from_secs(120);

/// The news of a provider, one runner's at a time.
struct Listener(mpsc::Receiver<RunnerNews>);

impl Listener {
    /// Returns the next that is told of a runner; what is told of others is passed over.
    async fn next(&mut self, name: &RunnerName) -> RunnerState {
        loop {
            let news = tokio::time::timeout(BOUND, self.0.recv()).await;
            let news = news.expect("it is told within two minutes").expect("news go on");
            if news.runner == *name {
                return news.state;
            }
        }
    }

    /// Returns how a runner ended, once it has.
    async fn end(&mut self, name: &RunnerName) -> RunnerState {
        loop {
            let state = self.next(name).await;
            if state != RunnerState::Running {
                return state;
            }
        }
    }

    async fn removed(&mut self, name: &RunnerName) {
        loop {
            match self.next(name).await {
                RunnerState::Removed => return,
                RunnerState::NotRemoved { error } => panic!("{name}: {error:?}"),
                RunnerState::Running
                | RunnerState::Completed
                | RunnerState::Failed { .. }
                | RunnerState::Lost { .. } => {}
            }
        }
    }
}

/// Puts a provider to everything that the port promises, with three runners that nothing else uses: `completing` ends well by
/// itself, and both others run until they are stopped.
///
/// # Panics
/// When a promise is not kept.
pub async fn runners_keep_their_promises(
    provider: &dyn RunnerProvider,
    completing: &Runner,
    endless: &Runner,
    other: &Runner,
) {
    what_never_was_is_gone(provider, completing).await;
    a_runner_completes_and_is_never_started_again(provider, completing).await;
    a_runner_is_stopped_and_news_are_taken_up_again(provider, endless).await;
    a_runner_that_runs_is_removed_by_force(provider, other).await;
}

async fn what_never_was_is_gone(provider: &dyn RunnerProvider, runner: &Runner) {
    let (name, mut news) = (&runner.name, Listener(provider.news()));
    let unknown = provider.observe(name).await.expect_err("it never was");
    assert_eq!(unknown.retry, Retry::Never, "it will not be known later either");
    assert_eq!(provider.stop(name, StopMode::Terminate).await, Ok(()));
    assert_eq!(provider.remove(name).await, Ok(()));
    news.removed(name).await;
}

async fn a_runner_completes_and_is_never_started_again(provider: &dyn RunnerProvider, runner: &Runner) {
    let (name, mut news) = (&runner.name, Listener(provider.news()));
    assert_eq!(provider.start(runner).await, Ok(()));
    assert_eq!(provider.start(runner).await, Ok(()), "starting may be repeated");
    assert_eq!(news.end(name).await, RunnerState::Completed);
    assert_eq!(
        provider.start(runner).await,
        Ok(()),
        "starting what is over is a success"
    );
    assert_eq!(news.end(name).await, RunnerState::Completed, "and starts nothing");
    for how in [StopMode::Interrupt, StopMode::Terminate] {
        assert_eq!(
            provider.stop(name, how).await,
            Ok(()),
            "stopping what is over is a success"
        );
    }
    // Removing may be repeated.
    for _ in 0..2 {
        assert_eq!(provider.remove(name).await, Ok(()));
        news.removed(name).await;
    }
}

async fn a_runner_is_stopped_and_news_are_taken_up_again(provider: &dyn RunnerProvider, runner: &Runner) {
    let (name, mut news) = (&runner.name, Listener(provider.news()));
    assert_eq!(provider.start(runner).await, Ok(()));
    assert_eq!(news.next(name).await, RunnerState::Running);
    drop(news);

    let mut news = Listener(provider.news());
    assert_eq!(provider.observe(name).await, Ok(()));
    assert_eq!(news.next(name).await, RunnerState::Running);
    assert_eq!(provider.stop(name, StopMode::Terminate).await, Ok(()));
    assert_eq!(
        provider.stop(name, StopMode::Terminate).await,
        Ok(()),
        "stopping may be repeated"
    );
    let end = news.end(name).await;
    assert!(
        matches!(end, RunnerState::Completed | RunnerState::Failed { .. }),
        "it has ended, and not {end:?}"
    );
    assert_eq!(provider.remove(name).await, Ok(()));
    news.removed(name).await;
}

async fn a_runner_that_runs_is_removed_by_force(provider: &dyn RunnerProvider, runner: &Runner) {
    let (name, mut news) = (&runner.name, Listener(provider.news()));
    assert_eq!(provider.start(runner).await, Ok(()));
    assert_eq!(news.next(name).await, RunnerState::Running);
    assert_eq!(provider.remove(name).await, Ok(()));
    news.removed(name).await;
    assert!(provider.observe(name).await.is_err(), "nothing of it is left");
}

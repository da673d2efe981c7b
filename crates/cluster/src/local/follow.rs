//! What is told of attempts: each is followed by a task of its own, until it is over.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use blueproof_core::{
    domain::AttemptId,
    event::Call,
    ports::{AttemptNews, NEWS_AT_MOST, News},
};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};

use super::attempts::{Attempts, Observation};

/// The attempts that something is told of, and who is told.
#[derive(Debug, Default)]
pub(super) struct Followed {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    listeners: Mutex<Vec<mpsc::Sender<News>>>,
    tasks: Mutex<Tasks>,
}

/// What is done for whom. All of it ends with the driver.
#[derive(Debug, Default)]
struct Tasks {
    running: JoinSet<()>,
    /// The task that follows an attempt.
    following: BTreeMap<AttemptId, AbortHandle>,
    /// The task that removes one.
    releasing: BTreeMap<AttemptId, AbortHandle>,
}

impl Followed {
    /// Tells a new listener from now on, beside those before.
    pub(super) fn listen(&self) -> mpsc::Receiver<News> {
        let (sender, receiver) = mpsc::channel(NEWS_AT_MOST);
        lock(&self.shared.listeners).push(sender);
        receiver
    }

    pub(super) async fn tell(&self, attempt: AttemptId, news: AttemptNews) {
        self.shared.tell(attempt, news).await;
    }

    /// Tells how a started attempt stands, and each change until it is over.
    pub(super) fn follow(&self, attempts: &Arc<Attempts>, attempt: AttemptId) {
        let (shared, attempts) = (Arc::clone(&self.shared), Arc::clone(attempts));
        let task = async move { shared.follow(&attempts, attempt).await };
        let mut tasks = lock(&self.shared.tasks);
        tasks.forget_the_done();
        let begun = tasks.running.spawn(task);
        if let Some(before) = tasks.following.insert(attempt, begun) {
            before.abort();
        }
    }

    /// Removes whatever is left of an attempt, and tells when that is done. One that is being removed already is told of once.
    pub(super) fn release(&self, attempts: &Arc<Attempts>, attempt: AttemptId) {
        let (shared, attempts) = (Arc::clone(&self.shared), Arc::clone(attempts));
        let mut tasks = lock(&self.shared.tasks);
        tasks.forget_the_done();
        if tasks.releasing.contains_key(&attempt) {
            return;
        }
        let followed = tasks.following.remove(&attempt);
        let begun = tasks.running.spawn(async move {
            if let Some(followed) = followed {
                followed.abort();
            }
            let news = match attempts.release(attempt).await {
                Ok(()) => AttemptNews::Released,
                Err(error) => AttemptNews::Failed {
                    call: Call::Release(attempt),
                    error,
                },
            };
            // Before it is told: whoever hears of it may ask again at once.
            lock(&shared.tasks).releasing.remove(&attempt);
            shared.tell(attempt, news).await;
        });
        tasks.releasing.insert(attempt, begun);
    }
}

impl Shared {
    async fn tell(&self, attempt: AttemptId, news: AttemptNews) {
        let listeners = {
            let mut listeners = lock(&self.listeners);
            listeners.retain(|listener| !listener.is_closed());
            listeners.clone()
        };
        let news = News { attempt, news };
        for listener in listeners {
            // One that listens no more has asked for nothing more either.
            let _ = listener.send(news.clone()).await;
        }
    }

    async fn follow(&self, attempts: &Attempts, attempt: AttemptId) {
        let mut known = None;
        loop {
            match attempts.observe(attempt, known.as_ref()).await {
                Ok(Observation::Running) => {
                    self.tell(attempt, AttemptNews::Running).await;
                    known = Some(Observation::Running);
                }
                Ok(Observation::Finished { outcome, ended_at }) => {
                    return self
                        .tell(attempt, AttemptNews::Finished { outcome, ended_at })
                        .await;
                }
                Err(error) => {
                    let call = Call::Observe(attempt);
                    return self.tell(attempt, AttemptNews::Failed { call, error }).await;
                }
            }
        }
    }
}

impl Tasks {
    fn forget_the_done(&mut self) {
        while self.running.try_join_next().is_some() {}
        self.following.retain(|_, task| !task.is_finished());
        self.releasing.retain(|_, task| !task.is_finished());
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        lock(&self.shared.tasks).running.abort_all();
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

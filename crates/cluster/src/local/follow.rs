//! What is told: what the machine has, and of attempts, each of which is followed by a task of its own until it is over.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use blueproof_core::{
    domain::{AttemptId, Inventory},
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
    /// What the machine had when it was looked at last.
    inventory: Mutex<Option<Arc<Inventory>>>,
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
    /// Tells a new listener from now on, beside those before: first what the machine has, at once where it was looked at.
    pub(super) fn listen(&self, attempts: &Arc<Attempts>) -> mpsc::Receiver<News> {
        let (sender, receiver) = mpsc::channel(NEWS_AT_MOST);
        let mut listeners = lock(&self.shared.listeners);
        let known = lock(&self.shared.inventory).clone();
        match known {
            Some(inventory) => sender.try_send(News::Inventory(inventory)).expect("it has room"),
            None => {
                let (shared, attempts) = (Arc::clone(&self.shared), Arc::clone(attempts));
                let look = async move { shared.look_at_inventory(&attempts).await };
                lock(&self.shared.tasks).running.spawn(look);
            }
        }
        listeners.push(sender);
        receiver
    }

    /// Tells what the machine has, if that is something else than what was told last.
    pub(super) async fn tell_inventory(&self, inventory: Inventory) {
        self.shared.tell_inventory(inventory).await;
    }

    /// Finds out what the machine has, and tells it if that is something else than what was told last.
    pub(super) async fn look_at_inventory(&self, attempts: &Attempts) {
        self.shared.look_at_inventory(attempts).await;
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
            // A device may have failed under it.
            shared.look_at_inventory(&attempts).await;
            // Before it is told: whoever hears of it may ask again at once.
            lock(&shared.tasks).releasing.remove(&attempt);
            shared.tell(attempt, news).await;
        });
        tasks.releasing.insert(attempt, begun);
    }
}

impl Shared {
    async fn tell(&self, attempt: AttemptId, news: AttemptNews) {
        self.tell_all(News::Attempt { attempt, news }).await;
    }

    async fn tell_all(&self, news: News) {
        let listeners = {
            let mut listeners = lock(&self.listeners);
            listeners.retain(|listener| !listener.is_closed());
            listeners.clone()
        };
        for listener in listeners {
            // One that listens no more has asked for nothing more either.
            let _ = listener.send(news.clone()).await;
        }
    }

    async fn look_at_inventory(&self, attempts: &Attempts) {
        // Of a machine that cannot be looked at nothing new is known; whoever asks for a place there is told why.
        if let Ok(inventory) = attempts.inventory().await {
            self.tell_inventory(inventory).await;
        }
    }

    async fn tell_inventory(&self, inventory: Inventory) {
        let inventory = Arc::new(inventory);
        let before = lock(&self.inventory).replace(Arc::clone(&inventory));
        if before.as_ref() != Some(&inventory) {
            self.tell_all(News::Inventory(inventory)).await;
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

//! Keeps the scheduler up to date about GitHub for as long as a process leads.

use std::{collections::BTreeMap, sync::Arc};

use blueproof_core::ports::{Clock, StoreError};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Notify, mpsc, watch};

use crate::{
    api::{ApiError, ApiRetry, RepositoryId},
    confirm::PullRequestNumber,
    intake::IntakeError,
    redelivery::Redelivery,
    rest::RestGitHub,
    worker::{DeliveryWorker, Pass},
};

/// How long it waits at first before it tries again what failed, and at most.
const PAUSES: (SignedDuration, SignedDuration) = (SignedDuration::from_secs(1), SignedDuration::from_mins(5));
/// How far back the first poll after a start looks for comments: further than anybody is down.
const LOOK_BACK: SignedDuration = SignedDuration::from_hours(7 * 24);
/// How often deliveries that were lost are looked for, and how soon again where more were lost than are asked for at once.
const LOST_EVERY: SignedDuration = SignedDuration::from_mins(10);
const LOST_MORE: SignedDuration = SignedDuration::from_mins(1);

/// Keeps the scheduler up to date about some repositories.
pub struct GitHubService {
    github: Arc<RestGitHub>,
    worker: DeliveryWorker,
    clock: Arc<dyn Clock>,
    received: Arc<Notify>,
    looks: mpsc::Receiver<PullRequestNumber>,
    poll_every: SignedDuration,
    repositories: BTreeMap<String, Followed>,
    lost: Option<Lost>,
}

/// Deliveries that were lost.
struct Lost {
    redelivery: Redelivery,
    /// When they are looked for next.
    look_at: Timestamp,
    /// How many looks failed in a row.
    n_failed: u32,
}

/// A repository that is followed.
#[derive(Debug, Clone, Copy)]
struct Followed {
    /// Its number, once GitHub has told it.
    id: Option<RepositoryId>,
    /// Since when, by GitHub's clock, comments are still to be looked at.
    since: Timestamp,
    /// When it is polled next.
    poll_at: Timestamp,
    /// How many polls failed in a row.
    n_failed: u32,
}

impl GitHubService {
    /// Returns a service about the repositories of these names. `received` is told of each delivery that was stored, and `looks` of each
    /// pull request that was [seen](crate::confirm) to be another than the scheduler knows.
    pub fn new(
        github: Arc<RestGitHub>,
        worker: DeliveryWorker,
        clock: Arc<dyn Clock>,
        received: Arc<Notify>,
        looks: mpsc::Receiver<PullRequestNumber>,
        poll_every: SignedDuration,
        repositories: impl IntoIterator<Item = String>,
    ) -> Self {
        let now = clock.now();
        let followed = Followed {
            id: None,
            since: now - LOOK_BACK,
            poll_at: now,
            n_failed: 0,
        };
        let repositories = repositories.into_iter().map(|name| (name, followed));
        Self {
            github,
            worker,
            clock,
            received,
            looks,
            poll_every,
            repositories: repositories.collect(),
            lost: None,
        }
    }

    /// Has deliveries that were lost be asked for once more, at the start and from time to time.
    pub fn redelivering(self, redelivery: Redelivery) -> Self {
        let lost = Lost {
            redelivery,
            look_at: self.clock.now(),
            n_failed: 0,
        };
        Self {
            lost: Some(lost),
            ..self
        }
    }

    /// Works while `leads` is true, and returns once whoever tells that is gone. What fails is logged, and tried again later.
    pub async fn run(mut self, mut leads: watch::Receiver<bool>) {
        loop {
            if leads.wait_for(|leads| *leads).await.is_err() {
                return;
            }
            let again_at = self.pass().await;
            let polled_at = self.poll().await;
            let looked_at = self.look_for_lost().await;
            let next = [again_at, looked_at]
                .into_iter()
                .flatten()
                .fold(polled_at, Timestamp::min);
            tokio::select! {
                () = self.received.notified() => {}
                Some(seen) = self.looks.recv() => self.look_again(seen).await,
                () = self.clock.sleep_until(next) => {}
                changed = leads.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Looks at a pull request that was seen to have changed. Where that fails, the next poll looks at it.
    async fn look_again(&mut self, (repository, number): PullRequestNumber) {
        let looked = self.worker.intake().look(repository, number).await;
        if let Err(error) = looked {
            let diagnostic = error.diagnostic();
            tracing::warn!(number, code = %diagnostic.code, "{}; the next poll looks again", diagnostic.message);
        }
    }

    /// Works on what is stored, and returns when some of it is to be tried again.
    async fn pass(&mut self) -> Option<Timestamp> {
        let ids = self.repositories.values().map(|followed| followed.id);
        if let Some(all) = ids.collect::<Option<_>>() {
            self.worker.follow(all);
        }
        loop {
            match self.worker.pass().await {
                Ok(Pass::More) => {}
                Ok(Pass::Idle) => return None,
                Ok(Pass::Again { at }) => return Some(at),
                Err(error) => return Some(self.after_store_error(&error)),
            }
        }
    }

    /// Asks for what was lost, if that is due, and returns when it is due next.
    async fn look_for_lost(&mut self) -> Option<Timestamp> {
        let mut lost = self.lost.take()?;
        if lost.look_at <= self.clock.now() {
            self.look_now(&mut lost).await;
        }
        let next = lost.look_at;
        self.lost = Some(lost);
        Some(next)
    }

    async fn look_now(&self, lost: &mut Lost) {
        match lost.redelivery.look().await {
            Ok(asked) => {
                let wait = if asked.has_more { LOST_MORE } else { LOST_EVERY };
                (lost.look_at, lost.n_failed) = (self.clock.now() + wait, 0);
            }
            Err(error) => {
                lost.look_at = self.retry_at(error.retry(), lost.n_failed);
                lost.n_failed = lost.n_failed.saturating_add(1);
                let diagnostic = error.diagnostic();
                tracing::error!(
                    code = %diagnostic.code, causes = ?diagnostic.causes, again_at = %lost.look_at,
                    "lost deliveries are not asked for: {}; tries again", diagnostic.message,
                );
            }
        }
    }

    fn after_store_error(&self, error: &StoreError) -> Timestamp {
        tracing::error!(code = %error.diagnostic.code, "deliveries cannot be worked on: {error}");
        self.clock.now() + PAUSES.1
    }

    /// Polls the repositories that are due, and returns when the next one is.
    async fn poll(&mut self) -> Timestamp {
        let names: Vec<String> = self.repositories.keys().cloned().collect();
        for name in names {
            let followed = self.repositories[&name];
            if followed.poll_at <= self.clock.now() {
                let next = self.poll_one(&name, followed).await;
                self.repositories.insert(name, next);
            }
        }
        let due = self.repositories.values().map(|followed| followed.poll_at).min();
        due.unwrap_or_else(|| self.clock.now() + self.poll_every)
    }

    async fn poll_one(&mut self, name: &str, followed: Followed) -> Followed {
        match self.look(name, followed).await {
            Ok((id, since)) => Followed {
                id: Some(id),
                since,
                poll_at: self.clock.now() + self.poll_every,
                n_failed: 0,
            },
            Err(error) => {
                let poll_at = self.retry_at(error.retry(), followed.n_failed);
                let diagnostic = error.diagnostic();
                tracing::error!(
                    repository = name, code = %diagnostic.code, causes = ?diagnostic.causes, again_at = %poll_at,
                    "{}; tries again", diagnostic.message,
                );
                Followed {
                    poll_at,
                    n_failed: followed.n_failed.saturating_add(1),
                    ..followed
                }
            }
        }
    }

    async fn look(
        &mut self,
        name: &str,
        followed: Followed,
    ) -> Result<(RepositoryId, Timestamp), IntakeError> {
        let id = match followed.id {
            Some(id) => id,
            None => self.find(name).await?,
        };
        let since = self.worker.intake().poll(id, followed.since).await?;
        Ok((id, since))
    }

    async fn find(&self, name: &str) -> Result<RepositoryId, ApiError> {
        let info = self.github.repository_named(name).await?;
        tracing::info!(repository = info.full_name, id = info.id, "follows");
        Ok(RepositoryId(info.id))
    }

    fn retry_at(&self, retry: ApiRetry, n_failed: u32) -> Timestamp {
        let pause = PAUSES.0.saturating_mul(1 << n_failed.min(20)).min(PAUSES.1);
        let later = self.clock.now() + pause;
        match retry {
            ApiRetry::After(at) => at.max(later),
            // A right that is missing now may be given: somebody is told at each try.
            ApiRetry::Later | ApiRetry::Never => later,
        }
    }
}

//! The last comparison before content of a pull request starts: with GitHub as it is at that moment.
//!
//! The scheduler compares each approval with what it was told of the pull request. A webhook that is lost or late leaves it behind, so
//! whatever starts is compared once more here, at the driver, which every start goes through. Nothing is decided here for later: a start
//! that is not confirmed fails, the pull request is looked at, and what comes of that is up to the scheduler.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use blueproof_core::{
    action::{Reservation, StartAction},
    domain::{Actor, AttemptId, Repository},
    event::StopMode,
    ports::{CallError, ClusterDriver, News},
};
use blueproof_diagnostic::{Code, Diagnostic};
use tokio::sync::{Mutex, mpsc};

use crate::{
    api::{ApiError, ApiRetry, GitHub, RepositoryId},
    entitlement::{Entitlement, EntitlementError, the_policy},
    payload::{MergeGroup, PullRequestInfo, PullRequestState},
};

/// How many pull requests may wait to be looked at. Each poll looks at all of them anyway.
const LOOKS_AT_MOST: usize = 64;

/// A pull request, by its repository and number.
pub type PullRequestNumber = (RepositoryId, u64);

/// A cluster that starts content of a pull request only while GitHub shows its head, base and approver as they were approved.
///
/// A start waits for GitHub's answers, which are a few requests, and fails where there are none: what is approved starts once GitHub is
/// back. Everything else is passed on as it is.
pub struct ConfirmedStarts {
    cluster: Arc<dyn ClusterDriver>,
    github: Arc<dyn GitHub>,
    /// What was read last, so that OWNERS are not read again at the same commit.
    entitlements: Mutex<BTreeMap<RepositoryId, Arc<Entitlement>>>,
    changed: mpsc::Sender<PullRequestNumber>,
}

/// Returns the two ends by which is told which pull requests are to be looked at.
pub fn looks() -> (mpsc::Sender<PullRequestNumber>, mpsc::Receiver<PullRequestNumber>) {
    mpsc::channel(LOOKS_AT_MOST)
}

/// How GitHub shows something otherwise than it was approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Difference {
    #[error("it is closed")]
    Closed,
    #[error("there is no such merge group any more")]
    Gone,
    #[error("it has another head")]
    Head,
    #[error("it has another base")]
    Base,
    #[error("whoever approved it may not do so any more")]
    Approver,
}

/// Why a start is not confirmed.
enum Unconfirmed {
    Differs(Difference),
    NotTold(EntitlementError),
}

impl ConfirmedStarts {
    /// Returns a cluster around another one. `changed` is told of each pull request that GitHub shows otherwise than it was approved.
    pub fn new(
        cluster: Arc<dyn ClusterDriver>,
        github: Arc<dyn GitHub>,
        changed: mpsc::Sender<PullRequestNumber>,
    ) -> Self {
        Self {
            cluster,
            github,
            entitlements: Mutex::default(),
            changed,
        }
    }

    async fn confirm(&self, start: &StartAction) -> Result<(), CallError> {
        let subject = &start.request.subject;
        let Repository::GitHub(id) = &subject.repository else {
            return Ok(());
        };
        let repository = RepositoryId(*id);
        match self.compare(repository, start).await {
            Ok(()) => Ok(()),
            Err(Unconfirmed::Differs(difference)) => {
                // Where there is no room, whoever looks has much to look at already, and a poll comes by.
                let place = subject.pull_request.map(|number| (repository, number));
                place.map(|place| self.changed.try_send(place));
                Err(changed(start, difference))
            }
            Err(Unconfirmed::NotTold(error)) => Err(not_told(start, &error)),
        }
    }

    async fn compare(&self, repository: RepositoryId, start: &StartAction) -> Result<(), Unconfirmed> {
        match start.request.subject.pull_request {
            Some(number) => same_content(&self.github.pull_request(repository, number).await?, start)?,
            None => same_group(&self.github.merge_groups(repository).await?, start)?,
        }
        self.may_approve(repository, start).await
    }

    async fn may_approve(&self, repository: RepositoryId, start: &StartAction) -> Result<(), Unconfirmed> {
        let by = start.head.by();
        let is_by_policy = *by == the_policy();
        if matches!(by, Actor::Local(_)) && !is_by_policy {
            // People of this machine are entitled by its admin, of whom GitHub knows nothing.
            return Ok(());
        }
        let before = self.entitlements.lock().await.get(&repository).cloned();
        let now = Entitlement::read(&*self.github, repository, before.as_deref()).await;
        let now = Arc::new(now.map_err(Unconfirmed::NotTold)?);
        self.entitlements.lock().await.insert(repository, now.clone());
        let still_may = match is_by_policy {
            true => now.approves_itself(&start.request),
            false => now.approvers().contains(by),
        };
        match still_may {
            true => Ok(()),
            false => Err(Unconfirmed::Differs(Difference::Approver)),
        }
    }
}

/// Compares what is to start with the pull request as it is.
fn same_content(info: &PullRequestInfo, start: &StartAction) -> Result<(), Unconfirmed> {
    let difference = if info.state != PullRequestState::Open {
        Difference::Closed
    } else if info.head.sha.to_head() != *start.head.head() {
        Difference::Head
    } else if info.base_ref() != start.request.subject.base {
        Difference::Base
    } else {
        return Ok(());
    };
    Err(Unconfirmed::Differs(difference))
}

/// Looks for the merge group whose commit is to start.
fn same_group(groups: &[MergeGroup], start: &StartAction) -> Result<(), Unconfirmed> {
    let is_of_it = |group: &MergeGroup| group.head_sha.to_head() == *start.head.head();
    match groups.iter().any(is_of_it) {
        true => Ok(()),
        false => Err(Unconfirmed::Differs(Difference::Gone)),
    }
}

fn changed(start: &StartAction, difference: Difference) -> CallError {
    let message = format!("the pull request is not as it was approved: {difference}");
    let diagnostic = Diagnostic::error(Code::PullRequestChanged, message)
        .because(format!("GitHub was asked before {} was started", start.attempt));
    CallError::when_available(diagnostic.hint("approve the pull request as it is now"))
}

fn not_told(start: &StartAction, error: &EntitlementError) -> CallError {
    let message = format!(
        "{} does not start before GitHub confirms its pull request",
        start.attempt
    );
    let code = match error {
        EntitlementError::Api(ApiError { retry, .. }) => match retry {
            ApiRetry::Later => Code::GitHubNotReached,
            ApiRetry::After(_) => Code::GitHubRateLimited,
            ApiRetry::Never => Code::GitHubRefuses,
        },
        EntitlementError::Owners(_)
        | EntitlementError::TooManyOwners(_)
        | EntitlementError::Policy(_)
        | EntitlementError::NoBranch => Code::EntitlementUnreadable,
    };
    CallError::when_available(Diagnostic::error(code, message).caused_by(error))
}

impl From<ApiError> for Unconfirmed {
    fn from(error: ApiError) -> Self {
        Self::NotTold(error.into())
    }
}

#[async_trait]
impl ClusterDriver for ConfirmedStarts {
    fn news(&self) -> mpsc::Receiver<News> {
        self.cluster.news()
    }

    async fn reserve(&self, reservation: &Reservation) -> Result<(), CallError> {
        self.cluster.reserve(reservation).await
    }

    async fn start(&self, start: &StartAction) -> Result<(), CallError> {
        self.confirm(start).await?;
        self.cluster.start(start).await
    }

    async fn observe(&self, attempt: AttemptId) -> Result<(), CallError> {
        self.cluster.observe(attempt).await
    }

    async fn stop(&self, attempt: AttemptId, how: StopMode) -> Result<(), CallError> {
        self.cluster.stop(attempt, how).await
    }

    async fn release(&self, attempt: AttemptId) -> Result<(), CallError> {
        self.cluster.release(attempt).await
    }
}

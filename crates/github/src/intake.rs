//! From what GitHub says to commands of the scheduler.
//!
//! A delivery, a poll and a sweep are reasons to look at a pull request; what counts is what the look shows. Nothing here decides what
//! may run: who is entitled is told to the scheduler, and every approval is judged there once more.

mod approve;
mod comments;
mod conclude;
mod deliveries;
mod error;
mod handled;
mod merge_groups;
mod requests;
mod wishes;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use blueproof_core::{
    domain::{Actor, PullRequest, QueueName, RunRequest},
    ports::{CallError, Clock, Command, Retry, StoreClient},
};
use tokio::sync::Notify;

pub use approve::{ApprovalRequest, PushPending};
pub use error::IntakeError;
pub use handled::{Handled, Ignored, Pushes};

use crate::{
    answer::Answer,
    api::{ChangedPaths, GitHub, RepositoryId},
    entitlement::Entitlement,
    observed::{Observation, Observed},
    payload::{CommitSha, PullRequestInfo, RepositoryInfo},
    plan::{HeadBlueprint, HeadBlueprints, Plan, Planned},
    sticky::StickyComments,
};

/// What an intake works with.
#[derive(Clone)]
pub struct IntakePorts {
    /// GitHub.
    pub github: Arc<dyn GitHub>,
    /// Where commands are left.
    pub store: Arc<dyn StoreClient>,
    /// What there is at a commit.
    pub blueprints: Arc<dyn HeadBlueprints>,
    /// Our time.
    pub clock: Arc<dyn Clock>,
}

/// What an admin sets.
#[derive(Debug, Clone)]
pub struct IntakeSettings {
    /// The number of our GitHub App: buttons of another's check runs are none of ours. Without one there are no buttons.
    pub app: Option<u64>,
    /// The queue that runs of pull requests wait in.
    pub queue: QueueName,
}

/// Tells the scheduler how GitHub stands. One at a time does.
pub struct Intake {
    ports: IntakePorts,
    settings: IntakeSettings,
    /// Where it is told why a command was not done, if anywhere.
    comments: Option<Arc<StickyComments>>,
    observed: Observed,
    entitlements: BTreeMap<RepositoryId, Entitlement>,
    /// What runs were asked for, by pull request.
    asked_for: BTreeMap<(RepositoryId, u64), Wanted>,
    /// The merge groups whose checks were answered.
    groups: BTreeSet<(RepositoryId, CommitSha)>,
    /// The comments that were heard, so that a poll hears none twice.
    heard: BTreeSet<(RepositoryId, u64)>,
    /// Who is told of a job of GitHub Actions that has changed.
    jobs: Option<Arc<Notify>>,
}

/// What the runs of a pull request follow from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    head: CommitSha,
    base: String,
    policy: String,
}

impl Intake {
    /// Returns an intake that has seen nothing yet.
    pub fn new(ports: IntakePorts, settings: IntakeSettings) -> Self {
        Self {
            ports,
            settings,
            comments: None,
            observed: Observed::default(),
            entitlements: BTreeMap::new(),
            asked_for: BTreeMap::new(),
            groups: BTreeSet::new(),
            heard: BTreeSet::new(),
            jobs: None,
        }
    }

    /// Has it told in the comments of pull requests why a command was not done.
    pub fn answering(mut self, comments: Arc<StickyComments>) -> Self {
        self.comments = Some(comments);
        self
    }

    /// Has somebody told of each job of GitHub Actions that has changed: a reason to look, and nothing more.
    #[must_use]
    pub fn telling_of_jobs(self, jobs: Option<Arc<Notify>>) -> Self {
        Self { jobs, ..self }
    }

    /// Looks at every open pull request of a repository, and at who may approve there: at the start, and now and then, for what a
    /// lost webhook has missed. It may be repeated.
    ///
    /// # Errors
    ///
    /// The first thing that failed. What was looked at before it is told.
    pub async fn sweep(&mut self, repository: RepositoryId) -> Result<(), IntakeError> {
        self.entitle(repository).await?;
        for info in self.ports.github.open_pull_requests(repository).await? {
            let number = info.number;
            self.take_in(repository, info).await?;
            self.ask_for_runs(repository, number).await?;
        }
        self.sweep_groups(repository).await
    }

    /// Looks at a pull request, and asks for the runs that it needs. It may be repeated.
    ///
    /// # Errors
    ///
    /// Something could not be read or left. It is safe to look again.
    pub async fn look(&mut self, repository: RepositoryId, number: u64) -> Result<(), IntakeError> {
        self.look_at_head(repository, number).await?;
        self.ask_for_runs(repository, number).await
    }

    /// Reads who may approve what a repository has, and tells the scheduler where it is another than before.
    ///
    /// # Errors
    ///
    /// It could not be read. Who was entitled before stays so.
    pub async fn entitle(&mut self, repository: RepositoryId) -> Result<&Entitlement, IntakeError> {
        let before = self.entitlements.get(&repository);
        let entitlement = Entitlement::read(&*self.ports.github, repository, before).await?;
        let is_new = before.is_none_or(|before| !before.entitles_as(&entitlement));
        if is_new {
            let command = entitlement.command(self.ports.clock.now());
            self.submit(command).await?;
        }
        self.entitlements.insert(repository, entitlement);
        Ok(&self.entitlements[&repository])
    }

    /// Reads who may approve what a repository has, unless that is known.
    async fn know_who_may(&mut self, repository: RepositoryId) -> Result<(), IntakeError> {
        if !self.entitlements.contains_key(&repository) {
            self.entitle(repository).await?;
        }
        Ok(())
    }

    /// Looks at which head, base and state a pull request has.
    async fn look_at_head(&mut self, repository: RepositoryId, number: u64) -> Result<(), IntakeError> {
        let info = self.ports.github.pull_request(repository, number).await?;
        self.take_in(repository, info).await
    }

    /// Tells the scheduler what was seen of a pull request, where it is another than before.
    async fn take_in(&mut self, repository: RepositoryId, info: PullRequestInfo) -> Result<(), IntakeError> {
        let changes = self.observed.changes(repository, &info);
        if !changes.is_empty() {
            // Its runs may be superseded by this, also where it is as it was before by the next look.
            self.asked_for.remove(&(repository, info.number));
        }
        for command in changes {
            self.submit(command).await?;
        }
        self.observed.note(repository, info);
        Ok(())
    }

    /// Asks for the runs that a pull request needs, unless that was done for it as it is: most looks find nothing new, and GitHub
    /// answers so many requests an hour.
    async fn ask_for_runs(&mut self, repository: RepositoryId, number: u64) -> Result<(), IntakeError> {
        self.know_who_may(repository).await?;
        let wanted = self.wanted(repository, number);
        if wanted.is_none() || self.asked_for.get(&(repository, number)) == wanted.as_ref() {
            return Ok(());
        }
        let changed = self.ports.github.changed_paths(repository, number).await?;
        let mut plan = self.plan(repository, number, &changed).await?;
        let runs = std::mem::take(&mut plan.runs);
        for request in runs.clone() {
            self.ask_for(request).await?;
        }
        self.approve_by_policy(repository, number, runs).await?;
        if let Some(Observation { info, .. }) = self.observed.get(repository, number) {
            let checks = self.without_run(repository, &info.base.name, &plan).await?;
            self.show(repository, &info.head.sha, checks).await?;
        }
        self.asked_for
            .extend(wanted.map(|wanted| ((repository, number), wanted)));
        Ok(())
    }

    /// Returns what the runs of a pull request follow from; `None` where it needs none.
    fn wanted(&self, repository: RepositoryId, number: u64) -> Option<Wanted> {
        let Observation { info, .. } = self.observed.get(repository, number)?;
        let is_wanted = self.is_open(repository, number) && info.draft != Some(true);
        is_wanted.then(|| Wanted {
            head: info.head.sha.clone(),
            base: info.base.name.clone(),
            policy: self.entitlements[&repository].policy().digest.clone(),
        })
    }

    /// Returns what a pull request that changes these paths needs as it was last seen: nothing where it is closed, or a draft.
    async fn plan(
        &self,
        repository: RepositoryId,
        number: u64,
        changed: &ChangedPaths,
    ) -> Result<Plan, IntakeError> {
        let Some(Observation { info, .. }) = self.observed.get(repository, number) else {
            return Ok(Plan::default());
        };
        let is_wanted = self.is_open(repository, number) && info.draft != Some(true);
        let Some(base) = info.base_ref().filter(|_| is_wanted) else {
            return Ok(Plan::default());
        };
        let of = self.ports.github.repository(repository).await?;
        let blueprints = match self.blueprints(&of, &info.head.sha).await? {
            Ok(blueprints) => blueprints,
            Err(unreadable) => return Ok(unreadable),
        };
        let planned = Planned {
            repository,
            pull_request: Some(number),
            head: &info.head.sha,
            author: info.author(),
            base,
            changed,
            policy: self.entitlements[&repository].policy(),
            queue: &self.settings.queue,
        };
        Ok(planned.plan(blueprints))
    }

    /// Returns the blueprints at a commit; where none can be read, a plan that says so.
    async fn blueprints(
        &self,
        of: &RepositoryInfo,
        head: &CommitSha,
    ) -> Result<Result<Vec<HeadBlueprint>, Plan>, IntakeError> {
        match self.ports.blueprints.at(of, head).await {
            Err(CallError {
                diagnostic,
                retry: Retry::Never,
            }) => Ok(Err(Plan::unreadable(*diagnostic))),
            other => Ok(Ok(other?)),
        }
    }

    /// Asks for a run, once for the same content. Where that was superseded and is the head again, it is tried again.
    async fn ask_for(&self, request: RunRequest) -> Result<(), IntakeError> {
        match self.ports.store.run_of(&request.key).await? {
            None => {
                let request = Box::new(request);
                self.submit(Command::Run { request }).await
            }
            Some(view) => match requests::again(&view, &request) {
                Some(command) => self.submit(command).await,
                None => Ok(()),
            },
        }
    }

    fn is_open(&self, repository: RepositoryId, number: u64) -> bool {
        let known = self.observed.get(repository, number);
        known.is_some_and(Observation::is_open)
    }

    /// Tells why something that was asked for was not done, where comments are written.
    async fn tell(
        &self,
        repository: RepositoryId,
        number: u64,
        answers: &[Result<(), Answer>],
    ) -> Result<(), IntakeError> {
        let refused = answers.iter().find_map(|answer| answer.as_ref().err());
        match &self.comments {
            Some(comments) => Ok(comments.answer(repository, number, refused).await?),
            None => Ok(()),
        }
    }

    /// Leaves a command. One whose key was used is the same wish, worked on once more after a crash, at another time.
    async fn submit(&self, command: Command) -> Result<(), IntakeError> {
        let now = self.ports.clock.now();
        match self.ports.store.submit(now, command).await {
            Err(error) if error.is_key_reused() => Ok(()),
            other => Ok(other?),
        }
    }

    /// Returns whether somebody may end or hold what a pull request has: whoever opened it, or may approve something there.
    fn may_stop(&self, repository: RepositoryId, number: u64, who: &Actor) -> bool {
        let known = self.observed.get(repository, number);
        let author = known.and_then(|known| known.info.user.as_ref());
        let entitlement = self.entitlements.get(&repository);
        author.is_some_and(|author| author.to_actor() == *who)
            || entitlement.is_some_and(|entitlement| entitlement.approvers().contains(who))
    }
}

/// Returns a pull request as the rest of blueproof knows it.
fn pull_request(repository: RepositoryId, number: u64) -> PullRequest {
    PullRequest {
        repository: repository.to_repository(),
        number,
    }
}

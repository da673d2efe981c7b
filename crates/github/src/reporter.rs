//! Check runs that follow the runs of pull requests.
//!
//! Level-triggered: each call makes the check run of one run equal to what is shown of it now. Which check run that is, is found by its
//! `external_id`; nothing is stored here, and after a restart GitHub is asked once for each head. Before a check run is created or updated
//! it is forgotten that its head was listed, until GitHub's answer is there: where that is lost, or the call is dropped, the next call
//! lists before it creates, and learns whether annotations are there already.
//!
//! A change of a run's state is sent at once. What only progresses keeps its distance from the last update, and leaves room in what GitHub
//! lets an App write in a minute and in an hour.
//!
//! Nothing waits here, and no call is repeated here: whoever calls does both. Requests are made one after another, as GitHub asks of Apps.

mod budget;
mod errors;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use async_trait::async_trait;
use blueproof_core::{
    domain::{Head, Repository, RunState},
    ports::{CallError, Clock, Reporter, RunStatus},
    view::RunView,
};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;

use budget::WriteBudget;

use crate::{
    api::{ApiError, ApiRetry, CheckOutput, CheckRunId, GitHub, RepositoryId},
    check::{CheckContext, CheckSettings, WorkFact, failed_line},
    payload::CommitSha,
    sticky::StickyComments,
};

/// How long two updates of a run that only progresses are apart at least.
const PROGRESS_EVERY: SignedDuration = SignedDuration::from_secs(15);
/// How long they are apart of one that waits: whenever another one ends, all behind it move.
const MOVES_EVERY: SignedDuration = SignedDuration::from_mins(2);

/// How many check runs are remembered. One that was forgotten is listed again.
const REMEMBERED: usize = 4_096;

/// Shows runs of pull requests as check runs.
pub struct CheckReporter {
    github: Arc<dyn GitHub>,
    clock: Arc<dyn Clock>,
    settings: CheckSettings,
    /// What the pages of runs begin with, such as `https://gpu.example`.
    pages: Option<String>,
    /// The comments of pull requests, where any are written.
    comments: Option<Arc<StickyComments>>,
    /// What of a run's work approvers should know.
    describe: Option<DescribeWork>,
    memory: Mutex<Memory>,
}

/// Tells what of a job's work approvers should know: what it means is up to whoever carries it out.
pub type DescribeWork = fn(&serde_json::Value) -> Vec<WorkFact>;

/// What was asked of GitHub and sent to it.
#[derive(Debug, Default)]
struct Memory {
    /// The heads whose check runs were listed.
    listed: BTreeSet<CheckHead>,
    /// The check runs that are known.
    known: BTreeMap<CheckKey, KnownCheckRun>,
    /// What was written of late.
    budget: WriteBudget,
    /// The present names of repositories.
    names: BTreeMap<RepositoryId, String>,
    /// Until when GitHub takes no requests.
    limited_until: Option<Timestamp>,
}

/// A commit of a repository.
type CheckHead = (RepositoryId, CommitSha);

/// A check run, by its head and external id.
type CheckKey = (CheckHead, String);

/// Why a status is not shown.
enum NotShown {
    /// A call failed.
    Failed(ApiError),
    /// It only progresses, and is sent again from then on.
    TooSoon(Timestamp),
}

/// A check run that is there.
#[derive(Debug, Clone)]
struct KnownCheckRun {
    id: CheckRunId,
    has_annotations: bool,
    sent: Option<SentCheck>,
}

/// What was sent last.
#[derive(Debug, Clone)]
struct SentCheck {
    check: CheckOutput,
    stage: Stage,
    at: Timestamp,
}

/// Where a run is: what is told at once when it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stage {
    state: RunState,
    /// What keeps it from the queue, in a word: somebody has to approve it, or something else to be done.
    before_queue: Option<String>,
}

impl Stage {
    fn of(view: &RunView) -> Self {
        let is_before = view.state == RunState::AwaitingApproval;
        let reason = view.waits().filter(|_| is_before);
        Self {
            state: view.state,
            before_queue: reason.map(|reason| reason.as_str().to_owned()),
        }
    }
}

impl CheckReporter {
    /// Returns a reporter. `pages` is what the addresses of our own pages begin with, where there are any.
    pub fn new(
        github: Arc<dyn GitHub>,
        clock: Arc<dyn Clock>,
        settings: CheckSettings,
        pages: Option<String>,
    ) -> Self {
        Self {
            github,
            clock,
            settings,
            pages,
            comments: None,
            describe: None,
            memory: Mutex::default(),
        }
    }

    /// Has runs told in the comments of their pull requests, too.
    pub fn commenting(mut self, comments: Arc<StickyComments>) -> Self {
        self.comments = Some(comments);
        self
    }

    /// Shows to approvers what the work of a run asks for, of which only `describe` can tell.
    pub fn describing(mut self, describe: DescribeWork) -> Self {
        self.describe = Some(describe);
        self
    }

    /// Makes the check run of a run of a pull request equal to its status.
    async fn show(&self, memory: &mut Memory, head: CheckHead, status: &RunStatus) -> Result<(), NotShown> {
        let check = self.render(memory, head.0, status).await?;
        self.list(memory, &head).await?;
        let key = (head, check.external_id.clone());
        let stage = Stage::of(&status.view);
        let Some(known) = memory.known.get(&key).cloned() else {
            return Ok(self.create(memory, key, check, stage).await?);
        };
        if let Some(sent) = &known.sent {
            if sent.check == check {
                return Ok(());
            }
            let now = self.clock.now();
            let until = match sent.stage == stage {
                true => sent.waits_until(now).or_else(|| memory.budget.waits_until(now)),
                false => None,
            };
            if let Some(until) = until {
                return Err(NotShown::TooSoon(until));
            }
        }
        Ok(self.update(memory, key, known, check, stage).await?)
    }

    /// Tells how a run stands in the comment of its pull request, where comments are written.
    async fn comment(&self, repository: RepositoryId, status: &RunStatus) -> Result<(), ApiError> {
        match (&self.comments, status.view.subject.pull_request) {
            (Some(comments), Some(number)) => comments.tell(repository, number, status).await,
            (Some(_) | None, _) => Ok(()),
        }
    }

    async fn render(
        &self,
        memory: &mut Memory,
        repository: RepositoryId,
        status: &RunStatus,
    ) -> Result<CheckOutput, ApiError> {
        if let Entry::Vacant(name) = memory.names.entry(repository) {
            name.insert(self.github.repository(repository).await?.full_name);
        }
        let page = self.pages.as_ref();
        let page = page.map(|pages| format!("{pages}/runs/{}", status.view.id));
        let line = failed_line(status);
        let work = self.describe.map(|describe| describe(&status.request.job.work));
        let context = CheckContext {
            page: page.as_deref(),
            repository: memory.names.get(&repository).map(String::as_str),
            failed_line: line.as_ref(),
            work: work.as_deref().unwrap_or_default(),
        };
        Ok(self.settings.render(status, context))
    }

    /// Asks GitHub once which check runs a head has.
    async fn list(&self, memory: &mut Memory, head: &CheckHead) -> Result<(), ApiError> {
        if memory.listed.contains(head) {
            return Ok(());
        }
        for existing in self.github.check_runs(head.0, &head.1).await? {
            let known = memory.known.entry((head.clone(), existing.external_id));
            known.or_insert(KnownCheckRun {
                id: existing.id,
                has_annotations: existing.n_annotations > 0,
                sent: None,
            });
        }
        memory.listed.insert(head.clone());
        Ok(())
    }

    async fn create(
        &self,
        memory: &mut Memory,
        key: CheckKey,
        check: CheckOutput,
        stage: Stage,
    ) -> Result<(), ApiError> {
        let (repository, head) = memory.forget(&key);
        memory.budget.note(self.clock.now());
        let id = self.github.create_check_run(repository, &head, &check).await?;
        let known = KnownCheckRun {
            id,
            has_annotations: !check.annotations.is_empty(),
            sent: Some(self.sent(check, stage)),
        };
        memory.remember(key, known);
        Ok(())
    }

    async fn update(
        &self,
        memory: &mut Memory,
        key: CheckKey,
        known: KnownCheckRun,
        check: CheckOutput,
        stage: Stage,
    ) -> Result<(), ApiError> {
        let mut request = check.clone();
        if known.has_annotations {
            request.annotations.clear();
        }
        let has_annotations = known.has_annotations || !request.annotations.is_empty();
        let (id, (repository, head)) = (known.id, memory.forget(&key));
        memory.budget.note(self.clock.now());
        self.github
            .update_check_run(repository, &head, id, &request)
            .await?;
        let known = KnownCheckRun {
            id,
            has_annotations,
            sent: Some(self.sent(check, stage)),
        };
        memory.remember(key, known);
        Ok(())
    }

    fn sent(&self, check: CheckOutput, stage: Stage) -> SentCheck {
        SentCheck {
            check,
            stage,
            at: self.clock.now(),
        }
    }
}

impl SentCheck {
    /// Returns until when the next update in the same state has to wait, so soon after the last one.
    fn waits_until(&self, now: Timestamp) -> Option<Timestamp> {
        let every = match self.stage.state {
            RunState::AwaitingApproval | RunState::Queued => MOVES_EVERY,
            RunState::Reserved | RunState::Starting | RunState::Running | RunState::Ended(_) => {
                PROGRESS_EVERY
            }
        };
        let until = self.at.saturating_add(every).expect("a time span");
        (now < until).then_some(until)
    }
}

impl Memory {
    /// Forgets a check run and that its head was listed, until GitHub has answered what is about to be asked: where the answer is lost,
    /// GitHub is asked what came of it.
    fn forget(&mut self, key: &CheckKey) -> CheckHead {
        self.known.remove(key);
        self.listed.remove(&key.0);
        key.0.clone()
    }

    /// Remembers what GitHub has answered. Where there are too many, all others are forgotten.
    fn remember(&mut self, key: CheckKey, known: KnownCheckRun) {
        if self.known.len() >= REMEMBERED {
            self.known.clear();
            self.listed.clear();
        }
        self.listed.insert(key.0.clone());
        self.known.insert(key, known);
    }
}

impl From<ApiError> for NotShown {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

/// Returns the commit that a run of GitHub's is shown at, be it of a pull request or of a merge group.
fn head_of(status: &RunStatus) -> Option<CheckHead> {
    let subject = &status.view.subject;
    match (&subject.repository, &subject.head) {
        (Repository::GitHub(id), Head::Commit(commit)) => Some((RepositoryId(*id), commit.parse().ok()?)),
        (Repository::GitHub(_) | Repository::Local(_), Head::Commit(_) | Head::Snapshot(_)) => None,
    }
}

#[async_trait]
impl Reporter for CheckReporter {
    fn name(&self) -> &str {
        "github"
    }

    async fn report(&self, status: &RunStatus) -> Result<(), CallError> {
        let Some(head) = head_of(status) else {
            return Ok(());
        };
        let mut memory = self.memory.lock().await;
        if let Some(until) = memory.limited_until.filter(|until| self.clock.now() < *until) {
            return Err(errors::limited(until));
        }
        let repository = head.0;
        let shown = match self.show(&mut memory, head, status).await {
            Ok(()) => self.comment(repository, status).await.map_err(NotShown::from),
            Err(error) => Err(error),
        };
        match shown {
            Ok(()) => Ok(()),
            Err(NotShown::TooSoon(until)) => Err(errors::too_soon(until)),
            Err(NotShown::Failed(error)) => {
                if let ApiRetry::After(until) = error.retry {
                    memory.limited_until = Some(until);
                }
                Err(errors::call_error(&error, status))
            }
        }
    }
}

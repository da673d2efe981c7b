//! From somebody's word to an approval.
//!
//! The scheduler judges each approval by who is entitled in the repository, which head and base the pull request has, and which policy
//! holds. What only GitHub can tell is judged here: whether the words are of the head that is there now, and whether whoever said
//! them owns what the pull request changes.

use std::collections::BTreeSet;

use blueproof_core::{
    approval::{Approval, ApprovalTarget, Scope, Selection},
    domain::{Actor, BlueprintName, ProfileName, RequestKey, RunRequest},
    ports::Command,
};
use jiff::{SignedDuration, Timestamp};

use super::{Intake, IntakeError, pull_request};
use crate::{
    answer::ApprovalProblem,
    api::{ChangedPaths, RepositoryId},
    budget::{BudgetProblem, BudgetRequest},
    entitlement::the_policy,
    key,
    observed::Observation,
    payload::{Account, CommitSha},
};

/// How much later than a head, by GitHub's clock, words have to be that name none: whoever wrote them has to have seen it.
const MARGIN: SignedDuration = SignedDuration::from_mins(1);
/// The most runs, the newest first, that count for a budget.
const RUNS_COUNTED: usize = 5_000;

/// Somebody's word that content may run.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// The pull request.
    pub number: u64,
    /// Who says so.
    pub by: Account,
    /// The head, where the words name it.
    pub head: Option<CommitSha>,
    /// When it was said, by GitHub's clock.
    pub said_at: Timestamp,
    /// Which blueprints; none is all.
    pub blueprints: Vec<BlueprintName>,
    /// Under which profile; none is all.
    pub profile: Option<ProfileName>,
    /// What makes it the same word when it comes again.
    pub key: RequestKey,
    /// Whether a push to the pull request was received that is not worked on yet.
    pub push: PushPending,
}

/// Whether a push to a pull request was received that is not worked on yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushPending {
    /// None was.
    None,
    /// One was: which head words without a commit are of, nobody can tell.
    Received,
}

impl Intake {
    /// Leaves an approval for the scheduler, where somebody's word is one.
    ///
    /// # Errors
    ///
    /// Something could not be read or left. What the word itself lacks is the value.
    pub async fn approve(
        &mut self,
        repository: RepositoryId,
        asked: &ApprovalRequest,
    ) -> Result<Result<(), ApprovalProblem>, IntakeError> {
        if !asked.by.is_person() {
            return Ok(Err(ApprovalProblem::NoPerson));
        }
        self.entitle(repository).await?;
        // The paths first: a head that comes after them is seen by the look.
        let changed = self.ports.github.changed_paths(repository, asked.number).await?;
        self.look_at_head(repository, asked.number).await?;
        let problem = self.problem(repository, asked, &changed);
        if let Some(problem) = problem {
            return Ok(Err(problem));
        }
        let plan = self.plan(repository, asked.number, &changed).await?;
        let named: Vec<_> = plan.runs.into_iter().filter(|run| asked.names(run)).collect();
        let Some(target) = target(&named) else {
            return Ok(Err(ApprovalProblem::Nothing));
        };
        let keys = named.iter().map(|run| run.key.clone()).collect();
        if let Some(problem) = self.over_budget(repository, asked.number, &keys).await? {
            return Ok(Err(problem.into()));
        }
        for request in named {
            self.ask_for(request).await?;
        }
        let command = self.approval(repository, &asked.key, asked.by.to_actor(), target);
        self.submit(command).await?;
        Ok(Ok(()))
    }

    /// Leaves the policy's own approval of those runs of a pull request that need nobody's word, where a budget has room for them.
    pub(super) async fn approve_by_policy(
        &self,
        repository: RepositoryId,
        number: u64,
        runs: Vec<RunRequest>,
    ) -> Result<(), IntakeError> {
        let entitlement = &self.entitlements[&repository];
        let mut covered = runs;
        covered.retain(|run| entitlement.approves_itself(run));
        let Some(target) = target(&covered) else {
            return Ok(());
        };
        let keys: BTreeSet<RequestKey> = covered.iter().map(|run| run.key.clone()).collect();
        if self.over_budget(repository, number, &keys).await?.is_some() {
            return Ok(());
        }
        let digest = &entitlement.policy().digest;
        let parts = covered.iter().map(|run| run.key.0.as_str());
        let key = key::of(["policy", digest].into_iter().chain(parts));
        let command = self.approval(repository, &key, the_policy(), target);
        self.submit(command).await
    }

    /// Returns which budget is used up for these runs of a pull request, if one is.
    pub(super) async fn over_budget(
        &self,
        repository: RepositoryId,
        number: u64,
        runs: &BTreeSet<RequestKey>,
    ) -> Result<Option<BudgetProblem>, IntakeError> {
        let budgets = &self.entitlements[&repository].policy().budgets;
        let known = self.observed.get(repository, number);
        let Some(known) = known.filter(|_| budgets.are_limited()) else {
            return Ok(None);
        };
        let wanted = BudgetRequest {
            pull_request: &pull_request(repository, number),
            author: &known.info.author(),
            runs,
        };
        let views = self.ports.store.runs(RUNS_COUNTED).await?;
        Ok(budgets.judge(&wanted, &views, self.ports.clock.now()))
    }

    fn problem(
        &self,
        repository: RepositoryId,
        asked: &ApprovalRequest,
        changed: &ChangedPaths,
    ) -> Option<ApprovalProblem> {
        let Some(known) = self
            .observed
            .get(repository, asked.number)
            .filter(|known| known.is_open())
        else {
            return Some(ApprovalProblem::Closed);
        };
        let is_author = known
            .info
            .user
            .as_ref()
            .is_some_and(|author| author.id == asked.by.id);
        if is_author {
            return Some(ApprovalProblem::Own);
        }
        let entitlement = &self.entitlements[&repository];
        if !entitlement.may_approve(&asked.by, changed) {
            return Some(ApprovalProblem::NotEntitled);
        }
        asked.head_problem(known)
    }

    pub(super) fn approval(
        &self,
        repository: RepositoryId,
        key: &RequestKey,
        by: Actor,
        target: ApprovalTarget,
    ) -> Command {
        let now = self.ports.clock.now();
        let policy = self.entitlements[&repository].policy();
        let expires_at = now.saturating_add(policy.approval.expires_after.0);
        Command::Approve {
            key: key.clone(),
            approval: Box::new(Approval {
                at: Some(now),
                expires_at: Some(expires_at.expect("a time span")),
                ..Approval::new(target, policy.digest.clone(), by)
            }),
        }
    }
}

impl ApprovalRequest {
    /// Returns why the words are not of the head that is there now.
    fn head_problem(&self, known: &Observation) -> Option<ApprovalProblem> {
        let now = &known.info.head.sha;
        match &self.head {
            Some(head) if head == now => None,
            Some(_) => Some(ApprovalProblem::HeadChanged(now.clone())),
            None => {
                let seen_by = known.head_by.max(known.base_by);
                let is_later = self.said_at.duration_since(seen_by) > MARGIN;
                let is_of_it = is_later && self.push == PushPending::None;
                (!is_of_it).then(|| ApprovalProblem::WhichHead(now.clone()))
            }
        }
    }

    fn names(&self, request: &RunRequest) -> bool {
        let subject = &request.subject;
        let named = self.blueprints.is_empty() || self.blueprints.contains(&subject.blueprint);
        named && (self.profile.is_none() || self.profile == subject.profile)
    }
}

/// Returns what is approved by approving these runs and nothing else: their blueprints, profiles and jobs. `None` where there are none.
pub(super) fn target(runs: &[RunRequest]) -> Option<ApprovalTarget> {
    let subject = &runs.first()?.subject;
    let subjects = || runs.iter().map(|run| &run.subject);
    Some(ApprovalTarget {
        scope: Scope {
            blueprints: Selection::Named(subjects().map(|subject| subject.blueprint.clone()).collect()),
            profiles: Selection::Named(subjects().map(|subject| subject.profile.clone()).collect()),
            jobs: Selection::Named(runs.iter().map(|run| run.job.digest()).collect()),
        },
        ..ApprovalTarget::whole_head_of(subject)
    })
}

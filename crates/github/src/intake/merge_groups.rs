//! Merge queues: what would be merged is another commit than any pull request's head, and its checks are asked for anew.
//!
//! Where a run of the same content has passed, that is the answer. Content is the same where every file is that the blueprint is
//! triggered by. Else the policy says what becomes of it.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_core::{
    domain::{Actor, Ending, Head, RequestKey, RunRequest, RunState},
    event::StopMode,
    ports::Command,
    view::RunView,
};

use super::{Intake, IntakeError, approve::target};
use crate::{
    answer::{Answer, ApprovalProblem},
    api::{ChangedPaths, CheckAction, CheckOutput, RepositoryId},
    check, key,
    payload::{Account, CommitSha, MergeGroup},
    plan::{HeadBlueprint, Plan, Planned, PlannedBlueprint},
    policy::MergeQueueRule,
};

/// The most runs, the newest first, among which one of the same content is looked for.
const RUNS_LOOKED_AT: usize = 5_000;
/// The most commits whose files are compared for one merge group.
const COMMITS_COMPARED: usize = 5;

/// What a button of the check run of a merge group's run asks for.
pub(super) struct GroupWish<'a> {
    pub(super) repository: RepositoryId,
    pub(super) view: &'a RunView,
    pub(super) by: &'a Account,
    pub(super) key: RequestKey,
}

/// The files of commits, read once each.
type Files = BTreeMap<CommitSha, BTreeMap<String, String>>;

impl Intake {
    /// Answers the checks of a merge group. It may be repeated, and does nothing again for one that was answered.
    pub(super) async fn answer_group(
        &mut self,
        repository: RepositoryId,
        group: &MergeGroup,
    ) -> Result<(), IntakeError> {
        let place = (repository, group.head_sha.clone());
        if self.groups.contains(&place) {
            return Ok(());
        }
        self.know_who_may(repository).await?;
        let github = self.ports.github.clone();
        let changed = github
            .compare(repository, &group.base_sha, &group.head_sha)
            .await?;
        let of = github.repository(repository).await?;
        let (blueprints, mut plan) = match self.blueprints(&of, &group.head_sha).await? {
            Ok(read) => {
                let plan = self.plan_of_group(repository, group, &changed, read.clone());
                (read, plan)
            }
            Err(unreadable) => (Vec::new(), unreadable),
        };
        let runs = std::mem::take(&mut plan.runs);
        let known = match runs.is_empty() {
            true => Vec::new(),
            false => self.ports.store.runs(RUNS_LOOKED_AT).await?,
        };
        let (mut files, mut checks) = (Files::new(), Vec::new());
        for request in runs {
            let same = self
                .passed_with_same_content(repository, &request, &blueprints, &known, &mut files)
                .await?;
            checks.extend(self.answer_run(repository, request, same, &mut plan).await?);
        }
        checks.extend(self.without_run(repository, group.branch(), &plan).await?);
        self.show(repository, &group.head_sha, checks).await?;
        self.groups.insert(place);
        Ok(())
    }

    /// Ends the runs of a merge group that is gone.
    pub(super) async fn end_group(
        &mut self,
        repository: RepositoryId,
        head: &CommitSha,
    ) -> Result<(), IntakeError> {
        self.groups.remove(&(repository, head.clone()));
        let head = head.to_head();
        for view in self.ports.store.runs(RUNS_LOOKED_AT).await? {
            let subject = &view.subject;
            let is_of_it = subject.repository == repository.to_repository()
                && subject.pull_request.is_none()
                && subject.head == head;
            if is_of_it && !matches!(view.state, RunState::Ended(_)) {
                self.submit(Command::Cancel {
                    key: key::of(["merge-group", "gone", &view.id.to_string()]),
                    run: view.id,
                    by: view.requested_by.clone(),
                    how: StopMode::Terminate,
                })
                .await?;
            }
        }
        Ok(())
    }

    /// Answers the merge groups that there are, and ends the runs of those that are gone.
    pub(super) async fn sweep_groups(&mut self, repository: RepositoryId) -> Result<(), IntakeError> {
        let groups = self.ports.github.merge_groups(repository).await?;
        for group in &groups {
            self.answer_group(repository, group).await?;
        }
        let is_there = |head: &CommitSha| groups.iter().any(|group| group.head_sha == *head);
        let known = self.groups.iter();
        let gone: Vec<CommitSha> = known
            .filter(|(of, head)| *of == repository && !is_there(head))
            .map(|(_, head)| head.clone())
            .collect();
        for head in gone {
            self.end_group(repository, &head).await?;
        }
        Ok(())
    }

    /// Does what a button of the check run of a merge group's run asks for.
    pub(super) async fn on_group_button(
        &mut self,
        wish: &GroupWish<'_>,
        action: CheckAction,
    ) -> Result<Result<(), Answer>, IntakeError> {
        self.entitle(wish.repository).await?;
        let everything = ChangedPaths {
            is_cut_off: true,
            ..ChangedPaths::default()
        };
        let entitlement = &self.entitlements[&wish.repository];
        if !entitlement.may_approve(wish.by, &everything) {
            return Ok(Err(ApprovalProblem::NotEntitled.into()));
        }
        let (run, by, key) = (wish.view.id, wish.by.to_actor(), wish.key.clone());
        let command = match action {
            CheckAction::Approve => match self.group_approval(wish).await? {
                Some(approval) => approval,
                None => return Ok(Err(ApprovalProblem::Nothing.into())),
            },
            CheckAction::Retry => Command::Retry { key, run, by },
            CheckAction::Cancel => Command::Cancel {
                key,
                run,
                by,
                how: StopMode::Terminate,
            },
        };
        self.submit(command).await?;
        Ok(Ok(()))
    }

    /// Returns the approval of a run of a merge group that is still there, with what it asks for now.
    async fn group_approval(&self, wish: &GroupWish<'_>) -> Result<Option<Command>, IntakeError> {
        let (repository, subject) = (wish.repository, &wish.view.subject);
        let groups = self.ports.github.merge_groups(repository).await?;
        let group = groups
            .iter()
            .find(|group| group.head_sha.to_head() == subject.head);
        let Some(group) = group else {
            return Ok(None);
        };
        let github = &self.ports.github;
        let changed = github
            .compare(repository, &group.base_sha, &group.head_sha)
            .await?;
        let of = github.repository(repository).await?;
        let Ok(blueprints) = self.blueprints(&of, &group.head_sha).await? else {
            return Ok(None);
        };
        let plan = self.plan_of_group(repository, group, &changed, blueprints);
        let runs = plan.runs.into_iter();
        let named: Vec<RunRequest> = runs.filter(|request| request.subject == *subject).collect();
        Ok(target(&named).map(|target| self.approval(repository, &wish.key, wish.by.to_actor(), target)))
    }

    fn plan_of_group(
        &self,
        repository: RepositoryId,
        group: &MergeGroup,
        changed: &ChangedPaths,
        blueprints: Vec<HeadBlueprint>,
    ) -> Plan {
        let Ok(base) = group.branch().parse() else {
            return Plan::default();
        };
        let planned = Planned {
            repository,
            pull_request: None,
            head: &group.head_sha,
            author: merge_queue(),
            base,
            changed,
            policy: self.entitlements[&repository].policy(),
            queue: &self.settings.queue,
        };
        planned.plan(blueprints)
    }

    /// Answers for one run: by the check run of one that has passed, or as the policy says.
    async fn answer_run(
        &self,
        repository: RepositoryId,
        request: RunRequest,
        same: Option<&RunView>,
        plan: &mut Plan,
    ) -> Result<Option<CheckOutput>, IntakeError> {
        let now = self.ports.clock.now();
        let rule = self.entitlements[&repository].policy().merge_queue;
        match (same, rule) {
            (Some(passed), _) => return Ok(Some(check::passed_with_same_content(passed, now))),
            (None, MergeQueueRule::Run) => self.ask_for(request).await?,
            (None, MergeQueueRule::Neutral) => plan.untested.push(PlannedBlueprint::of(&request.subject)),
        }
        Ok(None)
    }

    /// Returns the newest run that has passed with what a run would test.
    async fn passed_with_same_content<'a>(
        &self,
        repository: RepositoryId,
        request: &RunRequest,
        blueprints: &[HeadBlueprint],
        known: &'a [RunView],
        files: &mut Files,
    ) -> Result<Option<&'a RunView>, IntakeError> {
        let subject = &request.subject;
        let named = blueprints
            .iter()
            .find(|blueprint| blueprint.name == subject.blueprint);
        let (Some(blueprint), Head::Commit(head)) = (named, &subject.head) else {
            return Ok(None);
        };
        let head: CommitSha = head.parse().expect("it was one");
        let mut compared = BTreeSet::new();
        for view in known.iter().filter(|view| has_passed_as(view, request)) {
            let Some(other) = commit_of(view) else {
                continue;
            };
            if compared.len() == COMMITS_COMPARED && !compared.contains(&other) {
                break;
            }
            compared.insert(other.clone());
            let ours = self.content(repository, &head, blueprint, files).await?;
            let theirs = self.content(repository, &other, blueprint, files).await?;
            if ours.is_some() && ours == theirs {
                return Ok(Some(view));
            }
        }
        Ok(None)
    }

    /// Returns the files of a commit that a blueprint is triggered by, with what names their content; `None` where not all are known.
    async fn content(
        &self,
        repository: RepositoryId,
        at: &CommitSha,
        blueprint: &HeadBlueprint,
        files: &mut Files,
    ) -> Result<Option<BTreeMap<String, String>>, IntakeError> {
        if !files.contains_key(at) {
            let Some(read) = self.ports.github.blobs(repository, at).await? else {
                return Ok(None);
            };
            files.insert(at.clone(), read);
        }
        let relevant = files[at].iter().filter(|(path, _)| blueprint.is_made_of(path));
        Ok(Some(
            relevant
                .map(|(path, blob)| (path.clone(), blob.clone()))
                .collect(),
        ))
    }
}

/// Returns who asks for the runs of merge groups: nobody's account, and nobody who could approve anything.
fn merge_queue() -> Actor {
    Actor::Local("merge queue".into())
}

/// Returns whether a run has passed that tested the blueprint of another under its profile.
fn has_passed_as(view: &RunView, request: &RunRequest) -> bool {
    let (one, other) = (&view.subject, &request.subject);
    view.state == RunState::Ended(Ending::Passed)
        && one.repository == other.repository
        && one.blueprint == other.blueprint
        && one.profile == other.profile
}

fn commit_of(view: &RunView) -> Option<CommitSha> {
    match &view.subject.head {
        Head::Commit(commit) => commit.parse().ok(),
        Head::Snapshot(_) => None,
    }
}

//! The fake as it is asked through the port.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use blueproof_core::hex::hex;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::{FakeFailure, FakeGitHub, State, StoredCheckRun, limits::judge};
use crate::{
    api::{
        ApiError, ApiRetry, ChangedPaths, CheckOutput, CheckRunId, Collaborator, ExistingCheckRun, GitHub,
        IssueComment, Reaction, RepositoryId,
    },
    payload::{
        Account, App, Comment, CommitSha, MergeGroup, PullRequestInfo, PullRequestState, RepositoryInfo,
    },
};

impl FakeGitHub {
    /// Answers a call, unless it is to fail.
    pub(super) fn answer<T>(
        &self,
        call: &'static str,
        answer: impl FnOnce(&mut State) -> Option<T>,
    ) -> Result<T, ApiError> {
        let answered = self.answer_now(call, answer);
        self.asked.send_modify(|asked| *asked += 1);
        answered
    }

    fn answer_now<T>(
        &self,
        call: &'static str,
        answer: impl FnOnce(&mut State) -> Option<T>,
    ) -> Result<T, ApiError> {
        let doing = format!("have `{call}` answered");
        let mut state = self.lock();
        let nth = state.n_calls;
        state.n_calls += 1;
        *state.calls.entry(call).or_default() += 1;
        if state.is_down {
            return Err(ApiError::later(doing));
        }
        if let Some(error) = state.failing.remove(&nth) {
            return Err(error);
        }
        match state.failures.get(call).copied() {
            None => answer(&mut state).ok_or_else(|| refused(&doing, 404)),
            Some(FakeFailure::AnswerLost) => {
                answer(&mut state);
                Err(ApiError::later(doing))
            }
            Some(FakeFailure::NotReached) => Err(ApiError::later(doing)),
            Some(FakeFailure::Refused) => Err(refused(&doing, 403)),
            Some(FakeFailure::RateLimited(until)) => Err(ApiError {
                retry: ApiRetry::After(until),
                status: Some(429),
                ..ApiError::later(doing)
            }),
        }
    }
}

fn refused(doing: &str, status: u16) -> ApiError {
    ApiError {
        status: Some(status),
        ..ApiError::never(doing)
    }
}

/// Returns what names a content, as git's own names do.
fn blob(text: &str) -> String {
    hex(&Sha256::digest(text)[..20])
}

#[async_trait]
impl GitHub for FakeGitHub {
    async fn repository(&self, id: RepositoryId) -> Result<RepositoryInfo, ApiError> {
        self.answer("repository", |state| {
            Some(state.repositories.get(&id)?.info.clone())
        })
    }

    async fn pull_request(&self, id: RepositoryId, number: u64) -> Result<PullRequestInfo, ApiError> {
        self.answer("pull_request", |state| {
            let pull_requests = &state.repositories.get(&id)?.pull_requests;
            Some(pull_requests.get(&number)?.info.clone())
        })
    }

    async fn open_pull_requests(&self, id: RepositoryId) -> Result<Vec<PullRequestInfo>, ApiError> {
        self.answer("open_pull_requests", |state| {
            let all = state.repositories.get(&id)?.pull_requests.values();
            let open = all.filter(|one| one.info.state == PullRequestState::Open);
            Some(open.map(|one| one.info.clone()).collect())
        })
    }

    async fn changed_paths(&self, id: RepositoryId, number: u64) -> Result<ChangedPaths, ApiError> {
        self.answer("changed_paths", |state| {
            let pull_requests = &state.repositories.get(&id)?.pull_requests;
            Some(pull_requests.get(&number)?.changed.clone())
        })
    }

    async fn comments_since(
        &self,
        id: RepositoryId,
        since: Timestamp,
    ) -> Result<Vec<IssueComment>, ApiError> {
        self.answer("comments_since", |state| {
            let all = state.repositories.get(&id)?.comments.values();
            let changed = all.filter(|one| one.comment.updated_at >= since);
            let told = changed.map(|one| IssueComment {
                number: one.number,
                comment: one.comment.clone(),
            });
            Some(told.collect())
        })
    }

    async fn branch(&self, id: RepositoryId, name: &str) -> Result<CommitSha, ApiError> {
        self.answer("branch", |state| {
            state.repositories.get(&id)?.branches.get(name).cloned()
        })
    }

    async fn required_checks(&self, id: RepositoryId, branch: &str) -> Result<BTreeSet<String>, ApiError> {
        self.answer("required_checks", |state| {
            let required = state.repositories.get(&id)?.required_checks.get(branch);
            Some(required.cloned().unwrap_or_default())
        })
    }

    async fn file(&self, id: RepositoryId, path: &str, at: &CommitSha) -> Result<Option<String>, ApiError> {
        self.answer("file", |state| {
            Some(state.repositories.get(&id)?.files.get(at)?.get(path).cloned())
        })
    }

    async fn paths_named(
        &self,
        id: RepositoryId,
        name: &str,
        at: &CommitSha,
    ) -> Result<Vec<String>, ApiError> {
        self.answer("paths_named", |state| {
            let paths = state.repositories.get(&id)?.files.get(at)?.keys();
            let named = paths.filter(|path| path.rsplit('/').next() == Some(name));
            Some(named.cloned().collect())
        })
    }

    async fn blobs(
        &self,
        id: RepositoryId,
        at: &CommitSha,
    ) -> Result<Option<BTreeMap<String, String>>, ApiError> {
        self.answer("blobs", |state| {
            let files = state.repositories.get(&id)?.files.get(at)?;
            let named = files.iter().map(|(path, text)| (path.clone(), blob(text)));
            Some(Some(named.collect()))
        })
    }

    async fn compare(
        &self,
        id: RepositoryId,
        base: &CommitSha,
        head: &CommitSha,
    ) -> Result<ChangedPaths, ApiError> {
        self.answer("compare", |state| {
            let files = &state.repositories.get(&id)?.files;
            let (before, after) = (files.get(base)?, files.get(head)?);
            let all = before.keys().chain(after.keys());
            let changed = all.filter(|path| before.get(*path) != after.get(*path));
            Some(ChangedPaths {
                paths: changed.cloned().collect(),
                is_cut_off: false,
            })
        })
    }

    async fn merge_groups(&self, id: RepositoryId) -> Result<Vec<MergeGroup>, ApiError> {
        self.answer("merge_groups", |state| {
            Some(state.repositories.get(&id)?.merge_groups.clone())
        })
    }

    async fn account(&self, login: &str) -> Result<Option<Account>, ApiError> {
        self.answer("account", |state| {
            Some(state.accounts.get(&login.to_ascii_lowercase()).cloned())
        })
    }

    async fn collaborators(&self, id: RepositoryId) -> Result<Vec<Collaborator>, ApiError> {
        self.answer("collaborators", |state| {
            Some(state.repositories.get(&id)?.collaborators.clone())
        })
    }

    async fn check_runs(
        &self,
        id: RepositoryId,
        head: &CommitSha,
    ) -> Result<Vec<ExistingCheckRun>, ApiError> {
        self.answer("check_runs", |state| {
            let all = state.repositories.get(&id)?.check_runs.iter();
            let of_head = all.filter(|(_, check)| check.head == *head);
            let told = of_head.map(|(id, check)| ExistingCheckRun {
                id: *id,
                name: check.check.name.clone(),
                external_id: check.check.external_id.clone(),
                n_annotations: u32::try_from(check.annotations.len()).unwrap_or(u32::MAX),
            });
            Some(told.collect())
        })
    }

    async fn create_check_run(
        &self,
        id: RepositoryId,
        head: &CommitSha,
        check: &CheckOutput,
    ) -> Result<CheckRunId, ApiError> {
        judge(check)?;
        self.answer("create_check_run", |state| {
            let number = CheckRunId(state.new_id());
            let made = StoredCheckRun {
                head: head.clone(),
                annotations: check.annotations.clone(),
                check: check.clone(),
                n_updates: 0,
            };
            state.repositories.get_mut(&id)?.check_runs.insert(number, made);
            Some(number)
        })
    }

    async fn update_check_run(
        &self,
        id: RepositoryId,
        _head: &CommitSha,
        number: CheckRunId,
        check: &CheckOutput,
    ) -> Result<(), ApiError> {
        judge(check)?;
        self.answer("update_check_run", |state| {
            let check_runs = &mut state.repositories.get_mut(&id)?.check_runs;
            let stored = check_runs.get_mut(&number)?;
            stored.annotations.extend(check.annotations.iter().cloned());
            stored.check = check.clone();
            stored.n_updates += 1;
            Some(())
        })
    }

    async fn comments(&self, id: RepositoryId, number: u64) -> Result<Vec<Comment>, ApiError> {
        self.answer("comments", |state| {
            let all = state.repositories.get(&id)?.comments.values();
            let of_it = all.filter(|one| one.number == number);
            Some(of_it.map(|one| one.comment.clone()).collect())
        })
    }

    async fn create_comment(
        &self,
        id: RepositoryId,
        number: u64,
        markdown: &str,
    ) -> Result<Comment, ApiError> {
        let us = Account {
            id: Self::ACCOUNT,
            login: "blueproof[bot]".into(),
            kind: crate::payload::AccountKind::Bot,
        };
        self.answer("create_comment", |state| {
            state.repositories.get(&id)?;
            let comment = state.add_comment(id, number, &us, Some(App { id: self.app }), markdown);
            Some(state.repositories[&id].comments[&comment].comment.clone())
        })
    }

    async fn update_comment(&self, id: RepositoryId, comment: u64, markdown: &str) -> Result<(), ApiError> {
        self.answer("update_comment", |state| {
            let now = state.now;
            let known = state.repositories.get_mut(&id)?.comments.get_mut(&comment)?;
            known.comment.body = Some(markdown.into());
            known.comment.updated_at = now;
            Some(())
        })
    }

    async fn react(&self, id: RepositoryId, comment: u64, reaction: Reaction) -> Result<(), ApiError> {
        self.answer("react", |state| {
            let known = state.repositories.get_mut(&id)?.comments.get_mut(&comment)?;
            if !known.reactions.contains(&reaction) {
                known.reactions.push(reaction);
            }
            Some(())
        })
    }
}

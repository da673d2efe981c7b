//! The port's calls as requests.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::json;

use super::{
    RestGitHub,
    answers::{
        Branch, BranchRule, ChangedFile, CheckRunAnswer, CheckRuns, CollaboratorAnswer, CommentAnswer,
        Comparison, Reference, Tree,
    },
    checks::{CheckBody, StatusBody},
    request::{Call, file_path, part},
};
use crate::{
    api::{
        ApiError, ChangedPaths, CheckOutput, CheckRunId, Collaborator, ExistingCheckRun, GitHub,
        IssueComment, Reaction, RepositoryId,
    },
    payload::{Account, Comment, CommitSha, MergeGroup, PullRequestInfo, RepositoryInfo},
};

/// The number of what is no check run, but a commit status.
const NO_CHECK_RUN: CheckRunId = CheckRunId(0);
/// The most files of a pull request that GitHub tells of.
const MOST_FILES: usize = 3000;
/// The most files of a comparison that GitHub tells of.
const MOST_FILES_COMPARED: usize = 300;
/// What the branches of merge groups begin with.
const MERGE_QUEUE: &str = "heads/gh-readonly-queue/";

impl RestGitHub {
    /// Shows a check run as a commit status. GitHub keeps all of a commit, and shows the newest of each name.
    async fn set_status(
        &self,
        id: RepositoryId,
        head: &CommitSha,
        check: &CheckOutput,
    ) -> Result<(), ApiError> {
        let call = Call::post(
            self.below(id, &format!("statuses/{head}"))?,
            &StatusBody::of(check),
        );
        self.send(&call, "set a commit status").await.map(|_| ())
    }

    /// Returns the path of something below a repository.
    fn below(&self, id: RepositoryId, rest: &str) -> Result<String, ApiError> {
        Ok(format!("{}/{rest}", self.path(id)?))
    }
}

fn changed_paths(files: Vec<ChangedFile>, is_cut_off: bool) -> ChangedPaths {
    let both = |file: ChangedFile| [Some(file.filename), file.previous_filename];
    let paths = files.into_iter().flat_map(both).flatten();
    ChangedPaths {
        paths: paths.collect(),
        is_cut_off,
    }
}

/// Returns the merge group whose branch this is: `gh-readonly-queue/BRANCH/pr-NUMBER-COMMIT`, where the commit is that of the branch
/// before. `None` where it is called otherwise.
fn merge_group(reference: Reference) -> Option<MergeGroup> {
    let rest = reference.name.strip_prefix("refs/")?.strip_prefix(MERGE_QUEUE)?;
    let (branch, place) = rest.rsplit_once('/')?;
    let (_, base) = place.strip_prefix("pr-")?.split_once('-')?;
    Some(MergeGroup {
        head_sha: reference.object.sha,
        base_sha: base.parse().ok()?,
        base_ref: format!("refs/heads/{branch}"),
        head_ref: reference.name,
    })
}

/// Checks that what was read is of the repository that was meant: once one is renamed, its name can become another's.
fn check_repository(id: RepositoryId, read: Option<&RepositoryInfo>) -> Result<(), ApiError> {
    match read {
        Some(info) if info.id != id.0 => {
            let name = &info.full_name;
            Err(ApiError::never(format!(
                "find GitHub repository {}: the name `{name}` is another's",
                id.0
            )))
        }
        Some(_) | None => Ok(()),
    }
}

#[async_trait]
impl GitHub for RestGitHub {
    async fn repository(&self, id: RepositoryId) -> Result<RepositoryInfo, ApiError> {
        let info: RepositoryInfo = self.get(&Call::get(self.path(id)?), "read a repository").await?;
        check_repository(id, Some(&info))?;
        self.know(info.clone());
        Ok(info)
    }

    async fn pull_request(&self, id: RepositoryId, number: u64) -> Result<PullRequestInfo, ApiError> {
        let call = Call::get(self.below(id, &format!("pulls/{number}"))?);
        let doing = format!("read pull request {number}");
        let info: PullRequestInfo = self.get(&call, &doing).await?;
        check_repository(id, info.base.repo.as_ref())?;
        Ok(info)
    }

    async fn open_pull_requests(&self, id: RepositoryId) -> Result<Vec<PullRequestInfo>, ApiError> {
        let call = Call::get(self.below(id, "pulls?state=open&per_page=100")?);
        let open: Vec<PullRequestInfo> = self
            .pages(call, "list the open pull requests", |page: Vec<_>| page)
            .await?;
        for info in &open {
            check_repository(id, info.base.repo.as_ref())?;
        }
        Ok(open)
    }

    async fn changed_paths(&self, id: RepositoryId, number: u64) -> Result<ChangedPaths, ApiError> {
        let call = Call::get(self.below(id, &format!("pulls/{number}/files?per_page=100"))?);
        let doing = format!("list the files of pull request {number}");
        let files: Vec<ChangedFile> = self.pages(call, &doing, |page: Vec<_>| page).await?;
        let is_cut_off = files.len() >= MOST_FILES;
        Ok(changed_paths(files, is_cut_off))
    }

    async fn comments_since(
        &self,
        id: RepositoryId,
        since: Timestamp,
    ) -> Result<Vec<IssueComment>, ApiError> {
        let since = since.strftime("%Y-%m-%dT%H:%M:%SZ");
        let rest = format!("issues/comments?since={since}&sort=updated&direction=asc&per_page=100");
        let call = Call::get(self.below(id, &rest)?);
        let entries =
            |page: Vec<CommentAnswer>| page.into_iter().filter_map(CommentAnswer::into_comment).collect();
        self.pages(call, "list comments", entries).await
    }

    async fn branch(&self, id: RepositoryId, name: &str) -> Result<CommitSha, ApiError> {
        let call = Call::get(self.below(id, &format!("branches/{}", part(name)))?);
        let branch: Branch = self.get(&call, &format!("read the branch `{name}`")).await?;
        Ok(branch.commit.sha)
    }

    async fn required_checks(&self, id: RepositoryId, name: &str) -> Result<BTreeSet<String>, ApiError> {
        let doing = format!("read which checks the branch `{name}` requires");
        let call = Call::get(self.below(id, &format!("branches/{}", part(name)))?);
        let branch: Branch = match self.get(&call, &doing).await {
            Err(error) if error.is_not_found() => return Ok(BTreeSet::new()),
            other => other?,
        };
        let call = Call::get(self.below(id, &format!("rules/branches/{}?per_page=100", part(name)))?);
        let rules: Vec<BranchRule> = match self.pages(call, &doing, |page: Vec<_>| page).await {
            // GitHub Enterprise Server had no rulesets before 3.11.
            Err(error) if error.is_not_found() => Vec::new(),
            other => other?,
        };
        let by_rules = rules.into_iter().flat_map(BranchRule::required_checks);
        Ok(branch.required_checks().into_iter().chain(by_rules).collect())
    }

    async fn file(&self, id: RepositoryId, path: &str, at: &CommitSha) -> Result<Option<String>, ApiError> {
        let call = Call::get(self.below(id, &format!("contents/{}?ref={at}", file_path(path)))?).raw();
        self.text(&call, &format!("read `{path}`")).await
    }

    async fn paths_named(
        &self,
        id: RepositoryId,
        name: &str,
        at: &CommitSha,
    ) -> Result<Vec<String>, ApiError> {
        let Some(blobs) = self.blobs(id, at).await? else {
            return Err(ApiError::never(
                "list the files of a commit: there are more than GitHub lists",
            ));
        };
        let paths = blobs.into_keys();
        Ok(paths
            .filter(|path| path.rsplit('/').next() == Some(name))
            .collect())
    }

    async fn blobs(
        &self,
        id: RepositoryId,
        at: &CommitSha,
    ) -> Result<Option<BTreeMap<String, String>>, ApiError> {
        let call = Call::get(self.below(id, &format!("git/trees/{at}?recursive=1"))?);
        let tree: Tree = self.get(&call, "list the files of a commit").await?;
        let files = tree.tree.into_iter().filter(|entry| entry.kind == "blob");
        let named = files.map(|file| (file.path, file.sha)).collect();
        Ok((!tree.truncated).then_some(named))
    }

    async fn compare(
        &self,
        id: RepositoryId,
        base: &CommitSha,
        head: &CommitSha,
    ) -> Result<ChangedPaths, ApiError> {
        // Files stand on the first page alone; the others have further commits.
        let call = Call::get(self.below(id, &format!("compare/{base}...{head}?per_page=1"))?);
        let compared: Comparison = self.get(&call, "compare two commits").await?;
        let is_cut_off = compared.files.len() >= MOST_FILES_COMPARED;
        Ok(changed_paths(compared.files, is_cut_off))
    }

    async fn merge_groups(&self, id: RepositoryId) -> Result<Vec<MergeGroup>, ApiError> {
        let call = Call::get(self.below(id, &format!("git/matching-refs/{MERGE_QUEUE}"))?);
        let refs: Vec<Reference> = self
            .pages(call, "list the merge groups", |page: Vec<_>| page)
            .await?;
        Ok(refs.into_iter().filter_map(merge_group).collect())
    }

    async fn account(&self, login: &str) -> Result<Option<Account>, ApiError> {
        let call = Call::get(format!("/users/{}", part(login)));
        match self.get(&call, &format!("read the account `{login}`")).await {
            Err(error) if error.is_not_found() => Ok(None),
            other => other.map(Some),
        }
    }

    async fn collaborators(&self, id: RepositoryId) -> Result<Vec<Collaborator>, ApiError> {
        let call = Call::get(self.below(id, "collaborators?affiliation=all&permission=push&per_page=100")?);
        let entries = |page: Vec<CollaboratorAnswer>| {
            page.into_iter()
                .map(CollaboratorAnswer::into_collaborator)
                .collect()
        };
        self.pages(call, "list the collaborators", entries).await
    }

    async fn check_runs(
        &self,
        id: RepositoryId,
        head: &CommitSha,
    ) -> Result<Vec<ExistingCheckRun>, ApiError> {
        let Some(app) = self.app else {
            return Ok(Vec::new());
        };
        let rest = format!("commits/{head}/check-runs?filter=all&per_page=100&app_id={app}");
        let call = Call::get(self.below(id, &rest)?);
        let runs: Vec<CheckRunAnswer> = self
            .pages(call, "list the check runs of a commit", |page: CheckRuns| {
                page.check_runs
            })
            .await?;
        let is_ours = |run: &CheckRunAnswer| run.app.map(|of| of.id) == Some(app);
        let ours = runs.into_iter().filter(is_ours);
        let told = ours.map(|run| ExistingCheckRun {
            id: CheckRunId(run.id),
            name: run.name,
            external_id: run.external_id.unwrap_or_default(),
            n_annotations: run.output.annotations_count,
        });
        Ok(told.collect())
    }

    async fn create_check_run(
        &self,
        id: RepositoryId,
        head: &CommitSha,
        check: &CheckOutput,
    ) -> Result<CheckRunId, ApiError> {
        if self.app.is_none() {
            return self.set_status(id, head, check).await.map(|()| NO_CHECK_RUN);
        }
        let call = Call::post(self.below(id, "check-runs")?, &CheckBody::of(check, Some(head)));
        let made: CheckRunAnswer = self.get(&call, "make a check run").await?;
        Ok(CheckRunId(made.id))
    }

    async fn update_check_run(
        &self,
        id: RepositoryId,
        head: &CommitSha,
        number: CheckRunId,
        check: &CheckOutput,
    ) -> Result<(), ApiError> {
        if self.app.is_none() {
            return self.set_status(id, head, check).await;
        }
        let path = self.below(id, &format!("check-runs/{}", number.0))?;
        let call = Call::patch(path, &CheckBody::of(check, None));
        self.send(&call, "change a check run").await.map(|_| ())
    }

    async fn comments(&self, id: RepositoryId, number: u64) -> Result<Vec<Comment>, ApiError> {
        let call = Call::get(self.below(id, &format!("issues/{number}/comments?per_page=100"))?);
        let doing = format!("list the comments of pull request {number}");
        self.pages(call, &doing, |page: Vec<_>| page).await
    }

    async fn create_comment(
        &self,
        id: RepositoryId,
        number: u64,
        markdown: &str,
    ) -> Result<Comment, ApiError> {
        let path = self.below(id, &format!("issues/{number}/comments"))?;
        let call = Call::post(path, &json!({ "body": markdown }));
        self.get(&call, &format!("comment on pull request {number}"))
            .await
    }

    async fn update_comment(&self, id: RepositoryId, comment: u64, markdown: &str) -> Result<(), ApiError> {
        let path = self.below(id, &format!("issues/comments/{comment}"))?;
        let call = Call::patch(path, &json!({ "body": markdown }));
        self.send(&call, "change a comment").await.map(|_| ())
    }

    async fn react(&self, id: RepositoryId, comment: u64, reaction: Reaction) -> Result<(), ApiError> {
        let content = match reaction {
            Reaction::Eyes => "eyes",
            Reaction::Rocket => "rocket",
            Reaction::Confused => "confused",
        };
        let path = self.below(id, &format!("issues/comments/{comment}/reactions"))?;
        let call = Call::post(path, &json!({ "content": content }));
        self.send(&call, "react to a comment").await.map(|_| ())
    }
}

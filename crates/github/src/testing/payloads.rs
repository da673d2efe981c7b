//! Payloads as GitHub sends them, of what the fake has.

use serde_json::{Value, json};

use crate::payload::{
    Account, CheckRun, CheckRunAction, Comment, CommitSha, MergeGroup, MergeGroupAction, PullRequestInfo,
    RepositoryInfo,
};

pub(super) fn push(repository: &RepositoryInfo, commit: &CommitSha) -> Value {
    json!({
        "ref": "refs/heads/main",
        "after": commit,
        "repository": of_repository(repository),
    })
}

pub(super) fn pull_request(
    repository: &RepositoryInfo,
    info: &PullRequestInfo,
    action: &str,
    by: &Account,
    label: Option<&str>,
) -> Value {
    json!({
        "action": action,
        "number": info.number,
        "pull_request": of_pull_request(info),
        "label": label.map(|name| json!({ "name": name })),
        "repository": of_repository(repository),
        "sender": of_account(by),
    })
}

pub(super) fn comment(
    repository: &RepositoryInfo,
    number: u64,
    comment: &Comment,
    action: &str,
    by: &Account,
) -> Value {
    json!({
        "action": action,
        "issue": { "number": number, "pull_request": {} },
        "comment": {
            "id": comment.id,
            "body": comment.body,
            "user": comment.user.as_ref().map(of_account),
            "performed_via_github_app": comment.app.map(|app| json!({ "id": app.id })),
            "created_at": comment.created_at,
            "updated_at": comment.updated_at,
        },
        "repository": of_repository(repository),
        "sender": of_account(by),
    })
}

pub(super) fn check_run(
    repository: &RepositoryInfo,
    check: &CheckRun,
    by: &Account,
    action: CheckRunAction,
    identifier: Option<&str>,
) -> Value {
    json!({
        "action": String::from(action),
        "check_run": {
            "id": check.id,
            "name": check.name,
            "head_sha": check.head_sha,
            "external_id": check.external_id,
            "app": check.app.map(|app| json!({ "id": app.id })),
        },
        "requested_action": identifier.map(|identifier| json!({ "identifier": identifier })),
        "repository": of_repository(repository),
        "sender": of_account(by),
    })
}

pub(super) fn merge_group(
    repository: &RepositoryInfo,
    group: &MergeGroup,
    action: MergeGroupAction,
) -> Value {
    json!({
        "action": String::from(action),
        "merge_group": {
            "head_sha": group.head_sha,
            "head_ref": group.head_ref,
            "base_sha": group.base_sha,
            "base_ref": group.base_ref,
        },
        "repository": of_repository(repository),
    })
}

pub(super) fn of_pull_request(info: &PullRequestInfo) -> Value {
    json!({
        "number": info.number,
        "state": info.state,
        "draft": info.draft,
        "user": info.user.as_ref().map(of_account),
        "head": { "ref": info.head.name, "sha": info.head.sha, "repo": info.head.repo.as_ref().map(of_repository) },
        "base": {
            "ref": info.base.name,
            "sha": info.base.sha,
            "repo": info.base.repo.as_ref().map(of_repository),
        },
        "updated_at": info.updated_at,
        "labels": [],
    })
}

pub(super) fn of_repository(repository: &RepositoryInfo) -> Value {
    json!({
        "id": repository.id,
        "full_name": repository.full_name,
        "default_branch": repository.default_branch,
    })
}

pub(super) fn of_account(account: &Account) -> Value {
    json!({ "id": account.id, "login": account.login, "type": account.kind })
}

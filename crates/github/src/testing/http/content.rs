//! Branches, commits and what is in them.

use serde_json::{Value, json};

use super::{Body, no_commit};
use crate::{
    api::{ApiError, GitHub as _, RepositoryId},
    testing::FakeGitHub,
};

/// Returns a branch. Half of what it requires is told as of its protection, and half by [`rules`].
pub(super) async fn branch(github: &FakeGitHub, id: RepositoryId, name: &str) -> Result<Body, ApiError> {
    let required = github.required_checks(id, name).await?.into_iter();
    let contexts: Vec<String> = required.step_by(2).collect();
    Ok(Body::Json(json!({
        "commit": { "sha": github.branch(id, name).await? },
        "protected": !contexts.is_empty(),
        "protection": { "required_status_checks": { "contexts": contexts } }
    })))
}

/// Returns the rules of rulesets that hold for a branch.
pub(super) async fn rules(github: &FakeGitHub, id: RepositoryId, name: &str) -> Result<Body, ApiError> {
    let required = github.required_checks(id, name).await?.into_iter();
    let checks = required.skip(1).step_by(2);
    let checks: Vec<Value> = checks.map(|context| json!({ "context": context })).collect();
    let rules = vec![
        json!({ "type": "non_fast_forward" }),
        json!({ "type": "required_status_checks", "parameters": { "required_status_checks": checks } }),
    ];
    Ok(Body::List(None, rules))
}

/// Returns the files of a commit.
pub(super) async fn tree(github: &FakeGitHub, id: RepositoryId, sha: &str) -> Result<Body, ApiError> {
    let commit = sha.parse().unwrap_or_else(|_| no_commit());
    let blobs = github.blobs(id, &commit).await?.into_iter().flatten();
    let entries: Vec<Value> = blobs
        .map(|(path, blob)| json!({ "path": path, "type": "blob", "sha": blob }))
        .collect();
    Ok(Body::Json(
        json!({ "sha": sha, "tree": entries, "truncated": false }),
    ))
}

/// Returns the branches of merge groups.
pub(super) async fn groups(github: &FakeGitHub, id: RepositoryId) -> Result<Body, ApiError> {
    let groups = github.merge_groups(id).await?;
    let refs = groups
        .iter()
        .map(|group| json!({ "ref": group.head_ref, "object": { "type": "commit", "sha": group.head_sha } }));
    Ok(Body::List(None, refs.collect()))
}

/// Returns what one commit changes of another: `BASE...HEAD`.
pub(super) async fn comparison(github: &FakeGitHub, id: RepositoryId, both: &str) -> Result<Body, ApiError> {
    let (base, head) = both.split_once("...").unwrap_or((both, ""));
    let commit = |sha: &str| sha.parse().unwrap_or_else(|_| no_commit());
    let changed = github.compare(id, &commit(base), &commit(head)).await?;
    let files: Vec<Value> = changed
        .paths
        .iter()
        .map(|path| json!({ "filename": path, "status": "modified" }))
        .collect();
    Ok(Body::Json(json!({ "files": files })))
}

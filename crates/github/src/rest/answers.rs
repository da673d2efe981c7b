//! What GitHub answers, as far as it is read.

use serde::Deserialize;

use crate::{
    api::{Collaborator, IssueComment, Permission},
    payload::{Account, App, Comment, CommitSha},
};

#[derive(Deserialize)]
pub(super) struct Branch {
    pub(super) commit: Commit,
    #[serde(default)]
    protection: Option<Protection>,
}

#[derive(Deserialize)]
struct Protection {
    required_status_checks: Option<RequiredContexts>,
}

#[derive(Deserialize)]
struct RequiredContexts {
    #[serde(default)]
    contexts: Vec<String>,
}

impl Branch {
    /// Returns the names of the checks that the branch's protection requires.
    pub(super) fn required_checks(self) -> Vec<String> {
        let required = self
            .protection
            .and_then(|protection| protection.required_status_checks);
        required.map_or_else(Vec::new, |required| required.contexts)
    }
}

/// A rule of a ruleset that holds for a branch.
#[derive(Deserialize)]
pub(super) struct BranchRule {
    parameters: Option<RuleParameters>,
}

/// The parameters of a rule; those of other kinds have none of these.
#[derive(Deserialize)]
struct RuleParameters {
    #[serde(default)]
    required_status_checks: Vec<RequiredCheck>,
}

#[derive(Deserialize)]
struct RequiredCheck {
    context: String,
}

impl BranchRule {
    /// Returns the names of the checks that the rule requires.
    pub(super) fn required_checks(self) -> impl Iterator<Item = String> {
        let required = self
            .parameters
            .map(|parameters| parameters.required_status_checks);
        required.into_iter().flatten().map(|check| check.context)
    }
}

#[derive(Deserialize)]
pub(super) struct Commit {
    pub(super) sha: CommitSha,
}

#[derive(Deserialize)]
pub(super) struct ChangedFile {
    pub(super) filename: String,
    #[serde(default)]
    pub(super) previous_filename: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Tree {
    pub(super) tree: Vec<TreeEntry>,
    #[serde(default)]
    pub(super) truncated: bool,
}

#[derive(Deserialize)]
pub(super) struct TreeEntry {
    pub(super) path: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) sha: String,
}

#[derive(Deserialize)]
pub(super) struct Comparison {
    #[serde(default)]
    pub(super) files: Vec<ChangedFile>,
}

/// A branch by its whole name.
#[derive(Deserialize)]
pub(super) struct Reference {
    #[serde(rename = "ref")]
    pub(super) name: String,
    pub(super) object: Commit,
}

#[derive(Deserialize)]
pub(super) struct CollaboratorAnswer {
    #[serde(flatten)]
    account: Account,
    permissions: Permissions,
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "they are GitHub's")]
struct Permissions {
    admin: bool,
    maintain: bool,
    push: bool,
    triage: bool,
    pull: bool,
}

#[derive(Deserialize)]
pub(super) struct CommentAnswer {
    #[serde(flatten)]
    comment: Comment,
    issue_url: String,
}

#[derive(Deserialize)]
pub(super) struct CheckRuns {
    pub(super) check_runs: Vec<CheckRunAnswer>,
}

#[derive(Deserialize)]
pub(super) struct CheckRunAnswer {
    pub(super) id: u64,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) external_id: Option<String>,
    #[serde(default)]
    pub(super) app: Option<App>,
    #[serde(default)]
    pub(super) output: CheckOutputAnswer,
}

#[derive(Deserialize, Default)]
pub(super) struct CheckOutputAnswer {
    #[serde(default)]
    pub(super) annotations_count: u32,
}

impl CollaboratorAnswer {
    pub(super) fn into_collaborator(self) -> Collaborator {
        let permissions = [
            (self.permissions.admin, Permission::Admin),
            (self.permissions.maintain, Permission::Maintain),
            (self.permissions.push, Permission::Write),
            (self.permissions.triage, Permission::Triage),
            (self.permissions.pull, Permission::Read),
        ];
        let most = permissions.into_iter().find(|(has, _)| *has);
        Collaborator {
            account: self.account,
            permission: most.map_or(Permission::None, |(_, permission)| permission),
        }
    }
}

impl CommentAnswer {
    /// Returns the comment with the number of what it is on, which stands at the end of an address.
    pub(super) fn into_comment(self) -> Option<IssueComment> {
        let number = self.issue_url.rsplit('/').next()?.parse().ok()?;
        Some(IssueComment {
            number,
            comment: self.comment,
        })
    }
}

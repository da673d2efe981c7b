//! What came of a delivery, and what is still to come.

use std::collections::BTreeSet;

use super::approve::PushPending;
use crate::{answer::Answer, api::RepositoryId, payload::Payload};

/// What came of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handled {
    /// It was a reason to look, and that was done.
    Looked,
    /// Somebody asked for something: what came of each wish, in their order.
    Answered(Vec<Result<(), Answer>>),
    /// Nothing is to be done about it.
    Ignored(Ignored),
}

/// Why nothing is to be done about a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    /// It is of a kind that we do not act on.
    Event,
    /// It is of a kind that we act on, but not of something that changes anything.
    Action,
    /// It is a comment on an issue, or without a command.
    NoCommand,
    /// A comment that was written by another than who sent it, or that is not as it was written.
    NotAsWritten,
    /// A button or check run of another App.
    OtherApp,
    /// It is about a repository that is not followed.
    OtherRepository,
}

/// The pull requests to which a push was received that is not worked on yet.
#[derive(Debug, Clone, Default)]
pub struct Pushes(BTreeSet<(RepositoryId, u64)>);

impl Pushes {
    /// Returns the pushes among payloads that are not worked on yet.
    pub fn among<'a>(payloads: impl IntoIterator<Item = &'a Payload>) -> Self {
        let pushed = payloads.into_iter().filter_map(|payload| match payload {
            Payload::PullRequest(event) => {
                Some((RepositoryId(event.repository.id), event.pull_request.number))
            }
            Payload::IssueComment(_)
            | Payload::CheckRun(_)
            | Payload::CheckSuite(_)
            | Payload::Push(_)
            | Payload::MergeGroup(_)
            | Payload::WorkflowJob(_)
            | Payload::Installation(_)
            | Payload::InstallationRepositories(_)
            | Payload::Repository(_)
            | Payload::Ping
            | Payload::Other => None,
        });
        Self(pushed.collect())
    }

    pub(super) fn to(&self, repository: RepositoryId, number: u64) -> PushPending {
        match self.0.contains(&(repository, number)) {
            true => PushPending::Received,
            false => PushPending::None,
        }
    }
}

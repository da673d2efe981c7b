//! Commit statuses of the fake.

use super::FakeGitHub;
use crate::{
    api::{ApiError, RepositoryId},
    payload::CommitSha,
};

/// A commit status as it was set last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeStatus {
    /// What it is called.
    pub context: String,
    /// `pending`, `success`, `failure` or `error`.
    pub state: String,
    /// One line about it.
    pub description: String,
}

/// The most characters of a description that GitHub takes.
const DESCRIPTION_AT_MOST: usize = 140;

impl FakeGitHub {
    /// Returns the commit statuses of a commit, the newest of each name.
    pub fn statuses(&self, id: RepositoryId, head: &CommitSha) -> Vec<FakeStatus> {
        let mut state = self.lock();
        let of_repository = state.repository(id).statuses.iter();
        let of_head = of_repository.filter(|((of, _), _)| of == head);
        of_head.map(|(_, status)| status.clone()).collect()
    }

    pub(super) fn set_status(
        &self,
        id: RepositoryId,
        head: &CommitSha,
        context: &str,
        status: &str,
        description: &str,
    ) -> Result<(), ApiError> {
        let is_one = ["pending", "success", "failure", "error"].contains(&status);
        if !is_one || description.chars().count() > DESCRIPTION_AT_MOST {
            return Err(ApiError {
                status: Some(422),
                ..ApiError::never("set a commit status")
            });
        }
        self.answer("set_status", |state| {
            let repository = state.repositories.get_mut(&id)?;
            let set = FakeStatus {
                context: context.into(),
                state: status.into(),
                description: description.into(),
            };
            repository.statuses.insert((head.clone(), context.into()), set);
            Some(())
        })
    }
}

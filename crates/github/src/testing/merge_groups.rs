//! Merge queues of the fake.

use super::{FakeGitHub, payloads};
use crate::{
    api::RepositoryId,
    payload::{CommitSha, MergeGroup, MergeGroupAction},
};

impl FakeGitHub {
    /// Has a commit consist of these files: what is compared where a merge group or a pull request's head is.
    pub fn set_files(&self, id: RepositoryId, commit: &CommitSha, files: &[(&str, &str)]) {
        let files = files.iter().map(|(path, text)| ((*path).into(), (*text).into()));
        let mut state = self.lock();
        state.repository(id).files.insert(commit.clone(), files.collect());
    }

    /// Makes a merge group of a pull request on the default branch, which would consist of these files, and asks for its checks.
    pub fn enqueue(&self, id: RepositoryId, number: u64, files: &[(&str, &str)]) -> CommitSha {
        let mut state = self.lock();
        let head = state.new_commit();
        let repository = state.repository(id);
        let base = repository.branches["main"].clone();
        let group = MergeGroup {
            head_sha: head.clone(),
            head_ref: format!("refs/heads/gh-readonly-queue/main/pr-{number}-{base}"),
            base_sha: base,
            base_ref: "refs/heads/main".into(),
        };
        repository.merge_groups.push(group.clone());
        let body = payloads::merge_group(&repository.info, &group, MergeGroupAction::ChecksRequested);
        state.deliver("merge_group", &body);
        drop(state);
        self.set_files(id, &head, files);
        head
    }

    /// Takes a merge group away, whether it was merged or not.
    pub fn dequeue(&self, id: RepositoryId, head: &CommitSha) {
        let mut state = self.lock();
        let repository = state.repository(id);
        let place = repository
            .merge_groups
            .iter()
            .position(|group| group.head_sha == *head);
        let group = repository.merge_groups.remove(place.expect("the group is there"));
        let body = payloads::merge_group(&repository.info, &group, MergeGroupAction::Destroyed);
        state.deliver("merge_group", &body);
    }
}

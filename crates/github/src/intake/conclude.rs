//! The check runs of what a pull request or merge group needs no run for.

use std::collections::{BTreeMap, BTreeSet};

use super::{Intake, IntakeError};
use crate::{
    api::{ApiRetry, CheckOutput, ExistingCheckRun, RepositoryId},
    check,
    payload::CommitSha,
    plan::Plan,
};

impl Intake {
    /// Returns the check runs of what a plan has no run for, each concluded, where a base branch requires them or they have failed.
    pub(super) async fn without_run(
        &self,
        repository: RepositoryId,
        base: &str,
        plan: &Plan,
    ) -> Result<Vec<CheckOutput>, IntakeError> {
        let required = match plan.unconcerned.is_empty() {
            true => BTreeSet::new(),
            false => self.ports.github.required_checks(repository, base).await?,
        };
        let now = self.ports.clock.now();
        Ok(check::without_run(plan, |name| required.contains(name), now))
    }

    /// Shows check runs at a commit, where the newest of the name says something else.
    ///
    /// GitHub shows the newest check run of a name: one that was concluded earlier is not changed, but followed by another.
    pub(super) async fn show(
        &self,
        repository: RepositoryId,
        head: &CommitSha,
        checks: Vec<CheckOutput>,
    ) -> Result<(), IntakeError> {
        if checks.is_empty() {
            return Ok(());
        }
        let github = &self.ports.github;
        let newest = newest(github.check_runs(repository, head).await?);
        for check in checks {
            if newest.get(&check.name) == Some(&check.external_id) {
                continue;
            }
            match github.create_check_run(repository, head, &check).await {
                // Whoever may not show anything tests all the same.
                Err(error) if error.retry == ApiRetry::Never => {
                    tracing::warn!(check = check.name, "a check is not shown: {error}");
                }
                other => {
                    other?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the `external_id` of the newest check run of each name: GitHub's numbers rise.
fn newest(existing: Vec<ExistingCheckRun>) -> BTreeMap<String, String> {
    let mut newest = existing;
    newest.sort_by_key(|check| check.id);
    let named = newest.into_iter().map(|check| (check.name, check.external_id));
    named.collect()
}

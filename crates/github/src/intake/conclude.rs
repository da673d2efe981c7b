//! The check runs of what a pull request needs no run for.

use std::collections::{BTreeMap, BTreeSet};

use super::{Intake, IntakeError};
use crate::{
    api::{ExistingCheckRun, RepositoryId},
    check,
    plan::Plan,
};

impl Intake {
    /// Concludes the check runs of what a plan has no run for, where the newest of the name says something else. Only an App has any.
    ///
    /// GitHub shows the newest check run of a name: one that was concluded earlier is not changed, but followed by another.
    pub(super) async fn conclude(
        &self,
        repository: RepositoryId,
        number: u64,
        plan: &Plan,
    ) -> Result<(), IntakeError> {
        let has_none = plan.unconcerned.is_empty() && plan.refused.is_empty();
        let Some(known) = self.observed.get(repository, number).filter(|_| !has_none) else {
            return Ok(());
        };
        if self.settings.app.is_none() {
            return Ok(());
        }
        let (github, head) = (&self.ports.github, &known.info.head.sha);
        let required = match plan.unconcerned.is_empty() {
            true => BTreeSet::new(),
            false => github.required_checks(repository, &known.info.base.name).await?,
        };
        let checks = check::without_run(plan, |name| required.contains(name), self.ports.clock.now());
        if checks.is_empty() {
            return Ok(());
        }
        let newest = newest(github.check_runs(repository, head).await?);
        for check in checks {
            if newest.get(&check.name) != Some(&check.external_id) {
                github.create_check_run(repository, head, &check).await?;
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

//! What people ask for beside an approval: that something ends, goes on, or is tried again.

use blueproof_core::{
    approval::HoldTarget,
    domain::{Actor, BlueprintName, Ending, RequestKey, RunId, RunState},
    event::StopMode,
    ports::Command,
    view::RunView,
};

use super::{Intake, IntakeError, pull_request};
use crate::{answer::Answer, api::RepositoryId, key, payload::Account};

/// The most runs that are looked at: those of heads long gone are not.
const RUNS_LOOKED_AT: usize = 1000;

/// Somebody's wish, and by what it came.
pub(super) struct Wish<'a> {
    pub(super) repository: RepositoryId,
    pub(super) number: u64,
    pub(super) by: &'a Account,
    pub(super) key: RequestKey,
}

impl Intake {
    pub(super) async fn cancel(
        &self,
        wish: &Wish<'_>,
        named: &[BlueprintName],
    ) -> Result<Result<(), Answer>, IntakeError> {
        let is_open = |view: &RunView| !matches!(view.state, RunState::Ended(_));
        let mut answer = Err(Answer::NoRun);
        for view in self.meant(wish, named, is_open).await? {
            answer = self.stop(wish, &view).await?;
        }
        Ok(answer)
    }

    pub(super) async fn retest(
        &self,
        wish: &Wish<'_>,
        named: &[BlueprintName],
    ) -> Result<Result<(), Answer>, IntakeError> {
        let head = self.observed.get(wish.repository, wish.number);
        let head = head.map(|known| known.info.head.sha.to_head());
        let is_ended = |view: &RunView| {
            let has_not_passed = matches!(view.state, RunState::Ended(ending) if ending != Ending::Passed);
            let is_over = matches!(view.state, RunState::Ended(_));
            Some(&view.subject.head) == head.as_ref() && (has_not_passed || is_over && !named.is_empty())
        };
        let mut answer = Err(Answer::NoRun);
        for view in self.meant(wish, named, is_ended).await? {
            answer = self.retry(wish, &view).await?;
        }
        Ok(answer)
    }

    /// Returns the runs of the wish's pull request that are meant.
    async fn meant(
        &self,
        wish: &Wish<'_>,
        named: &[BlueprintName],
        is_meant: impl Fn(&RunView) -> bool,
    ) -> Result<Vec<RunView>, IntakeError> {
        let mut runs = self.ports.store.runs(RUNS_LOOKED_AT).await?;
        let of = pull_request(wish.repository, wish.number);
        runs.retain(|view| {
            let is_named = named.is_empty() || named.contains(&view.subject.blueprint);
            view.subject.of_pull_request().as_ref() == Some(&of) && is_named && is_meant(view)
        });
        Ok(runs)
    }

    pub(super) async fn stop(
        &self,
        wish: &Wish<'_>,
        view: &RunView,
    ) -> Result<Result<(), Answer>, IntakeError> {
        if !self.may_stop(wish.repository, wish.number, &wish.by.to_actor()) {
            return Ok(Err(Answer::MayNot));
        }
        self.submit(Command::Cancel {
            key: wish.key_of(view.id),
            run: view.id,
            by: wish.by.to_actor(),
            how: StopMode::Terminate,
        })
        .await?;
        Ok(Ok(()))
    }

    /// Has a run tried again. Whether its approval still counts is judged when it is to start.
    pub(super) async fn retry(
        &self,
        wish: &Wish<'_>,
        view: &RunView,
    ) -> Result<Result<(), Answer>, IntakeError> {
        if !self.may_stop(wish.repository, wish.number, &wish.by.to_actor()) {
            return Ok(Err(Answer::MayNot));
        }
        let keys = [view.request_key.clone()].into();
        if let Some(problem) = self.over_budget(wish.repository, wish.number, &keys).await? {
            return Ok(Err(problem.into()));
        }
        self.submit(Command::Retry {
            key: wish.key_of(view.id),
            run: view.id,
            by: wish.by.to_actor(),
        })
        .await?;
        Ok(Ok(()))
    }

    pub(super) async fn hold(
        &self,
        wish: &Wish<'_>,
        command: fn(RequestKey, HoldTarget, Actor) -> Command,
    ) -> Result<Result<(), Answer>, IntakeError> {
        let by = wish.by.to_actor();
        if !self.may_stop(wish.repository, wish.number, &by) {
            return Ok(Err(Answer::MayNot));
        }
        let target = HoldTarget::PullRequest(pull_request(wish.repository, wish.number));
        self.submit(command(wish.key.clone(), target, by)).await?;
        Ok(Ok(()))
    }
}

impl Wish<'_> {
    fn key_of(&self, run: RunId) -> RequestKey {
        key::of([self.key.0.as_str(), &run.to_string()])
    }
}

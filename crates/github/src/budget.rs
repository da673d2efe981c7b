//! How much of the GPUs an author, a pull request and a repository may have, by the repository's policy.
//!
//! A budget is looked at when somebody approves a run or has one tried again: what was let run by then runs to its end, so that a budget
//! is exceeded by no more than what runs at the same time. Counted is quota that was held, for as long as it was held: what nobody who
//! writes a notebook can make smaller.

use std::{collections::BTreeSet, fmt};

use blueproof_core::{
    domain::{Actor, PullRequest, RequestKey, RunState},
    view::{AttemptView, RunView},
};
use blueproof_diagnostic::yaml::record;
use jiff::{SignedDuration, Timestamp};

/// The time over which GPU-minutes are counted.
const WINDOW: SignedDuration = SignedDuration::from_hours(24);

record! {
    /// How much of the GPUs runs of pull requests may have.
    pub struct Budgets {
        /// What whoever opened pull requests may have, with all of them in the repository. Default: as much as there is.
        author: Option<Budget>,
        /// What each pull request may have. Default: as much as there is.
        pull_request: Option<Budget>,
        /// What all pull requests of the repository may have together. Default: as much as there is.
        repository: Option<Budget>,
    }
}

record! {
    /// How much of the GPUs may be had.
    pub struct Budget {
        /// The most GPU-minutes within 24 hours, counted as quota was held. Once they are used, nothing more is approved.
        gpu_minutes: Option<u32>,
        /// The most runs that are approved and have not ended.
        runs: Option<u32>,
    }
}

/// Whose budget it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetOf {
    /// Of whoever opened the pull request.
    Author,
    /// Of the pull request.
    PullRequest,
    /// Of the repository.
    Repository,
}

/// A budget that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BudgetProblem {
    /// Its GPU-minutes are.
    #[error("{of} has used {used} of {most} GPU-minutes within 24 hours (`spec.budgets` of the policy)")]
    GpuMinutes {
        /// Whose it is.
        of: BudgetOf,
        /// How many were used.
        used: u64,
        /// How many there are.
        most: u32,
    },
    /// As many runs as it allows are on their way.
    #[error("{of} has {active} runs on their way, and may have {most} (`spec.budgets` of the policy)")]
    Runs {
        /// Whose it is.
        of: BudgetOf,
        /// How many are, with those that are asked for.
        active: usize,
        /// How many there may be.
        most: u32,
    },
}

/// Runs of a pull request that somebody asks to let run.
#[derive(Debug)]
pub struct BudgetRequest<'a> {
    /// The pull request.
    pub pull_request: &'a PullRequest,
    /// Who opened it.
    pub author: &'a Actor,
    /// The runs, by their keys.
    pub runs: &'a BTreeSet<RequestKey>,
}

impl fmt::Display for BudgetOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Author => "whoever opened this pull request",
            Self::PullRequest => "this pull request",
            Self::Repository => "this repository",
        })
    }
}

impl Budgets {
    /// Returns whether there are any.
    pub fn are_limited(&self) -> bool {
        self.author.is_some() || self.pull_request.is_some() || self.repository.is_some()
    }

    /// Returns which budget is used up, if one is, with these runs known.
    pub fn judge(
        &self,
        request: &BudgetRequest<'_>,
        known: &[RunView],
        now: Timestamp,
    ) -> Option<BudgetProblem> {
        let budgets = [
            (BudgetOf::PullRequest, &self.pull_request),
            (BudgetOf::Author, &self.author),
            (BudgetOf::Repository, &self.repository),
        ];
        budgets.into_iter().find_map(|(of, budget)| {
            let counted = known.iter().filter(|run| of.counts(request, run));
            budget
                .as_ref()?
                .judge(of, request, &counted.collect::<Vec<_>>(), now)
        })
    }
}

impl BudgetOf {
    /// Returns whether a run counts for the budget that another is asked to start of.
    fn counts(self, request: &BudgetRequest<'_>, run: &RunView) -> bool {
        let subject = &run.subject;
        let is_of_repository =
            subject.repository == request.pull_request.repository && subject.pull_request.is_some();
        match self {
            Self::Repository => is_of_repository,
            Self::Author => is_of_repository && run.requested_by == *request.author,
            Self::PullRequest => subject.of_pull_request().as_ref() == Some(request.pull_request),
        }
    }
}

impl Budget {
    fn judge(
        &self,
        of: BudgetOf,
        request: &BudgetRequest<'_>,
        counted: &[&RunView],
        now: Timestamp,
    ) -> Option<BudgetProblem> {
        let seconds: f64 = counted.iter().map(|run| gpu_seconds(run, now)).sum();
        let used = (seconds / 60.0) as u64;
        if let Some(most) = self.gpu_minutes.filter(|most| used >= u64::from(*most)) {
            return Some(BudgetProblem::GpuMinutes { of, used, most });
        }
        let others = counted
            .iter()
            .filter(|run| is_on_its_way(run) && !request.runs.contains(&run.request_key));
        let active = others.count() + request.runs.len();
        let most = self.runs.filter(|most| active > *most as usize)?;
        Some(BudgetProblem::Runs { of, active, most })
    }
}

fn is_on_its_way(run: &RunView) -> bool {
    match run.state {
        RunState::Queued | RunState::Reserved | RunState::Starting | RunState::Running => true,
        RunState::AwaitingApproval | RunState::Ended(_) => false,
    }
}

/// Returns for how many GPU-seconds a run had quota within the window.
fn gpu_seconds(run: &RunView, now: Timestamp) -> f64 {
    let since = now.saturating_sub(WINDOW).expect("a time span");
    let held = |attempt: &AttemptView| {
        let (from, until) = (attempt.reserved_at.max(since), attempt.ended_at.unwrap_or(now));
        until.duration_since(from).as_secs_f64().max(0.0)
    };
    let seconds: f64 = run.attempts.iter().map(held).sum();
    seconds * f64::from(run.resources.gpu.0)
}

#[cfg(test)]
mod tests {
    use blueproof_core::domain::{Ending, Gpus, Repository, RunId};

    use super::*;
    use crate::testing::run_status;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + minute * 60).expect("a time")
    }

    /// Returns a run with two GPUs that had them for so many minutes, until a minute.
    fn run(id: u64, author: u64, number: u64, state: RunState, minutes: i64, until: i64) -> RunView {
        let mut view = run_status(state).view;
        view.id = RunId(id);
        view.request_key = RequestKey(format!("key-{id}"));
        view.requested_by = person(author);
        view.subject.repository = Repository::GitHub(7);
        view.subject.pull_request = Some(number);
        view.resources.gpu = Gpus(2);
        view.attempts = vec![AttemptView {
            id: RunId(id).attempt(1),
            approved_by: person(1),
            place: None,
            pending: None,
            queued_at: None,
            reserved_at: at(until - minutes),
            started_at: None,
            ended_at: Some(at(until)),
            eviction: None,
            outcome: None,
        }];
        view
    }

    fn person(id: u64) -> Actor {
        Actor::GitHub {
            id,
            login: format!("user-{id}"),
        }
    }

    fn judge(budgets: &Budgets, author: u64, number: u64, known: &[RunView]) -> Option<BudgetProblem> {
        let request = BudgetRequest {
            pull_request: &PullRequest {
                repository: Repository::GitHub(7),
                number,
            },
            author: &person(author),
            runs: &BTreeSet::from([RequestKey("key-9".into())]),
        };
        budgets.judge(&request, known, at(0))
    }

    fn budgets(of: BudgetOf, budget: &Budget) -> Budgets {
        let only = |this: BudgetOf| (this == of).then(|| budget.clone());
        Budgets {
            author: only(BudgetOf::Author),
            pull_request: only(BudgetOf::PullRequest),
            repository: only(BudgetOf::Repository),
        }
    }

    const PASSED: RunState = RunState::Ended(Ending::Passed);

    #[test]
    fn minutes_count_for_whom_they_were_and_only_within_a_day() {
        let most = Budget {
            gpu_minutes: Some(100),
            runs: None,
        };
        let known = [
            run(1, 4, 12, PASSED, 40, -10),
            run(2, 4, 13, PASSED, 9, -5),
            // An hour of it is within the day.
            run(3, 5, 14, PASSED, 600, -23 * 60),
        ];
        let used = |of, author, number| match judge(&budgets(of, &most), author, number, &known) {
            Some(BudgetProblem::GpuMinutes { used, .. }) => Some(used),
            Some(BudgetProblem::Runs { .. }) | None => None,
        };
        assert_eq!(used(BudgetOf::PullRequest, 4, 12), None, "80 of 100");
        assert_eq!(used(BudgetOf::Author, 4, 12), None, "98 of 100");
        assert_eq!(used(BudgetOf::Author, 5, 12), Some(120));
        assert_eq!(used(BudgetOf::Repository, 6, 15), Some(80 + 18 + 120));
    }

    #[test]
    fn what_runs_counts_until_now_and_never_below_nothing() {
        let mut runs = run(1, 4, 12, RunState::Running, 60, 0);
        runs.attempts[0].ended_at = None;
        assert_eq!(gpu_seconds(&runs, at(0)), 7200.0);
        assert_eq!(gpu_seconds(&runs, at(-120)), 0.0, "a clock that went back");
    }

    #[test]
    fn runs_on_their_way_count_with_those_that_are_wanted_and_none_twice() {
        let most = Budget {
            gpu_minutes: None,
            runs: Some(2),
        };
        let two = budgets(BudgetOf::Author, &most);
        let waits = run(3, 4, 14, RunState::AwaitingApproval, 0, 0);
        let mut known = vec![run(1, 4, 12, RunState::Running, 1, 0), waits];
        assert_eq!(judge(&two, 4, 12, &known), None);
        known.push(run(9, 4, 12, RunState::Queued, 0, 0));
        assert_eq!(
            judge(&two, 4, 12, &known),
            None,
            "it is the one that is asked for"
        );
        known.push(run(2, 4, 13, RunState::Queued, 0, 0));
        let problem = judge(&two, 4, 12, &known).expect("there are three");
        assert_eq!(
            problem.to_string(),
            "whoever opened this pull request has 3 runs on their way, and may have 2 (`spec.budgets` of the policy)"
        );
        assert_eq!(judge(&two, 5, 12, &known), None, "another's");
    }
}

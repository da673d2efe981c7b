//! How often estimates held: each request of a log is estimated from what was known then, and compared with what came.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::{
    domain::{Ending, RequestKey, RunId, RunState},
    estimate::{Estimate, When},
    event::Event,
    fact::Fact,
    ports::LoggedFact,
    scheduler::{ESTIMATE_EFFORT, Replay},
    view::RunView,
};

/// Replays a log and estimates each run when it is asked for.
///
/// Starts are compared for runs that had to wait, and ends for runs that ended by themselves. An estimate costs the more the
/// more runs are there, so that estimates of all would cost the square of a queue's length: each run that is asked for
/// grants the effort of an estimate among 200, and while more was spent than granted, runs are passed over.
#[derive(Debug, Default)]
pub struct Backtest {
    replay: Replay,
    /// The run that was just asked for, when, and which is estimated once all is applied that was decided about it.
    asked: Option<(RequestKey, Timestamp)>,
    estimates: BTreeMap<RunId, Option<Estimate>>,
    last_at: Option<Timestamp>,
    /// The runs that were asked for and not estimated, because too much was spent on those before.
    passed_over: BTreeSet<RunId>,
    /// How many runs estimates may go over, all courses counted, and how many they did.
    granted: usize,
    spent: usize,
}

/// How often estimates held.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scores {
    /// How many runs were asked for.
    pub runs: usize,
    /// How many of them were not estimated: with so many others there, estimates of all would take too long.
    pub passed_over: usize,
    /// Of how many of the others nothing could be said, or only a limit of time.
    pub without_estimate: usize,
    /// Of starts, for those who had to wait.
    pub starts: EstimateAccuracy,
    /// Of ends.
    pub ends: EstimateAccuracy,
    /// Of ends, by blueprint.
    pub ends_by_blueprint: BTreeMap<String, EstimateAccuracy>,
}

/// How often what was estimated came by then.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EstimateAccuracy {
    /// How many were compared.
    pub runs: usize,
    /// Which share came by `p50`.
    pub p50_held: f64,
    /// Which share came by `p90`.
    pub p90_held: f64,
    /// How far `p50` was off in the middle one of all cases.
    pub median_error_seconds: f64,
    /// The mean loss of `p90`, by which two ways to estimate it may be compared: nine tenths of what it was too early, or
    /// one tenth of what it was too late (the pinball loss; Koenker and Bassett 1978).
    pub p90_loss_seconds: f64,
}

/// An estimate and what came of it.
struct Case {
    p50: Timestamp,
    p90: Timestamp,
    came: Timestamp,
}

impl Backtest {
    /// Takes in the next fact.
    pub fn take_in(&mut self, logged: &LoggedFact) {
        if logged.begins_step(self.last_at) {
            self.estimate();
        }
        self.last_at = self.last_at.max(Some(logged.at));
        self.replay.apply(logged.at, &logged.fact);
        if let Fact::Input(Event::Requested { request }) = &logged.fact {
            self.asked = Some((request.key.clone(), logged.at));
        }
    }

    /// Estimates the run that was just asked for, from what was known then.
    fn estimate(&mut self) {
        let Some((key, at)) = self.asked.take() else {
            return;
        };
        let scheduler = self.replay.scheduler();
        let is_known = |run: &RunId| self.estimates.contains_key(run) || self.passed_over.contains(run);
        let Some(run) = scheduler.run_of(&key).filter(|run| !is_known(run)) else {
            return;
        };
        self.granted += ESTIMATE_EFFORT;
        if self.spent > self.granted {
            self.passed_over.insert(run);
            return;
        }
        let (mut estimates, effort) = scheduler.estimates_and_effort(at, &[run].into());
        self.spent += effort;
        self.estimates.insert(run, estimates.remove(&run));
    }

    /// Returns how often estimates held, of runs that were asked for within `since` before the end of the log.
    pub fn finish(mut self, since: Option<SignedDuration>) -> Scores {
        self.estimate();
        let now = self.last_at.unwrap_or(Timestamp::MIN);
        let from = since.and_then(|since| now.checked_sub(since).ok());
        let mut scores = Scores::default();
        let scheduler = self.replay.scheduler();
        let counted = |run: &RunId| {
            let view = scheduler.view(*run)?;
            from.is_none_or(|from| view.requested_at >= from).then_some(view)
        };
        scores.passed_over = self.passed_over.iter().filter_map(counted).count();
        scores.runs = scores.passed_over;
        let (mut starts, mut ends) = (Vec::new(), BTreeMap::<String, Vec<Case>>::new());
        for (run, estimate) in &self.estimates {
            let Some(view) = counted(run) else {
                continue;
            };
            scores.runs += 1;
            let end = estimate.and_then(|estimate| estimate.end);
            if !matches!(end, Some(When::Likely { .. })) {
                scores.without_estimate += 1;
            }
            let start = estimate.and_then(|estimate| estimate.start);
            starts.extend(Case::of(start, started(&view)));
            let ended = Case::of(end, ended(&view));
            ends.entry(view.subject.blueprint.to_string())
                .or_default()
                .extend(ended);
        }
        scores.starts = EstimateAccuracy::of(&starts);
        let held = ends.iter().filter(|(_, cases)| !cases.is_empty());
        scores.ends_by_blueprint = held
            .map(|(name, cases)| (name.clone(), EstimateAccuracy::of(cases)))
            .collect();
        scores.ends = EstimateAccuracy::of(&ends.into_values().flatten().collect::<Vec<_>>());
        scores
    }
}

/// Returns when a run first got its quota.
fn started(view: &RunView) -> Option<Timestamp> {
    Some(view.attempts.first()?.reserved_at)
}

/// Returns when a run ended, if it did so by itself.
fn ended(view: &RunView) -> Option<Timestamp> {
    match view.state {
        RunState::Ended(
            Ending::Passed | Ending::Failed | Ending::InfrastructureFailed | Ending::TimedOut,
        ) => view.ended_at.filter(|_| !view.attempts.is_empty()),
        RunState::Ended(Ending::Cancelled | Ending::Refused | Ending::Superseded)
        | RunState::AwaitingApproval
        | RunState::Queued
        | RunState::Reserved
        | RunState::Starting
        | RunState::Running => None,
    }
}

impl Case {
    fn of(estimated: Option<When>, came: Option<Timestamp>) -> Option<Self> {
        let (Some(When::Likely { p50, p90 }), Some(came)) = (estimated, came) else {
            return None;
        };
        Some(Self { p50, p90, came })
    }

    /// Returns by how many seconds it was too late, or too early where that is negative.
    fn late_by(&self, estimated: Timestamp) -> f64 {
        estimated.duration_since(self.came).as_secs_f64()
    }

    fn p90_loss(&self) -> f64 {
        let late_by = self.late_by(self.p90);
        (0.1 * late_by).max(-0.9 * late_by)
    }
}

impl EstimateAccuracy {
    fn of(cases: &[Case]) -> Self {
        if cases.is_empty() {
            return Self::default();
        }
        let share = |held: &dyn Fn(&Case) -> bool| {
            cases.iter().filter(|case| held(case)).count() as f64 / cases.len() as f64
        };
        let mut errors: Vec<f64> = cases.iter().map(|case| case.late_by(case.p50).abs()).collect();
        errors.sort_unstable_by(f64::total_cmp);
        Self {
            runs: cases.len(),
            p50_held: share(&|case| case.came <= case.p50),
            p90_held: share(&|case| case.came <= case.p90),
            median_error_seconds: errors[errors.len() / 2],
            p90_loss_seconds: cases.iter().map(Case::p90_loss).sum::<f64>() / cases.len() as f64,
        }
    }
}

#[cfg(test)]
mod tests;

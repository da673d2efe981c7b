//! Which settled runs are remembered: so many that a scheduler takes the same memory however old its log is.
//!
//! The store has every run as it stood, so that what is forgotten here is found there. What was counted and learnt of a run
//! stays, and so does which head its pull request had.

use std::{collections::BTreeSet, num::NonZeroU32};

use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;

use super::{Scheduler, gate, run::Run};
use crate::{domain::RunId, fact::Decision};

/// The settled runs that are remembered, by when they ended.
#[derive(Debug, Clone)]
pub(super) struct Settled {
    by_end: BTreeSet<(Option<Timestamp>, RunId)>,
    remembered: NonZeroU32,
}

impl Settled {
    pub(super) fn new(remembered: NonZeroU32) -> Self {
        Self {
            by_end: BTreeSet::new(),
            remembered,
        }
    }

    /// Sets how many are to be remembered.
    pub(super) fn remember(&mut self, remembered: NonZeroU32) {
        self.remembered = remembered;
    }

    pub(super) fn remembered(&self) -> NonZeroU32 {
        self.remembered
    }

    pub(super) fn insert(&mut self, run: &Run) {
        self.by_end.insert((run.ended_at, run.id));
    }

    pub(super) fn remove(&mut self, run: &Run) {
        self.by_end.remove(&(run.ended_at, run.id));
    }

    pub(super) fn contains(&self, run: &Run) -> bool {
        self.by_end.contains(&(run.ended_at, run.id))
    }

    pub(super) fn len(&self) -> usize {
        self.by_end.len()
    }

    /// Returns those that ended first, of more than are to be remembered. Where many are, an eighth more are borne, so that
    /// one fact tells of many.
    fn too_many(&self) -> Vec<RunId> {
        let remembered = usize::try_from(self.remembered.get()).unwrap_or(usize::MAX);
        if self.by_end.len() <= remembered.saturating_add(remembered / 8) {
            return Vec::new();
        }
        let oldest = self.by_end.iter().take(self.by_end.len() - remembered);
        oldest.map(|(_, run)| *run).collect()
    }
}

/// Says of a run that it cannot be tried again.
pub(super) fn not_remembered(run: RunId) -> Diagnostic {
    let message = format!("{run} cannot be tried again: it is not remembered");
    Diagnostic::error(Code::RunNotRemembered, message)
        .because("of runs that are over the scheduler remembers those that ended last")
        .hint("ask for the same content again with `blueproof run`: it becomes a run of its own")
}

impl Scheduler {
    /// Decides to forget the settled runs that ended first, where there are too many. It comes before the input of a step, so
    /// that a run is seen settled before it is forgotten.
    pub(super) fn forget_oldest(&mut self) {
        if self.decides_as_first_log {
            return;
        }
        let runs = self.settled.too_many();
        if !runs.is_empty() {
            self.decide(Decision::Forgotten { runs });
        }
    }

    /// Applies that settled runs are forgotten. One that is not settled stays.
    pub(super) fn forget(&mut self, runs: &[RunId]) {
        for id in runs {
            if self.runs.get(id).is_some_and(Run::is_settled) {
                self.forget_run(*id);
            }
        }
    }

    fn forget_run(&mut self, id: RunId) {
        // What failed for a run is forgotten when it settles, so that the view is whole without it.
        let Some(run) = self.runs.remove(&id) else { return };
        let (subject, origin) = (&run.request.subject, gate::origin(&run.request.subject));
        self.settled.remove(&run);
        self.by_key.remove(&run.request.key);
        if let Some(of_origin) = self.by_origin.get_mut(&origin) {
            of_origin.remove(&id);
            if of_origin.is_empty() {
                self.by_origin.remove(&origin);
            }
        }
        self.gate.forget(id, subject);
        if self.touched.remove(&id) || self.changed.runs.remove(&id) {
            self.changed.runs.remove(&id);
            self.changed.forgotten.push(run.view(Vec::new()));
        }
    }

    /// Panics where what is remembered is not in order.
    pub(super) fn check_remembered(&self) {
        let settled = self.runs.len() - self.unsettled.len();
        assert_eq!(self.settled.len(), settled, "settled runs are known");
        for (key, run) in &self.by_key {
            let known = self.runs.get(run).map(|run| &run.request.key);
            assert_eq!(known, Some(key), "{run}: is known by its key");
        }
        for run in self.by_origin.values().flatten() {
            assert!(self.runs.contains_key(run), "{run}: has an origin, and is known");
        }
        let last = self.runs.last_key_value().map(|(last, _)| *last);
        assert!(last <= Some(self.last_run), "runs are counted on");
    }
}

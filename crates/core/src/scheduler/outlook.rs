//! How runs stand among the others, worked out for many of them at once: what their rows say.
//!
//! Nothing is decided here. What is asked for is bounded by whoever asks, because some of it takes time in proportion to who
//! else is there, and an event must not.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::Scheduler;
use crate::{domain::RunId, pending::PendingReason, view::OutlookView};

/// How much is worked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// In lines of at most so many it is counted who is before a run.
    pub line: usize,
    /// For the first so many runs it is tried what would get them admitted.
    pub searches: usize,
    /// Where at most so many runs are on their way, it is estimated when they start and end.
    pub estimated: usize,
}

impl Effort {
    /// Everything, however long it takes.
    pub const ALL: Self = Self {
        line: usize::MAX,
        searches: usize::MAX,
        estimated: usize::MAX,
    };
}

impl Scheduler {
    /// Returns how these runs stand among the others, as of `now`; nothing of one for which nothing remains to be
    /// done.
    pub fn outlooks(
        &self,
        now: Timestamp,
        runs: &BTreeSet<RunId>,
        effort: Effort,
    ) -> BTreeMap<RunId, OutlookView> {
        let now = now.max(self.now);
        let unsettled: BTreeSet<RunId> = runs.intersection(&self.unsettled).copied().collect();
        let mut places = self.queue.places(&unsettled, effort.line);
        let mut estimates = match self.unsettled.len() <= effort.estimated {
            true => self.estimates(now, &unsettled),
            false => BTreeMap::new(),
        };
        let mut searches = effort.searches;
        let outlooks = unsettled.iter().map(|run| {
            let place = places.remove(run);
            let reason = self.why_at(*run, place.as_ref());
            let may_search = reason.as_ref().is_some_and(|reason| reason.queued().is_some()) && searches > 0;
            searches -= usize::from(may_search);
            let outlook = OutlookView {
                as_of: now,
                unblocked_by: match may_search {
                    true => self.unblocked_by(*run),
                    false => Vec::new(),
                },
                position: place
                    .map(|place| place.of)
                    .filter(|_| reason.as_ref().is_some_and(is_in_line)),
                reason,
                estimate: estimates.remove(run),
                duration: self.duration_once_approved(*run),
            };
            (*run, outlook)
        });
        outlooks.collect()
    }

    /// Returns how many runs are on their way.
    pub fn n_unsettled(&self) -> usize {
        self.unsettled.len()
    }

    /// Returns the first few runs of each line.
    pub fn first_in_lines(&self, of_each: usize) -> Vec<RunId> {
        self.queue.firsts(of_each)
    }

    /// Returns at most `limit` runs on their way after one, in their order, and from the first again after the last.
    pub fn unsettled_after(&self, run: RunId, limit: usize) -> impl Iterator<Item = RunId> {
        let (after, before) = (
            self.unsettled.range(RunId(run.0 + 1)..),
            self.unsettled.range(..=run),
        );
        after.chain(before).take(limit).copied()
    }

    /// Returns how many wait in the longest line.
    pub fn longest_line(&self) -> usize {
        self.queue.longest_line()
    }
}

fn is_in_line(reason: &PendingReason) -> bool {
    reason.queued().is_some()
}

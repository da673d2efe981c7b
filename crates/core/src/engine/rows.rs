//! Which rows are worked out again, and when.
//!
//! Each event may change the position and the estimate of everybody who waits. So that an event costs the same however many
//! wait, these figures are worked out apart from deciding: at most once in a second, for a bounded number of runs, and each row
//! says as of when it is. What the step in hand changes gets a new row at once, as far as that is cheap.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
};

use jiff::{SignedDuration, Timestamp};

use crate::{
    domain::RunId,
    pending::{PendingReason, RunRemedy},
    scheduler::{Effort, Scheduler},
    view::{OutlookView, QueuePosition, RunView},
};

/// How long two refreshes are apart at least.
const REFRESH_AFTER: SignedDuration = SignedDuration::from_secs(1);

/// How old rows become where nothing happens: what is left of an estimate changes with time alone.
const REFRESH_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(15);

/// How many rows a refresh works out.
const ROWS: usize = 512;

/// How many of them are of those at the front of lines.
const FRONT_ROWS: usize = 64;

/// Where no more runs than these are on their way, a step works out everything about the runs that it changes: that takes less
/// time than writing them down.
const FEW: usize = 16;

/// In lines of at most so many a step counts who is before a run.
const COUNTED_IN_STEP: usize = 256;

/// With how many runs on their way a refresh estimates when they start. It lets the queues go on ten times or more.
const ESTIMATED: usize = 2_000;

/// For how many runs a refresh tries what would get them admitted: for so many where one is on its way, and for fewer in
/// proportion to the square of their number, because there are more trials, and each goes through all of them. Five at a
/// hundred on their way take a quarter of a second. With more than 223 nothing is tried.
const SEARCHES: usize = 50_000;

/// What a refresh has to do.
#[derive(Debug)]
pub(super) struct Rows {
    /// Runs that changed, and of which not everything was worked out then.
    changed: BTreeSet<RunId>,
    /// Whether anything happened since the last refresh.
    behind: bool,
    refreshed_at: Option<Timestamp>,
    /// What would get runs admitted, as tried since anything happened last.
    tried: BTreeMap<RunId, Vec<RunRemedy>>,
    /// The last of those who had their turn though nothing of theirs had changed.
    turn: RunId,
    /// How many are to have their turn until each has had it since anything happened last.
    stale: usize,
    /// How each run that goes on waited when it was told last.
    told: BTreeMap<RunId, Waits>,
}

/// Why a run waits, and where: what is told anew when it changes. Estimates change with time alone, and go with the rest.
type Waits = (Option<PendingReason>, Option<QueuePosition>);

fn waits(outlook: &OutlookView) -> Waits {
    (outlook.reason.clone(), outlook.position.clone())
}

impl Default for Rows {
    /// Returns what is to be done when nothing is known of the rows there are.
    fn default() -> Self {
        Self {
            changed: BTreeSet::new(),
            behind: true,
            refreshed_at: None,
            tried: BTreeMap::new(),
            turn: RunId(0),
            stale: usize::MAX,
            told: BTreeMap::new(),
        }
    }
}

impl Rows {
    /// Notes that something happened: all rows may be out of date.
    pub(super) fn on_facts(&mut self) {
        self.behind = true;
        self.stale = usize::MAX;
        self.tried.clear();
    }

    /// Returns the rows of the runs that a step changed.
    pub(super) fn of_step(
        &mut self,
        scheduler: &Scheduler,
        now: Timestamp,
        changed: BTreeSet<RunId>,
    ) -> Vec<RunView> {
        let few = scheduler.n_unsettled() <= FEW;
        let effort = match few {
            true => Effort::ALL,
            false => Effort {
                line: COUNTED_IN_STEP,
                searches: 0,
                estimated: 0,
            },
        };
        let mut outlooks = outlooks(scheduler, now, &changed, effort);
        if !few {
            self.changed.extend(outlooks.keys());
        }
        let views = changed.into_iter().filter_map(|run| scheduler.view(run));
        let rows = views.map(|view| RunView {
            outlook: outlooks.remove(&view.id).map(Box::new),
            ..view
        });
        let rows: Vec<RunView> = rows.collect();
        for row in &rows {
            match &row.outlook {
                Some(outlook) => self.told.insert(row.id, waits(outlook)),
                None => self.told.remove(&row.id),
            };
        }
        rows
    }

    /// Returns the rows of those that wait otherwise than was told: somebody else has moved on, or has come before them. Of an engine that
    /// was just opened these are all that go on: what one before it told is not known.
    pub(super) fn moved(&mut self, scheduler: &Scheduler, outlooks: &[(RunId, OutlookView)]) -> Vec<RunView> {
        let mut moved = Vec::new();
        for (run, outlook) in outlooks {
            let is_as_told =
                |(reason, position): &Waits| *reason == outlook.reason && *position == outlook.position;
            if self.told.get(run).is_some_and(is_as_told) {
                continue;
            }
            self.told.insert(*run, waits(outlook));
            moved.extend(scheduler.view(*run).map(|view| RunView {
                outlook: Some(Box::new(outlook.clone())),
                ..view
            }));
        }
        moved
    }

    /// Returns whether something may have happened that rows do not tell yet.
    pub(super) fn are_behind(&self, now: Timestamp) -> bool {
        self.behind && self.refreshed_at != Some(now)
    }

    /// Returns when the next refresh is due; `None` where no row would change.
    pub(super) fn due(&self, scheduler: &Scheduler) -> Option<Timestamp> {
        let Some(refreshed_at) = self.refreshed_at else {
            return Some(Timestamp::MIN);
        };
        let after = match self.behind {
            true => REFRESH_AFTER,
            false if scheduler.is_idle() => return None,
            false => REFRESH_AGAIN_AFTER,
        };
        Some(refreshed_at.saturating_add(after).expect("a time span"))
    }

    /// Works out rows: of runs that changed, of those at the front of lines, and of others in turn.
    pub(super) fn refresh(&mut self, scheduler: &Scheduler, now: Timestamp) -> Vec<(RunId, OutlookView)> {
        (self.behind, self.refreshed_at) = (false, Some(now));
        let mut runs = BTreeSet::new();
        while runs.len() < ROWS - FRONT_ROWS
            && let Some(run) = self.changed.pop_first()
        {
            runs.insert(run);
        }
        let n_lines = scheduler.objects().cluster_queues.len().max(1);
        let front = scheduler.first_in_lines((FRONT_ROWS / n_lines).max(1));
        runs.extend(front.into_iter().take(FRONT_ROWS));
        self.stale = self.stale.min(scheduler.n_unsettled());
        for run in scheduler.unsettled_after(self.turn, ROWS - runs.len()) {
            self.turn = run;
            self.stale = self.stale.saturating_sub(1);
            runs.insert(run);
        }
        let effort = Effort {
            line: usize::MAX,
            searches: 0,
            estimated: ESTIMATED,
        };
        let mut outlooks = outlooks(scheduler, now, &runs, effort);
        // Those that did not get their turn have it in a second.
        self.behind = !self.changed.is_empty()
            || self.stale > 0
            || self.search(scheduler, &mut outlooks) == Search::Unfinished;
        outlooks.into_iter().collect()
    }

    /// Adds what would get runs admitted, as far as that was tried or can be now.
    fn search(&mut self, scheduler: &Scheduler, outlooks: &mut BTreeMap<RunId, OutlookView>) -> Search {
        let there = scheduler.n_unsettled().max(1);
        let at_most = SEARCHES / there.saturating_mul(there);
        let (mut left, mut search) = (at_most, Search::Finished);
        let waits = |outlook: &OutlookView| outlook.reason.as_ref().is_some_and(|why| why.queued().is_some());
        for (run, outlook) in outlooks.iter_mut().filter(|(_, outlook)| waits(outlook)) {
            if left > 0 && !self.tried.contains_key(run) {
                left -= 1;
                self.tried.insert(*run, scheduler.unblocked_by(*run));
            }
            match self.tried.get(run) {
                Some(tried) => outlook.unblocked_by.clone_from(tried),
                None if at_most > 0 => search = Search::Unfinished,
                None => {}
            }
        }
        search
    }
}

/// Works out how runs stand. Rows are told and decide nothing: a mistake in working them out leaves them as they are, and keeps no
/// run from going on.
fn outlooks(
    scheduler: &Scheduler,
    now: Timestamp,
    runs: &BTreeSet<RunId>,
    effort: Effort,
) -> BTreeMap<RunId, OutlookView> {
    let worked_out = catch_unwind(AssertUnwindSafe(|| scheduler.outlooks(now, runs, effort)));
    worked_out.unwrap_or_else(|_| {
        tracing::error!(
            "how runs stand could not be worked out: this is a mistake in blueproof, please report it"
        );
        BTreeMap::new()
    })
}

/// Whether all was tried that is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Search {
    Finished,
    Unfinished,
}

//! When runs are likely to start and to end: the queues are let go on, again and again, with lengths from the past.
//!
//! What it supposes stands in [`crate::estimate`]. It is the scheduler's own queue that goes on, in a copy.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use blueproof_queue::timers::Timers;
use fastrand::Rng;
use jiff::{SignedDuration, Timestamp, Unit};

use super::{
    Scheduler,
    queue::Queue,
    run::{Attempt, Evictions, Phase, Run},
    timers::Timer,
};
use crate::{
    domain::{AttemptId, RunId, RunRequest},
    estimate::{Basis, Estimate, LikelyDuration, Sample, When},
    fact::StopReason,
};

/// How many runs may be there, all courses counted, so that an answer comes at once.
pub(crate) const RUNS_IN_ALL: usize = 2_000;

/// One course less than these is the most: p50 and p90 are two of them, and more tell nothing that people would notice.
const COURSES_AT_MOST: usize = 100;

/// One course less than these is the least; where many wait, the lengths of those before one even out.
const COURSES_AT_LEAST: usize = 10;

/// Where more runs than these are there, nothing is said of those who wait.
const RUNS_AT_MOST: usize = 5_000;

/// How many instants of a course are looked at for each run that is there; evictions can go round for ever.
const INSTANTS_EACH: usize = 10;

impl Scheduler {
    /// Returns when these runs are likely to start and to end; those of which nothing can be said are left out.
    ///
    /// It takes time in proportion to who else is there. Where more than 5,000 are it says nothing of those who wait.
    pub fn estimates(&self, now: Timestamp, wanted: &BTreeSet<RunId>) -> BTreeMap<RunId, Estimate> {
        self.estimates_and_effort(now, wanted).0
    }

    /// Returns the same, and how many runs were in the courses that were played for it, all courses counted.
    pub(crate) fn estimates_and_effort(
        &self,
        now: Timestamp,
        wanted: &BTreeSet<RunId>,
    ) -> (BTreeMap<RunId, Estimate>, usize) {
        let now = now.max(self.now);
        let there = wanted.intersection(&self.unsettled).copied();
        let (mut waiting, running): (BTreeSet<RunId>, BTreeSet<RunId>) =
            there.partition(|run| self.waits(*run));
        if self.unsettled.len() > RUNS_AT_MOST {
            waiting.clear();
        }
        // When one ends that has its quota depends on nobody else.
        let concerned = if waiting.is_empty() {
            &running
        } else {
            &self.unsettled
        };
        let outlook = Outlook::of(self, now, concerned);
        let mut estimates: BTreeMap<_, _> = running
            .iter()
            .filter_map(|run| Some((*run, outlook.of_running(*run)?)))
            .collect();
        if waiting.is_empty() {
            return (estimates, 0);
        }
        let courses = outlook.play(&waiting);
        let of = |run: &RunId| Some((*run, outlook.of_starts(*run, &courses)?));
        estimates.extend(waiting.iter().filter_map(of));
        (estimates, courses.len() * outlook.guesses.len())
    }

    /// Returns how long a run is likely to have its quota that waits for an approval; `None` of any other, and where nothing is known.
    pub(super) fn duration_once_approved(&self, run: RunId) -> Option<LikelyDuration> {
        let known = &self.runs[&run];
        if !matches!(known.phase, Phase::AwaitingApproval { .. }) {
            return None;
        }
        let limit = known.request.job.timeouts.attempt();
        let like = self.durations.like(run, &known.request);
        let Some((Basis::Blueprint { runs }, sample)) = like else {
            return Some(LikelyDuration::AtMost { limit: limit? });
        };
        let likely = |p: f64| {
            let taken = sample.quantile(p, SignedDuration::ZERO)?;
            Some(limit.map_or(taken, |limit| limit.min(taken)))
        };
        Some(LikelyDuration::Likely {
            p50: likely(0.5)?,
            p90: likely(0.9)?,
            runs,
        })
    }

    /// Returns whether quota is still to come for a run that asked for it.
    fn waits(&self, run: RunId) -> bool {
        let run = &self.runs[&run];
        match run.phase {
            Phase::Queued { .. } | Phase::ComingBack { .. } => true,
            Phase::Active => run.active().is_some_and(is_evicted),
            Phase::AwaitingApproval { .. } | Phase::Ended(_) => false,
        }
    }
}

fn is_evicted(attempt: &Attempt) -> bool {
    attempt.stop.is_some_and(|stop| stop.why == StopReason::Evicted)
}

/// What the courses have in common.
struct Outlook<'a> {
    scheduler: &'a Scheduler,
    now: Timestamp,
    /// How many courses there are, and one more.
    courses: usize,
    /// Of everybody who is on the way, or of those whom nobody else concerns.
    guesses: BTreeMap<RunId, Guess<'a>>,
    clearing: SignedDuration,
}

/// How long the next attempt of a run may take.
struct Guess<'a> {
    like: Option<(Basis, Cow<'a, Sample>)>,
    limit: Option<SignedDuration>,
    /// Its place among its lengths in each course: over all courses each place is taken once (Latin hypercube sampling;
    /// McKay, Beckman and Conover 1979), so that few courses do.
    places: Vec<usize>,
}

/// For how long an attempt has its quota already.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    in_all: SignedDuration,
    /// How much of it was before it got its place: its limits of time count from there.
    unplaced: SignedDuration,
}

impl Taken {
    fn by(attempt: &Attempt, now: Timestamp) -> Self {
        let since = |at: Timestamp| at.duration_since(attempt.reserved_at);
        Self {
            in_all: since(now),
            unplaced: since(attempt.placed_at.unwrap_or(now)),
        }
    }
}

/// When a run got its quota in a course.
#[derive(Debug, Clone, Copy)]
struct Start {
    at: Timestamp,
    /// Whether it waited for somebody of whom only a limit is known.
    vague: bool,
}

impl<'a> Outlook<'a> {
    fn of(scheduler: &'a Scheduler, now: Timestamp, concerned: &BTreeSet<RunId>) -> Self {
        let runs = concerned.iter().map(|run| &scheduler.runs[run]);
        let there = scheduler.unsettled.len() + scheduler.objects().cluster_queues.len();
        let courses = (RUNS_IN_ALL / there.max(1)).clamp(COURSES_AT_LEAST, COURSES_AT_MOST);
        // A multiple of ten, of which p50 and p90 are whole parts.
        let courses = courses / 10 * 10;
        let guesses = runs.map(|run| {
            let like = scheduler.durations.like(run.id, &run.request);
            (run.id, Guess::new(run.id, &run.request, like, courses))
        });
        Self {
            scheduler,
            now,
            courses,
            guesses: guesses.collect(),
            clearing: scheduler.durations.clearing(),
        }
    }

    /// Returns when one that has its quota is likely to end.
    fn of_running(&self, run: RunId) -> Option<Estimate> {
        let guess = &self.guesses[&run];
        let attempt = self.scheduler.runs[&run].active()?;
        if attempt.stop.is_some() {
            return None;
        }
        let taken = Taken::by(attempt, self.now);
        let ends = self.each_course().map(|course| {
            let takes = guess.takes(course, taken)?;
            later(attempt.reserved_at, takes)
        });
        let end = self.when(ends.collect(), guess.is_vague());
        let longer_than = guess.exceeded_by(taken);
        (end.is_some() || longer_than.is_some()).then(|| Estimate {
            start: None,
            end,
            from: guess.basis(),
            longer_than,
        })
    }

    /// Returns when each of these runs got its quota, course by course.
    fn play(&self, wanted: &BTreeSet<RunId>) -> Vec<BTreeMap<RunId, Start>> {
        self.each_course()
            .map(|number| Course::new(self, number).play(wanted))
            .collect()
    }

    fn of_starts(&self, run: RunId, courses: &[BTreeMap<RunId, Start>]) -> Option<Estimate> {
        let guess = &self.guesses[&run];
        let starts: Vec<Option<Start>> = courses.iter().map(|starts| starts.get(&run).copied()).collect();
        let vague = starts.iter().flatten().any(|start| start.vague);
        let ends = starts.iter().zip(self.each_course()).map(|(start, course)| {
            let takes = guess.takes(course, Taken::default())?;
            later(start.as_ref()?.at, takes)
        });
        let end = self.when(ends.collect(), vague || guess.is_vague());
        let start = self.when(
            starts.iter().map(|start| Some(start.as_ref()?.at)).collect(),
            vague,
        )?;
        Some(Estimate {
            start: Some(start),
            end,
            from: guess.basis(),
            longer_than: None,
        })
    }

    fn each_course(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.courses - 1
    }

    /// Returns when something is likely to happen that happens then in each course; it may never happen in some.
    fn when(&self, times: Vec<Option<Timestamp>>, vague: bool) -> Option<When> {
        let all = times.len();
        let mut times: Vec<Timestamp> = times.into_iter().flatten().collect();
        times.sort_unstable();
        let at = |place: usize| times.get(place - 1)?.round(Unit::Millisecond).ok();
        if vague {
            return Some(When::AtLatest { at: at(all)? });
        }
        Some(When::Likely {
            p50: at(self.courses / 2)?,
            p90: at(self.courses / 10 * 9)?,
        })
    }
}

impl<'a> Guess<'a> {
    fn new(run: RunId, request: &RunRequest, like: Option<(Basis, Cow<'a, Sample>)>, courses: usize) -> Self {
        let mut places: Vec<usize> = (1..courses).collect();
        // Numbers that follow each other make seeds that are far apart.
        Rng::with_seed(run.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)).shuffle(&mut places);
        Self {
            like,
            limit: request.job.timeouts.attempt(),
            places,
        }
    }

    /// Returns for how long the attempt has its quota in all in this course, when it has had it so long. `None` is for
    /// ever.
    fn takes(&self, course: usize, taken: Taken) -> Option<SignedDuration> {
        let limit = self.limit.map(|limit| limit + taken.unplaced);
        let Some((_, sample)) = &self.like else {
            // One that is not ended by its limits is ended by force, nobody knows when.
            return limit.filter(|limit| *limit >= taken.in_all);
        };
        let p = self.places[course] as f64 / (self.places.len() + 1) as f64;
        let takes = sample.quantile(p, taken.in_all)?;
        Some(limit.map_or(takes, |limit| takes.min(limit.max(taken.in_all))))
    }

    fn is_vague(&self) -> bool {
        self.like.is_none()
    }

    /// Returns how long it takes at most, as far as anything tells, if it has taken longer.
    fn exceeded_by(&self, taken: Taken) -> Option<SignedDuration> {
        let Some((_, sample)) = &self.like else {
            return self.limit.filter(|limit| taken.in_all > *limit + taken.unplaced);
        };
        sample.longest().filter(|longest| taken.in_all > *longest)
    }

    fn basis(&self) -> Basis {
        self.like.as_ref().map_or(Basis::Limits, |(basis, _)| *basis)
    }
}

/// Something that is due in a course. At one instant those who go are first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// Nothing is left of an attempt.
    Gone(AttemptId),
    /// A run comes to wait for its next attempt.
    Back(AttemptId),
    /// A run waited as long as it may.
    GiveUp(RunId),
    /// Somebody may be evicted again who was safe until now.
    Wake,
    /// Somebody's back-off is over.
    BackOffEnds,
}

/// The queues as they go on.
struct Course<'a> {
    outlook: &'a Outlook<'a>,
    number: usize,
    now: Timestamp,
    queue: Queue,
    due: Timers<Due>,
    /// How often those runs were evicted who were so in this course.
    evictions: BTreeMap<RunId, Evictions>,
    starts: BTreeMap<RunId, Start>,
    /// Whether somebody is gone of whom only a limit is known.
    vague: bool,
}

impl<'a> Course<'a> {
    fn new(outlook: &'a Outlook<'a>, number: usize) -> Self {
        let mut course = Self {
            outlook,
            number,
            now: outlook.now,
            queue: outlook.scheduler.queue.clone(),
            due: Timers::default(),
            evictions: BTreeMap::new(),
            starts: BTreeMap::new(),
            vague: false,
        };
        for run in outlook.guesses.keys() {
            course.expect(&outlook.scheduler.runs[run]);
        }
        course
    }

    /// Returns when each of these runs got its quota.
    fn play(mut self, wanted: &BTreeSet<RunId>) -> BTreeMap<RunId, Start> {
        self.decide();
        for _ in 0..INSTANTS_EACH * self.outlook.guesses.len() {
            let all = wanted.iter().all(|run| self.starts.contains_key(run));
            let Some(next) = self.due.earliest().filter(|_| !all) else {
                break;
            };
            self.now = self.now.max(next);
            while let Some(due) = self.due.pop_due(self.now) {
                self.take_in(due);
            }
            self.decide();
        }
        self.starts
    }

    /// Puts on the agenda what is to be expected of a run.
    fn expect(&mut self, run: &Run) {
        let last = run.attempts.last();
        match last.filter(|last| self.queue.promised(last.id).is_some()) {
            Some(holder) => self.expect_end(run, holder),
            None => self.expect_back(run, self.now),
        }
        let give_up = self.outlook.scheduler.timers.get(Timer::QueueTimeout(run.id));
        if let Some(at) = give_up {
            self.due.set(Due::GiveUp(run.id), at);
        }
    }

    fn expect_end(&mut self, run: &Run, holder: &Attempt) {
        let Outlook {
            scheduler, clearing, ..
        } = self.outlook;
        if let Some(seen_over_at) = holder.seen_over_at {
            let gone_at = later(seen_over_at, *clearing).unwrap_or(self.now).max(self.now);
            self.due.set(Due::Gone(holder.id), gone_at);
            return self.expect_back(run, gone_at);
        }
        if holder.stop.is_none() {
            return self.expect_gone(holder.id, holder.reserved_at, Taken::by(holder, self.now));
        }
        let told_at = holder.eviction.as_ref().map_or(self.now, |eviction| eviction.at);
        let gone_at = later(told_at, scheduler.retry.eviction_grace)
            .unwrap_or(self.now)
            .max(self.now);
        self.due.set(Due::Gone(holder.id), gone_at);
        if is_evicted(holder) {
            self.due.set(Due::Back(run.next_attempt()), gone_at);
        }
    }

    fn expect_back(&mut self, run: &Run, clear_at: Timestamp) {
        if matches!(run.phase, Phase::ComingBack { .. }) {
            self.due.set(Due::Back(run.next_attempt()), clear_at);
        }
    }

    fn expect_gone(&mut self, attempt: AttemptId, since: Timestamp, taken: Taken) {
        let takes = self.outlook.guesses[&attempt.run].takes(self.number, taken);
        let gone_at = takes.and_then(|takes| later(since, takes + self.outlook.clearing));
        if let Some(gone_at) = gone_at {
            self.due.set(Due::Gone(attempt), gone_at);
        }
    }

    fn take_in(&mut self, due: Due) {
        match due {
            Due::Gone(attempt) => {
                self.vague |= self.outlook.guesses[&attempt.run].is_vague();
                self.queue.release(attempt);
            }
            Due::Back(attempt) => self.come_back(attempt),
            Due::GiveUp(run) => self.queue.withdraw(run),
            Due::Wake => self.queue.wake(),
            // The queue looks whose is over each time that it decides.
            Due::BackOffEnds => {}
        }
    }

    fn come_back(&mut self, attempt: AttemptId) {
        let run = &self.outlook.scheduler.runs[&attempt.run];
        // Whoever was evicted is as old as before.
        let (since, back_off) = match run.phase {
            Phase::Queued { since, back_off } | Phase::ComingBack { since, back_off } => (since, back_off),
            Phase::Active => (run.attempts.last().map_or(self.now, |last| last.queued_at), None),
            Phase::AwaitingApproval { .. } | Phase::Ended(_) => (self.now, None),
        };
        let evictions = self.evictions.get(&run.id).copied();
        let evictions = evictions.unwrap_or_else(|| run.evictions());
        self.queue
            .submit(self.now, attempt, &run.request, since, evictions);
        if let Some(back_off) = back_off {
            self.queue.back_off(run.id, back_off.until);
        }
    }

    /// Lets the queues decide as [`Scheduler::handle`] does.
    fn decide(&mut self) {
        loop {
            let decided = self.queue.decide(self.now);
            for evicted in decided.evicted() {
                self.evict(evicted.attempt, evicted.by);
            }
            if decided.admitted.is_empty() {
                break;
            }
            for attempt in decided.admitted {
                self.start(attempt);
            }
        }
        self.due.set_or_cancel(Due::Wake, self.queue.try_again_at());
        self.due
            .set_or_cancel(Due::BackOffEnds, self.queue.next_back_off_ends());
    }

    fn start(&mut self, attempt: AttemptId) {
        let (at, vague) = (self.now, self.vague);
        self.starts.entry(attempt.run).or_insert(Start { at, vague });
        self.due.cancel(Due::GiveUp(attempt.run));
        self.expect_gone(attempt, at, Taken::default());
    }

    /// One who has to go takes its whole grace, unless it is done before.
    fn evict(&mut self, attempt: AttemptId, by: Option<RunId>) {
        let grace = self.outlook.scheduler.retry.eviction_grace;
        let Some(gone_at) = later(self.now, grace) else {
            return;
        };
        if self.due.get(Due::Gone(attempt)).is_some_and(|at| at <= gone_at) {
            return;
        }
        let next = attempt.run.attempt(attempt.number + 1);
        let before = || self.outlook.scheduler.runs[&attempt.run].evictions();
        self.evictions.entry(attempt.run).or_insert_with(before).add(by);
        self.due.set(Due::Gone(attempt), gone_at);
        self.due.set(Due::Back(next), gone_at);
    }
}

fn later(at: Timestamp, by: SignedDuration) -> Option<Timestamp> {
    at.checked_add(by).ok()
}

#[cfg(test)]
mod tests;

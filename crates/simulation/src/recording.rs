//! From a log to a scenario: who asked for quota when, and how long they had it.
//!
//! The facts are applied and what changes is watched, so that nothing of the rules is written twice. Two inputs are
//! never at the same instant here: the later one is put a nanosecond behind, so that one decision follows the other as
//! it did, and what time it was by the scheduler's clock is noted. Under the recorded queues the scenario comes to the
//! recorded admissions.
//!
//! What a log cannot tell is guessed, and plainly: one who still held quota at its end runs on; one who never had any, or
//! was evicted, takes as long as the median of its blueprint.

use std::collections::BTreeMap;

use blueproof_core::{
    domain::{AttemptId, RunId, RunRequest},
    event::Event,
    fact::Fact,
    policy::Policy,
    ports::LoggedFact,
    scheduler::{QuotaStatus, Replay},
    view::AttemptView,
};
use blueproof_queue::objects::Objects;
use jiff::{SignedDuration, Timestamp};

use super::{Arrival, Change, Execution, Job, Scenario};
use crate::retry::FaultTolerance;

/// Apart by this much, one event is after the other.
const NEXT: SignedDuration = SignedDuration::from_nanos(1);

/// Makes a recording of facts, one after the other.
#[derive(Debug)]
pub struct Recorder {
    replay: Replay,
    last_at: Option<Timestamp>,
    begun: Option<Timestamp>,
    now: SignedDuration,
    /// The time of the last fact, which the clock of the scheduler shows.
    told_at: SignedDuration,
    requests: BTreeMap<RunId, RunRequest>,
    tracks: BTreeMap<RunId, Track>,
    drafts: Vec<Draft>,
    /// Whether queues were applied, which go before those of the policy.
    applied: bool,
    recording: Recording,
}

/// What a log says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recording {
    /// The jobs and the queues as they were.
    pub scenario: Scenario,
    /// Who was admitted when; jobs are named by their numbers.
    pub admissions: Vec<(SignedDuration, usize)>,
    /// When the first fact was.
    pub begun: Timestamp,
}

/// A run as it was last seen.
#[derive(Debug, Default)]
struct Track {
    stage: Stage,
    /// The job that was done last, and when.
    done: Option<(usize, SignedDuration)>,
}

#[derive(Debug, Clone, Copy, Default)]
enum Stage {
    #[default]
    Outside,
    Waiting(usize),
    Holding(usize, Hold),
}

/// Quota that an attempt has.
#[derive(Debug, Clone, Copy)]
struct Hold {
    attempt: AttemptId,
    since: SignedDuration,
    told: Option<SignedDuration>,
    finished: Option<SignedDuration>,
}

/// A job of which not all is known.
#[derive(Debug)]
struct Draft {
    run: RunId,
    job: Job,
    /// As how old it waits, by which an attempt that comes back is told from one that is tried once more.
    queued_at: Timestamp,
    executions: Vec<Seen>,
}

/// What was seen of a stint.
#[derive(Debug, Clone, Copy)]
enum Seen {
    Done(Execution),
    /// It was evicted: how long it had run by then, and how long it still took.
    Evicted {
        ran_for: SignedDuration,
        grace: SignedDuration,
    },
    /// It went on beyond the end, perhaps only to be cleared away.
    Open(Execution),
}

impl Default for Recorder {
    fn default() -> Self {
        let (policy, replay) = (Policy::local(Default::default()), Replay::new());
        let mut recording = Recording::default();
        recording.scenario.objects = replay.scheduler().objects().clone();
        recording.scenario.protected_for = protection(&policy);
        Self {
            replay,
            last_at: None,
            begun: None,
            now: SignedDuration::ZERO,
            told_at: SignedDuration::ZERO,
            requests: BTreeMap::new(),
            tracks: BTreeMap::new(),
            drafts: Vec::new(),
            applied: false,
            recording,
        }
    }
}

impl Recorder {
    /// Takes in the next fact.
    pub fn take_in(&mut self, logged: &LoggedFact) {
        let LoggedFact { at, fact, .. } = logged;
        if logged.begins_step(self.last_at) {
            self.look();
            match self.begun {
                Some(begun) => self.go_on_to(at.duration_since(begun)),
                None => self.begun = Some(*at),
            }
        }
        self.last_at = Some(*at);
        self.replay.apply(*at, fact);
        if let Fact::Input(input) = fact {
            self.note_input(input);
        }
    }

    /// Notes of an input what changes the queues, and what was asked for.
    fn note_input(&mut self, input: &Event) {
        if let Event::Configured { policy } = input {
            self.change(Change::Protection(protection(policy)));
        }
        if let Some(request) = requested(input)
            && let Some(run) = self.replay.scheduler().run_of(&request.key)
        {
            self.requests.entry(run).or_insert_with(|| request.clone());
        }
        if self.is_quota(input) {
            let objects = self.replay.scheduler().objects().clone();
            self.change(Change::Quota(Box::new(objects)));
        }
    }

    /// Looks at what changed in the last step.
    fn look(&mut self) {
        for run in self.replay.take_changed().runs {
            self.look_at(run);
        }
    }

    /// Goes on to the next step, which is never at the instant of the one before.
    fn go_on_to(&mut self, at: SignedDuration) {
        self.told_at = self.told_at.max(at);
        self.now = self.told_at.max(self.now + NEXT);
        if self.now != self.told_at {
            self.recording.scenario.instants.insert(self.now, self.told_at);
        }
    }

    /// Returns whether queues hold anew, which even the same ones do: who waits is then tried again.
    fn is_quota(&mut self, event: &Event) -> bool {
        let applied = matches!(event, Event::QuotaApplied { .. });
        self.applied |= applied;
        applied || matches!(event, Event::Configured { .. }) && !self.applied
    }

    /// Ends the recording.
    pub fn finish(mut self) -> Recording {
        self.look();
        for track in self.tracks.values() {
            if let Stage::Holding(job, hold) = track.stage {
                let seen = hold.open_at(self.now + NEXT);
                self.drafts[job].executions.push(seen);
            }
        }
        self.number_by_run();
        let usual = Usual::of(&self.drafts);
        let jobs = self.drafts.into_iter().map(|draft| draft.finish(&usual));
        self.recording.scenario.jobs = jobs.collect();
        self.recording.scenario.until = Some(self.now);
        self.recording.begun = self.begun.unwrap_or_default();
        self.recording
    }

    /// Puts the jobs into the order of their runs: of two that are equal in all else, the older run goes first.
    fn number_by_run(&mut self) {
        let mut order: Vec<usize> = (0..self.drafts.len()).collect();
        order.sort_by_key(|number| self.drafts[*number].run);
        let mut places = vec![0; order.len()];
        for (place, number) in order.iter().enumerate() {
            places[*number] = place;
        }
        for draft in &mut self.drafts {
            if let Arrival::After(first, _) = &mut draft.job.arrives {
                *first = places[*first];
            }
        }
        for (_, job) in &mut self.recording.admissions {
            *job = places[*job];
        }
        // A run's jobs are in their order already, and the sort is stable.
        self.drafts.sort_by_key(|draft| draft.run);
    }

    fn change(&mut self, change: Change) {
        self.recording.scenario.changes.push((self.now, change));
    }

    fn look_at(&mut self, run: RunId) {
        let Some(view) = self.replay.scheduler().view(run) else {
            return;
        };
        let standing = self.replay.scheduler().standing(run);
        let mut track = self.tracks.remove(&run).unwrap_or_default();
        if let Stage::Holding(job, hold) = track.stage {
            let seen = view.attempts.iter().find(|attempt| attempt.id == hold.attempt);
            let hold = hold.seen(seen, self.now);
            track.stage = Stage::Holding(job, hold);
            if !matches!(standing, QuotaStatus::Holds { attempt, .. } if attempt == hold.attempt) {
                self.give_back(&mut track, job, hold, standing);
            }
        }
        match standing {
            QuotaStatus::Outside => self.step_out(&mut track),
            QuotaStatus::Waits { since } => {
                self.step_in(run, since, &mut track);
            }
            QuotaStatus::Holds { attempt, queued_at } => self.admit(run, queued_at, &mut track, attempt),
        }
        self.tracks.insert(run, track);
    }

    /// An attempt gave its quota back, because it was done or because it had to.
    fn give_back(&mut self, track: &mut Track, job: usize, hold: Hold, standing: QuotaStatus) {
        let comes_back = match standing {
            QuotaStatus::Waits { since } | QuotaStatus::Holds { queued_at: since, .. } => {
                self.drafts[job].queued_at == since
            }
            QuotaStatus::Outside => false,
        };
        let executions = &mut self.drafts[job].executions;
        if let Some(told) = hold.told.filter(|_| comes_back) {
            executions.push(Seen::Evicted {
                ran_for: told - hold.since,
                grace: self.now - told,
            });
            track.stage = Stage::Waiting(job);
            return;
        }
        let over = hold.told.into_iter().chain(hold.finished).min();
        executions.push(Seen::Done(Execution {
            runs_for: self.now - hold.since,
            grace: SignedDuration::ZERO,
            closing: over.map_or(SignedDuration::ZERO, |over| self.now - over),
        }));
        track.done = Some((job, self.now));
        track.stage = Stage::Outside;
    }

    fn step_out(&mut self, track: &mut Track) {
        if let Stage::Waiting(job) = track.stage {
            self.drafts[job].job.gives_up_at = Some(self.now);
            track.stage = Stage::Outside;
        }
    }

    /// Returns the job that a run waits as.
    fn step_in(&mut self, run: RunId, queued_at: Timestamp, track: &mut Track) -> usize {
        if let Stage::Waiting(job) = track.stage {
            return job;
        }
        let (arrives, aged) = match track.done.take() {
            Some((first, then)) => (Arrival::After(first, self.now - then), self.age(queued_at)),
            None => (Arrival::At(self.now), SignedDuration::ZERO),
        };
        let job = self.requests.get(&run).map(|request| asked(run, request));
        let view = self.replay.scheduler().view(run);
        let attempts = view.iter().flat_map(|view| &view.attempts);
        let evictions = attempts.filter(|attempt| attempt.eviction.is_some()).count();
        let job = Job {
            arrives,
            aged,
            evicted_before: u32::try_from(evictions).unwrap_or(u32::MAX),
            ..job.unwrap_or_default()
        };
        self.drafts.push(Draft {
            run,
            job,
            queued_at,
            executions: Vec::new(),
        });
        let number = self.drafts.len() - 1;
        track.stage = Stage::Waiting(number);
        number
    }

    /// Returns for how long one has waited that waits since then.
    fn age(&self, queued_at: Timestamp) -> SignedDuration {
        let since = self
            .begun
            .map_or(SignedDuration::ZERO, |begun| queued_at.duration_since(begun));
        (self.told_at - since).max(SignedDuration::ZERO)
    }

    fn admit(&mut self, run: RunId, queued_at: Timestamp, track: &mut Track, attempt: AttemptId) {
        if matches!(track.stage, Stage::Holding(..)) {
            return;
        }
        let job = self.step_in(run, queued_at, track);
        self.recording.admissions.push((self.now, job));
        let hold = Hold {
            attempt,
            since: self.now,
            told: None,
            finished: None,
        };
        track.stage = Stage::Holding(job, hold);
    }
}

impl Recording {
    /// Returns the same jobs under these queues, from the beginning to the end.
    pub fn under(&self, objects: Objects) -> Scenario {
        self.scenario.under(objects)
    }
}

impl Hold {
    /// Returns what is known of it while it is not over at `now`.
    fn open_at(self, now: SignedDuration) -> Seen {
        if let Some(told) = self.told {
            return Seen::Evicted {
                ran_for: told - self.since,
                grace: now - told,
            };
        }
        Seen::Open(Execution {
            runs_for: now - self.since,
            grace: SignedDuration::ZERO,
            closing: self
                .finished
                .map_or(SignedDuration::ZERO, |finished| now - finished),
        })
    }

    /// Notes what became of the attempt meanwhile.
    fn seen(self, attempt: Option<&AttemptView>, now: SignedDuration) -> Self {
        let is = |happened: bool| happened.then_some(now);
        Self {
            told: self
                .told
                .or(is(attempt.is_some_and(|attempt| attempt.eviction.is_some()))),
            finished: self
                .finished
                .or(is(attempt.is_some_and(|attempt| attempt.ended_at.is_some()))),
            ..self
        }
    }
}

/// How long what is not known usually takes.
struct Usual {
    runs_for: BTreeMap<String, SignedDuration>,
    any: SignedDuration,
    grace: SignedDuration,
}

impl Usual {
    fn of(drafts: &[Draft]) -> Self {
        let mut by_class: BTreeMap<String, Vec<SignedDuration>> = BTreeMap::new();
        let (mut any, mut graces) = (Vec::new(), Vec::new());
        for draft in drafts {
            for seen in &draft.executions {
                match seen {
                    Seen::Done(execution) => {
                        any.push(execution.runs_for);
                        by_class
                            .entry(draft.job.class.clone())
                            .or_default()
                            .push(execution.runs_for);
                    }
                    Seen::Evicted { grace, .. } => graces.push(*grace),
                    Seen::Open(_) => {}
                }
            }
        }
        let medians = by_class.into_iter().map(|(class, times)| (class, median(times)));
        Self {
            runs_for: medians.collect(),
            any: median(any),
            grace: median(graces),
        }
    }

    fn runs_for(&self, class: &str) -> SignedDuration {
        self.runs_for.get(class).copied().unwrap_or(self.any)
    }
}

fn median(mut times: Vec<SignedDuration>) -> SignedDuration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

impl Draft {
    fn finish(self, usual: &Usual) -> Job {
        let class = &self.job.class;
        let mut executions: Vec<Execution> = self
            .executions
            .iter()
            .map(|seen| seen.execution(class, usual))
            .collect();
        let is_complete = matches!(self.executions.last(), Some(Seen::Done(_) | Seen::Open(_)));
        if !is_complete {
            executions.push(Execution {
                runs_for: usual.runs_for(class),
                grace: usual.grace,
                ..Execution::default()
            });
        }
        Job {
            executions,
            ..self.job
        }
    }
}

impl Seen {
    fn execution(self, class: &str, usual: &Usual) -> Execution {
        match self {
            Self::Done(execution) => Execution {
                grace: usual.grace,
                ..execution
            },
            Self::Evicted { ran_for, grace } => Execution {
                runs_for: usual.runs_for(class).max(ran_for + NEXT),
                grace,
                ..Execution::default()
            },
            Self::Open(execution) if execution.closing.is_zero() => Execution {
                runs_for: usual.runs_for(class).max(execution.runs_for),
                grace: usual.grace,
                ..execution
            },
            Self::Open(execution) => execution,
        }
    }
}

fn asked(run: RunId, request: &RunRequest) -> Job {
    Job {
        name: run.to_string(),
        user: request.requested_by.to_string(),
        repository: request.subject.repository.to_string(),
        class: request.subject.blueprint.to_string(),
        queue: request.queue.to_string(),
        priority: request.priority.0,
        pod_sets: request.job.pod_sets.as_slice().to_vec(),
        // Nothing is known of what would make an end of an attempt that takes its time to go.
        retry: FaultTolerance {
            forceful_deletion_grace: SignedDuration::MAX,
            ..FaultTolerance::default()
        },
        ..Job::default()
    }
}

fn requested(event: &Event) -> Option<&RunRequest> {
    if let Event::Requested { request } = event {
        return Some(request);
    }
    None
}

fn protection(policy: &Policy) -> Option<SignedDuration> {
    let span = policy.retry.protected_run_time;
    (!span.is_zero()).then_some(span)
}

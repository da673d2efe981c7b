//! Which runners there have to be: decided here, and nowhere else.
//!
//! A fleet is a plain struct, which is told what happened and what time it is. What it comes to is records, which are to be written
//! down before anything is done, and calls to make. A call that is repeated does no harm: a runner's name is used once, so that a launch
//! whose outcome is not known is never made again, and another name takes its place.

mod calls;
mod news;
mod sizing;

use std::collections::{BTreeMap, BTreeSet};

use blueproof_core::ports::{RunnerName, RunnerState};
use jiff::{SignedDuration, Timestamp};

use crate::{
    label::UniqueLabel,
    record::{RunnerJob, RunnerRecord, RunnerStage},
};
use calls::Pauses;

/// How many runners there may be, and for how long something is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetSettings {
    /// What names of runners begin with; what is behind it makes them unique.
    pub prefix: String,
    /// How many runners wait for a job beside those that jobs need. Only where labels are those of a scale set.
    pub min_runners: u32,
    /// The most runners that may be live at a time.
    pub max_runners: u32,
    /// How long there have to be too many before one is retired.
    pub surplus_grace: SignedDuration,
    /// How long a runner may run without a job, where jobs wait, before GitHub is asked whether it still knows it.
    pub idle_at_most: SignedDuration,
    /// How long a runner may go on whose job is said to be over.
    pub linger_at_most: SignedDuration,
}

/// Something that a fleet is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetInput {
    /// How many jobs need a runner, those among them that have one.
    Demand {
        /// By which label; `None` is the scale set.
        label: Option<UniqueLabel>,
        /// How many.
        jobs: u32,
    },
    /// How many more runners can be placed now; `None` is that nobody knows.
    Room(Option<u32>),
    /// A runner took a job.
    JobStarted {
        /// The runner.
        runner: RunnerName,
        /// The job.
        job: RunnerJob,
    },
    /// A job is over, or is said to be.
    JobCompleted {
        /// The runner that had it.
        runner: RunnerName,
        /// What came of it, in GitHub's word.
        result: String,
    },
    /// Its provider tells of a runner.
    News {
        /// The runner.
        runner: RunnerName,
        /// How it stands.
        state: RunnerState,
    },
    /// A call was made.
    Called {
        /// For which runner.
        runner: RunnerName,
        /// What came of it.
        outcome: CallOutcome,
    },
    /// Time has passed.
    Tick,
}

/// What is to be done for a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetAction {
    /// The runner.
    pub runner: RunnerName,
    /// What.
    pub call: RunnerCall,
}

/// A call to make for a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerCall {
    /// Register it, and hand it over to be started.
    Launch {
        /// With which label; `None` is that its scale set has the labels.
        label: Option<UniqueLabel>,
    },
    /// Have it told how it stands.
    Observe,
    /// Have GitHub forget it.
    Deregister {
        /// Its number there, where that is known.
        registration: Option<i64>,
    },
    /// Have its provider remove it.
    Remove,
    /// Have its job run once more.
    Rerun {
        /// The job.
        job: RunnerJob,
    },
}

/// Tells calls of one runner apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallKind {
    Launch,
    Observe,
    Deregister,
    Remove,
    Rerun,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOutcome {
    /// It is registered, and was handed over to be started.
    Launched {
        /// Its number at GitHub.
        registration: i64,
    },
    /// It was not started.
    NotLaunched {
        /// Its number at GitHub, if it came to that.
        registration: Option<i64>,
        /// Why, in words.
        message: String,
    },
    /// How it stands will be told.
    Observed,
    /// Its provider knows nothing of it: it was never started.
    Unknown,
    /// GitHub knows it no more.
    Deregistered,
    /// GitHub says that it has a job.
    JobStillRunning,
    /// Its removal is under way; that it is done is told.
    RemovalBegun,
    /// Its job is run once more.
    RerunRequested,
    /// Its job is not over yet, so that it cannot be run once more.
    RerunTooEarly,
    /// Its job is not run once more, for good.
    RerunDeclined,
    /// A call failed, and may succeed later.
    Failed {
        /// Which.
        call: RunnerCallKind,
    },
}

/// Which call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunnerCallKind {
    /// [`RunnerCall::Observe`].
    Observe,
    /// [`RunnerCall::Deregister`].
    Deregister,
    /// [`RunnerCall::Remove`].
    Remove,
    /// [`RunnerCall::Rerun`].
    Rerun,
}

/// What follows from an input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetStep {
    /// The records that changed, to be written down before anything is done.
    pub changed: Vec<RunnerRecord>,
    /// What is to be done then.
    pub actions: Vec<FleetAction>,
}

/// The runners of one scale set, or of one place where unique labels are served.
#[derive(Debug)]
pub struct Fleet {
    settings: FleetSettings,
    records: BTreeMap<RunnerName, RunnerRecord>,
    /// Jobs by label. None is known before it was told.
    demand: BTreeMap<Option<UniqueLabel>, u32>,
    room: Option<u32>,
    /// Since when a label has too many.
    surplus_since: BTreeMap<Option<UniqueLabel>, Timestamp>,
    /// Those of which it is not known what an earlier process has done for them.
    recovering: BTreeSet<RunnerName>,
    under_way: BTreeSet<(RunnerName, CallKind)>,
    pauses: Pauses,
    /// How many runners in a row came to no job, and when another is made.
    n_launch_failures: u32,
    launch_again_at: Option<Timestamp>,
    n_names: u64,
    changed: BTreeSet<RunnerName>,
    next_wakeup: Option<Timestamp>,
}

/// How a fleet stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FleetFigures {
    /// Jobs that need a runner, those among them that have one.
    pub demand: u32,
    /// How many live runners there are to be.
    pub desired: u32,
    /// Runners that are asked for, and do not run yet.
    pub pending: u32,
    /// Runners that run and have no job.
    pub idle: u32,
    /// Runners that have a job.
    pub busy: u32,
    /// Runners that failed or were lost, and of which something is left.
    pub failed: u32,
    /// How many jobs GitHub may assign.
    pub capacity: u32,
}

impl FleetSettings {
    /// Returns the usual ones.
    pub fn of(prefix: impl Into<String>, max_runners: u32) -> Self {
        Self {
            prefix: prefix.into(),
            min_runners: 0,
            max_runners,
            surplus_grace: SignedDuration::from_mins(1),
            idle_at_most: SignedDuration::from_mins(10),
            linger_at_most: SignedDuration::from_mins(5),
        }
    }
}

impl Fleet {
    /// Returns a fleet with what an earlier process wrote down. How that stands is asked before anything else is done about it.
    pub fn new(settings: FleetSettings, records: impl IntoIterator<Item = RunnerRecord>) -> Self {
        let records: BTreeMap<_, _> = records
            .into_iter()
            .map(|record| (record.name.clone(), record))
            .collect();
        let is_open = |record: &&RunnerRecord| match record.stage {
            RunnerStage::Requested | RunnerStage::Launched | RunnerStage::Running => true,
            RunnerStage::Retiring | RunnerStage::Ended { .. } | RunnerStage::Gone { .. } => false,
        };
        let recovering = records
            .values()
            .filter(is_open)
            .map(|record| record.name.clone())
            .collect();
        let numbers = records.keys().filter_map(|name| number_of(&settings, name));
        Self {
            n_names: numbers.max().unwrap_or(0),
            settings,
            records,
            demand: BTreeMap::new(),
            room: None,
            surplus_since: BTreeMap::new(),
            recovering,
            under_way: BTreeSet::new(),
            pauses: Pauses::default(),
            n_launch_failures: 0,
            launch_again_at: None,
            changed: BTreeSet::new(),
            next_wakeup: None,
        }
    }

    /// Takes in what happened, and returns what follows.
    pub fn handle(&mut self, now: Timestamp, input: FleetInput) -> FleetStep {
        self.take_in(now, input);
        self.size(now);
        let actions = self.wanted(now);
        let changed = std::mem::take(&mut self.changed);
        let changed = changed.iter().map(|name| self.records[name].clone()).collect();
        self.forget_gone();
        FleetStep { changed, actions }
    }

    fn take_in(&mut self, now: Timestamp, input: FleetInput) {
        match input {
            FleetInput::Demand { label, jobs } => {
                self.demand.insert(label, jobs);
            }
            FleetInput::Room(room) => self.room = room,
            FleetInput::JobStarted { runner, job } => self.on_job_started(now, &runner, job),
            FleetInput::JobCompleted { runner, result } => self.on_job_completed(now, &runner, result),
            FleetInput::News { runner, state } => self.on_news(now, &runner, state),
            FleetInput::Called { runner, outcome } => self.on_called(now, &runner, outcome),
            FleetInput::Tick => {}
        }
    }

    /// Returns when to handle a [`Tick`](FleetInput::Tick), if nothing happens before.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        self.next_wakeup
    }

    /// Returns how many jobs may be with the scale set: what can be placed now beside what is there. It is zero until that is known.
    pub fn capacity(&self) -> u32 {
        let live = self.n_live();
        let room = self.room.map_or(0, |room| live.saturating_add(room));
        room.min(self.settings.max_runners)
    }

    /// Returns how it stands.
    pub fn figures(&self) -> FleetFigures {
        let mut figures = FleetFigures {
            demand: self.demand.values().sum(),
            desired: self.desired_in_all(),
            capacity: self.capacity(),
            ..FleetFigures::default()
        };
        for record in self.records.values() {
            match &record.stage {
                RunnerStage::Requested | RunnerStage::Launched => figures.pending += 1,
                RunnerStage::Running if record.is_busy() => figures.busy += 1,
                RunnerStage::Running => figures.idle += u32::from(!record.has_finished_job()),
                RunnerStage::Ended { end, left: _ } => figures.failed += u32::from(end.is_failure()),
                RunnerStage::Retiring | RunnerStage::Gone { .. } => {}
            }
        }
        figures
    }

    /// Returns the records that are kept in mind, by name.
    pub fn records(&self) -> impl Iterator<Item = &RunnerRecord> {
        self.records.values()
    }

    /// Returns the names of those that have a machine, or may have one.
    pub fn with_machine(&self) -> impl Iterator<Item = &RunnerName> {
        let all = self.records.values();
        all.filter(|record| record.has_machine())
            .map(|record| &record.name)
    }

    fn n_live(&self) -> u32 {
        let live = self.records.values().filter(|record| record.is_live());
        u32::try_from(live.count()).unwrap_or(u32::MAX)
    }

    fn new_name(&mut self) -> RunnerName {
        self.n_names += 1;
        let name = format!("{}-{}", self.settings.prefix, self.n_names);
        name.parse().expect("a prefix leaves room for a number")
    }

    /// Notes that a record changed, and returns it.
    fn change(&mut self, name: &RunnerName) -> Option<&mut RunnerRecord> {
        let record = self.records.get_mut(name)?;
        self.changed.insert(name.clone());
        Some(record)
    }

    fn change_stage(&mut self, now: Timestamp, name: &RunnerName, stage: RunnerStage) {
        if let Some(record) = self.change(name) {
            record.stage = stage;
            record.since = now;
        }
    }

    /// Leaves those aside of which nothing is left to do or to know. The one with the highest number says which names were used.
    fn forget_gone(&mut self) {
        let last = self.n_names;
        let settings = &self.settings;
        self.records.retain(|name, record| {
            let is_gone = matches!(record.stage, RunnerStage::Gone { .. });
            let has_rerun = record.job.as_ref().is_some_and(RunnerJob::has_rerun);
            !is_gone || has_rerun || number_of(settings, name) == Some(last)
        });
        let records = &self.records;
        self.pauses.forget(|name| !records.contains_key(name));
    }
}

/// Returns the number in a name of ours.
fn number_of(settings: &FleetSettings, name: &RunnerName) -> Option<u64> {
    let rest = name.as_str().strip_prefix(&settings.prefix)?;
    rest.strip_prefix('-')?.parse().ok()
}

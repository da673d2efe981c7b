//! Queues in virtual time: what becomes of jobs that are known beforehand, under given queues.
//!
//! [`blueproof_queue`] decides, as it does for real runs. Here stands what happens around it: jobs arrive, run for their
//! time, give way and come back; quota changes; nodes fail. No time passes and nothing is random: the same scenario gives
//! the same history, and the same digest of it.
//!
//! Not here: how results are shown.

mod baseline;
mod deployment;
mod figures;
mod file;
mod fragmentation;
mod generator;
mod history;
mod nodes;
mod recording;
pub mod retry;
mod simulator;
#[cfg(test)]
mod tests;
mod unadmitted;

use std::collections::{BTreeMap, BTreeSet};

use blueproof_queue::{PodSet, Quantity, objects::Objects};
use jiff::SignedDuration;

pub use baseline::Baseline;
pub use figures::{
    Allocation, Fairness, Figures, InAll, ResourceUsage, Series, Slowdown, Spread, Starved, Unused, in_all,
    starved,
};
pub use file::{Written, read, schema};
pub use generator::kueue_baseline;
pub use history::{
    AdmittedPeriod, EventKind, EvictionCause, Fewer, History, HistoryEvent, Idle, JobRecord, Reset,
};
pub use recording::{Recorder, Recording};
pub use unadmitted::Unadmitted;

use retry::FaultTolerance;

/// All that a simulation goes by. Times count from its beginning.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scenario {
    /// The queues at the beginning.
    pub objects: Objects,
    /// Where pods are put, which have all that there is of their flavors; for flavors without any it is not simulated
    /// where, and none can fail.
    pub nodes: Vec<SimulatedNode>,
    /// The ClusterQueue whose lending limit follows the nodes that failed.
    pub slack: Option<String>,
    /// Who asks for quota. Of two that are equal in all else, the first goes first.
    pub jobs: Vec<Job>,
    /// What happens besides.
    pub changes: Vec<(SignedDuration, Change)>,
    /// How long nobody is evicted by those who were evicted before.
    pub protected_for: Option<SignedDuration>,
    /// When it ends, whoever is still there; `None` is when nothing more happens.
    pub until: Option<SignedDuration>,
    /// Instants that are no time of their own, and which time each is of: what happened then was one after the other, and to
    /// the queues at once.
    pub instants: BTreeMap<SignedDuration, SignedDuration>,
}

/// Something that asks for quota, holds it for a time, and is done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Whose it is: a person or a team.
    pub user: String,
    /// The repository or folder that it is for.
    pub repository: String,
    /// The kind of job, by which figures are told apart.
    pub class: String,
    /// The LocalQueue that it asks in.
    pub queue: String,
    /// The higher, the earlier.
    pub priority: i32,
    /// What it asks for.
    pub pod_sets: Vec<PodSet>,
    /// When it comes.
    pub arrives: Arrival,
    /// For how long it is taken to have waited when it comes.
    pub aged: SignedDuration,
    /// How often it was evicted before it came.
    pub evicted_before: u32,
    /// What comes of its first admission, its second, and so on; the last counts for all that follow.
    pub executions: Vec<Execution>,
    /// When it goes away if it has no quota by then.
    pub gives_up_at: Option<SignedDuration>,
    /// How patient its retry machine is.
    pub retry: FaultTolerance,
    /// How long it may have quota, over all of its admissions; then it goes, and does not come back.
    pub maximum_execution_time: Option<SignedDuration>,
}

/// When a job comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// At this time.
    At(SignedDuration),
    /// So long after another job is done, which is named by its number.
    After(usize, SignedDuration),
}

/// What comes of an admission, unless the job is evicted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Execution {
    /// How long it holds its quota. What it did before an eviction is lost.
    pub runs_for: SignedDuration,
    /// How long it still holds its quota when it is told to go.
    pub grace: SignedDuration,
    /// For how long at its end it is past stopping: told to go then, it is done as if nobody had.
    pub closing: SignedDuration,
}

/// A node on which the simulator places pods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimulatedNode {
    /// Its name.
    pub name: String,
    /// The flavor that it is of.
    pub flavor: String,
    /// What it has of each resource; of what is not named here, enough.
    pub capacity: BTreeMap<String, Quantity>,
}

/// Something that happens to the queues.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// From now on these queues hold.
    Quota(Box<Objects>),
    /// A node is found to be bad, as by Autopilot's label EVICT: whoever has a pod on it is moved away, and none is put
    /// there.
    NodeFails(String),
    /// A node is well again.
    NodeRecovers(String),
    /// A pod of a job fails, if it has any that run.
    PodFails {
        /// Whose, by its number.
        job: usize,
        /// With which exit code.
        exit_code: i32,
    },
    /// From now on nobody is evicted for so long by those who were evicted before.
    Protection(Option<SignedDuration>),
    /// Nothing happens; somebody who reads the history is told this.
    Remark(String),
}

/// Is told how it goes while a scenario is played: there is no clock here. What it does changes nothing.
pub trait Watch {
    /// The queues are about to decide.
    fn cycle_begins(&mut self);

    /// They have decided, and have admitted so many.
    fn cycle_ended(&mut self, admitted: usize);
}

/// Nobody watches.
impl Watch for () {
    fn cycle_begins(&mut self) {}

    fn cycle_ended(&mut self, _admitted: usize) {}
}

impl Default for Arrival {
    fn default() -> Self {
        Self::At(SignedDuration::ZERO)
    }
}

impl Job {
    /// Returns what comes of its admission after so many evictions.
    fn execution(&self, evictions: u32) -> Execution {
        let number = usize::try_from(evictions - self.evicted_before).unwrap_or(usize::MAX);
        let execution = self.executions.get(number).or(self.executions.last());
        execution.copied().unwrap_or_default()
    }
}

impl Scenario {
    /// Plays it to its end.
    pub fn play(&self) -> History {
        self.play_watched(&mut ())
    }

    /// Plays it to its end while somebody watches.
    pub fn play_watched(&self, watch: &mut dyn Watch) -> History {
        simulator::Simulator::new(self, watch).play()
    }

    /// Returns the same jobs and faults under other queues, which hold throughout.
    pub fn under(&self, objects: Objects) -> Self {
        let mut scenario = self.clone();
        scenario.objects = objects;
        scenario
            .changes
            .retain(|(_, change)| !matches!(change, Change::Quota(_)));
        scenario
    }

    /// Returns the LocalQueues that jobs ask in and that are not there at the beginning.
    pub fn without_queue(&self) -> Vec<String> {
        let asked: BTreeSet<&String> = self.jobs.iter().map(|job| &job.queue).collect();
        let known = &self.objects.local_queues;
        let unknown = asked.into_iter().filter(|queue| !known.contains_key(*queue));
        unknown.cloned().collect()
    }

    /// Returns the name of the ClusterQueue that a job asks in at the beginning.
    fn cluster_queue(&self, job: &Job) -> Option<&str> {
        let local = self.objects.local_queues.get(&job.queue)?;
        Some(&local.cluster_queue)
    }
}

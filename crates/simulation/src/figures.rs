//! The figures by which queues are judged: waits, completion times, use, waste and fairness.

mod ideal;
mod usage;

use std::collections::{BTreeMap, BTreeSet};

use blueproof_queue::{Quantity, objects::Objects};
use jiff::SignedDuration;
use serde::Serialize;

use super::{
    Change, History, Job, JobRecord, Scenario,
    history::{AdmittedPeriod, EvictionCause, Idle},
};

pub use usage::{InAll, ResourceUsage, Series, in_all};

/// How a scenario went.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// How many jobs came.
    pub jobs: usize,
    /// How many of them were done.
    pub done: usize,
    /// How many of them never had quota.
    pub never_admitted: usize,
    /// From the first arrival to the last end.
    pub makespan_seconds: f64,
    /// What the work that was done takes alone, with all of the quota in use all the time: no makespan is shorter. `None`
    /// where the quota changes.
    pub work_alone_seconds: Option<f64>,
    /// From arrival to the first quota.
    pub wait: Spread,
    /// The same by LocalQueue.
    pub wait_by_queue: BTreeMap<String, Spread>,
    /// The same by class.
    pub wait_by_class: BTreeMap<String, Spread>,
    /// The same by user.
    pub wait_by_user: BTreeMap<String, Spread>,
    /// From arrival until it was done.
    pub completion: Spread,
    /// The same in multiples of how long the job itself takes; one that takes no time does not count.
    pub slowdown: Slowdown,
    /// How much the jobs of each LocalQueue used, by resource.
    pub used_by_queue: BTreeMap<String, BTreeMap<String, ResourceUsage>>,
    /// The same by user.
    pub used_by_user: BTreeMap<String, BTreeMap<String, ResourceUsage>>,
    /// What was in use over time.
    pub series: Series,
    /// How much of each resource was in use.
    pub allocation: BTreeMap<String, Allocation>,
    /// How often a job had to go.
    pub evictions: usize,
    /// How often of these it was for another.
    pub preemptions: usize,
    /// How often of these the other had been evicted for this one.
    pub reversals: usize,
    /// How often a job was deleted to be created again, after a fault.
    pub resets: usize,
    /// How many jobs were given up after faults.
    pub failed: usize,
    /// How evenly it went.
    pub fairness: Fairness,
}

/// How long something took, for those whom it happened to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// How many they were.
    pub count: usize,
    /// The mean.
    pub mean_seconds: f64,
    /// What half of them did not pass: one of their times, none between two.
    pub p50_seconds: f64,
    /// What nine of ten did not pass.
    pub p90_seconds: f64,
    /// What 99 of 100 did not pass.
    pub p99_seconds: f64,
}

/// How many times as long something took as it would have had to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Slowdown {
    /// How many they were.
    pub count: usize,
    /// The mean.
    pub mean: f64,
    /// What half of them did not pass: one of theirs, none between two.
    pub p50: f64,
    /// What nine of ten did not pass.
    pub p90: f64,
    /// What 99 of 100 did not pass.
    pub p99: f64,
}

/// The use of one resource, in units times seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Allocation {
    /// What was in use, out of what there was from the first arrival to the last end: the quota, and what was held beyond it
    /// where that was lowered.
    pub ratio: f64,
    /// What was in use.
    pub allocated: f64,
    /// What of it came to nothing, because whoever had it was evicted, created again or given up.
    pub wasted: f64,
    /// How evenly queues used it by their weights: one is evenly, and the less, the less. Queues in which nobody asked do
    /// not count.
    pub jain_index: f64,
    /// What stood idle on nodes; `None` where no node is said to have any.
    pub unused: Option<Unused>,
}

/// What stood idle on nodes that were well, in units times seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Unused {
    /// All of it.
    pub idle: f64,
    /// What of it was of no use to a pod drawn at random from the workload: fragmentation as FGD defines it.
    pub fragmented: f64,
}

/// How evenly it went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Fairness {
    /// The mean over time of how far the weighted shares of the queues lay apart.
    pub mean_share_gap: f64,
    /// The widest that they lay apart.
    pub widest_share_gap: f64,
}

impl Figures {
    /// Works the figures out.
    pub fn of(scenario: &Scenario, history: &History) -> Self {
        Self::since(SignedDuration::ZERO, scenario, history)
    }

    /// Works the figures out for those who came then or later.
    pub fn since(from: SignedDuration, scenario: &Scenario, history: &History) -> Self {
        let came = Came::since(from, scenario, history);
        let (start, end) = came.span(history);
        let waits = |key: fn(&Job) -> &String| came.waits_by(key);
        Self {
            jobs: came.0.len(),
            done: came
                .job_records()
                .filter(|job_record| job_record.done.is_some())
                .count(),
            never_admitted: came
                .job_records()
                .filter(|job_record| job_record.periods.is_empty())
                .count(),
            makespan_seconds: (end - start).as_secs_f64(),
            work_alone_seconds: ideal::work_alone(scenario, came.done()),
            wait: Spread::of(came.job_records().filter_map(JobRecord::wait)),
            wait_by_queue: waits(|job| &job.queue),
            wait_by_class: waits(|job| &job.class),
            wait_by_user: waits(|job| &job.user),
            completion: Spread::of(came.job_records().filter_map(JobRecord::completion)),
            slowdown: Slowdown::of(
                came.0
                    .iter()
                    .filter_map(|(job, job_record)| slowdown(job, job_record)),
            ),
            used_by_queue: came.used_by(|job| &job.queue, history),
            used_by_user: came.used_by(|job| &job.user, history),
            series: came.series(history, start, end),
            allocation: came.allocation(scenario, history, start, end),
            evictions: came.periods().filter(|period| period.evicted.is_some()).count(),
            preemptions: came.periods().filter(|period| is_preempted(period)).count(),
            reversals: came.periods().filter(|period| is_reversal(period)).count(),
            resets: came.periods().map(|period| period.resets.len()).sum(),
            failed: came
                .job_records()
                .filter(|job_record| job_record.failed.is_some())
                .count(),
            fairness: Fairness::of(history, start, end),
        }
    }
}

/// A job that waits far longer than others.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Starved {
    /// Its name.
    pub job: String,
    /// How long it waited; until the end, if it was never admitted.
    pub wait_seconds: f64,
    /// Whether it was ever admitted.
    pub admitted: bool,
}

/// Returns who, of those who came then or later, was never admitted, or waited more than so many times the median; the
/// longest wait first. One who gave up counts until then.
pub fn starved(from: SignedDuration, times: f64, scenario: &Scenario, history: &History) -> Vec<Starved> {
    let came = Came::since(from, scenario, history);
    let median = Spread::of(came.job_records().filter_map(JobRecord::wait)).p50_seconds;
    let told = came.0.iter().filter_map(|(job, job_record)| {
        let until = job_record.gave_up.unwrap_or(history.end);
        let wait = job_record.wait().unwrap_or(until - job_record.arrived?);
        Some(Starved {
            job: job.name.clone(),
            wait_seconds: wait.as_secs_f64(),
            admitted: !job_record.periods.is_empty(),
        })
    });
    let is_long = |told: &Starved| !told.admitted || median > 0.0 && told.wait_seconds > times * median;
    let mut starved: Vec<_> = told.filter(is_long).collect();
    starved.sort_by(|a, b| b.wait_seconds.total_cmp(&a.wait_seconds));
    starved
}

/// The jobs that came, and what became of them.
struct Came<'a>(Vec<(&'a Job, &'a JobRecord)>);

impl<'a> Came<'a> {
    fn since(from: SignedDuration, scenario: &'a Scenario, history: &'a History) -> Self {
        let all = scenario.jobs.iter().zip(&history.job_records);
        let came = all.filter(|(_, job_record)| job_record.arrived.is_some_and(|arrived| arrived >= from));
        Self(came.collect())
    }

    fn job_records(&self) -> impl Iterator<Item = &'a JobRecord> {
        self.0.iter().map(|(_, job_record)| *job_record)
    }

    /// Returns the jobs that were done, each with how long it takes as often as it was evicted.
    fn done(&self) -> impl Iterator<Item = (&'a Job, SignedDuration)> {
        let done = self.0.iter().filter(|(_, job_record)| job_record.done.is_some());
        done.filter_map(|(job, job_record)| Some((*job, alone(job, job_record)?)))
    }

    fn periods(&self) -> impl Iterator<Item = &'a AdmittedPeriod> {
        self.job_records().flat_map(|job_record| &job_record.periods)
    }

    /// Returns the first arrival and the last end.
    fn span(&self, history: &History) -> (SignedDuration, SignedDuration) {
        let start = self
            .job_records()
            .filter_map(|job_record| job_record.arrived)
            .min();
        let end = self
            .periods()
            .map(|period| period.until.unwrap_or(history.end))
            .max();
        let start = start.unwrap_or_default();
        (start, end.unwrap_or(start))
    }

    fn waits_by(&self, key: fn(&Job) -> &String) -> BTreeMap<String, Spread> {
        let mut waits: BTreeMap<String, Vec<SignedDuration>> = BTreeMap::new();
        for (job, job_record) in self.0.iter().filter(|(job, _)| !key(job).is_empty()) {
            waits
                .entry(key(job).clone())
                .or_default()
                .extend(job_record.wait());
        }
        let spreads = waits.into_iter();
        spreads.map(|(key, waits)| (key, Spread::of(waits))).collect()
    }

    fn allocation(
        &self,
        scenario: &Scenario,
        history: &History,
        start: SignedDuration,
        end: SignedDuration,
    ) -> BTreeMap<String, Allocation> {
        let resources: BTreeSet<&String> = history
            .capacity
            .iter()
            .flat_map(|(_, amounts)| amounts.keys())
            .collect();
        let allocation = |resource: &String| {
            let steps = history.capacity.iter();
            let steps =
                steps.map(|(at, amounts)| (*at, amounts.get(resource).copied().unwrap_or_default().0 as f64));
            let capacity =
                integral(steps.clone(), start, end) + self.beyond(steps, resource, history, start, end);
            let used = |period: &AdmittedPeriod| used(period, resource, period.span(history.end));
            let allocated = total(self.periods().map(used));
            let lost = self.job_records().flat_map(|job_record| {
                let periods = job_record.periods.iter();
                periods.map(move |period| self::used(period, resource, job_record.lost(period, history.end)))
            });
            Allocation {
                ratio: if capacity > 0.0 { allocated / capacity } else { 0.0 },
                allocated,
                wasted: total(lost),
                jain_index: self.jain_index(scenario, used),
                unused: Unused::of(history, resource, start, end),
            }
        };
        let all = resources.into_iter();
        all.map(|resource| (resource.clone(), allocation(resource)))
            .collect()
    }

    /// Returns how much was held beyond the quota, which was lowered below it.
    fn beyond(
        &self,
        quota: impl Iterator<Item = (SignedDuration, f64)>,
        resource: &str,
        history: &History,
        start: SignedDuration,
        end: SignedDuration,
    ) -> f64 {
        let mut changes: BTreeMap<SignedDuration, (Option<f64>, i128)> = BTreeMap::new();
        for (at, quota) in quota {
            changes.entry(at).or_default().0 = Some(quota);
        }
        for period in self.periods() {
            let held = i128::from(period.held.get(resource).map_or(0, |held| held.0));
            changes.entry(period.since).or_default().1 += held;
            changes.entry(period.until.unwrap_or(history.end)).or_default().1 -= held;
        }
        let (mut quota, mut held) = (0.0, 0);
        let steps = changes.into_iter().map(|(at, (applied, more))| {
            quota = applied.unwrap_or(quota);
            held += more;
            (at, (held as f64 - quota).max(0.0))
        });
        integral(steps, start, end)
    }

    /// Returns how even the use of the ClusterQueues is, each divided by its weight: of those that held as things were then,
    /// and of those in which somebody asked to the end and got nothing.
    fn jain_index(&self, scenario: &Scenario, used: impl Fn(&AdmittedPeriod) -> f64) -> f64 {
        let mut by_queue: BTreeMap<&str, f64> = BTreeMap::new();
        let reigns = reigns(scenario);
        let mut add = |job: &Job, at: SignedDuration, used: f64| {
            let begun = reigns.partition_point(|(since, _)| *since <= at);
            let (_, objects) = reigns[begun.saturating_sub(1)];
            if let Some(local) = objects.local_queues.get(&job.queue) {
                let queue = local.cluster_queue.as_str();
                *by_queue.entry(queue).or_default() += used / weight(objects, queue);
            }
        };
        for (job, job_record) in &self.0 {
            for period in &job_record.periods {
                add(job, period.since, used(period));
            }
            if job_record.periods.is_empty() {
                add(job, job_record.gave_up.unwrap_or(SignedDuration::MAX), 0.0);
            }
        }
        let shares = || by_queue.values().filter(|share| share.is_finite());
        let (sum, squares) = shares().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        if squares == 0.0 {
            return 1.0;
        }
        sum * sum / (shares().count() as f64 * squares)
    }
}

/// Returns the queues that hold, each with the time from which on they do.
fn reigns(scenario: &Scenario) -> Vec<(SignedDuration, &Objects)> {
    let applied = scenario.changes.iter().filter_map(|(at, change)| match change {
        Change::Quota(objects) => Some((*at, &**objects)),
        Change::NodeFails(_)
        | Change::NodeRecovers(_)
        | Change::PodFails { .. }
        | Change::Protection(_)
        | Change::Remark(_) => None,
    });
    let first = [(SignedDuration::MIN, &scenario.objects)];
    let mut reigns: Vec<_> = first.into_iter().chain(applied).collect();
    reigns.sort_by_key(|(since, _)| *since);
    reigns
}

impl Spread {
    /// Works out how long something took, from each time that it did.
    pub fn of(times: impl IntoIterator<Item = SignedDuration>) -> Self {
        let mut times: Vec<_> = times.into_iter().collect();
        times.sort_unstable();
        if times.is_empty() {
            return Self::default();
        }
        let sum: i128 = times.iter().map(SignedDuration::as_nanos).sum();
        let at = |percent: usize| nearest_rank(&times, percent).as_secs_f64();
        Self {
            count: times.len(),
            mean_seconds: sum as f64 / times.len() as f64 / 1e9,
            p50_seconds: at(50),
            p90_seconds: at(90),
            p99_seconds: at(99),
        }
    }
}

/// Returns the first of which at least so many percent are no longer.
fn nearest_rank<T: Copy>(ascending: &[T], percent: usize) -> T {
    ascending[(ascending.len() * percent).div_ceil(100) - 1]
}

impl Slowdown {
    fn of(times: impl IntoIterator<Item = f64>) -> Self {
        let mut times: Vec<_> = times.into_iter().collect();
        times.sort_unstable_by(f64::total_cmp);
        if times.is_empty() {
            return Self::default();
        }
        Self {
            count: times.len(),
            mean: total(times.iter().copied()) / times.len() as f64,
            p50: nearest_rank(&times, 50),
            p90: nearest_rank(&times, 90),
            p99: nearest_rank(&times, 99),
        }
    }
}

/// Returns how many times as long as it runs a job took that was done.
fn slowdown(job: &Job, job_record: &JobRecord) -> Option<f64> {
    let (alone, completion) = (alone(job, job_record)?, job_record.completion()?);
    alone
        .is_positive()
        .then(|| completion.as_secs_f64() / alone.as_secs_f64())
}

/// Returns how long a job takes after as many evictions as it had; `None` where it was never admitted.
fn alone(job: &Job, job_record: &JobRecord) -> Option<SignedDuration> {
    let evictions = u32::try_from(job_record.periods.len()).ok()?.checked_sub(1)?;
    Some(job.execution(job.evicted_before + evictions).runs_for)
}

impl Unused {
    fn of(history: &History, resource: &str, start: SignedDuration, end: SignedDuration) -> Option<Self> {
        let steps = |of: fn(&Idle) -> f64| {
            let steps = history.idle.iter();
            steps.map(move |(at, idle)| (*at, idle.get(resource).map_or(0.0, of)))
        };
        let is_known = history.idle.iter().any(|(_, idle)| idle.contains_key(resource));
        is_known.then(|| Self {
            idle: integral(steps(|idle| idle.amount.0 as f64), start, end),
            fragmented: integral(steps(|idle| idle.fragmented), start, end),
        })
    }
}

impl Fairness {
    fn of(history: &History, start: SignedDuration, end: SignedDuration) -> Self {
        let span = (end - start).as_secs_f64();
        let sum = integral(history.share_gaps.iter().copied(), start, end);
        let gaps = history.share_gaps.iter().map(|(_, gap)| *gap);
        Self {
            mean_share_gap: if span > 0.0 { sum / span } else { 0.0 },
            widest_share_gap: gaps.fold(0.0, f64::max),
        }
    }
}

/// Returns the sum; of nothing it is zero, not the negative zero of `sum`.
fn total(amounts: impl Iterator<Item = f64>) -> f64 {
    amounts.fold(0.0, |sum, amount| sum + amount)
}

fn is_preempted(period: &AdmittedPeriod) -> bool {
    match &period.evicted {
        Some((_, EvictionCause::Preempted { .. })) => true,
        Some((_, EvictionCause::Drained | EvictionCause::MaximumExecutionTimeExceeded)) | None => false,
    }
}

fn is_reversal(period: &AdmittedPeriod) -> bool {
    matches!(
        period.evicted,
        Some((_, EvictionCause::Preempted { reversal: true, .. }))
    )
}

/// Returns what a stay used of a resource in so long, in units times seconds.
fn used(period: &AdmittedPeriod, resource: &str, span: SignedDuration) -> f64 {
    let held = period.held.get(resource).copied().unwrap_or(Quantity::ZERO);
    held.0 as f64 * span.as_secs_f64()
}

fn weight(objects: &Objects, queue: &str) -> f64 {
    objects
        .cluster_queues
        .get(queue)
        .map_or(1.0, |queue| queue.weight.0)
}

/// Returns the integral of what holds from each time on until the next.
fn integral(
    steps: impl Iterator<Item = (SignedDuration, f64)>,
    start: SignedDuration,
    end: SignedDuration,
) -> f64 {
    let mut sum = 0.0;
    let mut last: Option<(SignedDuration, f64)> = None;
    for (at, value) in steps.chain([(end, 0.0)]) {
        let at = at.clamp(start, end);
        if let Some((since, value)) = last {
            sum += (at - since).as_secs_f64() * value;
        }
        last = Some((at, value));
    }
    sum
}

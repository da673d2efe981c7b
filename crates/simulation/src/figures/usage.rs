//! Who used how much: in all, and over time.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde::Serialize;

use super::{Came, Slowdown, Spread, slowdown, total, used};
use crate::{History, Job, JobRecord, Scenario, history::AdmittedPeriod};

/// How many intervals a series has: as many as a terminal has room for.
const INTERVALS: usize = 60;

/// What some jobs used of a resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResourceUsage {
    /// How much, in units times seconds.
    pub allocated: f64,
    /// How much of what all jobs used of it, between 0 and 1.
    pub share: f64,
}

/// What was in use over time, in intervals of the same length: in each the mean, in units.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Series {
    /// When the first interval begins, counted from the beginning of the simulation.
    pub begins_seconds: f64,
    /// How long each interval is.
    pub interval_seconds: f64,
    /// How much there was of each resource.
    pub capacity: BTreeMap<String, Vec<f64>>,
    /// What the jobs of each LocalQueue used, by resource.
    pub used_by_queue: BTreeMap<String, BTreeMap<String, Vec<f64>>>,
}

impl Came<'_> {
    /// Returns what jobs used of each resource, by what a job says of itself.
    pub(super) fn used_by(
        &self,
        key: fn(&Job) -> &String,
        history: &History,
    ) -> BTreeMap<String, BTreeMap<String, ResourceUsage>> {
        let mut by: BTreeMap<String, BTreeMap<String, ResourceUsage>> = BTreeMap::new();
        let mut all: BTreeMap<&str, f64> = BTreeMap::new();
        for (job, job_record) in self.0.iter().filter(|(job, _)| !key(job).is_empty()) {
            let uses = by.entry(key(job).clone()).or_default();
            for period in &job_record.periods {
                for resource in period.held.keys() {
                    let amount = used(period, resource, period.span(history.end));
                    uses.entry(resource.clone()).or_default().allocated += amount;
                    *all.entry(resource).or_default() += amount;
                }
            }
        }
        for (resource, used) in by.values_mut().flatten() {
            let all = all.get(resource.as_str()).copied().unwrap_or_default();
            used.share = if all > 0.0 { used.allocated / all } else { 0.0 };
        }
        by
    }

    /// Returns what was in use over time, from the first arrival to the last end.
    pub(super) fn series(&self, history: &History, start: SignedDuration, end: SignedDuration) -> Series {
        let clock = Clock::new(start, end);
        let Some(clock) = clock else {
            return Series::default();
        };
        let mut series = Series {
            begins_seconds: start.as_secs_f64(),
            interval_seconds: clock.interval,
            ..Series::default()
        };
        for (number, (since, amounts)) in history.capacity.iter().enumerate() {
            let until = history.capacity.get(number + 1).map_or(end, |(at, _)| *at);
            for (resource, amount) in amounts {
                let means = clock.means_of(&mut series.capacity, resource);
                clock.add(means, *since, until, amount.0 as f64);
            }
        }
        for (job, job_record) in &self.0 {
            let of_queue = series.used_by_queue.entry(job.queue.clone()).or_default();
            for period in &job_record.periods {
                clock.add_stay(of_queue, period, history.end);
            }
        }
        series
    }
}

/// The intervals of a series.
struct Clock {
    start: f64,
    interval: f64,
}

impl Clock {
    /// Returns the intervals of a span; none where no time passes.
    fn new(start: SignedDuration, end: SignedDuration) -> Option<Self> {
        let interval = (end - start).as_secs_f64() / INTERVALS as f64;
        let start = start.as_secs_f64();
        (interval > 0.0).then_some(Self { start, interval })
    }

    fn means_of<'m>(&self, all: &'m mut BTreeMap<String, Vec<f64>>, resource: &str) -> &'m mut Vec<f64> {
        all.entry(resource.to_owned())
            .or_insert_with(|| vec![0.0; INTERVALS])
    }

    fn add_stay(&self, means: &mut BTreeMap<String, Vec<f64>>, period: &AdmittedPeriod, end: SignedDuration) {
        for (resource, amount) in &period.held {
            let means = self.means_of(means, resource);
            self.add(means, period.since, period.until.unwrap_or(end), amount.0 as f64);
        }
    }

    /// Adds an amount that there was from one time to another.
    fn add(&self, means: &mut [f64], since: SignedDuration, until: SignedDuration, amount: f64) {
        let place = |at: SignedDuration| (at.as_secs_f64() - self.start) / self.interval;
        let (since, until) = (place(since).max(0.0), place(until).min(INTERVALS as f64));
        let last = means.len();
        let first = (since.floor() as usize).min(last);
        for (number, mean) in means.iter_mut().enumerate().skip(first) {
            let (begins, ends) = (number as f64, number as f64 + 1.0);
            if begins >= until {
                break;
            }
            *mean += amount * (until.min(ends) - since.max(begins)).max(0.0);
        }
    }
}

/// How long those took who did in every one of several histories: means over different jobs are not compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InAll {
    /// From arrival to the first quota, of those who were admitted in all.
    pub wait: Spread,
    /// The same by LocalQueue.
    pub wait_by_queue: BTreeMap<String, Spread>,
    /// The same by class.
    pub wait_by_class: BTreeMap<String, Spread>,
    /// The same by user.
    pub wait_by_user: BTreeMap<String, Spread>,
    /// From arrival to the end, of those who were done in all.
    pub completion: Spread,
    /// The same in multiples of how long the job itself takes, of those of whom it is known in all.
    pub slowdown: Slowdown,
}

/// Returns for each history how long those took who were admitted, or done, in all of them. The histories are of the same
/// jobs, in the same order; those count who came then or later.
pub fn in_all(from: SignedDuration, histories: &[(&Scenario, &History)]) -> Vec<InAll> {
    let admitted = common(from, histories, |_, job_record| job_record.wait().is_some());
    let done = common(from, histories, |_, job_record| job_record.completion().is_some());
    let slowed = common(from, histories, |job, job_record| {
        slowdown(job, job_record).is_some()
    });
    let of_each = histories.iter().map(|(scenario, history)| {
        let those = |jobs: &[usize]| {
            let each = jobs.iter();
            Came(
                each.map(|job| (&scenario.jobs[*job], &history.job_records[*job]))
                    .collect(),
            )
        };
        let waits = those(&admitted);
        InAll {
            wait: Spread::of(waits.job_records().filter_map(JobRecord::wait)),
            wait_by_queue: waits.waits_by(|job| &job.queue),
            wait_by_class: waits.waits_by(|job| &job.class),
            wait_by_user: waits.waits_by(|job| &job.user),
            completion: Spread::of(those(&done).job_records().filter_map(JobRecord::completion)),
            slowdown: Slowdown::of(
                those(&slowed)
                    .0
                    .iter()
                    .filter_map(|(job, job_record)| slowdown(job, job_record)),
            ),
        }
    });
    of_each.collect()
}

/// Returns the jobs of which something holds in all histories, and which came then or later in each.
fn common(
    from: SignedDuration,
    histories: &[(&Scenario, &History)],
    holds: impl Fn(&Job, &JobRecord) -> bool,
) -> Vec<usize> {
    let lengths = histories.iter().map(|(_, history)| history.job_records.len());
    let all = 0..lengths.min().unwrap_or(0);
    let is_common = |number: &usize| {
        histories.iter().all(|(scenario, history)| {
            let (job, job_record) = (&scenario.jobs[*number], &history.job_records[*number]);
            job_record.arrived.is_some_and(|arrived| arrived >= from) && holds(job, job_record)
        })
    };
    all.filter(is_common).collect()
}

impl Series {
    /// Returns what was in use between two times by those who came at `from` or later. Series between the same times can
    /// be laid beside each other.
    pub fn between(
        (begins, ends): (SignedDuration, SignedDuration),
        from: SignedDuration,
        scenario: &Scenario,
        history: &History,
    ) -> Self {
        Came::since(from, scenario, history).series(history, begins, ends)
    }

    /// Returns when the last interval ends, counted from the beginning of the simulation.
    pub fn ends_seconds(&self) -> f64 {
        self.begins_seconds + self.interval_seconds * INTERVALS as f64
    }

    /// Returns what all queues together used of a resource.
    pub fn used(&self, resource: &str) -> Vec<f64> {
        let of_queues: Vec<&Vec<f64>> = self
            .used_by_queue
            .values()
            .filter_map(|of| of.get(resource))
            .collect();
        let n_intervals = of_queues.first().map_or(0, |means| means.len());
        (0..n_intervals)
            .map(|at| total(of_queues.iter().map(|means| means[at])))
            .collect()
    }
}

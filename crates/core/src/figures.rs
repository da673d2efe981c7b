//! The figures that people compare, defined once.
//!
//! | figure | formula | from where |
//! |---|---|---|
//! | average CPU | processor-seconds used / processor-seconds that could have been: cores allocated × seconds, and no less than what was used; all from the kernel's start to the end of all that it started | `/proc` of the attempt's processes; what the run was given |
//! | average GPU | busy GPU-seconds / allocated GPU-seconds, both of the time that was seen | the driver's busy samples; for how long it had the devices |
//! | peak GPU | the busiest of the driver's periods, and the most memory that was used | the same samples; memory of processes, else of the device |
//! | average queue time | admitted − eligible; the wait for an approval comes before that | the scheduler's log |
//! | average build time | verdict − started | the scheduler's log |
//!
//! Between admission and start a place, an environment and a kernel are made ready: the three spans follow one another, and
//! together they are the time from when only room was wanting to the verdict.
//!
//! An average over runs is the sum of what stands above the line over the sum of what stands below it, of those runs of
//! which both are known: averages are never averaged. A figure that cannot be known is `None`, never zero.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::{GpuUse, Usage};

/// What a run used, and how long it took; what is not known is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunUsage {
    /// How long its processors worked, in processor-seconds.
    pub cpu_seconds: Option<f64>,
    /// How long they were there for it: cores times seconds.
    pub allocated_cpu_seconds: Option<f64>,
    /// What it made of its GPUs. Busy time is divided by the time that was seen: to divide by time that nobody saw would be to
    /// say that they were idle then.
    pub gpu: Option<GpuUse>,
    /// How long it waited when nothing but room was wanting, in seconds: [`queue_seconds`].
    pub queue_seconds: Option<f64>,
    /// How long it took from admission to start, in seconds: [`start_seconds`].
    pub start_seconds: Option<f64>,
    /// How long it took from start to verdict, in seconds: [`build_seconds`].
    pub build_seconds: Option<f64>,
}

/// The figures, of one run or of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Figures {
    /// Which share of the processors that could have worked did: [`RunUsage::usable_cpu_seconds`]. That a run used more than it was
    /// given, where that is no limit, is told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_cpu: Option<f64>,
    /// Which share of the GPUs that were there worked. On shared GPUs it may be more than 1: a holder may use what the
    /// others leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_gpu: Option<f64>,
    /// How busy a GPU was at most, between 0 and 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_gpu: Option<f64>,
    /// How much of a GPU's memory was used at most, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_gpu_memory_bytes: Option<u64>,
    /// How long runs waited on average, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_queue_seconds: Option<f64>,
    /// How long runs took to start on average, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_start_seconds: Option<f64>,
    /// How long runs took on average, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_build_seconds: Option<f64>,
}

impl RunUsage {
    /// Takes over what is known of an attempt's processors and devices.
    pub fn of(usage: &Usage) -> Self {
        Self {
            cpu_seconds: usage.cpu_time.map(|time| time.as_secs_f64()),
            allocated_cpu_seconds: Some(usage.allocated_cpu_seconds()),
            gpu: usage.gpu,
            ..Self::default()
        }
    }

    /// Returns how much processor time it could have used: what it was given, and where that was no limit, what it took
    /// beyond. So no share of it exceeds one, of one run or of many.
    pub fn usable_cpu_seconds(&self) -> Option<f64> {
        Some(self.cpu_seconds?.max(self.allocated_cpu_seconds?))
    }
}

impl Figures {
    /// Returns the figures of some runs, or of one.
    pub fn of(runs: &[RunUsage]) -> Self {
        let over_one =
            |seconds: fn(&RunUsage) -> Option<f64>| average(runs.iter().map(|run| (seconds(run), Some(1.0))));
        let cpu = runs.iter().map(|run| (run.cpu_seconds, run.usable_cpu_seconds()));
        let of_gpus = || runs.iter().filter_map(|run| run.gpu.as_ref());
        let gpu = of_gpus().map(|gpu| (gpu.busy_seconds, Some(gpu.seen_seconds)));
        let peaks = of_gpus().filter_map(|gpu| gpu.peak_utilization);
        let memory = of_gpus().filter_map(|gpu| gpu.peak_memory);
        Self {
            average_cpu: average(cpu),
            average_gpu: average(gpu),
            peak_gpu: peaks.filter(|peak| peak.is_finite()).reduce(f64::max),
            peak_gpu_memory_bytes: memory.map(|memory| memory.0).max(),
            average_queue_seconds: over_one(|run| run.queue_seconds),
            average_start_seconds: over_one(|run| run.start_seconds),
            average_build_seconds: over_one(|run| run.build_seconds),
        }
    }
}

/// Returns the sum of the firsts over the sum of the seconds, of those pairs of which both are known; `None` where there is
/// nothing to divide by.
pub fn average(pairs: impl IntoIterator<Item = (Option<f64>, Option<f64>)>) -> Option<f64> {
    let known = pairs.into_iter().filter_map(|(of, over)| Some((of?, over?)));
    let known = known.filter(|(of, over)| of.is_finite() && over.is_finite());
    let (of, over) = known.fold((0.0, 0.0), |(all_of, all_over), (of, over)| {
        (all_of + of, all_over + over)
    });
    (over > 0.0).then(|| of / over)
}

/// Returns how long a run waited, in seconds, from when nothing but room was wanting until it was admitted. The wait for an
/// approval is not in it.
pub fn queue_seconds(eligible_at: Option<Timestamp>, admitted_at: Option<Timestamp>) -> Option<f64> {
    seconds_between(eligible_at, admitted_at)
}

/// Returns how long it took, in seconds, until an admitted run had a place, an environment and a kernel.
pub fn start_seconds(admitted_at: Option<Timestamp>, started_at: Option<Timestamp>) -> Option<f64> {
    seconds_between(admitted_at, started_at)
}

/// Returns how long a run took from start to verdict, in seconds.
pub fn build_seconds(started_at: Option<Timestamp>, verdict_at: Option<Timestamp>) -> Option<f64> {
    seconds_between(started_at, verdict_at)
}

/// Returns `None`, too, where the clock went back in between.
fn seconds_between(from: Option<Timestamp>, until: Option<Timestamp>) -> Option<f64> {
    let seconds = until?.duration_since(from?).as_secs_f64();
    (seconds >= 0.0).then_some(seconds)
}

#[cfg(test)]
mod tests;

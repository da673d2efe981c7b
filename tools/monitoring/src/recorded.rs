//! What our rules record: the five figures, for all runs and for each blueprint, and what alerts compare with.
//!
//! The figures are those of `blueproof_gpu::account`: a sum over a sum, never an average of averages. Where nothing is
//! known of what stands below the line, there is no series, and no zero.

use blueproof_core::{gpu::Figure, metrics as m};
use blueproof_gpu::pages::native;

use crate::expr::{Expr, Named, expr};

/// A series that a rule makes.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) expr: fn() -> Expr,
}

impl Named for Recorded {
    fn name(&self) -> &'static str {
        self.name
    }

    fn help(&self) -> &'static str {
        self.help
    }
}

/// By what a blueprint's own figures are told apart.
const EACH: &str = " by (blueprint, profile)";

macro_rules! table {
    ($(#[$doc:meta])* $table:ident; $($recorded:ident = $name:literal, $expr:expr, $help:literal;)+) => {
        $(#[$doc])*
        pub(crate) static $table: &[&Recorded] = &[$(&$recorded),+];

        $(pub(crate) static $recorded: Recorded = Recorded { name: $name, help: $help, expr: $expr };)+
    };
}

table! {
    /// The figures of all runs together.
    OF_ALL;
    CPU = "blueproof:run_cpu_busy:ratio1d", || cpu(""),
        "Average CPU: processor time that attempts used, divided by what they could have used, over a day";
    GPU = "blueproof:run_gpu_busy:ratio1d", || gpu(""),
        "Average GPU: GPU-seconds in which devices worked, divided by those that were seen, over a day";
    PEAK = "blueproof:run_gpu_peak:ratio1d", || peak(""),
        "Peak GPU: how busy a device was at most for an attempt, over a day";
    PEAK_MEMORY = "blueproof:run_gpu_peak:bytes1d", || peak_memory(""),
        "Peak GPU memory: how much of a device's memory was used at most by an attempt, over a day";
    QUEUE_TIME = "blueproof:run_queue:seconds1d", queue_time,
        "Average queue time: from when nothing but quota was wanting until it was there, over a day";
    BUILD_TIME = "blueproof:run:seconds1d", || build_time(""),
        "Average build time: from start to verdict, over a day";
}

table! {
    /// The figures of each blueprint and profile. Stages are not known by blueprint, and so no queue time is.
    OF_EACH;
    EACH_CPU = "blueprint:run_cpu_busy:ratio1d", || cpu(EACH),
        "Average CPU of a blueprint: processor time used, divided by what could have been used, over a day";
    EACH_GPU = "blueprint:run_gpu_busy:ratio1d", || gpu(EACH),
        "Average GPU of a blueprint: GPU-seconds in which devices worked, divided by those that were seen, over a day";
    EACH_PEAK = "blueprint:run_gpu_peak:ratio1d", || peak(EACH),
        "Peak GPU of a blueprint: how busy a device was at most, over a day";
    EACH_PEAK_MEMORY = "blueprint:run_gpu_peak:bytes1d", || peak_memory(EACH),
        "Peak GPU memory of a blueprint: how much of a device's memory was used at most, over a day";
    EACH_BUILD_TIME = "blueprint:run:seconds1d", || build_time(EACH),
        "Average build time of a blueprint: from start to verdict, over a day";
}

table! {
    /// What is compared with.
    OTHERS;
    STAGE_P95 = "blueproof:stage:seconds_p95_7d", stage_p95,
        "How long 95 of 100 runs were in a stage at most, over a week";
    DEVICE_BUSY = "blueproof:gpu_utilization:ratio10m", device_busy,
        "How busy a device was on average, or where that is not known its engines, over ten minutes";
    DEVICE_PEAK = "blueproof:gpu_utilization_peak:ratio1d", device_peak,
        "The most of the driver's own samples of a device, over a day";
}

/// Returns all of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Recorded> {
    OF_ALL.iter().chain(OF_EACH).chain(OTHERS).copied()
}

/// The sum over the sum, of what came in a day.
fn ratio(by: &str, of: &dyn Named, over: &dyn Named) -> Expr {
    let template = format!("sum{by} (increase(#[1d])) / (sum{by} (increase(#[1d])) > 0)");
    expr(&template, &[of, over])
}

fn cpu(by: &str) -> Expr {
    ratio(by, &m::RUN_CPU_SECONDS, &m::RUN_ALLOCATED_CPU_SECONDS)
}

fn gpu(by: &str) -> Expr {
    ratio(by, &m::RUN_GPU_BUSY_SECONDS, &m::RUN_GPU_SEEN_SECONDS)
}

fn peak(by: &str) -> Expr {
    let template = format!("max{by} (max_over_time(#[1d]))");
    expr(&template, &[&m::RUN_GPU_UTILIZATION_PEAK])
}

fn peak_memory(by: &str) -> Expr {
    let template = format!("max{by} (max_over_time(#[1d]))");
    expr(&template, &[&m::RUN_GPU_MEMORY_PEAK])
}

/// All that attempts waited after the gate, by those that started.
fn queue_time() -> Expr {
    expr(
        "sum (increase(#_sum{stage=~\"queue|quota\"}[1d])) \
         / (sum (increase(#_count{stage=\"start\"}[1d])) > 0)",
        &[&m::STAGE_SECONDS, &m::STAGE_SECONDS],
    )
}

fn build_time(by: &str) -> Expr {
    let template = format!("sum{by} (increase(#_sum[1d])) / (sum{by} (increase(#_count[1d])) > 0)");
    expr(&template, &[&m::RUN_SECONDS, &m::RUN_SECONDS])
}

fn stage_p95() -> Expr {
    expr(
        "histogram_quantile(0.95, sum by (job, instance, stage, le) (rate(#_bucket[7d])))",
        &[&m::STAGE_SECONDS],
    )
}

/// Of parts of devices no utilization can be read, but on some cards how active their engines are.
fn device_busy() -> Expr {
    expr(
        "avg_over_time(#[10m]) or avg_over_time(#[10m])",
        &[
            native::family(Figure::Utilization),
            native::family(Figure::EngineActive),
        ],
    )
}

fn device_peak() -> Expr {
    expr("max_over_time(#[1d])", &[&native::PEAK])
}

//! Figures of runners for Prometheus, by the names that GitHub's own controller gives them.
//!
//! A dashboard that was made for its listener works here. Its histograms end at an hour; work on GPUs takes longer, so these go on to
//! six. What it does not have is called `blueproof_…`: how long a job waited for a scale set, and how long it took in all.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use blueproof_core::metrics::{
    Exposition, Family,
    Kind::{self, Counter, Gauge, Histogram},
    Page,
};
use blueproof_scale_set::{Job, Scope};
use jiff::SignedDuration;
use tokio::sync::watch;

use crate::{fleet::FleetFigures, handler::JobObserver};

/// The bounds of the chart, and from an hour on to six, in seconds.
const BUCKETS: &[f64] = &[
    0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 15.0, 18.0, 20.0, 25.0,
    30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 110.0, 120.0, 150.0, 180.0, 210.0, 240.0, 300.0, 360.0,
    420.0, 480.0, 540.0, 600.0, 900.0, 1200.0, 1800.0, 2400.0, 3000.0, 3600.0, 5400.0, 7200.0, 10_800.0,
    14_400.0, 21_600.0,
];

const OF_SET: &[&str] = &["name", "namespace", "repository", "organization", "enterprise"];
const OF_JOB: &[&str] = &[
    "enterprise",
    "organization",
    "repository",
    "job_name",
    "event_name",
];
const OF_RESULT: &[&str] = &[
    "enterprise",
    "organization",
    "repository",
    "job_name",
    "event_name",
    "job_result",
];

const fn family(
    name: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
    help: &'static str,
) -> Family {
    Family {
        name,
        kind,
        labels,
        constant: &[],
        help,
    }
}

static ASSIGNED: Family = family(
    "gha_assigned_jobs",
    Gauge,
    OF_SET,
    "The number of jobs that need a runner, those among them that have one",
);
static RUNNING: Family = family(
    "gha_running_jobs",
    Gauge,
    OF_SET,
    "The number of jobs that a runner has",
);
static REGISTERED: Family = family(
    "gha_registered_runners",
    Gauge,
    OF_SET,
    "The number of runners that run",
);
static BUSY: Family = family(
    "gha_busy_runners",
    Gauge,
    OF_SET,
    "The number of runners that have a job",
);
static IDLE: Family = family(
    "gha_idle_runners",
    Gauge,
    OF_SET,
    "The number of runners that run and have no job",
);
static MIN: Family = family(
    "gha_min_runners",
    Gauge,
    OF_SET,
    "The number of runners that wait for a job beside those that jobs need",
);
static MAX: Family = family(
    "gha_max_runners",
    Gauge,
    OF_SET,
    "The most runners that there may be",
);
static DESIRED: Family = family(
    "gha_desired_runners",
    Gauge,
    OF_SET,
    "The number of runners that there are to be",
);
static PENDING: Family = family(
    "gha_controller_pending_ephemeral_runners",
    Gauge,
    OF_SET,
    "The number of runners that are asked for and do not run yet",
);
static FAILED: Family = family(
    "gha_controller_failed_ephemeral_runners",
    Gauge,
    OF_SET,
    "The number of runners that failed and of which something is left; they count as no capacity",
);
static CAPACITY: Family = family(
    "blueproof_runner_capacity",
    Gauge,
    OF_SET,
    "The number of jobs that GitHub may assign: what can be placed now, beside what runs",
);
static STARTED: Family = family(
    "gha_started_jobs_total",
    Counter,
    OF_JOB,
    "The total number of jobs that a runner took",
);
static COMPLETED: Family = family(
    "gha_completed_jobs_total",
    Counter,
    OF_RESULT,
    "The total number of jobs that are over, by what came of them",
);
static STARTUP: Family = family(
    "gha_job_startup_duration_seconds",
    Histogram(BUCKETS),
    OF_JOB,
    "The time from when a job was assigned to the scale set until a runner took it",
);
static EXECUTION: Family = family(
    "gha_job_execution_duration_seconds",
    Histogram(BUCKETS),
    OF_RESULT,
    "The time from when a runner took a job until it was over",
);
static QUEUE: Family = family(
    "blueproof_runner_job_queue_seconds",
    Histogram(BUCKETS),
    OF_JOB,
    "The time from when a job was queued until it was assigned to the scale set",
);
static TOTAL: Family = family(
    "blueproof_runner_job_total_seconds",
    Histogram(BUCKETS),
    OF_RESULT,
    "The time from when a job was queued until it was over",
);

/// Every metric of runners.
pub static FAMILIES: [&Family; 17] = [
    &ASSIGNED,
    &RUNNING,
    &REGISTERED,
    &BUSY,
    &IDLE,
    &MIN,
    &MAX,
    &DESIRED,
    &PENDING,
    &FAILED,
    &CAPACITY,
    &STARTED,
    &COMPLETED,
    &STARTUP,
    &EXECUTION,
    &QUEUE,
    &TOTAL,
];

/// What is counted of runners in a process. It is nothing, and writes nothing, before a scale set is added.
#[derive(Debug, Default)]
pub struct RunnerMetrics {
    jobs: Mutex<Page>,
    sets: Mutex<BTreeMap<String, MeasuredSet>>,
}

/// A scale set whose figures are shown.
#[derive(Debug, Clone)]
pub struct MeasuredSet {
    /// What its runners are for.
    pub scope: Scope,
    /// How many runners wait for a job.
    pub min_runners: u32,
    /// The most runners.
    pub max_runners: u32,
    /// How it stands.
    pub figures: watch::Receiver<FleetFigures>,
}

impl RunnerMetrics {
    /// Shows the figures of a scale set from now on, in the place of an earlier one of its name.
    pub fn add(&self, name: &str, set: MeasuredSet) {
        lock(&self.sets).insert(name.to_owned(), set);
    }

    /// Returns what counts the jobs of a scale set.
    pub fn observer(self: &Arc<Self>) -> Arc<dyn JobObserver> {
        Arc::clone(self) as _
    }

    /// Writes all of it down.
    pub fn write(&self, exposition: &mut Exposition) {
        let mut page = lock(&self.jobs).clone();
        for (name, set) in &*lock(&self.sets) {
            set.tell(name, &mut page);
        }
        page.write(FAMILIES.into_iter(), exposition);
    }
}

impl MeasuredSet {
    fn tell(&self, name: &str, page: &mut Page) {
        let figures = *self.figures.borrow();
        let (repository, organization, enterprise) = match &self.scope {
            Scope::Organization(name) => ("", name.as_str(), ""),
            Scope::Repository { owner, name } => (name.as_str(), owner.as_str(), ""),
            Scope::Enterprise(name) => ("", "", name.as_str()),
        };
        let labels = [name, "", repository, organization, enterprise];
        for (family, value) in [
            (&ASSIGNED, figures.demand),
            (&RUNNING, figures.busy),
            (&REGISTERED, figures.idle + figures.busy),
            (&BUSY, figures.busy),
            (&IDLE, figures.idle),
            (&MIN, self.min_runners),
            (&MAX, self.max_runners),
            (&DESIRED, figures.desired),
            (&PENDING, figures.pending),
            (&FAILED, figures.failed),
            (&CAPACITY, figures.capacity),
        ] {
            page.set(family, &labels, f64::from(value));
        }
    }
}

impl JobObserver for RunnerMetrics {
    fn on_started(&self, job: &Job) {
        let labels = labels_of(job);
        let mut page = lock(&self.jobs);
        page.count(&STARTED, &labels);
        observe(&mut page, &STARTUP, &labels, job.startup());
        observe(&mut page, &QUEUE, &labels, job.queued());
    }

    fn on_completed(&self, job: &Job, result: &str) {
        let [enterprise, organization, repository, name, event] = labels_of(job);
        let labels = [enterprise, organization, repository, name, event, result];
        let mut page = lock(&self.jobs);
        page.count(&COMPLETED, &labels);
        observe(&mut page, &EXECUTION, &labels, job.execution());
        observe(&mut page, &TOTAL, &labels, job.total());
    }
}

fn labels_of(job: &Job) -> [&str; 5] {
    [
        "",
        &job.owner_name,
        &job.repository_name,
        &job.job_display_name,
        &job.event_name,
    ]
}

/// Counts a time, where it is known: one that is not is no zero.
fn observe(page: &mut Page, family: &'static Family, labels: &[&str], took: Option<Duration>) {
    if let Some(took) = took.and_then(|took| SignedDuration::try_from(took).ok()) {
        page.observe(family, labels, took);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use blueproof_core::metrics::Format;
    use jiff::Timestamp;

    use super::*;

    fn at(second: i64) -> Option<Timestamp> {
        Timestamp::from_second(second).ok()
    }

    fn page(metrics: &RunnerMetrics) -> String {
        let mut exposition = Exposition::new(Format::Prometheus);
        metrics.write(&mut exposition);
        exposition.finish()
    }

    #[test]
    fn nothing_is_shown_where_there_are_no_runners() {
        assert_eq!(page(&RunnerMetrics::default()), "");
    }

    #[test]
    fn figures_have_the_names_of_githubs_controller_and_times_up_to_six_hours() {
        let metrics = RunnerMetrics::default();
        let figures = FleetFigures {
            demand: 3,
            desired: 2,
            pending: 1,
            busy: 1,
            capacity: 2,
            ..FleetFigures::default()
        };
        let set = MeasuredSet {
            scope: Scope::Organization("cncf".into()),
            min_runners: 0,
            max_runners: 2,
            figures: watch::channel(figures).1,
        };
        metrics.add("gpu", set);
        let job = Job {
            owner_name: "cncf".into(),
            repository_name: "trainer".into(),
            job_display_name: "gpu".into(),
            event_name: "push".into(),
            queue_time: at(0),
            scale_set_assign_time: at(2),
            runner_assign_time: at(10),
            finish_time: at(18_010),
            ..Job::default()
        };
        metrics.on_started(&job);
        metrics.on_completed(&job, "success");
        let text = page(&metrics);
        let of_job =
            r#"enterprise="",organization="cncf",repository="trainer",job_name="gpu",event_name="push""#;
        for line in [
            r#"gha_assigned_jobs{name="gpu",namespace="",repository="",organization="cncf",enterprise=""} 3"#
                .to_owned(),
            r#"gha_max_runners{name="gpu",namespace="",repository="",organization="cncf",enterprise=""} 2"#
                .to_owned(),
            format!("gha_started_jobs_total{{{of_job}}} 1"),
            format!("gha_completed_jobs_total{{{of_job},job_result=\"success\"}} 1"),
            format!("gha_job_startup_duration_seconds_sum{{{of_job}}} 8"),
            // Five hours: above the last bound of the chart, and below one of ours.
            format!(
                "gha_job_execution_duration_seconds_bucket{{{of_job},job_result=\"success\",le=\"14400\"}} 0"
            ),
            format!(
                "gha_job_execution_duration_seconds_bucket{{{of_job},job_result=\"success\",le=\"21600\"}} 1"
            ),
            format!("blueproof_runner_job_queue_seconds_sum{{{of_job}}} 2"),
            format!("blueproof_runner_job_total_seconds_sum{{{of_job},job_result=\"success\"}} 18010"),
        ] {
            assert!(text.lines().any(|told| told == line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_time_that_is_not_known_is_not_zero() {
        let metrics = RunnerMetrics::default();
        metrics.on_completed(&Job::default(), "canceled");
        let text = page(&metrics);
        assert!(text.contains("gha_completed_jobs_total"), "{text}");
        assert!(!text.contains("gha_job_execution_duration_seconds"), "{text}");
    }
}

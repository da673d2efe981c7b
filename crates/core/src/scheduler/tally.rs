//! Counts what happens, for a page of metrics.
//!
//! What is counted is a projection of the log like everything else here: a replay comes to the same numbers, and so they
//! outlive every process. It is counted where it is decided, because between two events a run may come and go.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    Scheduler,
    queue::{Account, Eviction, NAMESPACE},
    run::{AttemptPhase, Phase},
};
use crate::{
    domain::{AttemptId, BlueprintName, Ending, Outcome, ProfileName, RunId, Subject, Usage, Verdict},
    figures::RunUsage,
    metrics::{self as m, Page},
};

/// So many blueprints with their profiles have series of their own. A pull request may bring any number of names.
const BLUEPRINTS_AT_MOST: usize = 100;

/// What all others are called together: no name has an underscore.
const OTHERS: &str = "_other";

/// Why an eviction was, beyond its reason: never more than that.
const UNDERLYING_CAUSE: &str = "";

/// What was counted so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tally {
    page: Page,
    blueprints: BTreeSet<(BlueprintName, Option<ProfileName>)>,
}

/// A part of a run's way until it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Gate,
    Queue,
    Quota,
    Place,
    Start,
}

impl Stage {
    const ALL: [Self; 5] = [Self::Gate, Self::Queue, Self::Quota, Self::Place, Self::Start];

    fn as_str(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Queue => "queue",
            Self::Quota => "quota",
            Self::Place => "place",
            Self::Start => "start",
        }
    }
}

impl Scheduler {
    /// Returns what there is to measure, as things stand after the last event.
    pub fn metrics(&self) -> Page {
        let mut page = self.tally.page.clone();
        self.forget_what_is_gone(&mut page);
        page.set(&m::BUILD_INFO, &[env!("CARGO_PKG_VERSION")], 1.0);
        for queue in self.queue.queues().names() {
            // There from the beginning: what grows by the first one is seen only from a zero.
            page.add(&m::PREEMPTION_REVERSALS, &[queue], 0.0);
        }
        self.queue.tell(self.now, &mut page);
        self.tell_stages(&mut page);
        page
    }

    /// Leaves out what was counted of queues and cohorts that are not there any more, as Kueue does.
    fn forget_what_is_gone(&self, page: &mut Page) {
        let queues: BTreeSet<&str> = self.queue.queues().names().collect();
        let cohorts: BTreeSet<&str> = self.queue.queues().cohorts().map(|cohort| cohort.name).collect();
        page.forget("cluster_queue", |name| !queues.contains(name));
        page.forget("preempting_cluster_queue", |name| !queues.contains(name));
        page.forget("cohort", |name| !cohorts.contains(name));
        page.forget("name", |name| !self.objects().local_queues.contains_key(name));
    }

    fn tell_stages(&self, page: &mut Page) {
        for stage in Stage::ALL {
            page.set(&m::QUEUE_DEPTH, &[stage.as_str()], 0.0);
        }
        let mut oldest = [None::<Timestamp>; Stage::ALL.len()];
        for (stage, since) in self.unsettled.iter().filter_map(|run| self.stage(*run)) {
            page.count(&m::QUEUE_DEPTH, &[stage.as_str()]);
            let oldest = &mut oldest[stage as usize];
            *oldest = Some(oldest.map_or(since, |oldest| oldest.min(since)));
        }
        for (stage, oldest) in Stage::ALL.into_iter().zip(oldest) {
            if let Some(oldest) = oldest {
                page.set(&m::QUEUE_OLDEST_TIMESTAMP, &[stage.as_str()], seconds_of(oldest));
            }
        }
    }

    /// Returns the stage that a run is in, and since when.
    fn stage(&self, id: RunId) -> Option<(Stage, Timestamp)> {
        let run = &self.runs[&id];
        match run.phase {
            Phase::AwaitingApproval { since } => Some((Stage::Gate, since)),
            Phase::Queued { .. } if self.back_off(run).is_some() => None,
            Phase::Queued { .. } => {
                let (entered_at, reserved_at) = self.queue.times(id)?;
                if self.queue.is_quota_reserved(id) {
                    return Some((Stage::Quota, reserved_at));
                }
                Some((Stage::Queue, entered_at))
            }
            Phase::Active => {
                let attempt = run.active()?;
                match attempt.phase {
                    AttemptPhase::Reserving => Some((Stage::Place, attempt.reserved_at)),
                    AttemptPhase::Starting => Some((Stage::Start, attempt.placed_at?)),
                    AttemptPhase::Running | AttemptPhase::Releasing | AttemptPhase::Gone => None,
                }
            }
            Phase::ComingBack { .. } | Phase::Ended(_) => None,
        }
    }

    pub(super) fn count_gate(&mut self, since: Timestamp) {
        self.tally.stage(Stage::Gate, self.now.duration_since(since));
    }

    /// Counts cycles in which a workload was tried: those that gave quota to any, and those that did not.
    pub(super) fn count_cycles(&mut self, admitted: u32, inadmissible: u32) {
        for (result, cycles) in [("success", admitted), ("inadmissible", inadmissible)] {
            if cycles > 0 {
                let page = &mut self.tally.page;
                page.add(&m::ADMISSION_ATTEMPTS, &[result], cycles.into());
            }
        }
    }

    /// Counts that quota was reserved for a run that had waited for it.
    pub(super) fn count_reserved(&mut self, run: RunId, waited: SignedDuration) {
        if let Some(account) = self.queue.account(run) {
            self.tally.reserved(&account, waited);
        }
    }

    pub(super) fn count_admission(&mut self, run: RunId) {
        let times = self.queue.account(run).zip(self.queue.times(run));
        if let Some((account, (entered_at, reserved_at))) = times {
            self.tally
                .stage(Stage::Quota, self.now.duration_since(reserved_at));
            self.tally.admitted(&account, self.now.duration_since(entered_at));
        }
    }

    pub(super) fn count_place(&mut self, reserved_at: Timestamp) {
        self.tally
            .stage(Stage::Place, self.now.duration_since(reserved_at));
    }

    /// Counts that an attempt runs, which has its place since `placed_at` and its quota since `admitted_at`.
    pub(super) fn count_start(&mut self, run: RunId, placed_at: Option<Timestamp>, admitted_at: Timestamp) {
        if let Some(placed_at) = placed_at {
            self.tally.stage(Stage::Start, self.now.duration_since(placed_at));
        }
        let times = self.queue.account(run).zip(self.queue.times(run));
        if let Some((account, (entered_at, _))) = times {
            let (waited, started) = (
                self.now.duration_since(entered_at),
                self.now.duration_since(admitted_at),
            );
            self.tally.ready(&account, waited, started);
        }
    }

    /// Counts that somebody has to give quota back.
    pub(super) fn count_eviction(&mut self, evicted: &Eviction) {
        let id = evicted.attempt.run;
        let Some(account) = self.queue.account(id) else {
            return;
        };
        let reason = evicted.reason.condition_reason();
        let run = self.runs.get_mut(&id).expect("who is in the queue is known");
        let is_first = run.note_eviction_for(&evicted.reason);
        let started_at = run
            .attempt(evicted.attempt.number)
            .and_then(|attempt| attempt.started_at);
        let ran = started_at.map(|at| self.now.duration_since(at));
        self.tally.evicted(&account, reason, ran);
        if is_first {
            let labels = [
                account.cluster_queue.as_str(),
                reason,
                UNDERLYING_CAUSE,
                &account.priority_class,
            ];
            self.tally.page.count(&m::EVICTED_WORKLOADS_ONCE, &labels);
        }
        if let Some(by) = evicted.by.and_then(|by| self.queue.account(by)) {
            let labels = [by.cluster_queue.as_str(), evicted.reason.as_str()];
            self.tally.page.count(&m::PREEMPTED_WORKLOADS, &labels);
            if evicted.reversal {
                self.tally.page.count(&m::PREEMPTION_REVERSALS, &labels[..1]);
            }
        }
    }

    /// Counts that somebody who was evicted waits again.
    pub(super) fn count_return(&mut self, run: RunId, reason: &str, took: SignedDuration) {
        if let Some(account) = self.queue.account(run) {
            let labels = [account.cluster_queue.as_str(), reason];
            self.tally
                .page
                .observe(&m::WORKLOAD_EVICTION_LATENCY, &labels, took);
        }
    }

    /// Counts what came of an attempt that ran until then.
    pub(super) fn count_outcome(&mut self, id: AttemptId, outcome: &Outcome, ended_at: Timestamp) {
        let Some(run) = self.runs.get(&id.run) else { return };
        let started_at = run.attempt(id.number).and_then(|attempt| attempt.started_at);
        let is_verdict = match outcome.verdict {
            Verdict::Passed | Verdict::Failed(_) => true,
            Verdict::Stopped => false,
        };
        if let Some(started_at) = started_at.filter(|_| is_verdict) {
            self.tally
                .outcome(&run.request.subject, outcome, started_at, ended_at);
        }
    }

    /// Counts that an attempt's workload is over, and will not wait again.
    pub(super) fn count_finished(&mut self, run: RunId) {
        if let Some(account) = self.queue.account(run) {
            self.tally.finished(&account);
        }
    }
}

impl Tally {
    fn stage(&mut self, stage: Stage, took: SignedDuration) {
        self.page.observe(&m::STAGE_SECONDS, &[stage.as_str()], took);
    }

    fn reserved(&mut self, account: &Account, waited: SignedDuration) {
        self.stage(Stage::Queue, waited);
        let Self { page, .. } = self;
        page.count(&m::QUOTA_RESERVED_WORKLOADS, &account.in_cluster_queue());
        page.observe(&m::QUOTA_RESERVED_WAIT_TIME, &account.in_cluster_queue(), waited);
        page.count(
            &m::LOCAL_QUEUE_QUOTA_RESERVED_WORKLOADS,
            &account.in_local_queue(),
        );
        page.observe(
            &m::LOCAL_QUEUE_QUOTA_RESERVED_WAIT_TIME,
            &account.in_local_queue(),
            waited,
        );
    }

    fn admitted(&mut self, account: &Account, waited: SignedDuration) {
        let Self { page, .. } = self;
        page.count(&m::ADMITTED_WORKLOADS, &account.in_cluster_queue());
        page.observe(&m::ADMISSION_WAIT_TIME, &account.in_cluster_queue(), waited);
        page.count(&m::LOCAL_QUEUE_ADMITTED_WORKLOADS, &account.in_local_queue());
        page.observe(
            &m::LOCAL_QUEUE_ADMISSION_WAIT_TIME,
            &account.in_local_queue(),
            waited,
        );
        for cohort in &account.cohorts {
            page.count(
                &m::COHORT_SUBTREE_ADMITTED_WORKLOADS,
                &[cohort, &account.priority_class],
            );
        }
    }

    fn ready(&mut self, account: &Account, waited: SignedDuration, started: SignedDuration) {
        let Self { page, .. } = self;
        page.observe(&m::READY_WAIT_TIME, &account.in_cluster_queue(), waited);
        page.observe(
            &m::ADMITTED_UNTIL_READY_WAIT_TIME,
            &account.in_cluster_queue(),
            started,
        );
        page.observe(&m::LOCAL_QUEUE_READY_WAIT_TIME, &account.in_local_queue(), waited);
        page.observe(
            &m::LOCAL_QUEUE_ADMITTED_UNTIL_READY_WAIT_TIME,
            &account.in_local_queue(),
            started,
        );
    }

    fn evicted(&mut self, account: &Account, reason: &str, ran: Option<SignedDuration>) {
        let Account {
            cluster_queue,
            local_queue,
            priority_class,
            ..
        } = account;
        let labels = [cluster_queue.as_str(), reason, UNDERLYING_CAUSE, priority_class];
        self.page.count(&m::EVICTED_WORKLOADS, &labels);
        let labels = [
            local_queue.as_str(),
            NAMESPACE,
            reason,
            UNDERLYING_CAUSE,
            priority_class,
        ];
        self.page.count(&m::LOCAL_QUEUE_EVICTED_WORKLOADS, &labels);
        if let Some(ran) = ran {
            let labels = [cluster_queue.as_str(), reason, UNDERLYING_CAUSE];
            self.page.observe(&m::PODS_READY_TO_EVICTED_TIME, &labels, ran);
        }
    }

    fn finished(&mut self, account: &Account) {
        self.page
            .count(&m::FINISHED_WORKLOADS, &account.in_cluster_queue());
        self.page
            .count(&m::LOCAL_QUEUE_FINISHED_WORKLOADS, &account.in_local_queue());
    }

    /// Counts that a run ended.
    pub(super) fn ended(&mut self, ending: Ending) {
        let verdict = match ending {
            Ending::Passed => "passed",
            Ending::Failed => "failed",
            Ending::InfrastructureFailed => "infrastructure-failed",
            Ending::TimedOut => "timed-out",
            Ending::Cancelled => "cancelled",
            Ending::Refused => "refused",
            Ending::Superseded => "superseded",
        };
        self.page.count(&m::RUNS_TOTAL, &[verdict]);
    }

    fn outcome(&mut self, subject: &Subject, outcome: &Outcome, started_at: Timestamp, ended_at: Timestamp) {
        let own = (subject.blueprint.clone(), subject.profile.clone());
        let has_room = self.blueprints.len() < BLUEPRINTS_AT_MOST;
        let is_known = self.blueprints.contains(&own) || has_room && self.blueprints.insert(own.clone());
        let labels = match (is_known, &own) {
            (true, (blueprint, profile)) => [
                blueprint.as_str(),
                profile.as_ref().map_or("", ProfileName::as_str),
            ],
            (false, _) => [OTHERS, ""],
        };
        self.page
            .observe(&m::RUN_SECONDS, &labels, ended_at.duration_since(started_at));
        if let Some(usage) = &outcome.usage {
            self.usage(&labels, usage);
        }
        if outcome.verdict == Verdict::Passed && subject.pull_request.is_none() && is_known {
            // Not the later one of two: a clock that was ahead once would hide every pass until then.
            self.page
                .set(&m::BLUEPRINT_LAST_GREEN, &labels, seconds_of(ended_at));
        }
    }

    fn usage(&mut self, labels: &[&str], usage: &Usage) {
        let used = RunUsage::of(usage);
        if let (Some(seconds), Some(usable)) = (used.cpu_seconds, used.usable_cpu_seconds()) {
            self.page.add(&m::RUN_CPU_SECONDS, labels, seconds);
            self.page.add(&m::RUN_ALLOCATED_CPU_SECONDS, labels, usable);
        }
        let Some(gpu) = &usage.gpu else { return };
        self.page
            .add(&m::RUN_GPU_ALLOCATED_SECONDS, labels, gpu.allocated_seconds);
        if let Some(busy) = gpu.busy_seconds {
            self.page.add(&m::RUN_GPU_SEEN_SECONDS, labels, gpu.seen_seconds);
            self.page.add(&m::RUN_GPU_BUSY_SECONDS, labels, busy);
        }
        if let Some(joules) = gpu.joules {
            self.page.add(&m::RUN_GPU_ENERGY, labels, joules);
        }
        if let Some(peak) = gpu.peak_utilization {
            self.page.set(&m::RUN_GPU_UTILIZATION_PEAK, labels, peak);
        }
        if let Some(peak) = gpu.peak_memory {
            self.page.set(&m::RUN_GPU_MEMORY_PEAK, labels, peak.0 as f64);
        }
    }
}

impl Account {
    fn in_cluster_queue(&self) -> [&str; 2] {
        [&self.cluster_queue, &self.priority_class]
    }

    fn in_local_queue(&self) -> [&str; 3] {
        [self.local_queue.as_str(), NAMESPACE, &self.priority_class]
    }
}

fn seconds_of(at: Timestamp) -> f64 {
    at.duration_since(Timestamp::UNIX_EPOCH).as_secs_f64()
}

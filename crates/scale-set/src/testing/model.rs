//! What the service has and does, without any input or output.

use std::{collections::BTreeMap, time::Duration};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use jiff::Timestamp;
use serde_json::json;

use super::{
    faults::{Fault, Faults},
    state::FakeSet,
};
use crate::{
    message::Job,
    types::{NewScaleSet, Runner, RunnerId, RunnerRequestId, RunnerStatus, ScaleSet, ScaleSetId, Statistics},
};

/// How the model behaves.
#[derive(Debug, Clone)]
pub struct ModelOptions {
    /// Where it is, for the URLs that it gives.
    pub base: String,
    /// How long a poll is held.
    pub hold: Duration,
    /// How long the service's token is valid.
    pub admin_token_for: Duration,
    /// How long a queue's token is valid.
    pub queue_token_for: Duration,
    /// How long a session is kept that nobody uses. How long the service keeps one is not known.
    pub session_idle_for: Duration,
    /// The most events of a message.
    pub batch: usize,
}

/// The service.
#[derive(Debug)]
pub struct Model {
    pub(super) options: ModelOptions,
    pub(super) faults: Faults,
    pub(super) tokens: BTreeMap<String, Timestamp>,
    pub(super) sets: BTreeMap<ScaleSetId, FakeSet>,
    pub(super) jobs: BTreeMap<RunnerRequestId, FakeJob>,
    pub(super) runners: BTreeMap<RunnerId, FakeRunner>,
    pub(super) n_ids: i64,
}

/// A job.
#[derive(Debug, Clone)]
pub struct FakeJob {
    /// As messages tell of it.
    pub job: Job,
    /// The scale set that it asks for.
    pub scale_set: ScaleSetId,
    /// How far it has come.
    pub state: FakeJobState,
    /// How often it was assigned.
    pub n_assigned: u32,
}

/// How far a job has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FakeJobState {
    /// It waits for capacity.
    Queued,
    /// It is offered.
    Available,
    /// It waits for a runner.
    Assigned,
    /// It runs on this runner.
    Running(RunnerId),
    /// It is done.
    Completed,
}

#[derive(Debug)]
pub(super) struct FakeRunner {
    pub(super) runner: Runner,
    pub(super) config: String,
    pub(super) is_config_used: bool,
}

/// A runner's configuration was used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the configuration is used, or unknown")]
pub struct RunnerConflict;

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            base: "http://fake.invalid".into(),
            hold: Duration::from_secs(50),
            admin_token_for: Duration::from_secs(3600),
            queue_token_for: Duration::from_secs(3600),
            session_idle_for: Duration::from_secs(300),
            batch: 50,
        }
    }
}

impl Model {
    /// Returns a service that has nothing yet.
    pub fn new(options: ModelOptions) -> Self {
        Self {
            options,
            faults: Faults::default(),
            tokens: BTreeMap::new(),
            sets: BTreeMap::new(),
            jobs: BTreeMap::new(),
            runners: BTreeMap::new(),
            n_ids: 0,
        }
    }

    /// Lets something go wrong the next `times` times that it can.
    pub fn inject(&mut self, fault: Fault, times: u32) {
        self.faults.inject(fault, times);
    }

    /// Returns whether something is to go wrong now, and counts that.
    pub fn take(&mut self, fault: Fault) -> bool {
        self.faults.take(fault)
    }

    /// Queues a job for a scale set.
    pub fn queue_job(&mut self, now: Timestamp, set: ScaleSetId) -> RunnerRequestId {
        let id = RunnerRequestId(self.next_id());
        let job = Job {
            runner_request_id: id,
            owner_name: "owner".into(),
            repository_name: "repository".into(),
            job_id: format!("job-{id}"),
            job_workflow_ref: "owner/repository/.github/workflows/gpu.yaml@refs/pull/1/merge".into(),
            queue_time: Some(now),
            ..Job::default()
        };
        let job = FakeJob {
            job,
            scale_set: set,
            state: FakeJobState::Queued,
            n_assigned: 0,
        };
        self.jobs.insert(id, job);
        id
    }

    /// Makes a scale set.
    pub fn add_scale_set(&mut self, new: NewScaleSet) -> ScaleSetId {
        let set = ScaleSet {
            name: new.name,
            runner_group_id: new.runner_group_id,
            labels: new.labels,
            runner_setting: new.runner_setting,
            ..ScaleSet::default()
        };
        self.add_set(set).id
    }

    /// Returns the number of the scale set of a name.
    pub fn scale_set_named(&self, name: &str) -> Option<ScaleSetId> {
        let mut all = self.sets.iter();
        all.find(|(_, set)| set.set.name == name).map(|(id, _)| *id)
    }

    /// Returns a job.
    pub fn job(&self, id: RunnerRequestId) -> Option<&FakeJob> {
        self.jobs.get(&id)
    }

    /// Returns the runners that are registered.
    pub fn runners(&self) -> Vec<Runner> {
        self.runners
            .values()
            .map(|runner| runner.runner.clone())
            .collect()
    }

    /// Returns whether a scale set has a session.
    pub fn has_session(&self, set: ScaleSetId) -> bool {
        self.sets.get(&set).is_some_and(|set| set.session.is_some())
    }

    /// Returns how many messages of a scale set are not acknowledged, or not even sent.
    pub fn n_left(&self, set: ScaleSetId) -> usize {
        self.sets
            .get(&set)
            .map_or(0, |set| set.messages.len() + set.events.len())
    }

    /// Forgets a scale set's session.
    pub fn end_session(&mut self, set: ScaleSetId) {
        if let Some(set) = self.sets.get_mut(&set) {
            set.session = None;
        }
    }

    /// Connects a runner by its configuration, which is good for one time, and gives it a job if one waits.
    pub fn connect_runner(
        &mut self,
        now: Timestamp,
        config: &str,
    ) -> Result<Option<RunnerRequestId>, RunnerConflict> {
        let found = self.runners.values_mut().find(|runner| runner.config == config);
        let runner = found
            .filter(|runner| !runner.is_config_used)
            .ok_or(RunnerConflict)?;
        runner.is_config_used = true;
        runner.runner.status = Some(RunnerStatus::Online);
        let (id, set) = (runner.runner.id, runner.runner.runner_scale_set_id);
        let is_waiting = |job: &&mut FakeJob| job.scale_set == set && job.state == FakeJobState::Assigned;
        let Some(job) = self.jobs.values_mut().find(is_waiting) else {
            return Ok(None);
        };
        job.state = FakeJobState::Running(id);
        job.job.runner_assign_time = Some(now);
        runner.runner.busy = Some(true);
        let request = job.job.runner_request_id;
        self.tell(request, "JobStarted", None);
        if self.take(Fault::CompletedWhileRunning) {
            self.tell(request, "JobCompleted", Some("success"));
        }
        Ok(Some(request))
    }

    /// Ends a job that runs, and its runner with it.
    pub fn complete_job(&mut self, now: Timestamp, id: RunnerRequestId, result: &str) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let FakeJobState::Running(runner) = job.state else {
            return;
        };
        job.state = FakeJobState::Completed;
        job.job.finish_time = Some(now);
        self.tell(id, "JobCompleted", Some(result));
        self.runners.remove(&runner);
    }

    /// Takes an assigned job back, since no runner took it. After the third time it is dropped.
    pub fn withdraw_job(&mut self, now: Timestamp, id: RunnerRequestId) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.state != FakeJobState::Assigned {
            return;
        }
        let is_last = job.n_assigned >= 3;
        job.state = if is_last {
            FakeJobState::Completed
        } else {
            FakeJobState::Queued
        };
        self.tell(id, "JobCompleted", Some("canceled"));
        if let Some(job) = self.jobs.get_mut(&id) {
            job.job.queue_time = Some(now);
        }
    }

    /// Assigns a job.
    pub(super) fn assign(&mut self, now: Timestamp, id: RunnerRequestId) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.state = FakeJobState::Assigned;
            job.n_assigned += 1;
            job.job.scale_set_assign_time = Some(now);
            self.tell(id, "JobAssigned", None);
        }
    }

    /// Assigns a job that nobody acquired, as some servers do.
    pub fn assign_job(&mut self, now: Timestamp, id: RunnerRequestId) {
        self.assign(now, id);
    }

    /// Puts an event into the queue of a job's scale set.
    pub(super) fn tell(&mut self, id: RunnerRequestId, kind: &str, result: Option<&str>) {
        let Some(job) = self.jobs.get(&id) else { return };
        let mut event = serde_json::to_value(&job.job).expect("plain data");
        event["messageType"] = json!(kind);
        if let FakeJobState::Running(runner) = job.state {
            event["runnerId"] = json!(runner);
            let name = self.runners.get(&runner).map(|runner| &runner.runner.name);
            event["runnerName"] = json!(name);
        }
        if let Some(result) = result {
            event["result"] = json!(result);
        }
        if let Some(set) = self.sets.get_mut(&job.scale_set) {
            set.events.push_back(event);
        }
    }

    pub(super) fn statistics(&mut self, set: ScaleSetId) -> Statistics {
        if self.take(Fault::ZeroStatistics) {
            return Statistics::default();
        }
        let mut statistics = Statistics::default();
        for job in self.jobs.values().filter(|job| job.scale_set == set) {
            match job.state {
                FakeJobState::Available => statistics.total_available_jobs += 1,
                FakeJobState::Assigned => statistics.total_assigned_jobs += 1,
                FakeJobState::Running(_) => {
                    statistics.total_assigned_jobs += 1;
                    statistics.total_running_jobs += 1;
                }
                FakeJobState::Queued | FakeJobState::Completed => {}
            }
        }
        for runner in self
            .runners
            .values()
            .filter(|runner| runner.runner.runner_scale_set_id == set)
        {
            statistics.total_registered_runners += 1;
            statistics.total_busy_runners += u32::from(runner.runner.busy == Some(true));
        }
        statistics.total_idle_runners = statistics.total_registered_runners - statistics.total_busy_runners;
        statistics
    }

    pub(super) fn next_id(&mut self) -> i64 {
        self.n_ids += 1;
        self.n_ids
    }

    /// Makes a token that says when it expires.
    pub(super) fn issue(&mut self, now: Timestamp, valid_for: Duration) -> String {
        let expires_at = now + valid_for;
        let claims = json!({"exp": expires_at.as_second(), "jti": self.next_id().to_string()}).to_string();
        let token = format!(
            "{}.{}.fake",
            URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","typ":"JWT"}"#),
            URL_SAFE_NO_PAD.encode(claims)
        );
        self.tokens.insert(token.clone(), expires_at);
        token
    }

    pub(super) fn register(&mut self, set: ScaleSetId, name: &str) -> (Runner, String) {
        let id = RunnerId(self.next_id());
        let files = json!({".runner": STANDARD.encode(format!("runner {id}"))});
        let config = STANDARD.encode(files.to_string());
        let runner = Runner {
            id,
            name: name.into(),
            runner_scale_set_id: set,
            status: Some(RunnerStatus::Offline),
            busy: Some(false),
            ..Runner::default()
        };
        let fake = FakeRunner {
            runner: runner.clone(),
            config: config.clone(),
            is_config_used: false,
        };
        self.runners.insert(id, fake);
        (runner, config)
    }

    pub(super) fn add_set(&mut self, mut set: ScaleSet) -> ScaleSet {
        set.id = ScaleSetId(self.next_id());
        self.sets.insert(set.id, FakeSet::new(set.clone()));
        set
    }
}

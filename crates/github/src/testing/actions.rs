//! Workflow runs, their jobs and runners, on the fake.

use std::collections::BTreeMap;

use async_trait::async_trait;
use blueproof_core::ports::JitConfig;

use super::FakeGitHub;
use crate::{
    api::{Actions, ApiError, JitRunner, NewJitRunner, RepositoryId, RunnerScope, WorkflowRun},
    payload::{CommitSha, WorkflowJob, WorkflowJobStatus},
};

/// What the fake has of GitHub Actions.
#[derive(Debug, Default)]
pub(super) struct FakeWorkflows {
    runs: BTreeMap<(RepositoryId, u64), WorkflowRun>,
    jobs: BTreeMap<u64, (RepositoryId, WorkflowJob)>,
    runners: BTreeMap<u64, FakeRunner>,
    /// The jobs that were run once more.
    reruns: Vec<u64>,
}

/// A runner that is registered on the fake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeRunner {
    /// What it is registered for.
    pub scope: RunnerScope,
    /// How it was asked for.
    pub new: NewJitRunner,
    /// The job that it has.
    pub job: Option<u64>,
}

impl FakeGitHub {
    /// Has an event start a workflow run for a commit, and returns its number.
    pub fn start_workflow(&self, id: RepositoryId, event: &str, head: &CommitSha) -> u64 {
        let mut state = self.lock();
        let run = WorkflowRun {
            id: state.new_id(),
            head_sha: head.clone(),
            event: event.into(),
            status: Some("queued".into()),
        };
        let number = run.id;
        state.workflows.runs.insert((id, number), run);
        number
    }

    /// Queues a job of a workflow run that asks for these labels, and returns its number.
    pub fn queue_workflow_job(&self, id: RepositoryId, run: u64, labels: &[&str]) -> u64 {
        let mut state = self.lock();
        let number = state.new_id();
        let head_sha = state.workflows.runs[&(id, run)].head_sha.clone();
        let job = WorkflowJob {
            id: number,
            run_id: run,
            run_attempt: Some(1),
            name: "gpu".into(),
            head_sha,
            labels: labels.iter().map(|&label| label.into()).collect(),
            status: WorkflowJobStatus::Queued,
            conclusion: None,
            runner_name: None,
            started_at: None,
            completed_at: None,
        };
        state.workflows.jobs.insert(number, (id, job));
        number
    }

    /// Connects the runner of a configuration, and gives it a job that asks for its labels, if one waits.
    pub fn connect_runner(&self, config: &JitConfig) -> Option<u64> {
        let runner: u64 = config.expose().strip_prefix("jit-")?.parse().ok()?;
        let mut state = self.lock();
        let workflows = &mut state.workflows;
        let known = workflows.runners.get_mut(&runner)?;
        let fits = |job: &&mut WorkflowJob| {
            job.status == WorkflowJobStatus::Queued
                && job.labels.iter().all(|label| known.new.labels.contains(label))
        };
        let job = workflows.jobs.values_mut().map(|(_, job)| job).find(fits)?;
        job.status = WorkflowJobStatus::InProgress;
        job.runner_name = Some(known.new.name.clone());
        known.job = Some(job.id);
        Some(job.id)
    }

    /// Ends a job, and with it the registration of its runner.
    pub fn complete_workflow_job(&self, job: u64, conclusion: &str) {
        let mut state = self.lock();
        let workflows = &mut state.workflows;
        let (id, known) = workflows.jobs.get_mut(&job).expect("it was queued");
        known.status = WorkflowJobStatus::Completed;
        known.conclusion = Some(conclusion.into());
        let (id, run) = (*id, known.run_id);
        let is_over = workflows
            .jobs
            .values()
            .all(|(_, other)| other.run_id != run || other.status == WorkflowJobStatus::Completed);
        let status = if is_over { "completed" } else { "in_progress" };
        if let Some(run) = workflows.runs.get_mut(&(id, run)) {
            run.status = Some(status.into());
        }
        workflows.runners.retain(|_, runner| runner.job != Some(job));
    }

    /// Returns the runners that are registered.
    pub fn workflow_runners(&self) -> Vec<FakeRunner> {
        self.lock().workflows.runners.values().cloned().collect()
    }

    /// Returns the jobs that were run once more.
    pub fn reruns(&self) -> Vec<u64> {
        self.lock().workflows.reruns.clone()
    }
}

fn refused(doing: &str, status: u16) -> ApiError {
    ApiError {
        status: Some(status),
        ..ApiError::never(doing)
    }
}

#[async_trait]
impl Actions for FakeGitHub {
    async fn workflow_run(&self, id: RepositoryId, run: u64) -> Result<WorkflowRun, ApiError> {
        self.answer("workflow_run", |state| {
            state.workflows.runs.get(&(id, run)).cloned()
        })
    }

    async fn unfinished_runs(&self, id: RepositoryId) -> Result<Vec<WorkflowRun>, ApiError> {
        self.answer("unfinished_runs", |state| {
            let all = state.workflows.runs.iter();
            let open = all.filter(|((of, _), run)| *of == id && !run.is_completed());
            Some(open.map(|(_, run)| run.clone()).collect())
        })
    }

    async fn workflow_jobs(&self, id: RepositoryId, run: u64) -> Result<Vec<WorkflowJob>, ApiError> {
        self.answer("workflow_jobs", |state| {
            let all = state.workflows.jobs.values();
            let of_run = all.filter(|(of, job)| *of == id && job.run_id == run);
            Some(of_run.map(|(_, job)| job.clone()).collect())
        })
    }

    async fn rerun_job(&self, id: RepositoryId, job: u64) -> Result<(), ApiError> {
        let is_over = self.answer("rerun_job", |state| {
            let (_, known) = state.workflows.jobs.get(&job).filter(|(of, _)| *of == id)?;
            let is_over = state.workflows.runs.get(&(id, known.run_id))?.is_completed();
            if is_over {
                state.workflows.reruns.push(job);
            }
            Some(is_over)
        })?;
        match is_over {
            true => Ok(()),
            false => Err(refused("run a job once more", 403)),
        }
    }

    async fn runner_group(&self, _organization: &str, name: &str) -> Result<Option<u64>, ApiError> {
        self.answer("runner_group", |_| {
            Some(name.eq_ignore_ascii_case("gpus").then_some(5))
        })
    }

    async fn jit_runner(&self, scope: &RunnerScope, new: &NewJitRunner) -> Result<JitRunner, ApiError> {
        let made = self.answer("jit_runner", |state| {
            let number = state.new_id();
            let runners = &mut state.workflows.runners;
            if runners.values().any(|runner| runner.new.name == new.name) {
                return Some(None);
            }
            let runner = FakeRunner {
                scope: scope.clone(),
                new: new.clone(),
                job: None,
            };
            runners.insert(number, runner);
            Some(Some(number))
        })?;
        let id = made.ok_or_else(|| refused("register a runner", 409))?;
        let config = JitConfig::new(format!("jit-{id}"));
        Ok(JitRunner { id, config })
    }

    async fn find_runner(&self, scope: &RunnerScope, name: &str) -> Result<Option<u64>, ApiError> {
        self.answer("find_runner", |state| {
            let mut all = state.workflows.runners.iter();
            let found = all.find(|(_, runner)| runner.scope == *scope && runner.new.name == name);
            Some(found.map(|(number, _)| *number))
        })
    }

    async fn remove_runner(&self, _scope: &RunnerScope, runner: u64) -> Result<(), ApiError> {
        let is_busy = self.answer("remove_runner", |state| {
            let runners = &mut state.workflows.runners;
            let is_busy = runners.get(&runner).is_some_and(|runner| runner.job.is_some());
            if !is_busy {
                runners.remove(&runner);
            }
            Some(is_busy)
        })?;
        match is_busy {
            false => Ok(()),
            true => Err(refused("remove a runner", 422)),
        }
    }
}

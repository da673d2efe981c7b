//! The port's calls about GitHub Actions as requests.

use std::collections::BTreeMap;

use async_trait::async_trait;
use blueproof_core::ports::JitConfig;
use serde::Deserialize;
use serde_json::json;

use super::{
    RestGitHub,
    request::{Call, part, repository_path},
};
use crate::{
    api::{Actions, ApiError, JitRunner, NewJitRunner, RepositoryId, RunnerScope, WorkflowRun},
    payload::WorkflowJob,
};

#[derive(Deserialize)]
struct Runs {
    workflow_runs: Vec<WorkflowRun>,
}

#[derive(Deserialize)]
struct Jobs {
    jobs: Vec<WorkflowJob>,
}

#[derive(Deserialize)]
struct Groups {
    runner_groups: Vec<Numbered>,
}

#[derive(Deserialize)]
struct Runners {
    runners: Vec<Numbered>,
}

#[derive(Deserialize)]
struct Numbered {
    id: u64,
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct JitAnswer {
    runner: Numbered,
    encoded_jit_config: String,
}

/// Returns the path of the runners of a scope.
fn runners(scope: &RunnerScope) -> Result<String, ApiError> {
    Ok(match scope {
        RunnerScope::Organization(name) => format!("/orgs/{}/actions/runners", part(name)),
        RunnerScope::Repository(name) => format!("{}/actions/runners", repository_path(name)?),
    })
}

#[async_trait]
impl Actions for RestGitHub {
    async fn workflow_run(&self, id: RepositoryId, run: u64) -> Result<WorkflowRun, ApiError> {
        let call = Call::get(format!("{}/actions/runs/{run}", self.path(id)?));
        self.get(&call, &format!("read workflow run {run}")).await
    }

    async fn unfinished_runs(&self, id: RepositoryId) -> Result<Vec<WorkflowRun>, ApiError> {
        let mut all = BTreeMap::new();
        // A run of which one job runs is in progress, whatever others wait for.
        for status in ["queued", "in_progress"] {
            let call = Call::get(format!(
                "{}/actions/runs?status={status}&per_page=100",
                self.path(id)?
            ));
            let entries = |page: Runs| page.workflow_runs;
            let runs = self.pages(call, "list workflow runs", entries).await?;
            // One that begins between the two is in both.
            all.extend(runs.into_iter().map(|run: WorkflowRun| (run.id, run)));
        }
        Ok(all.into_values().collect())
    }

    async fn workflow_jobs(&self, id: RepositoryId, run: u64) -> Result<Vec<WorkflowJob>, ApiError> {
        let call = Call::get(format!(
            "{}/actions/runs/{run}/jobs?filter=latest&per_page=100",
            self.path(id)?
        ));
        let doing = format!("list the jobs of workflow run {run}");
        self.pages(call, &doing, |page: Jobs| page.jobs).await
    }

    async fn rerun_job(&self, id: RepositoryId, job: u64) -> Result<(), ApiError> {
        let path = format!("{}/actions/jobs/{job}/rerun", self.path(id)?);
        let call = Call::post(path, &json!({}));
        self.send(&call, &format!("run job {job} once more"))
            .await
            .map(drop)
    }

    async fn runner_group(&self, organization: &str, name: &str) -> Result<Option<u64>, ApiError> {
        let path = format!("/orgs/{}/actions/runner-groups?per_page=100", part(organization));
        let groups: Vec<Numbered> = self
            .pages(Call::get(path), "list runner groups", |page: Groups| {
                page.runner_groups
            })
            .await?;
        let found = groups
            .into_iter()
            .find(|group| group.name.eq_ignore_ascii_case(name));
        Ok(found.map(|group| group.id))
    }

    async fn jit_runner(&self, scope: &RunnerScope, new: &NewJitRunner) -> Result<JitRunner, ApiError> {
        let path = format!("{}/generate-jitconfig", runners(scope)?);
        let body = json!({
            "name": new.name,
            "runner_group_id": new.group,
            "labels": new.labels,
            "work_folder": new.work_folder,
        });
        let doing = format!("register runner `{}`", new.name);
        let made: JitAnswer = self.get(&Call::post(path, &body), &doing).await?;
        Ok(JitRunner {
            id: made.runner.id,
            config: JitConfig::new(made.encoded_jit_config),
        })
    }

    async fn find_runner(&self, scope: &RunnerScope, name: &str) -> Result<Option<u64>, ApiError> {
        let path = format!("{}?name={}&per_page=100", runners(scope)?, part(name));
        let doing = format!("find runner `{name}`");
        let found = self
            .pages(Call::get(path), &doing, |page: Runners| page.runners)
            .await?;
        // A server that does not know how to ask by name lists all of them.
        let found = found.into_iter().find(|runner| runner.name == name);
        Ok(found.map(|runner| runner.id))
    }

    async fn remove_runner(&self, scope: &RunnerScope, runner: u64) -> Result<(), ApiError> {
        let call = Call::delete(format!("{}/{runner}", runners(scope)?));
        match self.send(&call, &format!("remove runner {runner}")).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(drop),
        }
    }
}

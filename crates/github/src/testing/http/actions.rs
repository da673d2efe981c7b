//! GitHub Actions behind HTTP.

use serde_json::{Value, json};
use wiremock::Request;

use super::{Answer, Body, parsed, query};
use crate::{
    api::{Actions as _, ApiError, NewJitRunner, RepositoryId, RunnerScope, WorkflowRun},
    payload::WorkflowJob,
    testing::FakeGitHub,
};

/// Returns the runner groups of an organisation.
pub(super) async fn groups(github: &FakeGitHub, organization: &str) -> Result<Option<Answer>, ApiError> {
    let mut groups = vec![json!({ "id": 1, "name": "Default" })];
    let own = github.runner_group(organization, "GPUs").await?;
    groups.extend(own.map(|id| json!({ "id": id, "name": "GPUs" })));
    Ok(Some((200, Body::List(Some("runner_groups"), groups))))
}

pub(super) async fn runners(
    github: &FakeGitHub,
    scope: &RunnerScope,
    method: &str,
    rest: &[&str],
    request: &Request,
) -> Result<Option<Answer>, ApiError> {
    match (method, rest) {
        ("GET", []) => {
            let name = query(request, "name").unwrap_or_default();
            let found = github.find_runner(scope, &name).await?;
            let found = found.map(|id| json!({ "id": id, "name": name }));
            Ok(Some((
                200,
                Body::List(Some("runners"), found.into_iter().collect()),
            )))
        }
        ("POST", ["generate-jitconfig"]) => {
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
            let labels = body["labels"].as_array().into_iter().flatten();
            let new = NewJitRunner {
                name: text("name"),
                group: body["runner_group_id"].as_u64().unwrap_or_default(),
                labels: labels.filter_map(Value::as_str).map(str::to_owned).collect(),
                work_folder: text("work_folder"),
            };
            let made = github.jit_runner(scope, &new).await?;
            let told = json!({ "runner": { "id": made.id, "name": new.name }, "encoded_jit_config": made.config.expose() });
            Ok(Some((201, Body::Json(told))))
        }
        ("DELETE", [number]) => {
            github.remove_runner(scope, parsed(number)).await?;
            Ok(Some((204, Body::Text(String::new()))))
        }
        _ => Ok(None),
    }
}

pub(super) async fn of_repository(
    github: &FakeGitHub,
    id: RepositoryId,
    method: &str,
    rest: &[&str],
) -> Result<Option<Answer>, ApiError> {
    let body = match (method, rest) {
        ("GET", ["runs"]) => {
            let open = github.unfinished_runs(id).await?;
            Body::List(Some("workflow_runs"), open.iter().map(of_run).collect())
        }
        ("GET", ["runs", run]) => Body::Json(of_run(&github.workflow_run(id, parsed(run)).await?)),
        ("GET", ["runs", run, "jobs"]) => {
            let jobs = github.workflow_jobs(id, parsed(run)).await?;
            Body::List(Some("jobs"), jobs.iter().map(of_job).collect())
        }
        ("POST", ["jobs", job, "rerun"]) => {
            github.rerun_job(id, parsed(job)).await?;
            return Ok(Some((201, Body::Json(json!({})))));
        }
        _ => return Ok(None),
    };
    Ok(Some((200, body)))
}

fn of_run(run: &WorkflowRun) -> Value {
    json!({ "id": run.id, "head_sha": run.head_sha, "event": run.event, "status": run.status })
}

fn of_job(job: &WorkflowJob) -> Value {
    json!({
        "id": job.id,
        "run_id": job.run_id,
        "run_attempt": job.run_attempt,
        "head_sha": job.head_sha,
        "labels": job.labels,
        "status": job.status,
        "name": job.name,
        "conclusion": job.conclusion,
        "runner_name": job.runner_name,
    })
}

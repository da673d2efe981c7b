//! Looks for jobs that are bound to a commit by their label.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use blueproof_core::approval::HeadStatus;
use blueproof_github::{
    api::{Actions as _, ApiError, RepositoryId},
    payload::{WorkflowJob, WorkflowJobStatus},
};
use blueproof_runners::{ControllerHandle, JobList, ListedJob, ListedState};
use tokio::sync::watch;

use super::{RunnerSet, Shared};

/// How often jobs are looked at, whether or not a webhook tells of one. An approval that comes later is noticed as late.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Tells a controller which jobs there are, until `stop` is true.
pub(super) async fn watch(
    set: Arc<RunnerSet>,
    shared: Arc<Shared>,
    handle: ControllerHandle,
    mut stop: watch::Receiver<bool>,
) {
    let mut list = JobList::default();
    let mut ids = BTreeMap::new();
    let labels = set.settings.labels();
    loop {
        match look(&set, &mut ids).await {
            Ok(jobs) => {
                let approved = approved(&shared, &ids, &jobs).await;
                let is_approved = |repository: &str, label: &blueproof_runners::UniqueLabel| {
                    approved.contains(&(repository.to_owned(), label.commit().to_owned()))
                };
                for input in list.inputs(&jobs, &labels, is_approved) {
                    if handle.inputs.send(input).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) => {
                let problem = error.diagnostic();
                tracing::warn!(scale_set = set.name(), code = %problem.code, causes = ?problem.causes,
                    "jobs are not known, and are looked at again: {}", problem.message);
            }
        }
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = shared.jobs.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Returns every job of a workflow run that is not over. All or none: what is left out would be taken for gone.
async fn look(set: &RunnerSet, ids: &mut BTreeMap<String, u64>) -> Result<Vec<ListedJob>, ApiError> {
    let mut all = Vec::new();
    for name in &set.settings.repositories {
        let info = set.rest.repository_named(name).await?;
        ids.insert(name.clone(), info.id);
        let id = RepositoryId(info.id);
        for run in set.rest.unfinished_runs(id).await? {
            let jobs = set.rest.workflow_jobs(id, run.id).await?;
            all.extend(jobs.into_iter().map(|job| listed(name, job)));
        }
    }
    Ok(all)
}

fn listed(repository: &str, job: WorkflowJob) -> ListedJob {
    ListedJob {
        repository: repository.to_owned(),
        workflow_run: i64::try_from(job.run_id).unwrap_or_default(),
        name: job.name,
        head: job.head_sha.as_str().to_owned(),
        labels: job.labels,
        state: match job.status {
            WorkflowJobStatus::Queued => ListedState::Queued,
            WorkflowJobStatus::InProgress => ListedState::InProgress,
            WorkflowJobStatus::Completed => ListedState::Completed(job.conclusion.unwrap_or_default()),
            WorkflowJobStatus::Waiting | WorkflowJobStatus::Other(_) => ListedState::Other,
        },
        runner: job.runner_name,
    }
}

/// Returns which commits of which repositories are approved now.
async fn approved(
    shared: &Shared,
    ids: &BTreeMap<String, u64>,
    jobs: &[ListedJob],
) -> BTreeSet<(String, String)> {
    let queued = jobs.iter().filter(|job| job.state == ListedState::Queued);
    let asked: BTreeSet<_> = queued
        .filter_map(|job| Some((job.repository.clone(), job.label()?.commit().to_owned())))
        .collect();
    let mut approved = BTreeSet::new();
    for (repository, commit) in asked {
        let Some(id) = ids.get(&repository) else { continue };
        if let Some(HeadStatus::Approved { .. }) = shared.head_status(*id, &commit).await {
            approved.insert((repository, commit));
        }
    }
    approved
}

//! From a scale set's messages to what its fleet is told.

use async_trait::async_trait;
use blueproof_core::ports::RunnerName;
use blueproof_scale_set::{Demand, Event, Handler, HandlerError, Job, JobRunner};
use tokio::sync::mpsc;

use crate::{
    fleet::FleetInput,
    record::{Rerun, RunnerJob},
};

/// What is told of jobs beside what fleets need, such as for metrics.
pub trait JobObserver: Send + Sync {
    /// A runner took a job.
    fn on_started(&self, job: &Job);
    /// A job is over, or was taken back.
    fn on_completed(&self, job: &Job, result: &str);
}

/// Tells a fleet what its scale set tells.
pub struct FleetHandler {
    inputs: mpsc::Sender<FleetInput>,
    observer: Option<std::sync::Arc<dyn JobObserver>>,
}

/// That nobody takes in what is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the controller of these runners has ended")]
pub struct ControllerEnded;

impl FleetHandler {
    /// Returns a handler that tells a controller.
    pub fn new(inputs: mpsc::Sender<FleetInput>) -> Self {
        Self {
            inputs,
            observer: None,
        }
    }

    /// Has somebody else told of jobs, too.
    #[must_use]
    pub fn observed_by(mut self, observer: std::sync::Arc<dyn JobObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    async fn tell(&self, input: FleetInput) -> Result<(), ControllerEnded> {
        self.inputs.send(input).await.map_err(|_| ControllerEnded)
    }
}

#[async_trait]
impl Handler for FleetHandler {
    async fn on_event(&mut self, event: &Event) -> Result<(), HandlerError> {
        match event {
            Event::Started { job, runner } => {
                if let Some(observer) = &self.observer {
                    observer.on_started(job);
                }
                // A name that is none of ours is that of somebody else's runner.
                if let Some(runner) = name_of(runner) {
                    let job = job_of(job);
                    self.tell(FleetInput::JobStarted { runner, job }).await?;
                }
            }
            Event::Completed { job, result, runner } => {
                let result = result.as_str().to_owned();
                if let Some(observer) = &self.observer {
                    observer.on_completed(job, &result);
                }
                if let Some(runner) = runner.as_ref().and_then(name_of) {
                    self.tell(FleetInput::JobCompleted { runner, result }).await?;
                }
            }
            Event::Available(_) | Event::Assigned(_) | Event::Unknown { .. } => {}
        }
        Ok(())
    }

    async fn on_demand(&mut self, demand: Demand) {
        let demand = FleetInput::Demand {
            label: None,
            jobs: demand.jobs,
        };
        if self.tell(demand).await.is_err() {
            tracing::error!("nobody starts runners: {ControllerEnded}");
        }
    }
}

fn name_of(runner: &JobRunner) -> Option<RunnerName> {
    runner.name.parse().ok()
}

fn job_of(job: &Job) -> RunnerJob {
    RunnerJob {
        repository: format!("{}/{}", job.owner_name, job.repository_name),
        workflow_run: job.workflow_run_id,
        name: job.job_display_name.clone(),
        result: None,
        rerun: Rerun::None,
    }
}

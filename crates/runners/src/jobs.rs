//! From the jobs that a repository has to what the fleet of unique labels is told.
//!
//! Which jobs there are is looked at again and again; nothing is counted up from news. So a webhook that is lost is made good by the next
//! look, and one that comes twice changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_core::ports::RunnerName;

use crate::{
    fleet::FleetInput,
    label::UniqueLabel,
    record::{Rerun, RunnerJob},
};

/// The label that every runner of ours has beside others, as GitHub's documentation has it.
pub const SELF_HOSTED: &str = "self-hosted";

/// A job as GitHub lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedJob {
    /// `OWNER/NAME` of its repository.
    pub repository: String,
    /// The number of its workflow run.
    pub workflow_run: i64,
    /// Its name.
    pub name: String,
    /// The commit that its workflow run is of, 40 digits.
    pub head: String,
    /// What its runner has to have.
    pub labels: Vec<String>,
    /// How it stands.
    pub state: ListedState,
    /// The name of its runner, if it has one.
    pub runner: Option<String>,
}

/// How a job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListedState {
    /// It waits for a runner.
    Queued,
    /// A runner has it.
    InProgress,
    /// It is over, and what came of it.
    Completed(String),
    /// It waits for something else.
    Other,
}

/// Remembers which labels were asked for.
#[derive(Debug, Default)]
pub struct JobList {
    known: BTreeSet<UniqueLabel>,
}

impl ListedJob {
    /// Returns the label that binds it to its own commit. One that names another commit than GitHub says is none: it would be
    /// somebody's way to run what nobody read.
    pub fn label(&self) -> Option<UniqueLabel> {
        UniqueLabel::among(&self.labels).filter(|label| label.commit() == self.head)
    }

    /// Returns whether a runner with these labels beside the unique one can take it.
    fn is_served_by(&self, labels: &[String]) -> bool {
        self.labels.iter().all(|label| {
            let offered = labels.iter().map(String::as_str).chain([SELF_HOSTED]);
            let is_offered = offered
                .into_iter()
                .any(|offered| offered.eq_ignore_ascii_case(label));
            is_offered || label.parse::<UniqueLabel>().is_ok()
        })
    }
}

impl JobList {
    /// Returns what the fleet is to be told of all jobs that there are. `labels` are those of every runner, `is_approved` whether a
    /// label's commit may start now.
    pub fn inputs(
        &mut self,
        jobs: &[ListedJob],
        labels: &[String],
        is_approved: impl Fn(&str, &UniqueLabel) -> bool,
    ) -> Vec<FleetInput> {
        let mut demand: BTreeMap<UniqueLabel, u32> = BTreeMap::new();
        let mut inputs = Vec::new();
        for job in jobs.iter().filter(|job| job.is_served_by(labels)) {
            let Some(label) = job.label() else { continue };
            let needs = match job.state {
                ListedState::Queued => is_approved(&job.repository, &label),
                ListedState::InProgress => true,
                ListedState::Completed(_) | ListedState::Other => false,
            };
            if needs {
                *demand.entry(label).or_default() += 1;
            }
            inputs.extend(job.news());
        }
        self.known.extend(demand.keys().cloned());
        for label in &self.known {
            let jobs = demand.get(label).copied().unwrap_or(0);
            let label = Some(label.clone());
            inputs.push(FleetInput::Demand { label, jobs });
        }
        // One that nobody asks for has been told so.
        self.known.retain(|label| demand.contains_key(label));
        inputs
    }
}

impl ListedJob {
    /// Returns what is told of the runner that has it, or had it.
    fn news(&self) -> Vec<FleetInput> {
        let Some(runner) = self
            .runner
            .as_ref()
            .and_then(|name| name.parse::<RunnerName>().ok())
        else {
            return Vec::new();
        };
        let started = FleetInput::JobStarted {
            runner: runner.clone(),
            job: RunnerJob {
                repository: self.repository.clone(),
                workflow_run: self.workflow_run,
                name: self.name.clone(),
                result: None,
                rerun: Rerun::None,
            },
        };
        match &self.state {
            ListedState::Queued | ListedState::Other => Vec::new(),
            ListedState::InProgress => vec![started],
            ListedState::Completed(result) => {
                let result = result.clone();
                vec![started, FleetInput::JobCompleted { runner, result }]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "1111111111111111111111111111111111111111";

    fn job(labels: &[&str], state: ListedState) -> ListedJob {
        ListedJob {
            repository: "kubeflow/trainer".into(),
            workflow_run: 7,
            name: "gpu".into(),
            head: HEAD.into(),
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            state,
            runner: None,
        }
    }

    fn unique() -> String {
        format!("blueproof-{HEAD}")
    }

    fn demand(jobs: u32) -> FleetInput {
        let label = Some(UniqueLabel::of(HEAD).expect("a commit"));
        FleetInput::Demand { label, jobs }
    }

    fn told(jobs: &[ListedJob], is_approved: bool) -> Vec<FleetInput> {
        JobList::default().inputs(jobs, &["gpu".to_owned()], |_, _| is_approved)
    }

    #[test]
    fn only_a_queued_job_of_an_approved_commit_gets_a_runner() {
        let label = unique();
        let queued = job(&["self-hosted", "GPU", &label], ListedState::Queued);
        let jobs = [queued.clone(), queued.clone()];
        assert_eq!(told(&jobs, true), [demand(2)]);
        assert_eq!(told(&jobs, false), []);
        let of_another = ListedJob {
            head: "2".repeat(40),
            ..queued
        };
        assert_eq!(
            told(&[of_another], true),
            [],
            "its label names a commit that it is not of"
        );
        let asks_for_more = job(&["arm64", &label], ListedState::Queued);
        assert_eq!(
            told(&[asks_for_more], true),
            [],
            "no runner of ours could take it"
        );
        assert_eq!(told(&[job(&["gpu"], ListedState::Queued)], true), []);
        let waits = job(&[&label], ListedState::Other);
        assert_eq!(told(&[waits], true), [], "it waits for an environment");
    }

    #[test]
    fn a_label_that_nobody_asks_for_any_more_is_told_once() {
        let label = unique();
        let mut list = JobList::default();
        let queued = [job(&[&label], ListedState::Queued)];
        assert_eq!(list.inputs(&queued, &[], |_, _| true), [demand(1)]);
        assert_eq!(list.inputs(&[], &[], |_, _| true), [demand(0)]);
        assert_eq!(list.inputs(&[], &[], |_, _| true), []);
    }

    #[test]
    fn a_job_that_runs_keeps_its_runner_when_its_approval_is_gone() {
        let label = unique();
        let running = ListedJob {
            runner: Some("gpu-1".into()),
            ..job(&[&label], ListedState::InProgress)
        };
        let inputs = told(&[running], false);
        assert!(
            matches!(&inputs[0], FleetInput::JobStarted { runner, .. } if runner.as_str() == "gpu-1"),
            "{inputs:?}"
        );
        assert_eq!(inputs[1..], [demand(1)]);
    }
}

//! What is written down of each runner.

use blueproof_core::ports::RunnerName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::label::UniqueLabel;

/// A runner, from the moment that it is asked for. What it is registered with is a secret, and stands nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunnerRecord {
    /// Its name, which no other runner ever has.
    pub name: RunnerName,
    /// The label that it is made for; `None` where its scale set has the labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<UniqueLabel>,
    /// Its number at GitHub, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration: Option<i64>,
    /// How far it has come.
    pub stage: RunnerStage,
    /// The job that it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<RunnerJob>,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// When it came to its stage.
    pub since: Timestamp,
}

/// How far a runner has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunnerStage {
    /// It is to be registered and started. Nothing may have been done for it yet.
    Requested,
    /// Its program was handed over to be started.
    Launched,
    /// Its program runs.
    Running,
    /// It is not needed: GitHub is asked to forget it, which it refuses for one that has a job.
    Retiring,
    /// It is over. What is left of it is removed, here and at GitHub.
    Ended {
        /// How.
        end: RunnerEnd,
        /// What is left to remove.
        left: Remains,
    },
    /// Nothing is left of it.
    Gone {
        /// How it ended.
        end: RunnerEnd,
    },
}

/// How a runner ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunnerEnd {
    /// Its program ended well.
    Completed,
    /// Its program failed.
    Failed {
        /// How, in words.
        message: String,
    },
    /// Nothing more is to be learnt of it.
    Lost {
        /// How, in words.
        message: String,
    },
    /// It was never started: it could not be registered, or what it was registered with died with the process that had it.
    NotStarted {
        /// Why, in words.
        message: String,
    },
    /// It was not needed, and had no job.
    Retired,
}

/// What is left of a runner that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remains {
    /// Its registration at GitHub.
    pub registration: Remnant,
    /// What its provider has of it.
    pub machine: Remnant,
}

/// Whether something is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Remnant {
    /// It may be.
    Left,
    /// It is not.
    Removed,
}

/// The job that a runner took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunnerJob {
    /// `OWNER/NAME` of its repository.
    pub repository: String,
    /// The number of its workflow run.
    pub workflow_run: i64,
    /// Its name, as it is shown.
    pub name: String,
    /// What came of it, in GitHub's word, once it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Whether it is run once more since its runner was lost.
    #[serde(default)]
    pub rerun: Rerun,
}

/// Whether a job is run once more because of the infrastructure. It is so once for a job of a workflow run, whatever became of it then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rerun {
    /// There is no reason to.
    #[default]
    None,
    /// It is to be.
    Wanted,
    /// GitHub was asked to, and does.
    Requested,
    /// It was before, it passed after all, or GitHub does not for good.
    Declined,
}

impl RunnerRecord {
    /// Returns whether it is one that a job has or may still come to: what is over counts as nothing.
    pub fn is_live(&self) -> bool {
        match &self.stage {
            // One that is retiring may turn out to have got a job.
            RunnerStage::Requested | RunnerStage::Launched | RunnerStage::Running | RunnerStage::Retiring => {
                !self.has_finished_job()
            }
            RunnerStage::Ended { .. } | RunnerStage::Gone { .. } => false,
        }
    }

    /// Returns whether it has a job that is not over.
    pub fn is_busy(&self) -> bool {
        self.job.as_ref().is_some_and(|job| job.result.is_none())
    }

    /// Returns whether its provider has something of it, or may have.
    pub fn has_machine(&self) -> bool {
        match &self.stage {
            RunnerStage::Requested | RunnerStage::Launched | RunnerStage::Running | RunnerStage::Retiring => {
                true
            }
            RunnerStage::Ended { end: _, left } => left.machine == Remnant::Left,
            RunnerStage::Gone { .. } => false,
        }
    }

    pub(crate) fn has_finished_job(&self) -> bool {
        self.job.as_ref().is_some_and(|job| job.result.is_some())
    }

    /// Returns whether its stage is one in which nothing is left to do about its machine.
    pub fn is_over(&self) -> bool {
        match self.stage {
            RunnerStage::Ended { .. } | RunnerStage::Gone { .. } => true,
            RunnerStage::Requested | RunnerStage::Launched | RunnerStage::Running | RunnerStage::Retiring => {
                false
            }
        }
    }
}

impl Remains {
    /// Everything that a runner can leave.
    pub const ALL: Self = Self {
        registration: Remnant::Left,
        machine: Remnant::Left,
    };

    pub(crate) fn is_nothing(self) -> bool {
        self.registration == Remnant::Removed && self.machine == Remnant::Removed
    }
}

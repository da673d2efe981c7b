//! Where attempts run.

use async_trait::async_trait;
use blueproof_diagnostic::Diagnostic;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::CallError;
use crate::{
    action::StartAction,
    domain::{AttemptId, Outcome, Resources},
    event::StopMode,
};

/// A kind of cluster that attempts run on: this machine is one, too.
///
/// Every call may be repeated, after a crash as well, and none of them decides whether something is tried again.
#[async_trait]
pub trait ClusterDriver: Send + Sync {
    /// Returns what there is to be promised, used or not.
    async fn inventory(&self) -> Result<Inventory, CallError>;

    /// Makes a place for an attempt whose quota is promised, and returns where, in words. Repeating it gives the
    /// same place. Where others have what it needs the error says [`WhenFree`](super::Retry::WhenFree), and it is called
    /// again once an attempt has been released.
    async fn reserve(&self, attempt: AttemptId, resources: Resources) -> Result<String, CallError>;

    /// Starts an attempt in its place, and returns when it has been handed over. Repeating it starts no second one,
    /// not even when the first one is already over.
    async fn start(&self, start: &StartAction) -> Result<(), CallError>;

    /// Waits until there is something to tell of a started attempt. With `known` it waits for something else than
    /// that. An attempt whose traces are lost has ended, with an infrastructure failure. Safe to drop.
    async fn observe(
        &self,
        attempt: AttemptId,
        known: Option<&Observation>,
    ) -> Result<Observation, CallError>;

    /// Asks an attempt to end, and does not wait for it. One that is already over is a success.
    async fn stop(&self, attempt: AttemptId, how: StopMode) -> Result<(), CallError>;

    /// Removes whatever is left of an attempt, and returns when it is gone. What retention keeps (its log, notebook
    /// and artifacts) stays. One that never was is a success.
    async fn release(&self, attempt: AttemptId) -> Result<(), CallError>;
}

/// What there is to be promised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inventory {
    /// All of it together.
    pub total: Resources,
    /// What it is, in words: `local · 2 cpu · 1 gpu (NVIDIA A10)`.
    pub description: String,
    /// What is there and cannot be promised, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Diagnostic>,
}

/// Something to tell of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// It runs.
    Running,
    /// It is over, and everything that it started is gone.
    Finished {
        /// How it ended.
        outcome: Box<Outcome>,
        /// When, if it says so itself.
        ended_at: Option<Timestamp>,
    },
}

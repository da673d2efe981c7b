//! Where messages are kept between their arrival and their acknowledgement, and how far each has come.
//!
//! The service forgets a message once it is acknowledged, so it is kept here first. An inbox serves many scale sets.

#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;

use std::collections::BTreeSet;

use async_trait::async_trait;

use crate::{
    message::{EventKind, RawMessage},
    types::{MessageId, RunnerRequestId, ScaleSetId},
};

/// Which event of a message: the handler is told each once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey {
    /// The job.
    pub request: RunnerRequestId,
    /// What happened to it.
    pub kind: EventKind,
}

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageStage {
    /// It is kept, and not all of its events have been handled.
    Received,
    /// All of its events have been handled.
    Applied,
    /// It could not be handled, and is kept for a person to look at.
    Quarantined,
}

/// A message that is not acknowledged yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// As it came.
    pub raw: RawMessage,
    /// How far it has come.
    pub stage: MessageStage,
    /// The events that have been handled.
    pub applied: BTreeSet<EventKey>,
}

/// An inbox that does not work. Nothing may be acknowledged then.
#[derive(Debug, thiserror::Error)]
#[error("could not {doing} in the inbox")]
pub struct InboxError {
    doing: &'static str,
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// Keeps messages. What a call has returned for outlives the process, as far as the inbox promises to.
#[async_trait]
pub trait Inbox: Send + Sync {
    /// Keeps a message; one that is known stays as it is, acknowledged or not.
    async fn append(&self, set: ScaleSetId, message: &RawMessage) -> Result<(), InboxError>;
    /// Returns a message; `None` if it is not known.
    async fn get(&self, set: ScaleSetId, message: MessageId) -> Result<Option<StoredMessage>, InboxError>;
    /// Returns the messages that are not acknowledged, by their numbers.
    async fn unacknowledged(&self, set: ScaleSetId) -> Result<Vec<StoredMessage>, InboxError>;
    /// Keeps how far a message has come, and adds events that have been handled.
    async fn record(
        &self,
        set: ScaleSetId,
        message: MessageId,
        stage: MessageStage,
        applied: &[EventKey],
    ) -> Result<(), InboxError>;
    /// Keeps that the service was told. The last thousand messages of a scale set and those that are quarantined stay known.
    async fn acknowledge(&self, set: ScaleSetId, message: MessageId) -> Result<(), InboxError>;
    /// Returns all messages that are known, by their numbers.
    async fn known(&self, set: ScaleSetId) -> Result<Vec<RawMessage>, InboxError>;
    /// Returns the largest number of a message that is known.
    async fn last_message(&self, set: ScaleSetId) -> Result<Option<MessageId>, InboxError>;
    /// Returns the messages that could not be handled.
    async fn quarantined(&self, set: ScaleSetId) -> Result<Vec<RawMessage>, InboxError>;
}

impl InboxError {
    /// Says what could not be done, and why.
    pub fn new(doing: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self {
            doing,
            source: source.into(),
        }
    }
}

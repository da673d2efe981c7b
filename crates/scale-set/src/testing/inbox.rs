//! An inbox in memory, which outlives a listener and not the process.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use crate::{
    inbox::{EventKey, Inbox, InboxError, MessageStage, StoredMessage},
    message::RawMessage,
    types::{MessageId, ScaleSetId},
};

/// An inbox in memory. It can be made to fail, as where the process dies at that point.
#[derive(Debug, Default)]
pub struct MemoryInbox(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    messages: BTreeMap<(ScaleSetId, MessageId), Entry>,
    n_calls_left: Option<u32>,
}

#[derive(Debug)]
struct Entry {
    message: StoredMessage,
    is_acknowledged: bool,
}

impl MemoryInbox {
    /// Lets `n_calls` calls succeed and all after them fail; `None` ends that.
    pub fn fail_after(&self, n_calls: Option<u32>) {
        self.lock().n_calls_left = n_calls;
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn memory(&self) -> Result<MutexGuard<'_, Memory>, InboxError> {
        let mut memory = self.lock();
        if let Some(left) = memory.n_calls_left {
            let Some(left) = left.checked_sub(1) else {
                return Err(InboxError::new("do anything", "it was made to fail"));
            };
            memory.n_calls_left = Some(left);
        }
        Ok(memory)
    }
}

#[async_trait]
impl Inbox for MemoryInbox {
    async fn append(&self, set: ScaleSetId, message: &RawMessage) -> Result<(), InboxError> {
        self.memory()?
            .messages
            .entry((set, message.id))
            .or_insert_with(|| Entry {
                message: StoredMessage {
                    raw: message.clone(),
                    stage: MessageStage::Received,
                    applied: std::collections::BTreeSet::new(),
                },
                is_acknowledged: false,
            });
        Ok(())
    }

    async fn get(&self, set: ScaleSetId, message: MessageId) -> Result<Option<StoredMessage>, InboxError> {
        let memory = self.memory()?;
        Ok(memory
            .messages
            .get(&(set, message))
            .map(|entry| entry.message.clone()))
    }

    async fn unacknowledged(&self, set: ScaleSetId) -> Result<Vec<StoredMessage>, InboxError> {
        let memory = self.memory()?;
        let left = memory.messages.iter();
        let left = left.filter(|((of, _), entry)| *of == set && !entry.is_acknowledged);
        Ok(left.map(|(_, entry)| entry.message.clone()).collect())
    }

    async fn record(
        &self,
        set: ScaleSetId,
        message: MessageId,
        stage: MessageStage,
        applied: &[EventKey],
    ) -> Result<(), InboxError> {
        if let Some(entry) = self.memory()?.messages.get_mut(&(set, message)) {
            entry.message.stage = stage;
            entry.message.applied.extend(applied.iter().cloned());
        }
        Ok(())
    }

    async fn acknowledge(&self, set: ScaleSetId, message: MessageId) -> Result<(), InboxError> {
        if let Some(entry) = self.memory()?.messages.get_mut(&(set, message)) {
            entry.is_acknowledged = true;
        }
        Ok(())
    }

    async fn known(&self, set: ScaleSetId) -> Result<Vec<RawMessage>, InboxError> {
        let memory = self.memory()?;
        let known = memory.messages.iter().filter(|((of, _), _)| *of == set);
        Ok(known.map(|(_, entry)| entry.message.raw.clone()).collect())
    }

    async fn last_message(&self, set: ScaleSetId) -> Result<Option<MessageId>, InboxError> {
        let memory = self.memory()?;
        let known = memory.messages.keys().filter(|(of, _)| *of == set);
        Ok(known.map(|(_, id)| *id).max())
    }

    async fn quarantined(&self, set: ScaleSetId) -> Result<Vec<RawMessage>, InboxError> {
        let memory = self.memory()?;
        let all = memory.messages.iter().filter(|((of, _), _)| *of == set);
        let bad = all.filter(|(_, entry)| entry.message.stage == MessageStage::Quarantined);
        Ok(bad.map(|(_, entry)| entry.message.raw.clone()).collect())
    }
}

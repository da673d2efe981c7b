//! A scale set with its session and its messages, as the model has them.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use crate::types::ScaleSet;

#[derive(Debug)]
pub(super) struct FakeSet {
    pub(super) set: ScaleSet,
    pub(super) session: Option<FakeSession>,
    /// What was sent and not acknowledged.
    pub(super) messages: BTreeMap<i64, String>,
    /// What was not sent yet.
    pub(super) events: VecDeque<Value>,
    n_messages: i64,
}

#[derive(Debug)]
pub(super) struct FakeSession {
    pub(super) id: Uuid,
    pub(super) owner: String,
    pub(super) token: String,
    pub(super) seen_at: Timestamp,
}

impl FakeSet {
    pub(super) fn new(set: ScaleSet) -> Self {
        Self {
            set,
            session: None,
            messages: BTreeMap::new(),
            events: VecDeque::new(),
            n_messages: 100_000_000,
        }
    }

    pub(super) fn keep(&mut self, body: String) {
        self.n_messages += 1;
        self.messages.insert(self.n_messages, body);
    }
}

//! What the fake sent to our webhook, and what came of it.

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{FakeDelivery, FakeGitHub};
use crate::{
    api::{ApiError, AppHook, HookCursor, HookDelivery, HookDeliveryId, HookPage},
    webhook::DeliveryId,
};

/// How many a page has: so that pages are met without a hundred of anything.
const PAGE: usize = 2;

/// One sending.
#[derive(Debug, Clone)]
pub(super) struct Sending {
    pub(super) told: HookDelivery,
    pub(super) delivery: FakeDelivery,
}

impl FakeGitHub {
    /// Sends what is to be told to nobody: all of it is lost, and GitHub takes account of that. Returns what each is called.
    pub fn lose_deliveries(&self) -> Vec<DeliveryId> {
        let deliveries = self.take_deliveries();
        let mut state = self.lock();
        let mut names = Vec::new();
        for delivery in deliveries {
            let id = state.new_id();
            // The first digits differ, as GitHub's do: people name a delivery by them.
            let name = format!("{id:08x}-cc78-11e3-81ab-4c9367dc0958");
            let name: DeliveryId = name.parse().expect("a name");
            names.push(name.clone());
            let told = HookDelivery {
                id: HookDeliveryId(id),
                name,
                delivered_at: state.now,
                is_redelivery: false,
                status: 502,
                installation: Some(Self::INSTALLATION),
            };
            state.sent.push(Sending { told, delivery });
        }
        names
    }

    /// Returns what is to be sent: what was told since, and what was asked for once more, with what each is called. What comes of it is
    /// said by [`note_answer`](Self::note_answer).
    pub fn take_sendings(&self) -> Vec<(DeliveryId, FakeDelivery)> {
        let again = self.take_redeliveries(0);
        let n_known = self.lock().sent.len();
        self.lose_deliveries();
        let state = self.lock();
        let new = state.sent.iter().skip(n_known);
        let new = new.map(|one| (one.told.name.clone(), one.delivery.clone()));
        again.into_iter().chain(new).collect()
    }

    /// Notes what the last sending of a delivery was answered with; 0 is not at all.
    pub fn note_answer(&self, name: &DeliveryId, status: u16) {
        let mut state = self.lock();
        let last = state.sent.iter_mut().rev().find(|one| one.told.name == *name);
        if let Some(sending) = last {
            sending.told.status = status;
        }
    }

    /// Returns what is sent once more since this was last asked, with what it is called. What comes of it is `status`.
    pub fn take_redeliveries(&self, status: u16) -> Vec<(DeliveryId, FakeDelivery)> {
        let mut state = self.lock();
        let asked = std::mem::take(&mut state.to_send_again);
        let mut again = Vec::new();
        for asked in asked {
            let first = state.sent.iter().find(|one| one.told.id == asked).cloned();
            let first = first.expect("only what was sent is asked for again");
            let told = HookDelivery {
                id: HookDeliveryId(state.new_id()),
                delivered_at: state.now,
                is_redelivery: true,
                status,
                ..first.told
            };
            again.push((told.name.clone(), first.delivery.clone()));
            state.sent.push(Sending {
                told,
                delivery: first.delivery,
            });
        }
        again
    }
}

#[async_trait]
impl AppHook for FakeGitHub {
    async fn hook_deliveries(&self, from: Option<HookCursor>) -> Result<HookPage, ApiError> {
        let from = from.map_or(0, |HookCursor(from)| from.parse().unwrap_or(usize::MAX));
        self.answer("hook_deliveries", |state| {
            let newest = state.sent.iter().rev().skip(from);
            let deliveries: Vec<_> = newest.take(PAGE).map(|one| one.told.clone()).collect();
            let end = from.saturating_add(PAGE);
            let next = (end < state.sent.len()).then(|| HookCursor(end.to_string()));
            Some(HookPage { deliveries, next })
        })
    }

    async fn redeliver(&self, id: HookDeliveryId) -> Result<(), ApiError> {
        self.answer("redeliver", |state| {
            state.sent.iter().find(|one| one.told.id == id)?;
            state.to_send_again.push(id);
            Some(())
        })
    }
}

/// Returns a sending in GitHub's words.
pub(super) fn of_sending(told: &HookDelivery, event: &str) -> Value {
    let at: Timestamp = told.delivered_at;
    json!({
        "id": told.id.0,
        "guid": told.name,
        "delivered_at": at,
        "redelivery": told.is_redelivery,
        "duration": 0.2,
        "status": if told.is_delivered() { "OK" } else { "failed to connect to host" },
        "status_code": told.status,
        "event": event,
        "action": null,
        "installation_id": told.installation,
        "repository_id": null,
    })
}

//! Deliveries in memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;

use crate::ports::{
    Deliveries, DeliveryAbout, DeliveryClient, DeliveryState, PendingDelivery, Receipt, ReceivedDelivery,
    StoreError, StoredDelivery, TRIED_OFTEN,
};

/// Deliveries in memory.
#[derive(Debug, Default)]
pub struct MemoryDeliveries {
    kept: Mutex<Vec<(StoredDelivery, Vec<u8>)>>,
}

impl MemoryDeliveries {
    fn lock(&self) -> MutexGuard<'_, Vec<(StoredDelivery, Vec<u8>)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a delivery tried again, where `is_meant` holds of it.
    fn again(&self, id: &str, is_meant: impl Fn(&StoredDelivery) -> bool) -> bool {
        let mut kept = self.lock();
        let found = kept
            .iter_mut()
            .find(|(known, _)| known.id == id && is_meant(known));
        let Some((known, _)) = found else {
            return false;
        };
        known.state = DeliveryState::Pending { problem: None };
        known.attempts = 0;
        true
    }
}

fn is_pending(delivery: &StoredDelivery) -> bool {
    matches!(delivery.state, DeliveryState::Pending { .. })
}

#[async_trait]
impl DeliveryClient for MemoryDeliveries {
    async fn deliveries(&self, limit: usize) -> Result<Vec<StoredDelivery>, StoreError> {
        let kept = self.lock();
        let newest = kept.iter().rev().take(limit);
        Ok(newest.map(|(known, _)| known.clone()).collect())
    }

    async fn delivery(&self, id: &str) -> Result<Option<(StoredDelivery, Vec<u8>)>, StoreError> {
        Ok(self.lock().iter().find(|(known, _)| known.id == id).cloned())
    }

    async fn replay_delivery(&self, id: &str) -> Result<bool, StoreError> {
        Ok(self.again(id, |_| true))
    }
}

#[async_trait]
impl Deliveries for MemoryDeliveries {
    async fn receive(&self, delivery: ReceivedDelivery) -> Result<Receipt, StoreError> {
        if self.lock().iter().any(|(known, _)| known.id == delivery.id) {
            let given_up = |known: &StoredDelivery| matches!(known.state, DeliveryState::GivenUp { .. });
            return Ok(match self.again(&delivery.id, given_up) {
                true => Receipt::Again,
                false => Receipt::Duplicate,
            });
        }
        let about = DeliveryAbout::of(&delivery.body);
        let stored = StoredDelivery {
            id: delivery.id,
            event: delivery.event,
            action: about.action,
            repository: about.repository,
            received_at: delivery.received_at,
            size: delivery.body.len() as u64,
            attempts: 0,
            noted_at: None,
            state: DeliveryState::Pending { problem: None },
        };
        self.lock().push((stored, delivery.body));
        Ok(Receipt::Stored)
    }

    async fn pending_deliveries(&self, limit: usize) -> Result<Vec<PendingDelivery>, StoreError> {
        let kept = self.lock();
        let mut pending: Vec<_> = kept.iter().filter(|(known, _)| is_pending(known)).collect();
        pending.sort_by_key(|(known, _)| known.attempts >= TRIED_OFTEN);
        let told = pending
            .into_iter()
            .take(limit)
            .map(|(known, body)| PendingDelivery {
                id: known.id.clone(),
                event: known.event.clone(),
                received_at: known.received_at,
                attempts: known.attempts,
                body: body.clone(),
            });
        Ok(told.collect())
    }

    async fn note_delivery(&self, id: &str, at: Timestamp, state: DeliveryState) -> Result<(), StoreError> {
        let mut kept = self.lock();
        if let Some((known, _)) = kept.iter_mut().find(|(known, _)| known.id == id) {
            known.state = state;
            known.noted_at = Some(at);
            known.attempts += 1;
        }
        Ok(())
    }

    async fn prune_deliveries(&self, before: Timestamp) -> Result<usize, StoreError> {
        let mut kept = self.lock();
        let all = kept.len();
        kept.retain(|(known, _)| is_pending(known) || known.received_at >= before);
        Ok(all - kept.len())
    }
}

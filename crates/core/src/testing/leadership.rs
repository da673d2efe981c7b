//! A right to lead that can be taken away.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::ports::{Leadership, StoreError, Term};

/// How many terms were asked for: each has a number of its own.
static TERMS: AtomicU64 = AtomicU64::new(0);

/// The right to lead, as a lease is: it can be lost. Clones are other processes that want the same right.
#[derive(Debug, Clone, Default)]
pub struct FakeLease {
    /// The number of the term that lasts, if one does.
    held: Arc<watch::Sender<Option<u64>>>,
}

#[derive(Debug)]
struct FakeTerm {
    number: u64,
    held: Arc<watch::Sender<Option<u64>>>,
}

impl FakeLease {
    /// Takes the right from whoever has it.
    pub fn expire(&self) {
        self.held.send_replace(None);
    }

    /// Returns once somebody has the right.
    pub async fn until_held(&self) {
        let mut held = self.held.subscribe();
        held.wait_for(Option::is_some).await.expect("held by this lease");
    }
}

#[async_trait]
impl Leadership for FakeLease {
    async fn try_lead(&self) -> Result<Option<Box<dyn Term>>, StoreError> {
        let number = TERMS.fetch_add(1, Ordering::Relaxed);
        let taken = self.held.send_if_modified(|held| {
            let is_free = held.is_none();
            *held = held.or(Some(number));
            is_free
        });
        let term = || FakeTerm {
            number,
            held: Arc::clone(&self.held),
        };
        Ok(taken.then(|| Box::new(term()) as Box<dyn Term>))
    }
}

#[async_trait]
impl Term for FakeTerm {
    async fn lost(&self) {
        let mut held = self.held.subscribe();
        let is_lost = held.wait_for(|held| *held != Some(self.number));
        is_lost.await.expect("held by this term");
    }
}

impl Drop for FakeTerm {
    fn drop(&mut self) {
        self.held.send_if_modified(|held| {
            let is_ours = *held == Some(self.number);
            if is_ours {
                *held = None;
            }
            is_ours
        });
    }
}

//! Deliveries that were lost while nobody took them: they are asked for once more.
//!
//! GitHub sends a delivery once, and does not try again by itself. What a lost one was about is found by polling, too; a redelivery finds
//! it in full, such as a button that was pressed. Which were lost is told by GitHub's account of our webhook and by what is stored here:
//! nothing is kept besides, and after a restart both are asked anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use blueproof_core::ports::{Clock, DeliveryClient, StoreError};
use blueproof_diagnostic::Diagnostic;
use jiff::{SignedDuration, Timestamp};

use crate::{
    api::{ApiError, ApiRetry, AppHook, HookDelivery, HookDeliveryId},
    webhook::DeliveryId,
};

/// How far back the first look goes: GitHub sends what is at most three days old once more.
const LOOK_BACK: SignedDuration = SignedDuration::from_hours(3 * 24);
/// How far a look goes back behind the last one: what was sent meanwhile may be listed late.
const OVERLAP: SignedDuration = SignedDuration::from_mins(10);
/// The most pages of a look: ten thousand deliveries.
const MOST_PAGES: usize = 100;
/// How many are asked for in one look. Each costs as much as five requests that read, of 900 a minute.
const MOST_ASKED: usize = 50;

/// Asks for deliveries that were lost.
pub struct Redelivery {
    hook: Arc<dyn AppHook>,
    deliveries: Arc<dyn DeliveryClient>,
    clock: Arc<dyn Clock>,
    installation: u64,
    /// The newest that GitHub had sent at the last look that came to its end, by GitHub's clock.
    seen: Option<Timestamp>,
    /// What this process has asked for: GitHub lists it only once it was sent.
    asked: BTreeSet<DeliveryId>,
}

/// What came of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// How many were asked for.
    pub n_asked: usize,
    /// Whether there are more, which the next look asks for.
    pub has_more: bool,
}

/// Why a look did not come to its end. The next one begins where it did.
#[derive(Debug, thiserror::Error)]
pub enum RedeliveryError {
    /// GitHub did not answer.
    #[error("could not look for lost deliveries")]
    Api(#[from] ApiError),
    /// What is stored could not be read.
    #[error("could not look which deliveries are stored")]
    Store(#[from] StoreError),
}

impl RedeliveryError {
    /// Returns it as it is shown to people.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::Api(error) => error.diagnostic(),
            Self::Store(error) => (*error.diagnostic).clone(),
        }
    }

    /// Returns whether another look may help, and when.
    pub fn retry(&self) -> ApiRetry {
        match self {
            Self::Api(error) => error.retry,
            Self::Store(_) => ApiRetry::Later,
        }
    }
}

/// All sendings of one delivery.
struct Sendings {
    /// The one that is asked for once more: the first.
    first: HookDeliveryId,
    sent_at: Timestamp,
    is_lost: bool,
}

impl Redelivery {
    /// Returns what asks for the lost deliveries of an installation.
    pub fn new(
        hook: Arc<dyn AppHook>,
        deliveries: Arc<dyn DeliveryClient>,
        clock: Arc<dyn Clock>,
        installation: u64,
    ) -> Self {
        Self {
            hook,
            deliveries,
            clock,
            installation,
            seen: None,
            asked: BTreeSet::new(),
        }
    }

    /// Looks what was lost since the last look, or within three days, and asks for each once. It may be repeated.
    ///
    /// # Errors
    ///
    /// GitHub or the store cannot be asked. What was asked for until then is not asked for again.
    pub async fn look(&mut self) -> Result<Look, RedeliveryError> {
        let earliest = self.clock.now() - LOOK_BACK;
        let since = self.seen.map_or(earliest, |seen| (seen - OVERLAP).max(earliest));
        let sent = self.sent_since(since).await?;
        let newest = sent.iter().map(|one| one.delivered_at).max();
        let mut n_asked = 0;
        for (name, lost) in lost(&sent, self.installation) {
            if self.asked.contains(&name) || self.deliveries.delivery(name.as_str()).await?.is_some() {
                continue;
            }
            if n_asked == MOST_ASKED {
                return Ok(Look {
                    n_asked,
                    has_more: true,
                });
            }
            self.ask(name, lost.first).await?;
            n_asked += 1;
        }
        self.seen = newest.max(self.seen);
        // What is older than a look goes back is never met again.
        let met: BTreeSet<_> = sent.into_iter().map(|one| one.name).collect();
        self.asked.retain(|name| met.contains(name));
        Ok(Look {
            n_asked,
            has_more: false,
        })
    }

    async fn ask(&mut self, name: DeliveryId, id: HookDeliveryId) -> Result<(), RedeliveryError> {
        match self.hook.redeliver(id).await {
            Ok(()) => tracing::info!(delivery = name.as_str(), "asked for a lost delivery once more"),
            // GitHub does not send it any more, and would say so each time.
            Err(error) if error.retry == ApiRetry::Never => {
                tracing::warn!(
                    delivery = name.as_str(),
                    "a lost delivery is not sent once more: {error}"
                );
            }
            Err(error) => return Err(error.into()),
        }
        self.asked.insert(name);
        Ok(())
    }

    /// Returns every sending since a time, the newest first.
    async fn sent_since(&self, since: Timestamp) -> Result<Vec<HookDelivery>, ApiError> {
        let (mut all, mut from) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let page = self.hook.hook_deliveries(from).await?;
            let reaches_back = page.deliveries.iter().any(|one| one.delivered_at < since);
            all.extend(
                page.deliveries
                    .into_iter()
                    .filter(|one| one.delivered_at >= since),
            );
            from = page.next;
            if reaches_back || from.is_none() {
                return Ok(all);
            }
        }
        tracing::warn!(
            n = all.len(),
            "more was sent than is looked through: older deliveries that were lost are not asked for"
        );
        Ok(all)
    }
}

/// Returns what was sent and never arrived, the oldest first. What was sent a second time was asked for, by us or by hand: it is not
/// asked for again.
fn lost(sent: &[HookDelivery], installation: u64) -> Vec<(DeliveryId, Sendings)> {
    let mut all: BTreeMap<&DeliveryId, Sendings> = BTreeMap::new();
    for one in sent {
        let is_ours = one.installation.is_none_or(|about| about == installation);
        let known = all.entry(&one.name).or_insert(Sendings {
            first: one.id,
            sent_at: one.delivered_at,
            is_lost: is_ours,
        });
        known.is_lost &= !one.is_delivered() && !one.is_redelivery;
        if one.delivered_at < known.sent_at {
            (known.first, known.sent_at) = (one.id, one.delivered_at);
        }
    }
    let lost = all.into_iter().filter(|(_, sendings)| sendings.is_lost);
    let mut lost: Vec<_> = lost.map(|(name, sendings)| (name.clone(), sendings)).collect();
    lost.sort_by_key(|(_, sendings)| (sendings.sent_at, sendings.first));
    lost
}

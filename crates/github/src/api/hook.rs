//! The webhook of our App, as GitHub keeps account of it.
//!
//! It is asked by the App itself: the token of an installation has no right to it.

use async_trait::async_trait;
use jiff::Timestamp;

use super::ApiError;
use crate::webhook::DeliveryId;

/// What GitHub says of the webhook of our App.
///
/// Source: <https://docs.github.com/en/rest/apps/webhooks>.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait AppHook: Send + Sync {
    /// Returns what was sent, the newest first: a page of it, from where the page before it ended.
    async fn hook_deliveries(&self, from: Option<HookCursor>) -> Result<HookPage, ApiError>;

    /// Asks for a delivery once more. It comes later, with the name that it had. Repeating it has it sent once more.
    async fn redeliver(&self, id: HookDeliveryId) -> Result<(), ApiError>;
}

/// A part of what was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookPage {
    /// The newest first.
    pub deliveries: Vec<HookDelivery>,
    /// Where the next page begins, where there is one.
    pub next: Option<HookCursor>,
}

/// Where a page begins, in GitHub's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCursor(pub String);

/// GitHub's number of one sending of a delivery. The name of the delivery is the same each time that it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HookDeliveryId(pub u64);

/// One sending of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookDelivery {
    /// Its number.
    pub id: HookDeliveryId,
    /// What the delivery is called.
    pub name: DeliveryId,
    /// When it was sent, by GitHub's clock.
    pub delivered_at: Timestamp,
    /// Whether it was sent before, and asked for once more.
    pub is_redelivery: bool,
    /// What we answered; something outside of 200 to 599 where we did not.
    pub status: u16,
    /// The installation that it is about; a ping is about none.
    pub installation: Option<u64>,
}

impl HookDelivery {
    /// Returns whether GitHub takes it for delivered.
    pub fn is_delivered(&self) -> bool {
        (200..400).contains(&self.status)
    }
}

//! The webhook of our App, asked as the App itself.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Deserialize;

use super::{
    AppTokens,
    request::{Call, part, query_of_next_page},
};
use crate::api::{ApiError, AppHook, HookCursor, HookDelivery, HookDeliveryId, HookPage};

/// A sending, as far as it is read.
#[derive(Deserialize)]
struct Sent {
    id: u64,
    guid: String,
    delivered_at: Timestamp,
    #[serde(default)]
    redelivery: bool,
    #[serde(default)]
    status_code: i64,
    #[serde(default)]
    installation_id: Option<u64>,
}

impl Sent {
    /// Returns it in our words; `None` where its name is none that a delivery could have.
    fn into_delivery(self) -> Option<HookDelivery> {
        Some(HookDelivery {
            id: HookDeliveryId(self.id),
            name: self.guid.parse().ok()?,
            delivered_at: self.delivered_at,
            is_redelivery: self.redelivery,
            status: u16::try_from(self.status_code).unwrap_or(0),
            installation: self.installation_id,
        })
    }
}

#[async_trait]
impl AppHook for AppTokens {
    async fn hook_deliveries(&self, from: Option<HookCursor>) -> Result<HookPage, ApiError> {
        let doing = "list the deliveries of the App's webhook";
        let from = from.map_or_else(String::new, |HookCursor(from)| format!("&cursor={}", part(&from)));
        let call = Call::get(format!("/app/hook/deliveries?per_page=100{from}"));
        let answer = self.send_as_app(&call, doing).await?;
        let sent: Vec<Sent> = answer.json(doing)?;
        Ok(HookPage {
            deliveries: sent.into_iter().filter_map(Sent::into_delivery).collect(),
            next: query_of_next_page(&answer, "cursor").map(HookCursor),
        })
    }

    async fn redeliver(&self, id: HookDeliveryId) -> Result<(), ApiError> {
        let call = Call::post_nothing(format!("/app/hook/deliveries/{}/attempts", id.0));
        let doing = format!("have delivery {} sent once more", id.0);
        self.send_as_app(&call, &doing).await.map(|_| ())
    }
}

//! Sends deliveries to a webhook, as GitHub does.

use std::time::Duration;

use anyhow::Result;
use blueproof_github::{
    testing::FakeGitHub,
    webhook::{DeliveryId, WebhookSecret},
};
use reqwest::{Client, Url};
use tokio_rustls::rustls::crypto::ring;

/// How long the receiver has, as GitHub gives it.
const WITHIN: Duration = Duration::from_secs(10);

/// Where deliveries are sent.
pub(crate) struct Hook {
    client: Client,
    url: Url,
    secret: WebhookSecret,
}

impl Hook {
    pub(crate) fn new(url: Url, secret: WebhookSecret) -> Result<Self> {
        // Where the program has chosen one already, that stays.
        let _ = ring::default_provider().install_default();
        let client = Client::builder().timeout(WITHIN).build()?;
        Ok(Self { client, url, secret })
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Sends all that is to be told, and returns what came of it, a line each.
    pub(crate) async fn send_all(&self, github: &FakeGitHub) -> String {
        let mut said = String::new();
        for (name, delivery) in github.take_sendings() {
            let status = self.send(&name, delivery.event.as_str(), delivery.body).await;
            github.note_answer(&name, status.unwrap_or(0));
            let outcome = match status {
                Some(status) => format!("answered with {status}"),
                None => "taken by nobody: it is lost, until it is asked for once more".to_owned(),
            };
            said.push_str(&format!("  webhook {} {name}: {outcome}\n", delivery.event));
        }
        said
    }

    async fn send(&self, name: &DeliveryId, event: &str, body: Vec<u8>) -> Option<u16> {
        let request = self
            .client
            .post(self.url.clone())
            .header("X-GitHub-Event", event)
            .header("X-GitHub-Delivery", name.as_str())
            .header("X-Hub-Signature-256", self.secret.sign(&body))
            .header("Content-Type", "application/json")
            .body(body);
        let answer = request.send().await.ok()?;
        Some(answer.status().as_u16())
    }
}

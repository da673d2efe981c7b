//! Tokens of an installation of a GitHub App: each is good for an hour, and is asked for again before that is over.

use std::sync::Arc;

use async_trait::async_trait;
use blueproof_core::ports::Clock;
use blueproof_scale_set::AppInstallation;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::{
    ApiToken, Tokens,
    request::{Answer, Call},
    transport::Transport,
};
use crate::api::ApiError;

/// How long before its end a token is not used any more: longer than a request takes, and than clocks are apart.
const SPARE: SignedDuration = SignedDuration::from_mins(5);

/// Tokens of an installation of a GitHub App.
pub struct AppTokens {
    app: AppInstallation,
    transport: Transport,
    clock: Arc<dyn Clock>,
    /// Held while one is asked for, so that those who come meanwhile wait for it and ask for none.
    newest: Mutex<Option<InstallationToken>>,
}

/// GitHub's answer.
#[derive(Deserialize)]
struct InstallationToken {
    token: String,
    expires_at: Timestamp,
}

impl AppTokens {
    /// Returns the tokens of an installation, from the API at an address. Call it in a tokio runtime.
    ///
    /// # Errors
    ///
    /// As [`RestGitHub::new`](super::RestGitHub::new).
    pub fn new(address: &str, app: AppInstallation, clock: Arc<dyn Clock>) -> Result<Self, ApiError> {
        Ok(Self {
            app,
            transport: Transport::to(address)?,
            clock,
            newest: Mutex::default(),
        })
    }

    async fn ask(&self) -> Result<InstallationToken, ApiError> {
        let doing = format!("get a token of installation {}", self.app.installation);
        let call = Call::post(
            format!("/app/installations/{}/access_tokens", self.app.installation),
            &serde_json::json!({}),
        );
        self.send_as_app(&call, &doing).await?.json(&doing)
    }

    /// Makes a request as the App, which signs that it is itself.
    pub(super) async fn send_as_app(&self, call: &Call, doing: &str) -> Result<Answer, ApiError> {
        let signed = self.app.token(self.clock.now());
        let signed = signed.map_err(|_| ApiError::never(format!("{doing}: the App's key does not sign")))?;
        let token = ApiToken::new(signed.expose());
        self.transport.send(call, Some(&token), doing).await
    }
}

#[async_trait]
impl Tokens for AppTokens {
    async fn token(&self) -> Result<ApiToken, ApiError> {
        let mut newest = self.newest.lock().await;
        let good_until = self.clock.now() + SPARE;
        if let Some(known) = newest.as_ref().filter(|known| known.expires_at > good_until) {
            return Ok(ApiToken::new(&known.token));
        }
        let asked = self.ask().await?;
        let token = ApiToken::new(&asked.token);
        *newest = Some(asked);
        Ok(token)
    }
}

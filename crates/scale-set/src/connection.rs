//! From credentials to the service: an App's token, its installation's, a registration token, and the service with a token of its own.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use reqwest::{Method, StatusCode, Url, header::HeaderValue};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;

use crate::{
    call::{Call, Caller, Expected},
    clock::Clock,
    credentials::{AppInstallation, Credentials, expiry},
    error::{Cause, Correlation, Error},
    retry::Idempotency,
    scope::ConfigUrl,
    secret::Secret,
};

/// How long before it expires a token is replaced.
const REFRESHED_BEFORE: SignedDuration = SignedDuration::from_mins(2);

/// How long a token is used that does not say when it expires.
const OPAQUE_FOR: SignedDuration = SignedDuration::from_mins(10);

/// The service, and what opens it.
#[derive(Debug)]
pub(crate) struct Admin {
    /// The base of all its paths. It may have a path of its own.
    pub(crate) url: Url,
    /// What opens it.
    pub(crate) token: Secret,
    expires_at: Timestamp,
}

/// The way to the service, walked again when its token is about to expire.
pub(crate) struct Connection {
    config: ConfigUrl,
    credentials: Credentials,
    clock: Clock,
    /// Held while the way is walked: whoever else needs it waits for what comes of that.
    admin: Mutex<Option<Arc<Admin>>>,
}

/// What the REST API gives.
#[derive(Deserialize)]
struct Token {
    #[serde(default)]
    token: Secret,
}

/// What the last step gives.
#[derive(Deserialize)]
struct Registered {
    #[serde(default)]
    url: String,
    #[serde(default)]
    token: Secret,
}

impl Connection {
    pub(crate) fn new(config: ConfigUrl, credentials: Credentials, clock: Clock) -> Self {
        Self {
            config,
            credentials,
            clock,
            admin: Mutex::new(None),
        }
    }

    /// Returns the service, by the way that was walked before as long as its token holds.
    pub(crate) async fn admin(&self, caller: &Caller, agent: &HeaderValue) -> Result<Arc<Admin>, Error> {
        let mut known = self.admin.lock().await;
        if let Some(admin) = &*known
            && self.clock.now() + REFRESHED_BEFORE < admin.expires_at
        {
            return Ok(Arc::clone(admin));
        }
        let admin = Arc::new(self.connect(caller, agent).await?);
        *known = Some(Arc::clone(&admin));
        Ok(admin)
    }

    /// Forgets a service whose token was refused, unless it was replaced meanwhile.
    pub(crate) async fn forget(&self, refused: &Arc<Admin>) {
        let mut known = self.admin.lock().await;
        if known.as_ref().is_some_and(|admin| Arc::ptr_eq(admin, refused)) {
            *known = None;
        }
    }

    async fn connect(&self, caller: &Caller, agent: &HeaderValue) -> Result<Admin, Error> {
        let registration = match &self.credentials {
            Credentials::App(app) => {
                let token = self.installation_token(app, caller, agent).await?;
                self.registration_token(&token, caller, agent).await?
            }
            Credentials::Token(token) => self.registration_token(token, caller, agent).await?,
        };
        self.register(&registration, caller, agent).await
    }

    async fn installation_token(
        &self,
        app: &AppInstallation,
        caller: &Caller,
        agent: &HeaderValue,
    ) -> Result<Secret, Error> {
        let doing = format!("get a token of installation {}", app.installation);
        let token = app.token(self.clock.now()).map_err(|_| {
            let cause = Cause::Credentials("the App's key does not sign".into());
            Error::new(&doing, Correlation::default(), cause)
        })?;
        let path = format!("/app/installations/{}/access_tokens", app.installation);
        let call = Call::new(doing, Method::POST, self.config.api(&path));
        self.token(call, &token, caller, agent).await
    }

    async fn registration_token(
        &self,
        token: &Secret,
        caller: &Caller,
        agent: &HeaderValue,
    ) -> Result<Secret, Error> {
        let path = self.config.registration_token_path();
        let doing = format!("get a registration token for {}", self.config);
        let call = Call::new(doing, Method::POST, self.config.api(&path));
        self.token(call, token, caller, agent).await
    }

    /// Calls for a token with a token. A second one does no harm.
    async fn token(
        &self,
        call: Call,
        token: &Secret,
        caller: &Caller,
        agent: &HeaderValue,
    ) -> Result<Secret, Error> {
        let call = call
            .class(Idempotency::Repeatable)
            .expecting(Expected::Status(StatusCode::CREATED))
            .header(
                reqwest::header::ACCEPT,
                HeaderValue::from_static("application/vnd.github+json"),
            )
            .agent(agent)
            .authorize("Bearer", token)?;
        let answer = caller.send(&call).await?;
        let Token { token } = answer.json()?;
        if token.is_empty() {
            return Err(answer.fails(Cause::Unreadable("it has no token".into())));
        }
        Ok(token)
    }

    async fn register(
        &self,
        registration: &Secret,
        caller: &Caller,
        agent: &HeaderValue,
    ) -> Result<Admin, Error> {
        let doing = format!("register with the service of {}", self.config);
        let call = Call::new(
            doing,
            Method::POST,
            self.config.api("/actions/runner-registration"),
        )
        .class(Idempotency::Registration)
        .expecting(Expected::Success)
        .json(&json!({"url": self.config.to_string(), "runner_event": "register"}))
        .agent(agent)
        .authorize("RemoteAuth", registration)?;
        let answer = caller.send(&call).await?;
        let Registered { url, token } = answer.json()?;
        if url.is_empty() || token.is_empty() {
            return Err(answer.fails(Cause::Unreadable("it lacks the service's URL or token".into())));
        }
        let url = Url::parse(&url).map_err(|error| answer.unreadable(error))?;
        let now = self.clock.now();
        let expires_at = expiry(&token).unwrap_or(now + OPAQUE_FOR);
        Ok(Admin {
            url,
            token,
            expires_at,
        })
    }
}

impl Admin {
    /// Returns the URL of a path of the service, below whatever path the service's own URL has.
    pub(crate) fn path(&self, path: &str, query: &[(&str, &str)]) -> Url {
        let mut url = self.url.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().extend(path.split('/'));
        }
        url.query_pairs_mut()
            .extend_pairs(query)
            .append_pair("api-version", "6.0-preview");
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_put_below_the_services_own() {
        let admin = |url: &str| Admin {
            url: Url::parse(url).expect("a URL"),
            token: Secret::default(),
            expires_at: Timestamp::UNIX_EPOCH,
        };
        for (base, expected) in [
            (
                "https://x/tenant/123/",
                "https://x/tenant/123/_apis/a?n=b+c&api-version=6.0-preview",
            ),
            (
                "https://x/tenant",
                "https://x/tenant/_apis/a?n=b+c&api-version=6.0-preview",
            ),
            ("https://x", "https://x/_apis/a?n=b+c&api-version=6.0-preview"),
        ] {
            assert_eq!(admin(base).path("_apis/a", &[("n", "b c")]).as_str(), expected);
        }
    }
}

//! An App that was just registered: its key for a code, and where it is installed.

use serde::Deserialize;

use super::{
    AppTokens,
    request::{Call, part},
    transport::Transport,
};
use crate::{api::ApiError, registration::RegistrationCode};

/// An App that was just registered. What is secret of it is shown nowhere.
#[derive(Clone, Deserialize)]
pub struct RegisteredApp {
    /// Its number.
    pub id: u32,
    /// Its name in addresses.
    pub slug: String,
    /// Its page.
    pub html_url: String,
    /// Its private key.
    pub pem: String,
    /// The secret of its webhook, where it has one.
    #[serde(default)]
    pub webhook_secret: Option<String>,
}

/// Where an App is installed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Installation {
    /// The installation's number.
    pub id: u32,
    /// Whose repositories it is about.
    pub account: Option<InstallationAccount>,
}

/// Whose repositories an installation is about.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InstallationAccount {
    /// The login.
    #[serde(default)]
    pub login: String,
}

/// Returns the App that a code stands for. GitHub takes a code once. Call it in a tokio runtime.
///
/// # Errors
///
/// GitHub is not reached, or does not know the code.
pub async fn registered_app(api: &str, code: &RegistrationCode) -> Result<RegisteredApp, ApiError> {
    let doing = "get the key of the App that was registered";
    let call = Call::post_nothing(format!("/app-manifests/{}/conversions", part(code.expose())));
    // Whoever has the code needs no other right.
    Transport::to(api)?.send(&call, None, doing).await?.json(doing)
}

impl std::fmt::Debug for RegisteredApp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { id, slug, .. } = self;
        write!(f, "RegisteredApp({id}, {slug})")
    }
}

impl AppTokens {
    /// Returns where the App is installed, at most a hundred places.
    ///
    /// # Errors
    ///
    /// GitHub is not reached, or does not know the App.
    pub async fn installations(&self) -> Result<Vec<Installation>, ApiError> {
        let doing = "list the installations of the App";
        let call = Call::get("/app/installations?per_page=100");
        self.send_as_app(&call, doing).await?.json(doing)
    }
}

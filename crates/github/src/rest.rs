//! GitHub's REST API, spoken through octocrab's client.
//!
//! Of octocrab only the transport is used: its own retries repeat any request at once, and its types lack what is needed here. A
//! call is one request, or one for each page of a list.

mod actions;
mod answers;
mod app;
mod checks;
mod hook;
mod port;
#[cfg(feature = "registration")]
mod registration;
mod request;
mod transport;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;

use crate::{
    api::{ApiError, RepositoryId},
    payload::RepositoryInfo,
};
pub use app::AppTokens;
#[cfg(feature = "registration")]
pub use registration::{Installation, InstallationAccount, RegisteredApp, registered_app};
use request::Call;
use transport::Transport;

/// GitHub's REST API.
pub struct RestGitHub {
    transport: Transport,
    tokens: Arc<dyn Tokens>,
    app: Option<u64>,
    /// What repositories are called, as far as that was asked.
    names: Mutex<BTreeMap<RepositoryId, RepositoryInfo>>,
}

/// What a request is authorised with.
#[async_trait]
pub trait Tokens: Send + Sync {
    /// Returns a token that is good for the next minute at least.
    async fn token(&self) -> Result<ApiToken, ApiError>;
}

/// A token for GitHub's API. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiToken(String);

/// One token that does not change: a personal access token, or that of a workflow.
pub struct FixedToken(pub ApiToken);

impl ApiToken {
    /// Takes a token as GitHub gave it.
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for ApiToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiToken(..)")
    }
}

#[async_trait]
impl Tokens for FixedToken {
    async fn token(&self) -> Result<ApiToken, ApiError> {
        Ok(self.0.clone())
    }
}

impl RestGitHub {
    /// Returns the API at an address, such as `https://api.github.com`. `app` is the number of our App, where there is one: check runs
    /// of others are not ours. Call it in a tokio runtime.
    ///
    /// # Errors
    ///
    /// The address is none, or this machine has no certificates that could be trusted.
    pub fn new(address: &str, app: Option<u64>, tokens: Arc<dyn Tokens>) -> Result<Self, ApiError> {
        Ok(Self {
            transport: Transport::to(address)?,
            tokens,
            app,
            names: Mutex::default(),
        })
    }

    /// Returns the repository of a name, and knows it by its number from then on.
    ///
    /// # Errors
    ///
    /// There is none, or none that we may see.
    pub async fn repository_named(&self, full_name: &str) -> Result<RepositoryInfo, ApiError> {
        let path = request::repository_path(full_name)?;
        let info: RepositoryInfo = self.get(&Call::get(path), "read a repository").await?;
        self.know(info.clone());
        Ok(info)
    }

    fn know(&self, info: RepositoryInfo) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(RepositoryId(info.id), info);
    }

    /// Returns the path of a repository below the API's address, by its name as that was last seen. One that was renamed since is
    /// redirected by GitHub.
    fn path(&self, id: RepositoryId) -> Result<String, ApiError> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let known = names.get(&id);
        let known = known
            .ok_or_else(|| ApiError::later(format!("tell what GitHub repository {} is called", id.0)))?;
        request::repository_path(&known.full_name)
    }
}

//! What most payloads have.

use blueproof_core::domain::{Actor, Repository};
use serde::Deserialize;

use super::words::open_words;

/// A repository, as a payload names it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RepositoryInfo {
    /// Its number, which stays when it is renamed.
    pub id: u64,
    /// `OWNER/NAME`, at the time of the delivery.
    pub full_name: String,
    /// The branch that policy and OWNERS are read from.
    #[serde(default)]
    pub default_branch: Option<String>,
}

/// Somebody, as a payload names them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Account {
    /// The number, which stays when the login is changed.
    pub id: u64,
    /// The login at the time of the delivery.
    pub login: String,
    /// What it is.
    #[serde(default, rename = "type")]
    pub kind: AccountKind,
}

open_words! {
    /// What an account is.
    pub enum AccountKind {
        /// A person.
        User = "User",
        /// A program: an App, or GitHub itself.
        Bot = "Bot",
        /// An organisation.
        Organization = "Organization",
    }
}

/// The installation of the App that a delivery came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct InstallationId {
    /// Its number.
    pub id: u64,
}

impl RepositoryInfo {
    /// Returns it as the rest of blueproof knows it.
    pub fn to_repository(&self) -> Repository {
        Repository::GitHub(self.id)
    }
}

impl Account {
    /// Returns it as the rest of blueproof knows it.
    pub fn to_actor(&self) -> Actor {
        Actor::GitHub {
            id: self.id,
            login: self.login.clone(),
        }
    }

    /// Returns whether it is a person, as far as GitHub says so. What is no person approves nothing.
    pub fn is_person(&self) -> bool {
        match self.kind {
            AccountKind::User => true,
            AccountKind::Bot | AccountKind::Organization | AccountKind::Other(_) => false,
        }
    }
}

impl Default for AccountKind {
    /// What does not say that it is a person is none.
    fn default() -> Self {
        Self::Other(String::new())
    }
}

/// The App that made something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct App {
    /// Its number.
    pub id: u64,
}

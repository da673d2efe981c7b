//! Where the App is installed, and what becomes of the repositories there.

use serde::Deserialize;

use super::{
    common::{Account, RepositoryInfo},
    words::open_words,
};

/// The event `installation`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InstallationEvent {
    /// What happened.
    pub action: InstallationAction,
    /// The installation.
    pub installation: Installation,
    /// The repositories that it has from the beginning.
    #[serde(default)]
    pub repositories: Option<Vec<RepositoryName>>,
}

open_words! {
    /// What happened to an installation.
    pub enum InstallationAction {
        /// It was made.
        Created = "created",
        /// It is gone.
        Deleted = "deleted",
        /// It may do nothing for now.
        Suspend = "suspend",
        /// It may go on.
        Unsuspend = "unsuspend",
        /// It may do more.
        NewPermissionsAccepted = "new_permissions_accepted",
    }
}

/// An installation of the App.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Installation {
    /// Its number.
    pub id: u64,
    /// Whose it is.
    pub account: Option<Account>,
}

/// A repository of an installation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RepositoryName {
    /// Its number, which stays when it is renamed.
    pub id: u64,
    /// `OWNER/NAME`, at the time of the delivery.
    pub full_name: String,
}

/// The event `installation_repositories`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InstallationRepositoriesEvent {
    /// The installation.
    pub installation: Installation,
    /// Those that it has from now on.
    pub repositories_added: Vec<RepositoryName>,
    /// Those that it has no more.
    pub repositories_removed: Vec<RepositoryName>,
}

/// The event `repository`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RepositoryEvent {
    /// What happened.
    pub action: RepositoryAction,
    /// The repository, as it is now.
    pub repository: RepositoryInfo,
}

open_words! {
    /// What happened to a repository.
    pub enum RepositoryAction {
        /// It was made.
        Created = "created",
        /// It is gone.
        Deleted = "deleted",
        /// It is read-only.
        Archived = "archived",
        /// It has another name.
        Renamed = "renamed",
        /// It has another owner.
        Transferred = "transferred",
        /// Its default branch or description is another.
        Edited = "edited",
    }
}

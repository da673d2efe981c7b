//! Where what is kept of one store's runs is.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::{AttemptLayout, LogKey, LogReader, run_folder};
use crate::domain::{AttemptId, RunId};

/// What tells a store from every other one, for as long as it is there.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreIdentity {
    /// A random name.
    pub id: String,
    /// The folder of its runs below the folder of all runs. It is the id; stores of before there were ids have none.
    pub folder: String,
    /// What the logs of its attempts are signed with is made of this.
    pub secret: [u8; 32],
}

/// The folder of one store's runs: runs of different stores have the same numbers, and never the same folder.
#[derive(Debug, Clone)]
pub struct RunsFolder {
    root: PathBuf,
    store: StoreIdentity,
}

impl RunsFolder {
    /// Describes the folder of a store's runs below the folder `root` of all runs; nothing is created.
    pub fn new(root: impl Into<PathBuf>, store: StoreIdentity) -> Self {
        Self {
            root: root.into(),
            store,
        }
    }

    /// Returns the folder of the runs of all stores.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the store.
    pub fn store(&self) -> &StoreIdentity {
        &self.store
    }

    /// Returns the folder of this store's runs.
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.store.folder)
    }

    /// Returns the folder with what is kept of a run: its report, and its attempts.
    pub fn run(&self, run: RunId) -> PathBuf {
        run_folder(run, &self.path())
    }

    /// Returns where an attempt's files are.
    pub fn attempt(&self, attempt: AttemptId) -> AttemptLayout {
        AttemptLayout::of(attempt, &self.path())
    }

    /// Returns where an attempt has its private working copy of the checkout, as long as it goes on. It is no part of what is kept
    /// of the attempt, and no folder above it is: a notebook works there.
    pub fn work(&self, attempt: AttemptId) -> PathBuf {
        self.root.join("work").join(self.log_key(attempt).name())
    }

    /// Returns an attempt's log, of which every line must be its agent's.
    pub fn log(&self, attempt: AttemptId) -> LogReader {
        LogReader::verified(self.attempt(attempt).log(), self.log_key(attempt))
    }

    /// Returns what the records of an attempt's log are signed with.
    pub fn log_key(&self, attempt: AttemptId) -> LogKey {
        LogKey::of(&self.store.secret, attempt)
    }
}

impl fmt::Debug for StoreIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreIdentity")
            .field("id", &self.id)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

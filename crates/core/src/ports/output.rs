//! What attempts leave: the records of their agents, artifacts, and the reports of their runs.

mod error;
mod follower;
mod name;

use std::path::PathBuf;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    attempt::Record,
    domain::{AttemptId, Bytes, RunId},
};

pub use error::OutputError;
pub use follower::{RecordFollower, whole};
pub use name::{ArtifactName, OutputName, ReportKind};

/// Reads what attempts leave, wherever that is.
///
/// Every record is its agent's: what anybody else wrote between them is an error, and never a record. Files are a notebook's
/// word alone, unless a record holds their digest.
#[async_trait]
pub trait AttemptOutput: Send + Sync {
    /// Returns the records after a position in the order in which they were written: at most `limit` of them, and no more than
    /// fit into a few MiB. None where nothing is new. A record that is being written is left for the next call.
    ///
    /// # Errors
    ///
    /// [`Missing`](OutputError::Missing) where nothing is kept of the attempt, or not yet; [`Removed`](OutputError::Removed)
    /// where there was something up to this position and nothing is there any more;
    /// [`Disturbed`](OutputError::Disturbed) where what follows is not the agent's, or the records end before the position.
    async fn records(
        &self,
        attempt: AttemptId,
        after: &RecordPosition,
        limit: usize,
    ) -> Result<Records, OutputError>;

    /// Returns what tells when more records may be there, from now on.
    fn changes(&self, attempt: AttemptId) -> Box<dyn RecordChanges>;

    /// Returns the artifacts of an attempt, by name.
    async fn artifacts(&self, attempt: AttemptId) -> Result<Vec<OutputFile>, OutputError>;

    /// Returns where an attempt's artifacts are, relative to the reports of its run: for a link in these.
    fn artifacts_link(&self, attempt: AttemptId) -> PathBuf;

    /// Returns a file, or `None` where there is none, or something that is no regular file.
    async fn file(&self, name: &OutputName) -> Result<Option<OutputFile>, OutputError>;

    /// Returns the bytes of a file from an offset on, at most `limit`. None where the file ends there. No link is followed.
    ///
    /// # Errors
    ///
    /// [`NoFile`](OutputError::NoFile) where there is none, or something that is no regular file.
    async fn read(&self, name: &OutputName, offset: u64, limit: usize) -> Result<Vec<u8>, OutputError>;

    /// Returns all that is kept of a run, at most `limit` files of it; no files where nothing is kept.
    async fn kept(&self, run: RunId, limit: usize) -> Result<RunFiles, OutputError>;
}

/// Where the reports of runs are put, beside what their attempts leave.
#[async_trait]
pub trait ReportOutput: AttemptOutput {
    /// Puts a report in the place of an older one of its kind: all of it, or nothing.
    async fn put_report(&self, run: RunId, kind: ReportKind, content: &[u8]) -> Result<(), OutputError>;
}

/// Removes what attempts have left.
#[async_trait]
pub trait RemovableOutput: AttemptOutput {
    /// Returns how many bytes are kept of a run, its reports among them.
    async fn size(&self, run: RunId) -> Result<Bytes, OutputError>;

    /// Removes what is kept of the first so many attempts of a run that is over, and its reports. Nothing is a success, so that it
    /// may be called again. What a later attempt leaves stays.
    ///
    /// # Errors
    ///
    /// The first thing that could not be removed; what could be is gone.
    async fn remove(&self, run: RunId, attempts: u32) -> Result<(), OutputError>;
}

/// Tells when more records may be there.
#[async_trait]
pub trait RecordChanges: Send {
    /// Returns once there may be records after a position, up to which all were read, that were not there when this was last
    /// called, or made. It may return where there are none. Safe to drop.
    async fn next(&mut self, after: &RecordPosition);
}

/// A position in the records of one attempt, as its backend writes it. It can be kept, and be gone on from by another process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct RecordPosition(pub String);

impl RecordPosition {
    /// Returns whether it is before the first record.
    pub fn is_start(&self) -> bool {
        self.0.is_empty()
    }
}

/// Records that follow a position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Records {
    /// The records.
    pub records: Vec<Record>,
    /// The position after them. Where it is the one that was asked for, nothing is new.
    pub next: RecordPosition,
}

/// A file that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFile {
    /// Which.
    pub name: OutputName,
    /// How large it is.
    pub size: Bytes,
    /// Its path relative to the reports of its run: for a link in these.
    pub link: PathBuf,
    /// Where it is on this machine, if it is.
    pub location: Option<PathBuf>,
}

/// All that is kept of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunFiles {
    /// Where, in words that a person can go by.
    pub location: String,
    /// The files by path, which is relative to that place.
    pub files: Vec<(PathBuf, Bytes)>,
    /// How many more there are.
    pub more: usize,
}

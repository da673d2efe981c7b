//! What outlives us.

use async_trait::async_trait;
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::command::{Answer, Command, CommandId, LeftCommand, StoredCommand};
use crate::{
    domain::{RequestKey, RunId, RunRequest},
    fact::Fact,
    view::{OutlookView, RunView},
};

/// What everybody may do with a store: read what is in it, and leave commands for whoever leads. Any number of processes do,
/// and other machines through the scheduler's API.
#[async_trait]
pub trait StoreClient: Send + Sync {
    /// Returns at most `limit` facts after `after`, the oldest first.
    async fn facts(&self, after: Seq, limit: usize) -> Result<Vec<LoggedFact>, StoreError>;

    /// Returns the newest snapshot of a version, and after which fact it was made. One that is not whole, or is ahead of the
    /// log, is passed over.
    async fn snapshot(&self, version: u32) -> Result<Option<(Seq, Vec<u8>)>, StoreError>;

    /// Leaves a command for whichever engine is or will be there. One that was left before, key and all, changes nothing. Where
    /// another command has its key the error is [`KeyReused`](blueproof_diagnostic::Code::KeyReused).
    async fn submit(&self, at: Timestamp, command: Command) -> Result<(), StoreError>;

    /// Returns what became of a command that was left, or `None` where none of that key was.
    async fn command(&self, key: &RequestKey) -> Result<Option<StoredCommand>, StoreError>;

    /// Returns every command that was left, the newest first, at most `limit`.
    async fn all_commands(&self, limit: usize) -> Result<Vec<StoredCommand>, StoreError>;

    /// Returns the store's version once it is another than `since`: something may have been written, by whichever
    /// process. Versions are only good for being compared. Safe to drop.
    async fn changed(&self, since: Option<Version>) -> Version;

    /// Returns what was asked for with the request that made a run.
    async fn request(&self, run: RunId) -> Result<Option<RunRequest>, StoreError>;

    /// Returns a run as it stood when its last fact was appended, with how it stands among the others as that was last put.
    async fn run(&self, run: RunId) -> Result<Option<RunView>, StoreError>;

    /// Returns the run that a request made.
    async fn run_of(&self, key: &RequestKey) -> Result<Option<RunView>, StoreError>;

    /// Returns the runs that were asked for before one of them, or all where none is named: the newest first, at most `limit`.
    async fn runs_before(&self, before: Option<RunId>, limit: usize) -> Result<Vec<RunView>, StoreError>;

    /// Returns whether the row of a run that is not there was removed on purpose.
    async fn removal(&self, _run: RunId) -> Result<Removal, StoreError> {
        Ok(Removal::Unknown)
    }

    /// Returns every run, the newest first, at most `limit`.
    async fn runs(&self, limit: usize) -> Result<Vec<RunView>, StoreError> {
        self.runs_before(None, limit).await
    }
}

/// What is known of why the row of a run is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It was removed beyond the limits of a retention.
    Pruned,
    /// It was not removed so.
    NotPruned,
    /// Nobody can tell, as from another machine.
    Unknown,
}

/// The log of facts, what is projected from it, and the commands that were left for whoever leads.
///
/// One engine at a time appends.
#[async_trait]
pub trait Store: StoreClient {
    /// Appends facts and what follows from them, all or nothing, and returns when that will outlive a power cut, with the
    /// position of the last fact. Where the log does not end at `after` any more, nothing is appended and the error is
    /// [`Overtaken`](blueproof_diagnostic::Code::StoreOvertaken): somebody else has written.
    async fn append(&self, after: Seq, batch: Batch) -> Result<Seq, StoreError>;

    /// Puts how runs stand among the others into their rows, in place of what was there, where the log still ends at `after`;
    /// else the error is [`Overtaken`](blueproof_diagnostic::Code::StoreOvertaken). Of a run that has no row nothing is kept.
    /// It need not outlive a power cut.
    async fn put_outlooks(&self, after: Seq, outlooks: Vec<(RunId, OutlookView)>) -> Result<(), StoreError>;

    /// Keeps what a scheduler had come to after the fact at a position, in the shape of a version. The newest two are kept.
    async fn put_snapshot(&self, at: Seq, version: u32, bytes: Vec<u8>) -> Result<(), StoreError>;

    /// Removes the rows of runs that are settled, and returns which those were: others stay, and what is not there is passed
    /// over. The facts of a run stay in the log. It may be called again, and by a process that does not lead.
    async fn prune(&self, at: Timestamp, runs: &[RunId]) -> Result<Vec<RunId>, StoreError>;

    /// Returns the commands that nobody has taken up yet, the oldest first. One that cannot be read, such as one of a kind
    /// that only a newer version knows, is there with what is wrong with it.
    async fn commands(&self) -> Result<Vec<LeftCommand>, StoreError>;
}

/// The position of a fact in the log, counted from one; zero is before the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Returns it where it is the next one after another.
    ///
    /// # Errors
    /// When facts are missing between the two: what comes after them is not known.
    pub fn follows(self, before: Self) -> Result<Self, StoreError> {
        if self.0 == before.0 + 1 {
            return Ok(self);
        }
        let message = format!("fact {} of the log is missing", before.0 + 1);
        let diagnostic = Diagnostic::error(Code::FactUnreadable, message);
        let diagnostic = diagnostic.because(format!("after fact {} comes fact {}", before.0, self.0));
        Err(diagnostic
            .hint("go on with a copy of the store from before that: nothing was changed here, and attempts that run go on")
            .into())
    }
}

/// How many snapshots a store keeps: should the newest be damaged, another is there.
pub const SNAPSHOTS_KEPT: usize = 2;

/// Tells two states of a store apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(pub u64);

/// A fact as it stands in the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoggedFact {
    /// Its position.
    pub seq: Seq,
    /// When it was handled.
    pub at: Timestamp,
    /// What came in, or was decided.
    #[serde(flatten)]
    pub fact: Fact,
}

impl LoggedFact {
    /// Returns whether another step of the scheduler begins here: an input is followed by what was decided about it, and what
    /// fell due has a time of its own. `last_at` is the time of the fact before.
    pub fn begins_step(&self, last_at: Option<Timestamp>) -> bool {
        matches!(self.fact, Fact::Input(_)) || last_at != Some(self.at)
    }
}

/// What is appended at once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// New facts, each with the time at which it was applied.
    pub facts: Vec<(Timestamp, Fact)>,
    /// The runs that changed, as they stand after these facts.
    pub views: Vec<RunView>,
    /// The commands that were taken up here, with what came of each.
    pub taken: Vec<(CommandId, Answer)>,
}

/// A store that could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("{}", .diagnostic.message)]
pub struct StoreError {
    /// What went wrong.
    pub diagnostic: Box<Diagnostic>,
}

impl StoreError {
    /// Returns the error of an engine whose log has grown without it.
    pub fn overtaken(after: Seq, last: Seq) -> Self {
        let message = format!(
            "somebody else has written to the store: its log ends at fact {}, not at {}",
            last.0, after.0
        );
        let diagnostic = Diagnostic::error(Code::StoreOvertaken, message);
        diagnostic
            .hint("nothing was written here; read the log again and go on from there")
            .into()
    }

    /// The error of a command with the key of another one.
    pub fn key_reused(key: &RequestKey) -> Self {
        let message = format!("the key `{}` is that of another command", key.0);
        let diagnostic = Diagnostic::error(Code::KeyReused, message);
        diagnostic
            .hint("choose a new key, such as a random UUID; keep a key only to send the same command again")
            .hint("`blueproof get commands` shows what was left with it")
            .into()
    }

    /// Returns whether a command has the key of another one: it is the same wish, made at another time or by another version.
    pub fn is_key_reused(&self) -> bool {
        self.diagnostic.code == Code::KeyReused
    }

    /// Returns whether somebody else has written, so that the log must be read again before anything is appended.
    pub fn is_overtaken(&self) -> bool {
        self.diagnostic.code == Code::StoreOvertaken
    }
}

impl From<Diagnostic> for StoreError {
    fn from(diagnostic: Diagnostic) -> Self {
        Self {
            diagnostic: Box::new(diagnostic),
        }
    }
}

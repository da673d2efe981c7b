//! A store that kills its own process at a chosen moment.

use std::str::FromStr;

use async_trait::async_trait;
use blueproof_core::{
    domain::{RequestKey, RunId, RunRequest},
    ports::{
        Batch, Command, LeftCommand, LoggedFact, Seq, Store, StoreClient, StoreError, StoredCommand, Version,
    },
    sqlite::SqliteStore,
    view::{OutlookView, RunView},
};
use jiff::Timestamp;

/// The moment of a crash: before or after a fact of a kind has been appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrashAt {
    /// The fact's kind.
    pub kind: String,
    /// On which side of the append.
    pub moment: Moment,
}

/// On which side of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The fact is lost.
    Before,
    /// The fact is durable, and nothing has been done about it yet.
    After,
}

/// A store that kills its own process at a chosen moment, as `kill -9` would.
#[derive(Debug)]
pub struct CrashingStore {
    /// The store that really keeps things.
    pub inner: SqliteStore,
    /// When to crash; `None` is never.
    pub at: Option<CrashAt>,
}

impl CrashingStore {
    fn crash(&self, batch: &Batch, moment: Moment) {
        let hit =
            |at: &CrashAt| at.moment == moment && batch.facts.iter().any(|(_, fact)| fact.kind() == at.kind);
        if self.at.as_ref().is_some_and(hit) {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    }
}

#[async_trait]
impl StoreClient for CrashingStore {
    async fn facts(&self, after: Seq, limit: usize) -> Result<Vec<LoggedFact>, StoreError> {
        self.inner.facts(after, limit).await
    }

    async fn snapshot(&self, version: u32) -> Result<Option<(Seq, Vec<u8>)>, StoreError> {
        self.inner.snapshot(version).await
    }

    async fn submit(&self, at: Timestamp, command: Command) -> Result<(), StoreError> {
        self.inner.submit(at, command).await
    }

    async fn command(&self, key: &RequestKey) -> Result<Option<StoredCommand>, StoreError> {
        self.inner.command(key).await
    }

    async fn all_commands(&self, limit: usize) -> Result<Vec<StoredCommand>, StoreError> {
        self.inner.all_commands(limit).await
    }

    async fn changed(&self, since: Option<Version>) -> Version {
        self.inner.changed(since).await
    }

    async fn request(&self, run: RunId) -> Result<Option<RunRequest>, StoreError> {
        self.inner.request(run).await
    }

    async fn run(&self, run: RunId) -> Result<Option<RunView>, StoreError> {
        self.inner.run(run).await
    }

    async fn run_of(&self, key: &RequestKey) -> Result<Option<RunView>, StoreError> {
        self.inner.run_of(key).await
    }

    async fn runs_before(&self, before: Option<RunId>, limit: usize) -> Result<Vec<RunView>, StoreError> {
        self.inner.runs_before(before, limit).await
    }
}

#[async_trait]
impl Store for CrashingStore {
    async fn append(&self, after: Seq, batch: Batch) -> Result<Seq, StoreError> {
        self.crash(&batch, Moment::Before);
        let last = self.inner.append(after, batch.clone()).await?;
        self.crash(&batch, Moment::After);
        Ok(last)
    }

    async fn put_outlooks(&self, after: Seq, outlooks: Vec<(RunId, OutlookView)>) -> Result<(), StoreError> {
        self.inner.put_outlooks(after, outlooks).await
    }

    async fn put_snapshot(&self, at: Seq, version: u32, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.inner.put_snapshot(at, version, bytes).await
    }

    async fn prune(&self, at: Timestamp, runs: &[RunId]) -> Result<Vec<RunId>, StoreError> {
        self.inner.prune(at, runs).await
    }

    async fn commands(&self) -> Result<Vec<LeftCommand>, StoreError> {
        self.inner.commands().await
    }
}

impl FromStr for CrashAt {
    type Err = String;

    /// Reads `after:started`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (moment, kind) = text.split_once(':').ok_or("a moment looks like after:started")?;
        let moment = match moment {
            "before" => Moment::Before,
            "after" => Moment::After,
            other => return Err(format!("`{other}` is neither before nor after")),
        };
        Ok(Self {
            kind: kind.into(),
            moment,
        })
    }
}

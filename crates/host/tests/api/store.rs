//! A store that is read through the API keeps the promises of the store behind it.

use std::sync::Arc;

use async_trait::async_trait;
use blueproof_core::{
    domain::{RequestKey, RunId, RunRequest},
    ports::{
        Batch, Clock, Command, LeftCommand, LoggedFact, Seq, Store, StoreClient, StoreError, StoredCommand,
        Version,
    },
    testing::{FakeClock, MemoryStore, contract},
    view::{OutlookView, RunView},
};
use blueproof_host::{ServerClient, api::Role};
use jiff::Timestamp;

use super::support::{On, Served};

/// A store whose leader is beside it, and whose others ask the API.
struct Through {
    client: ServerClient,
    store: Arc<MemoryStore>,
    clock: Arc<FakeClock>,
}

impl Through {
    fn new(served: &Served, token: Option<String>) -> Self {
        Self {
            client: served.client(token),
            store: served.store.clone(),
            clock: served.clock.clone(),
        }
    }
}

#[async_trait]
impl StoreClient for Through {
    async fn facts(&self, after: Seq, limit: usize) -> Result<Vec<LoggedFact>, StoreError> {
        self.client.facts(after, limit).await
    }

    async fn snapshot(&self, version: u32) -> Result<Option<(Seq, Vec<u8>)>, StoreError> {
        self.client.snapshot(version).await
    }

    async fn submit(&self, at: Timestamp, command: Command) -> Result<(), StoreError> {
        // When a command came the server says by its own clock.
        self.clock.advance(at.duration_since(self.clock.now()));
        self.client.submit(at, command).await
    }

    async fn command(&self, key: &RequestKey) -> Result<Option<StoredCommand>, StoreError> {
        self.client.command(key).await
    }

    async fn all_commands(&self, limit: usize) -> Result<Vec<StoredCommand>, StoreError> {
        self.client.all_commands(limit).await
    }

    async fn changed(&self, since: Option<Version>) -> Version {
        self.client.changed(since).await
    }

    async fn request(&self, run: RunId) -> Result<Option<RunRequest>, StoreError> {
        self.client.request(run).await
    }

    async fn run(&self, run: RunId) -> Result<Option<RunView>, StoreError> {
        self.client.run(run).await
    }

    async fn run_of(&self, key: &RequestKey) -> Result<Option<RunView>, StoreError> {
        self.client.run_of(key).await
    }

    async fn runs_before(&self, before: Option<RunId>, limit: usize) -> Result<Vec<RunView>, StoreError> {
        self.client.runs_before(before, limit).await
    }
}

#[async_trait]
impl Store for Through {
    async fn append(&self, after: Seq, batch: Batch) -> Result<Seq, StoreError> {
        self.store.append(after, batch).await
    }

    async fn put_outlooks(&self, after: Seq, outlooks: Vec<(RunId, OutlookView)>) -> Result<(), StoreError> {
        self.store.put_outlooks(after, outlooks).await
    }

    async fn put_snapshot(&self, at: Seq, version: u32, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.store.put_snapshot(at, version, bytes).await
    }

    async fn prune(&self, at: Timestamp, runs: &[RunId]) -> Result<Vec<RunId>, StoreError> {
        self.store.prune(at, runs).await
    }

    async fn commands(&self) -> Result<Vec<LeftCommand>, StoreError> {
        self.store.commands().await
    }
}

#[tokio::test]
async fn a_store_behind_a_socket_keeps_its_promises() {
    let served = Served::on(On::Socket).await;
    contract::store_keeps_its_promises(&Through::new(&served, None)).await;
}

#[tokio::test]
async fn a_store_behind_an_address_keeps_its_promises() {
    let served = Served::on(On::Loopback).await;
    // Who acts is whom the token names, and the contract's request is by ada.
    let token = served.token_of("ada", Role::Admin);
    contract::store_keeps_its_promises(&Through::new(&served, Some(token))).await;
}

#[tokio::test]
async fn what_attempts_leave_behind_a_socket_keeps_its_promises() {
    let served = Served::on(On::Socket).await;
    let client = Arc::new(served.client(None));
    contract::output_keeps_its_promises(client, &*served.output).await;
}

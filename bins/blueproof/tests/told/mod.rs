//! A store that was told the story that the unit tests know.

#[path = "../../src/show/samples/story.rs"]
pub(crate) mod story;

use std::path::Path;

use blueproof_core::{
    event::Event,
    policy::Policy,
    ports::{Batch, Seq, Store, StoreClient},
    scheduler::{Effort, Scheduler},
    sqlite::SqliteStore,
};
use jiff::Timestamp;

/// Tells a new store the story that the unit tests know, one event after the other.
pub(crate) async fn store(path: &Path) -> SqliteStore {
    let store = SqliteStore::open(path).expect("a store");
    let mut scheduler = Scheduler::new(Policy::local(Default::default()));
    for (at, event) in story::story() {
        tell(&store, &mut scheduler, at, event).await;
    }
    store
}

pub(crate) async fn tell(store: &SqliteStore, scheduler: &mut Scheduler, at: Timestamp, event: Event) {
    let facts = scheduler.handle(at, event).facts;
    let changed = scheduler.take_changed().runs;
    let views = changed
        .into_iter()
        .filter_map(|run| scheduler.view(run))
        .collect();
    let batch = Batch {
        facts: facts.into_iter().map(|fact| (at, fact)).collect(),
        views,
        taken: Vec::new(),
    };
    let log = store.facts(Seq(0), i64::MAX as usize).await.expect("it reads");
    let last = log.last().map_or(Seq(0), |logged| logged.seq);
    let last = store.append(last, batch).await.expect("it takes facts");
    let all = scheduler.runs().map(|run| run.id).collect();
    let outlooks = scheduler.outlooks(at, &all, Effort::ALL).into_iter().collect();
    store
        .put_outlooks(last, outlooks)
        .await
        .expect("it takes how runs stand");
}

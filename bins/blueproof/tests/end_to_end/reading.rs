//! Reading while somebody writes as fast as they can: no lock error, and nothing half-written is ever seen.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use blueproof_core::{
    event::Event,
    policy::Policy,
    ports::{Batch, Leadership, Seq, Store, StoreClient},
    scheduler::Scheduler,
    sqlite::SqliteStore,
    testing,
};
use jiff::Timestamp;

use crate::common::Home;

/// Appends runs, always two in one batch, until it is told to stop. Returns how many runs there are.
fn write_pairs(store: &SqliteStore, stop: &AtomicBool) -> u64 {
    let mut scheduler = Scheduler::new(Policy::local(Default::default()));
    let (mut n_runs, mut last) = (0, Seq(0));
    while !stop.load(Ordering::Relaxed) {
        let now = Timestamp::UNIX_EPOCH;
        let pair = [n_runs + 1, n_runs + 2].map(|number| {
            let request = testing::request(&format!("request {number}"), "story");
            (
                now,
                Event::Requested {
                    request: Box::new(request),
                },
            )
        });
        let facts = pair.into_iter().flat_map(|(at, event)| {
            let facts = scheduler.handle(at, event).facts.into_iter();
            facts.map(move |fact| (at, fact)).collect::<Vec<_>>()
        });
        let facts = facts.collect();
        let changed = scheduler.take_changed().runs;
        let views = changed
            .into_iter()
            .filter_map(|run| scheduler.view(run))
            .collect();
        let batch = Batch {
            facts,
            views,
            taken: Vec::new(),
        };
        last = wait_for(store.append(last, batch)).expect("it takes facts");
        n_runs += 2;
    }
    n_runs
}

/// Reads again and again, and sees whole pairs only, never fewer than before.
fn read_pairs(path: &Path) {
    let mut newest_before = 0;
    for _ in 0..100 {
        // Opened anew each time, as each command does.
        let store = SqliteStore::open_existing(path)
            .expect("it opens")
            .expect("it is there");
        let runs = wait_for(store.runs(20)).expect("it reads");
        let ids: Vec<u64> = runs.iter().map(|run| run.id.0).collect();
        newest_before = assert_whole(&ids, newest_before);
    }
}

/// Sees that these are the newest runs, in whole pairs, and returns the newest.
fn assert_whole(ids: &[u64], newest_before: u64) -> u64 {
    let newest = ids.first().copied().unwrap_or(0);
    assert_eq!(newest % 2, 0, "half of a pair: {ids:?}");
    assert!(newest >= newest_before, "{newest} after {newest_before}");
    assert!(
        ids.windows(2).all(|pair| pair[0] == pair[1] + 1),
        "one is missing: {ids:?}"
    );
    newest
}

fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// Lists runs again and again, as a person's loop in a shell does.
fn list_pairs(home: &Home) {
    let mut newest_before = 0;
    for _ in 0..25 {
        let answer = home.blueproof(&["get", "runs", "--limit", "20", "-o", "name"]);
        assert_eq!(
            (answer.code, answer.stderr.contains("error")),
            (Some(0), false),
            "{answer:?}"
        );
        let ids = answer
            .stdout
            .lines()
            .map(|id| id.strip_prefix("r-").expect("an id"));
        let ids: Vec<u64> = ids.map(|id| id.parse().expect("a number")).collect();
        newest_before = assert_whole(&ids, newest_before);
    }
}

#[test]
fn whoever_reads_beside_a_writer_sees_no_lock_and_no_half() {
    let home = Home::local("the store is written here, and nobody else may lead");
    let store = SqliteStore::open(&home.store()).expect("a store");
    let _term = wait_for(store.try_lead()).expect("a lock").expect("it is free");
    let (stop, store_file) = (AtomicBool::new(false), home.store());
    let n_runs = thread::scope(|scope| {
        let writer = scope.spawn(|| write_pairs(&store, &stop));
        let readers = [(); 2].map(|()| scope.spawn(|| read_pairs(&store_file)));
        let listing = scope.spawn(|| list_pairs(&home));
        let read: Vec<bool> = readers
            .into_iter()
            .chain([listing])
            .map(|reader| reader.join().is_ok())
            .collect();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(read, [true; 3], "every reader read to its end");
        writer.join().expect("it writes to its end")
    });
    assert!(n_runs > 0, "something was written meanwhile");
    let runs = wait_for(store.runs(usize::MAX >> 1)).expect("it reads");
    assert_eq!(runs.len() as u64, n_runs, "nothing that was written is lost");
}

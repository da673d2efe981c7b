//! How fast the SQLite store takes events that will outlive a power cut, and how fast they are replayed, or a snapshot of what
//! they came to is written and opened. One JSON line for each figure.
//!
//! `cargo xtask bench store` runs this and makes a table of it. A plain file on the same disk stands beside it: the
//! store can be no faster than what the disk takes to promise.

mod measure;

use std::{
    fs::File,
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

use blueproof_core::{
    domain::{Placement, RunId, Verdict},
    engine,
    event::Event,
    policy::Policy,
    ports::{Batch, Seq, Store, StoreClient},
    scheduler::{Changed, SNAPSHOT_VERSION, Scheduler},
    sqlite::SqliteStore,
    testing::{finished, request},
};
use jiff::Timestamp;
use measure::{Figure, Samples, timed};

/// How many appends are timed of each kind.
const APPENDS: usize = 600;

/// Events in a large batch.
const LARGE: usize = 16;

/// How many runs a log that is replayed tells of: six events each.
const REPLAYED: [usize; 2] = [1_000, 10_000];

fn main() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("cargo made the folder");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime can be made");
    Figure::new("plain write, fdatasync", &mut plain_file(folder.path())).print();
    for events in [1, LARGE] {
        let path = folder.path().join(format!("batches-of-{events}.db"));
        let mut samples = runtime.block_on(appends(&path, events));
        Figure::new("append", &mut samples).with("events", events).print();
    }
    for runs in REPLAYED {
        let path = folder.path().join(format!("{runs}-runs.db"));
        let (events, took) = runtime.block_on(replay(&path, runs));
        let mut samples = Samples::from_iter([took]);
        Figure::new("replay", &mut samples).with("events", events).print();
        let (written, opened) = runtime.block_on(resume(&path));
        for (name, took) in [("write a snapshot of", written), ("open a snapshot of", opened)] {
            let mut samples = Samples::from_iter([took]);
            Figure::new(&format!("{name} {runs} runs"), &mut samples).print();
        }
    }
}

/// Writes as much as one event is, and waits for the disk.
fn plain_file(folder: &Path) -> Samples {
    let mut file = File::create(folder.join("plain")).expect("the folder is there");
    let mut life = Life::default();
    let line = serde_json::to_vec(&life.batch(1).facts[0].1).expect("plain data");
    let mut write = || {
        file.write_all(&line).expect("the disk is not full");
        file.sync_data().expect("the disk works");
    };
    (0..APPENDS).map(|_| timed(&mut write)).collect()
}

async fn appends(path: &Path, events: usize) -> Samples {
    let store = SqliteStore::open(path).expect("a store");
    let mut life = Life::default();
    let mut samples = Samples::default();
    let mut last = Seq::default();
    for _ in 0..APPENDS {
        let batch = life.batch(events);
        let begun = Instant::now();
        last = store.append(last, batch).await.expect("the disk works");
        samples.push(begun.elapsed());
    }
    samples
}

async fn replay(path: &Path, runs: usize) -> (usize, Duration) {
    let store = SqliteStore::open(path).expect("a store");
    let mut life = Life::default();
    let events = runs * Life::EVENTS_OF_A_RUN;
    let whole = life.batch(events);
    store.append(Seq(0), whole).await.expect("the disk works");
    let begun = Instant::now();
    let (scheduler, _) = engine::replay(&store).await.expect("a read");
    let took = begun.elapsed();
    assert_eq!(
        scheduler.last_run(),
        RunId(runs as u64),
        "every run was there again"
    );
    (events, took)
}

/// Writes down what a log came to, and opens the store there.
async fn resume(path: &Path) -> (Duration, Duration) {
    let store = SqliteStore::open(path).expect("a store");
    let (scheduler, _) = engine::replay(&store).await.expect("a read");
    let last = store.facts(Seq(0), 1_000_000).await.expect("a read").len() as u64;
    let begun = Instant::now();
    let bytes = scheduler.snapshot().to_bytes();
    let put = store.put_snapshot(Seq(last), SNAPSHOT_VERSION, bytes);
    put.await.expect("the disk works");
    let written = begun.elapsed();
    let begun = Instant::now();
    let (resumed, _) = engine::replay(&store).await.expect("a read");
    let opened = begun.elapsed();
    assert_eq!(
        resumed.runs().len(),
        scheduler.runs().len(),
        "every run is there again"
    );
    (written, opened)
}

/// Runs that pass, one after the other, event by event.
struct Life {
    scheduler: Scheduler,
    run: RunId,
    next: usize,
}

impl Default for Life {
    fn default() -> Self {
        let quota = request("quota", "nano-lm").job.gang();
        Self {
            scheduler: Scheduler::new(Policy::local(quota)),
            run: RunId(1),
            next: 0,
        }
    }
}

impl Life {
    const EVENTS_OF_A_RUN: usize = 6;

    /// Returns what comes of the next inputs, with the runs that change, as the engine appends it.
    fn batch(&mut self, inputs: usize) -> Batch {
        let now = Timestamp::UNIX_EPOCH;
        let mut facts = Vec::new();
        for _ in 0..inputs {
            let input = self.input();
            let step = self.scheduler.handle(now, input);
            facts.extend(step.facts.into_iter().map(|fact| (now, fact)));
        }
        let Changed { runs, forgotten } = self.scheduler.take_changed();
        let remembered = runs.into_iter().filter_map(|run| self.scheduler.view(run));
        Batch {
            views: remembered.chain(forgotten).collect(),
            facts,
            taken: Vec::new(),
        }
    }

    fn input(&mut self) -> Event {
        let (run, attempt) = (self.run, self.run.attempt(1));
        self.next += 1;
        match self.next {
            1 => Event::Requested {
                request: Box::new(request(&format!("key-{}", run.0), "nano-lm")),
            },
            2 => Event::Reserved {
                attempt,
                place: Placement::on("local"),
            },
            3 => Event::Started { attempt },
            4 => finished(attempt, Verdict::Passed),
            5 => Event::Released { attempt },
            _ => {
                (self.run, self.next) = (RunId(run.0 + 1), 0);
                Event::Reported { run, attempts: 1 }
            }
        }
    }
}

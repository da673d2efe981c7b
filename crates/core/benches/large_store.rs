//! A store with many runs: `make FILE SETTLED UNSETTLED` makes one with so many settled and unsettled runs, and `open FILE`
//! prints how long opening it takes and how much memory, as a line of JSON.
//!
//! `cargo xtask bench large-store` runs this, each opening in a process of its own, and makes a table of it; `cargo xtask
//! bench api` serves such a store. The scheduler decides every fact, and forgets settled runs as it does in production. An
//! engine would append smaller batches.

use std::{env, fs, path::Path, time::Instant};

use blueproof_core::{
    domain::{Placement, Resources, RunId, Verdict},
    engine,
    event::Event,
    fact::Fact,
    policy::Policy,
    ports::{Batch, Seq, Store, StoreClient},
    scheduler::{Changed, Effort, SNAPSHOT_VERSION, Scheduler},
    sqlite::SqliteStore,
    testing::{finished, request},
    view::RunView,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

/// How many facts there are of each settled run.
const FACTS_OF_A_RUN: usize = 20;

/// How many runs are appended at once.
const RUNS_AT_ONCE: u64 = 200;

/// How many runs end after the last snapshot. Their 4,000 facts are replayed; an engine writes a snapshot every 4,096.
const AFTER_SNAPSHOT: u64 = 200;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime can be made");
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["make", path, settled, unsettled, ..] => {
            let number = |text: &str| text.parse().expect("a number of runs");
            runtime.block_on(make(Path::new(path), number(settled), number(unsettled)));
        }
        ["open", path, ..] => runtime.block_on(open(Path::new(path))),
        // `cargo bench` without a name runs every bench.
        _ => {}
    }
}

/// Makes a store with so many runs. Of those that are unsettled, the first has quota, and the others wait for it.
async fn make(path: &Path, settled: u64, unsettled: u64) {
    let store = SqliteStore::open(path).expect("a store");
    let mut growth = Growth::new();
    growth.configure();
    let mut last = Seq(0);
    for run in 1..=settled {
        growth.pass(RunId(run));
        if run % RUNS_AT_ONCE == 0 {
            last = growth.append(&store, last).await;
        }
        if run + AFTER_SNAPSHOT == settled {
            last = growth.append(&store, last).await;
            let bytes = growth.scheduler.snapshot().to_bytes();
            let put = store.put_snapshot(last, SNAPSHOT_VERSION, bytes);
            put.await.expect("the disk works");
        }
    }
    for run in settled + 1..=settled + unsettled {
        growth.tell(requested(RunId(run)));
    }
    growth.append(&store, last).await;
}

/// A scheduler with the facts that are not stored yet.
struct Growth {
    scheduler: Scheduler,
    now: Timestamp,
    facts: Vec<(Timestamp, Fact)>,
}

impl Growth {
    fn new() -> Self {
        Self {
            scheduler: Scheduler::new(Policy::local(Resources::default())),
            now: Timestamp::UNIX_EPOCH,
            facts: Vec::new(),
        }
    }

    /// Gives the scheduler its policy by a fact, so that a replay has it, too.
    fn configure(&mut self) {
        let quota = request("quota", "nano-lm").job.gang();
        let policy = Box::new(Policy::local(quota));
        self.tell(Event::Configured { policy });
    }

    /// Has a run pass, with as much news of it as makes its number of facts.
    fn pass(&mut self, run: RunId) {
        let (attempt, before) = (run.attempt(1), self.facts.len());
        self.tell(requested(run));
        let place = Placement::on("local");
        self.tell(Event::Reserved { attempt, place });
        self.tell(Event::Started { attempt });
        let ends = [
            finished(attempt, Verdict::Passed),
            Event::Released { attempt },
            Event::Reported { run, attempts: 1 },
        ];
        let mut number = 0;
        // The three at the end are four facts: the run's end is decided.
        while self.facts.len() - before + ends.len() + 1 < FACTS_OF_A_RUN {
            number += 1;
            let message = format!("{number} images pulled");
            let reason = "Pulling".into();
            self.tell(Event::Pending {
                attempt,
                reason,
                message,
            });
        }
        ends.into_iter().for_each(|input| self.tell(input));
    }

    fn tell(&mut self, input: Event) {
        self.now += SignedDuration::from_secs(1);
        let step = self.scheduler.handle(self.now, input);
        self.facts
            .extend(step.facts.into_iter().map(|fact| (step.at, fact)));
    }

    /// Appends what is not stored yet, as an engine does.
    async fn append(&mut self, store: &SqliteStore, last: Seq) -> Seq {
        let Changed { runs, forgotten } = self.scheduler.take_changed();
        let mut outlooks = self.scheduler.outlooks(self.now, &runs, Effort::ALL);
        let views = runs.into_iter().filter_map(|run| self.scheduler.view(run));
        let rows = views.map(|view| RunView {
            outlook: outlooks.remove(&view.id).map(Box::new),
            ..view
        });
        let batch = Batch {
            views: rows.chain(forgotten).collect(),
            facts: std::mem::take(&mut self.facts),
            taken: Vec::new(),
        };
        store.append(last, batch).await.expect("the disk works")
    }
}

fn requested(run: RunId) -> Event {
    let request = Box::new(request(&format!("key-{}", run.0), "nano-lm"));
    Event::Requested { request }
}

async fn open(path: &Path) {
    let begun = Instant::now();
    let store = SqliteStore::open(path).expect("a store");
    let (scheduler, _) = engine::replay(&store).await.expect("a read");
    let took = begun.elapsed();
    let figure = json!({
        "seconds": took.as_secs_f64(),
        "peakBytes": peak(),
        "facts": facts(&store).await,
        "runs": scheduler.last_run().0,
    });
    println!("{figure}");
}

/// Returns how many facts the log has: the last position at which there is one.
async fn facts(store: &SqliteStore) -> u64 {
    let (mut last, mut step) = (0, 1 << 20);
    while step > 0 {
        let found = store.facts(Seq(last + step - 1), 1).await.expect("a read");
        match found.is_empty() {
            true => step /= 2,
            false => last += step,
        }
    }
    last
}

/// Returns the most memory that this process had so far.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

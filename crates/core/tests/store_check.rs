//! What is beside the log is what the log comes to, or is said not to be and made again.

use std::{num::NonZeroU32, path::PathBuf, sync::Arc};

use blueproof_core::{
    domain::RunId,
    engine::{self, Engine, Ports},
    policy::Policy,
    ports::{Clusters, Command, Seq, Store, StoreClient},
    scheduler::{SNAPSHOT_VERSION, Scheduler},
    sqlite::{SqliteStore, StoreCheck, StoreProblem},
    testing::{FakeClock, FakeCluster, FakeReporter, request, two_cores},
    view::RunView,
};
use blueproof_diagnostic::Code;
use jiff::Timestamp;
use rusqlite::Connection;

/// How many runs there were.
const RUNS: u64 = 9;

/// A store of which the first runs are forgotten, with two snapshots.
struct Lived {
    _folder: tempfile::TempDir,
    path: PathBuf,
    store: Arc<SqliteStore>,
}

impl Lived {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("blueproof.db");
        let store = Arc::new(SqliteStore::open(&path).expect("a store"));
        let lived = Self {
            _folder: folder,
            path,
            store,
        };
        for run in 1..=RUNS {
            let request = Box::new(request(&run.to_string(), "nano-lm"));
            let asked = lived
                .store
                .submit(Timestamp::UNIX_EPOCH, Command::Run { request });
            asked.await.expect("a store that works");
            lived.go_on().await;
            if run == 3 || run == 6 {
                lived.take_snapshot().await;
            }
        }
        lived
    }

    async fn go_on(&self) {
        let policy = Policy {
            remembered_runs: NonZeroU32::new(2).expect("some"),
            ..Policy::local(two_cores())
        };
        let ports = Ports {
            store: self.store.clone(),
            clusters: Clusters::one(Arc::new(FakeCluster::passing(two_cores()))),
            reporters: vec![Arc::new(FakeReporter::default())],
            clock: Arc::new(FakeClock::default()),
        };
        let mut engine = Engine::open(ports, policy).await.expect("a store that works");
        let worked = engine.run_until(Scheduler::is_idle).await;
        worked.expect("a store that works");
    }

    async fn take_snapshot(&self) {
        let (scheduler, _) = engine::replay(&*self.store).await.expect("a store that works");
        let last = self.last().await;
        let bytes = scheduler.snapshot().to_bytes();
        let put = self.store.put_snapshot(last, SNAPSHOT_VERSION, bytes);
        put.await.expect("a store that works");
    }

    async fn last(&self) -> Seq {
        let facts = self
            .store
            .facts(Seq(0), 100_000)
            .await
            .expect("a store that works");
        facts.last().expect("there are some").seq
    }

    async fn check(&self) -> StoreCheck {
        self.store.check(|_, _| ()).await.expect("the log is whole")
    }

    async fn rows(&self) -> Vec<RunView> {
        self.store.runs(100).await.expect("a store that works")
    }

    fn damage(&self, sql: &str) {
        let file = Connection::open(&self.path).expect("a file");
        file.execute_batch(sql).expect("it is ours");
    }

    /// Repairs what is wrong, after which everything is as it was.
    async fn is_repaired(&self, before: &[RunView], problems: &[StoreProblem]) {
        assert_eq!(self.check().await.problems, problems);
        let repaired = self.store.repair(|_, _| ()).await.expect("the log is whole");
        assert_eq!(repaired.problems, problems);
        assert_eq!(self.check().await.problems, []);
        assert_eq!(self.rows().await, before);
    }
}

#[tokio::test]
async fn a_store_that_is_whole_is_said_to_be() {
    let lived = Lived::new().await;
    let check = lived.check().await;
    assert_eq!((check.facts, check.runs), (lived.last().await.0, RUNS));
    assert_eq!((check.pruned, check.problems), (0, vec![]));
    let (scheduler, _) = engine::replay(&*lived.store).await.expect("a store that works");
    assert!(
        scheduler.runs().len() < 5,
        "runs are forgotten: the check is of them, too"
    );
}

#[tokio::test]
async fn rows_that_are_wrong_missing_or_nobodys_are_found_and_made_again() {
    let lived = Lived::new().await;
    let before = lived.rows().await;
    lived.damage(
        "DELETE FROM run WHERE id IN (2, 9);
         UPDATE run SET view = json_set(view, '$.settled', json('false')) WHERE id = 8;
         UPDATE run SET view = 'no view' WHERE id = 3;
         INSERT INTO run (id, key, view) SELECT 77, 'forged', view FROM run WHERE id = 1;",
    );
    let [two, three, eight, nine] = [2, 3, 8, 9].map(RunId);
    let problems = [
        StoreProblem::RowMissing(two),
        StoreProblem::RowDiffers(three),
        StoreProblem::RowDiffers(eight),
        StoreProblem::RowMissing(nine),
        StoreProblem::RowUnknown(RunId(77)),
    ];
    lived.is_repaired(&before, &problems).await;
    lived.damage("DELETE FROM run");
    let all = (1..=RUNS).map(|run| StoreProblem::RowMissing(RunId(run)));
    lived.is_repaired(&before, &all.collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn runs_that_were_pruned_are_not_missed() {
    let lived = Lived::new().await;
    let pruned = lived
        .store
        .prune(Timestamp::UNIX_EPOCH, &[1, 2, 9].map(RunId))
        .await;
    assert_eq!(pruned.expect("a store that works").len(), 3);
    let before = lived.rows().await;
    let check = lived.check().await;
    assert_eq!((check.pruned, check.problems), (3, vec![]));
    lived.damage("DELETE FROM run WHERE id = 3");
    lived
        .is_repaired(&before, &[StoreProblem::RowMissing(RunId(3))])
        .await;
}

#[tokio::test]
async fn a_snapshot_that_says_something_else_is_found_and_removed() {
    let lived = Lived::new().await;
    let before = lived.rows().await;
    // Whole by its checksum, and of another point of the log.
    let last = lived.last().await;
    let (_, early) = lived
        .store
        .snapshot(SNAPSHOT_VERSION)
        .await
        .expect("a store that works")
        .expect("there are two");
    let put = lived.store.put_snapshot(last, SNAPSHOT_VERSION, early);
    put.await.expect("a store that works");
    lived.is_repaired(&before, &[StoreProblem::Snapshot(last)]).await;

    lived.take_snapshot().await;
    lived.damage("UPDATE snapshot SET body = zeroblob(100) WHERE seq = (SELECT max(seq) FROM snapshot)");
    lived.is_repaired(&before, &[StoreProblem::Snapshot(last)]).await;
}

#[tokio::test]
async fn a_log_with_a_gap_is_refused_by_whoever_reads_it() {
    let lived = Lived::new().await;
    lived.damage("DELETE FROM snapshot; DELETE FROM fact WHERE seq = 7");
    let refused = lived.store.check(|_, _| ()).await.expect_err("a fact is missing");
    assert_eq!(refused.diagnostic.code, Code::FactUnreadable);
    assert!(refused.diagnostic.message.contains("fact 7"), "{refused}");
    let refused = engine::replay(&*lived.store)
        .await
        .expect_err("a fact is missing");
    assert_eq!(refused.diagnostic.code, Code::FactUnreadable);
}

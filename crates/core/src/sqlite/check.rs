//! Whether a store is whole: what is beside the log is what the log comes to.

use std::fmt;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::{SqliteStore, columns::Error, projection::Projection, rows, snapshots};
use crate::{
    domain::RunId,
    ports::{Seq, StoreError},
    scheduler::{Replay, Scheduler, Snapshot},
    view::RunView,
};

/// How many rows are looked at without giving way to others.
const ROWS: usize = 1000;

/// How often rows are compared again while whoever leads goes on writing.
const ROUNDS: usize = 5;

/// What came of looking at all of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreCheck {
    /// How many facts the log has.
    pub facts: u64,
    /// How many runs were ever asked for.
    pub runs: u64,
    /// How many of them are not kept any more.
    pub pruned: u64,
    /// What is not as the log says.
    pub problems: Vec<StoreProblem>,
}

/// Something in a store that is not as the log says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreProblem {
    /// SQLite finds its file damaged, and says how.
    File(String),
    /// A snapshot says something else than the log up to it. It is never taken up once it is removed.
    Snapshot(Seq),
    /// The row of a run says something else than the log.
    RowDiffers(RunId),
    /// The row of a run is not there, and nobody removed it.
    RowMissing(RunId),
    /// There is a row of a run that the log does not know.
    RowUnknown(RunId),
}

impl StoreProblem {
    /// Returns whether it can be made as the log says.
    pub fn is_repairable(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Snapshot(_) | Self::RowDiffers(_) | Self::RowMissing(_) | Self::RowUnknown(_) => true,
        }
    }
}

impl fmt::Display for StoreProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(problem) => write!(f, "the file is damaged: {problem}"),
            Self::Snapshot(at) => write!(f, "the snapshot at fact {} is not what the log comes to", at.0),
            Self::RowDiffers(run) => write!(f, "the row of {run} is not what the log comes to"),
            Self::RowMissing(run) => write!(f, "the row of {run} is missing"),
            Self::RowUnknown(run) => write!(f, "there is a row of {run}, which the log does not know"),
        }
    }
}

/// What is done about what is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Tell,
    Repair,
}

impl SqliteStore {
    /// Compares everything with the log, which is applied from its beginning. It only reads, and blocks nobody; `progress` is told
    /// how many facts of how many were applied.
    ///
    /// # Errors
    /// When the log itself cannot be read or understood, or a fact of it is missing: everything else follows from it.
    pub async fn check(&self, progress: impl Fn(u64, u64)) -> Result<StoreCheck, StoreError> {
        self.compare(Then::Tell, &progress).await
    }

    /// Does the same, and makes what is wrong again as the log says; what was wrong is returned. To be called by whoever has the
    /// right to append. It may be called again.
    ///
    /// # Errors
    /// As with [`Self::check`], and when the store cannot be written.
    pub async fn repair(&self, progress: impl Fn(u64, u64)) -> Result<StoreCheck, StoreError> {
        self.compare(Then::Repair, &progress).await
    }

    async fn compare(&self, then: Then, progress: &impl Fn(u64, u64)) -> Result<StoreCheck, StoreError> {
        let mut check = StoreCheck {
            problems: self.read(file_problems).await?,
            ..StoreCheck::default()
        };
        let mut projection = Projection::default();
        for (at, is_whole) in self.read(snapshots::all).await? {
            self.apply_to(at, &mut projection, then, &mut check, progress)
                .await?;
            let is_right = is_whole && self.is_right(at, &projection).await?;
            if !is_right {
                check.problems.push(StoreProblem::Snapshot(at));
                self.remove_snapshot(at, then).await?;
            }
        }
        let mut of_rows = Vec::new();
        for _ in 0..ROUNDS {
            let before = projection.last();
            self.apply_to(Seq(u64::MAX), &mut projection, then, &mut check, progress)
                .await?;
            if !of_rows.is_empty() && before == projection.last() {
                break;
            }
            of_rows = self
                .compare_rows(projection.scheduler().runs().collect(), then)
                .await?;
            if of_rows.is_empty() || then == Then::Repair {
                break;
            }
        }
        check.problems.extend(of_rows);
        let last = projection.scheduler().last_run();
        check.problems.extend(self.unknown_rows(last, then).await?);
        (check.facts, check.runs) = (projection.last().0, last.0);
        check.pruned = self.read(count_pruned).await?;
        Ok(check)
    }

    /// Applies facts up to a position, and compares the rows of runs that are forgotten meanwhile.
    async fn apply_to(
        &self,
        to: Seq,
        projection: &mut Projection,
        then: Then,
        check: &mut StoreCheck,
        progress: &impl Fn(u64, u64),
    ) -> Result<(), StoreError> {
        let end = self.read(|connection| Ok(rows::last_seq(connection)?)).await?;
        while let Some(forgotten) = projection.go_on(self, to).await? {
            check.problems.extend(self.compare_rows(forgotten, then).await?);
            progress(projection.last().0, end.0.max(projection.last().0));
        }
        Ok(())
    }

    async fn compare_rows(&self, views: Vec<RunView>, then: Then) -> Result<Vec<StoreProblem>, StoreError> {
        let mut problems = Vec::new();
        let mut views = views.into_iter().peekable();
        while views.peek().is_some() {
            let some: Vec<RunView> = views.by_ref().take(ROWS).collect();
            let wrong = self.read(move |connection| wrong_rows(connection, some)).await?;
            let (found, right): (Vec<_>, Vec<_>) = wrong.into_iter().unzip();
            problems.extend(found);
            if then == Then::Repair && !right.is_empty() {
                self.write("make rows again", |connection| rows::put_rows(connection, right))
                    .await?;
            }
        }
        Ok(problems)
    }

    async fn unknown_rows(&self, last: RunId, then: Then) -> Result<Vec<StoreProblem>, StoreError> {
        let unknown = self
            .read(move |connection| unknown_rows(connection, last))
            .await?;
        if then == Then::Repair && !unknown.is_empty() {
            let ids = unknown.clone();
            self.write("remove rows", move |connection| remove_rows(connection, &ids))
                .await?;
        }
        Ok(unknown.into_iter().map(StoreProblem::RowUnknown).collect())
    }

    /// Returns whether a snapshot comes to the same runs as the log does there, with the same still to be done.
    async fn is_right(&self, at: Seq, projection: &Projection) -> Result<bool, StoreError> {
        let body = self
            .read(move |connection| snapshots::body(connection, at))
            .await?;
        // Whoever leads may have put newer ones in its place meanwhile.
        let Some(body) = body else { return Ok(true) };
        let taken_up = Snapshot::from_bytes(&body).and_then(Replay::from_snapshot);
        Ok(taken_up.is_ok_and(|taken_up| is_same(taken_up.scheduler(), projection.scheduler())))
    }

    async fn remove_snapshot(&self, at: Seq, then: Then) -> Result<(), StoreError> {
        if then == Then::Tell {
            return Ok(());
        }
        self.write("remove a snapshot", move |connection| {
            snapshots::remove(connection, at)
        })
        .await
    }
}

fn is_same(one: &Scheduler, other: &Scheduler) -> bool {
    one.last_run() == other.last_run()
        && one.runs().eq(other.runs())
        && one.outstanding() == other.outstanding()
}

fn file_problems(connection: &mut Connection) -> Result<Vec<StoreProblem>, Error> {
    let mut select = connection.prepare("PRAGMA integrity_check")?;
    let lines = select.query_map([], |row| row.get::<_, String>(0))?;
    let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
    let problems = lines.into_iter().filter(|line| line != "ok");
    Ok(problems.map(StoreProblem::File).collect())
}

/// Returns what is wrong with the rows of runs, with how each should be.
fn wrong_rows(
    connection: &mut Connection,
    views: Vec<RunView>,
) -> Result<Vec<(StoreProblem, RunView)>, Error> {
    let mut select = connection.prepare_cached("SELECT view FROM run WHERE id = ?1")?;
    let mut pruned = connection.prepare_cached("SELECT 1 FROM pruned WHERE id = ?1")?;
    let mut wrong = Vec::new();
    for view in views {
        let stored: Option<String> = select.query_row([view.id.0], |row| row.get(0)).optional()?;
        let problem = match stored {
            None if pruned.exists([view.id.0])? => continue,
            None => StoreProblem::RowMissing(view.id),
            Some(body) if serde_json::from_str(&body).ok().as_ref() == Some(&view) => continue,
            Some(_) => StoreProblem::RowDiffers(view.id),
        };
        wrong.push((problem, view));
    }
    Ok(wrong)
}

/// Returns the runs that have a row and come after the last that was asked for.
fn unknown_rows(connection: &mut Connection, last: RunId) -> Result<Vec<RunId>, Error> {
    let mut select = connection.prepare_cached("SELECT id FROM run WHERE id > ?1 OR id < 1 ORDER BY id")?;
    let ids = select.query_map([last.0], |row| row.get(0).map(RunId))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

fn remove_rows(connection: &mut Connection, runs: &[RunId]) -> Result<(), Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for run in runs {
        transaction.execute("DELETE FROM run WHERE id = ?1", params![run.0])?;
    }
    Ok(transaction.commit()?)
}

fn count_pruned(connection: &mut Connection) -> Result<u64, Error> {
    let count = connection.query_row(
        "SELECT count(*) FROM pruned WHERE id NOT IN (SELECT id FROM run)",
        [],
        |row| row.get(0),
    )?;
    Ok(count)
}

//! The tables, and how an older file becomes a newer one.

use std::path::Path;

use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::{broken, columns, first_log, unreadable};
use crate::{attempt::STORE_ID, ports::StoreError};

/// What takes a file from each version to the next. A step that has shipped is never changed.
const STEPS: &[Step] = &[
    Step::Sql(
        "CREATE TABLE event (
         seq  INTEGER PRIMARY KEY,
         at   TEXT NOT NULL,
         kind TEXT NOT NULL,
         body TEXT NOT NULL
     ) STRICT;
     CREATE TABLE run (
         id    INTEGER PRIMARY KEY,
         key   TEXT NOT NULL UNIQUE,
         view  TEXT NOT NULL
     ) STRICT;",
    ),
    // Wishes of other processes came second: at first only the process that held the store could ask.
    Step::Sql(
        "CREATE TABLE command (
         id    INTEGER PRIMARY KEY AUTOINCREMENT,
         key   TEXT NOT NULL UNIQUE,
         at    TEXT NOT NULL,
         taken INTEGER NOT NULL DEFAULT 0,
         body  TEXT NOT NULL
     ) STRICT;
     CREATE INDEX command_waiting ON command (id) WHERE taken = 0;",
    ),
    // Whoever asks for a run looks which queues there are, and waits for no replay.
    Step::Sql("CREATE INDEX event_quota ON event (seq) WHERE kind = 'quotaApplied';"),
    // Runs are counted from one in each store. Folders of theirs, which may outlive a store or be another's, need a name.
    // Those of a store that has runs already have none before their numbers.
    Step::Sql(
        "CREATE TABLE identity (
         only   INTEGER PRIMARY KEY CHECK (only = 1),
         id     TEXT NOT NULL,
         folder TEXT NOT NULL,
         secret BLOB NOT NULL
     ) STRICT;
     INSERT INTO identity VALUES (1, lower(hex(randomblob(6))), '', randomblob(32));
     UPDATE identity SET folder = id WHERE NOT EXISTS (SELECT 1 FROM run);",
    ),
    // The log had what came in, and each binary decided about it anew. From here on it has what was decided, too.
    Step::Sql(
        "CREATE TABLE fact (
         seq  INTEGER PRIMARY KEY,
         at   TEXT NOT NULL,
         kind TEXT NOT NULL,
         body TEXT NOT NULL
     ) STRICT;
     CREATE INDEX fact_quota ON fact (seq) WHERE kind = 'quotaApplied';",
    ),
    Step::Decide,
    Step::Sql("DROP TABLE event;"),
    // Whoever opens a store replayed all of its log. From here on that begins at the last snapshot, if it is whole.
    Step::Sql(
        "CREATE TABLE snapshot (
         seq      INTEGER PRIMARY KEY,
         version  INTEGER NOT NULL,
         checksum BLOB NOT NULL,
         body     BLOB NOT NULL
     ) STRICT;",
    ),
    // Whoever left a command is told what came of it, and one that cannot be read stops no other.
    Step::Sql(
        "ALTER TABLE command ADD COLUMN kind TEXT NOT NULL DEFAULT '';
     ALTER TABLE command ADD COLUMN answer TEXT;
     UPDATE command SET kind = coalesce(json_extract(body, '$.kind'), '') WHERE taken = 0 AND json_valid(body);",
    ),
    // Whoever asked why a run waits replayed the log. From here on its row says so, and its request is found by its key.
    Step::Sql(
        "ALTER TABLE run ADD COLUMN outlook TEXT;
     CREATE INDEX fact_request ON fact (json_extract(body, '$.input.request.key')) WHERE kind = 'requested';",
    ),
    // Rows were never removed. What is not there any more is told from what is missing.
    Step::Sql(
        "CREATE TABLE pruned (
         id INTEGER PRIMARY KEY,
         at TEXT NOT NULL
     ) STRICT;",
    ),
    // Webhooks are kept as they came, and are worked on afterwards.
    Step::Sql(
        "CREATE TABLE delivery (
         seq         INTEGER PRIMARY KEY AUTOINCREMENT,
         id          TEXT NOT NULL UNIQUE,
         event       TEXT NOT NULL,
         received_at TEXT NOT NULL,
         body        BLOB NOT NULL,
         state       INTEGER NOT NULL,
         attempts    INTEGER NOT NULL DEFAULT 0,
         noted_at    TEXT,
         told        TEXT NOT NULL
     ) STRICT;
     CREATE INDEX delivery_pending ON delivery (seq) WHERE state = 0;",
    ),
];

/// A step from one version to the next.
enum Step {
    Sql(&'static str),
    /// What the log of version 1 does not have is decided once more.
    Decide,
}

impl Step {
    fn take(&self, transaction: &Transaction<'_>) -> Result<(), columns::Error> {
        match self {
            Self::Sql(sql) => Ok(transaction.execute_batch(sql)?),
            Self::Decide => first_log::decide_again(transaction),
        }
    }
}

/// Brings a file to the newest version. What is there stays; a file that is not ours, or is newer, is not touched.
///
/// A file that is up to date is only read, so that whoever opens one waits for no writer and needs no right to write.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| broken(path, "bring its schema up to date", &error);
    if is_current(connection).map_err(failed)? {
        return Ok(());
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(failed)?;
    let number = |pragma: &str| transaction.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let (application, version) = (
        number("application_id").map_err(failed)?,
        number("user_version").map_err(failed)?,
    );
    let empty = application == 0 && version == 0 && number("schema_version").map_err(failed)? == 0;
    if !empty && application != i64::from(STORE_ID) {
        return Err(not_ours(path));
    }
    let known = i64::try_from(STEPS.len()).expect("few steps");
    if version > known {
        return Err(too_new(path, version, known));
    }
    for step in &STEPS[usize::try_from(version).unwrap_or(0)..] {
        step.take(&transaction)
            .map_err(|error| not_migrated(path, &error))?;
    }
    if version < known {
        transaction
            .pragma_update(None, "application_id", STORE_ID)
            .map_err(failed)?;
        transaction
            .pragma_update(None, "user_version", known)
            .map_err(failed)?;
    }
    transaction.commit().map_err(failed)?;
    // So that the file itself says whose it is, and not only the log beside it.
    connection
        .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
        .map_err(failed)
}

/// Returns whether a file was made by an older version.
pub(super) fn is_older(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let known = i64::try_from(STEPS.len()).expect("few steps");
    let version = number("user_version")?;
    Ok(number("application_id")? == i64::from(STORE_ID) && version > 0 && version < known)
}

/// Says why a store of an older version is not brought up to date just now: who leads it reads and writes the old tables.
pub(super) fn led_by_older(path: &Path, leader: Option<u32>) -> StoreError {
    let who = leader.map_or_else(String::new, |pid| format!(" (process {pid})"));
    let message = format!("the store is of an older version, and an older blueproof{who} goes on with it");
    let diagnostic = Diagnostic::error(Code::StoreBroken, message)
        .at(SourceLocation::file(path.display().to_string()))
        .hint("wait until that one has ended, or stop it: what runs goes on by itself, and is taken over by whoever comes next");
    diagnostic.into()
}

fn is_current(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let known = i64::try_from(STEPS.len()).expect("few steps");
    Ok(number("application_id")? == i64::from(STORE_ID) && number("user_version")? == known)
}

/// Returns whether a file has something in it, and less than the header of a database: SQLite would take it for a new one, and
/// write over it.
pub(super) fn is_too_short(path: &Path) -> bool {
    const HEADER: u64 = 100;
    std::fs::metadata(path).is_ok_and(|file| (1..HEADER).contains(&file.len()))
}

pub(super) fn not_ours(path: &Path) -> StoreError {
    let diagnostic = Diagnostic::error(Code::StoreNotOurs, "this is no store of blueproof")
        .at(SourceLocation::file(path.display().to_string()))
        .hint("name another file with --store; this one was not touched");
    diagnostic.into()
}

/// Says why a store of an older version stays as it is.
fn not_migrated(path: &Path, error: &columns::Error) -> StoreError {
    let mut error = match error {
        columns::Error::Fact { seq, kind, source } => unreadable(path, *seq, kind, &**source),
        columns::Error::Sqlite(_)
        | columns::Error::Overtaken { .. }
        | columns::Error::DecidedOtherwise { .. }
        | columns::Error::KeyReused(_)
        | columns::Error::Row { .. } => broken(path, "bring it up to date", error),
    };
    let hint =
        "it was not touched: use the blueproof that wrote it, or copy it to whoever looks after blueproof";
    error.diagnostic.hints.insert(0, hint.into());
    error
}

fn too_new(path: &Path, version: i64, known: i64) -> StoreError {
    let message = format!("the store has version {version}; this blueproof knows versions up to {known}");
    let diagnostic = Diagnostic::error(Code::StoreTooNew, message)
        .at(SourceLocation::file(path.display().to_string()))
        .hint("use the newer blueproof that wrote it, or name another file with --store; this one was not touched");
    diagnostic.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        domain::RunId,
        event::Event,
        fact::Fact,
        ports::{Seq, Store, StoreClient},
        sqlite::SqliteStore,
    };

    /// Makes a file as the first version made it, with one event in it.
    fn old_file(path: &Path) {
        let connection = Connection::open(path).expect("a file");
        let Step::Sql(first) = STEPS[0] else {
            panic!("the first version is plain SQL")
        };
        connection.execute_batch(first).expect("the first version");
        connection
            .pragma_update(None, "application_id", STORE_ID)
            .expect("a pragma");
        connection
            .pragma_update(None, "user_version", 1)
            .expect("a pragma");
        let insert = "INSERT INTO event VALUES (1, '2026-01-02T03:04:05Z', 'reported', '{\"kind\":\"reported\",\"run\":\"r-1\",\"attempts\":1}')";
        connection.execute(insert, []).expect("a row");
    }

    #[tokio::test]
    async fn an_old_file_keeps_its_events() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("old.db");
        old_file(&path);
        let store = SqliteStore::open(&path).expect("it is brought up to date");
        let facts = store.facts(Seq(0), 10).await.expect("a read");
        let reported = Event::Reported {
            run: RunId(1),
            attempts: 1,
        };
        assert_eq!(facts.len(), 1);
        assert_eq!(facts[0].fact, Fact::Input(reported));
        assert_eq!(store.commands().await.expect("the second version's table"), []);
    }

    #[test]
    fn an_old_file_stays_as_it_is_while_an_older_version_goes_on_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("old.db");
        old_file(&path);
        let database = super::super::lead::DatabaseFile::at(&path).expect("it is there");
        let leads = database.try_lead().expect("no error").expect("it is free");
        let refused = SqliteStore::open(&path).expect_err("somebody reads the old tables");
        assert!(
            refused.diagnostic.message.contains("goes on with it"),
            "{refused}"
        );
        drop(leads);
        SqliteStore::open(&path).expect("it is brought up to date");
    }

    #[test]
    fn a_file_that_is_up_to_date_is_opened_while_another_writes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("b.db");
        drop(SqliteStore::open(&path).expect("a store"));
        let writer = Connection::open(&path).expect("a file");
        writer
            .execute_batch("BEGIN IMMEDIATE")
            .expect("nobody else writes");
        // Whoever had to write would wait for this one in vain, and fail.
        let store = SqliteStore::open_existing(&path).expect("it only reads");
        assert!(store.is_some());
    }

    #[test]
    fn a_newer_file_is_refused_and_not_touched() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new.db");
        drop(SqliteStore::open(&path).expect("a store"));
        let newer = i64::try_from(STEPS.len()).expect("few") + 1;
        let connection = Connection::open(&path).expect("a file");
        connection
            .pragma_update(None, "user_version", newer)
            .expect("a pragma");
        let error = SqliteStore::open(&path).expect_err("it is newer");
        assert_eq!(error.diagnostic.code, Code::StoreTooNew);
        let version: i64 = connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .expect("a pragma");
        assert_eq!(version, newer);
    }

    #[test]
    fn a_file_that_is_not_ours_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("other.db");
        Connection::open(&path)
            .and_then(|other| other.execute_batch("CREATE TABLE t (x)"))
            .expect("a file");
        let error = SqliteStore::open(&path).expect_err("it is another's");
        assert_eq!(error.diagnostic.code, Code::StoreNotOurs);
    }
}

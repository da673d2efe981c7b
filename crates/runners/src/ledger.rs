//! The ledger: every runner that was ever asked for, on disk before anything is done about it.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, params};

use crate::record::{RunnerRecord, RunnerStage};

/// How long runners are known of which nothing is left.
const KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);

const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS ledger (id TEXT NOT NULL);
    INSERT INTO ledger (id) SELECT lower(hex(randomblob(4))) WHERE NOT EXISTS (SELECT 1 FROM ledger);
    CREATE TABLE IF NOT EXISTS runner (
        fleet TEXT NOT NULL, name TEXT NOT NULL, since TEXT NOT NULL, is_gone INTEGER NOT NULL, record TEXT NOT NULL,
        PRIMARY KEY (fleet, name)
    ) WITHOUT ROWID;";

/// Runners in a file of SQLite. What was written outlives a power cut, by WAL and `synchronous=FULL`. Clones share one connection.
#[derive(Debug, Clone)]
pub struct Ledger {
    connection: Arc<Mutex<Connection>>,
    id: String,
}

/// A ledger that does not work. Nothing may be started then.
#[derive(Debug, thiserror::Error)]
#[error("could not {doing} in the ledger of runners")]
pub struct LedgerError {
    doing: &'static str,
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl LedgerError {
    fn new(doing: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self {
            doing,
            source: source.into(),
        }
    }
}

impl Ledger {
    /// Opens the ledger at `path`, and makes it where there is none. Blocks for a moment.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        let failed = |error: rusqlite::Error| LedgerError::new("open the file", error);
        let connection = Connection::open(path).map_err(failed)?;
        connection.execute_batch(SCHEMA).map_err(failed)?;
        let id = connection.query_row("SELECT id FROM ledger", [], |row| row.get(0));
        Ok(Self {
            id: id.map_err(failed)?,
            connection: Arc::new(Mutex::new(connection)),
        })
    }

    /// Returns what tells names of its runners from those of another ledger: eight digits, made by chance with the file.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the runners of a fleet, and removes those that nobody needs to know any more.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written, or a record in it is of another version.
    pub async fn load(&self, fleet: &str, now: Timestamp) -> Result<Vec<RunnerRecord>, LedgerError> {
        let fleet = fleet.to_owned();
        let before = (now - KEPT).to_string();
        self.run("read runners", move |connection| {
            // The newest stays, since it says which names were used.
            let sql = "DELETE FROM runner WHERE fleet = ?1 AND is_gone = 1 AND since < ?2
                AND since < (SELECT max(since) FROM runner WHERE fleet = ?1)";
            connection.execute(sql, params![fleet, before])?;
            let mut all = connection.prepare("SELECT record FROM runner WHERE fleet = ?1")?;
            let rows = all.query_map([fleet], |row| row.get::<_, String>(0))?;
            rows.collect::<Result<Vec<_>, _>>()
        })
        .await?
        .iter()
        .map(|text| {
            serde_json::from_str(text).map_err(|error| LedgerError::new("understand a runner", error))
        })
        .collect()
    }

    /// Writes runners down as they are now, all or none.
    ///
    /// # Errors
    ///
    /// They are not on disk.
    pub async fn write(&self, fleet: &str, records: Vec<RunnerRecord>) -> Result<(), LedgerError> {
        if records.is_empty() {
            return Ok(());
        }
        let fleet = fleet.to_owned();
        self.run("write runners", move |connection| {
            let transaction = connection.transaction()?;
            {
                let sql = "INSERT OR REPLACE INTO runner (fleet, name, since, is_gone, record) VALUES (?1, ?2, ?3, ?4, ?5)";
                let mut insert = transaction.prepare_cached(sql)?;
                for record in &records {
                    let is_gone = matches!(record.stage, RunnerStage::Gone { .. });
                    let text = serde_json::to_string(record).expect("plain data");
                    let since = record.since.to_string();
                    insert.execute(params![fleet, record.name.as_str(), since, is_gone, text])?;
                }
            }
            transaction.commit()
        })
        .await
    }

    /// Does something in a thread where waiting for the disk holds nobody up.
    async fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let connection = Arc::clone(&self.connection);
        let work = move || {
            // A panic in between has rolled its transaction back.
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut connection)
        };
        let done = tokio::task::spawn_blocking(work).await;
        let done = done.map_err(|error| LedgerError::new(doing, error))?;
        done.map_err(|error| LedgerError::new(doing, error))
    }
}

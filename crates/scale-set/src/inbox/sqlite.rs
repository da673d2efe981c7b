//! The inbox in a file of SQLite (feature `sqlite`).
//!
//! What was appended outlives a power cut, by WAL and `synchronous=FULL`. All scale sets share one connection.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{EventKey, Inbox, InboxError, MessageStage, StoredMessage};
use crate::{
    message::{EventKind, RawMessage},
    types::{MessageId, RunnerRequestId, ScaleSetId},
};

/// How many acknowledged messages of a scale set stay known, for the service that sends one again.
const KEPT: i64 = 1000;

const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS message (
        scale_set INTEGER NOT NULL, id INTEGER NOT NULL, text TEXT NOT NULL,
        stage INTEGER NOT NULL DEFAULT 0, acknowledged INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (scale_set, id)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS unacknowledged ON message (scale_set, id) WHERE acknowledged = 0;
    CREATE TABLE IF NOT EXISTS applied (
        scale_set INTEGER NOT NULL, message INTEGER NOT NULL, request INTEGER NOT NULL, kind TEXT NOT NULL,
        PRIMARY KEY (scale_set, message, request, kind)
    ) WITHOUT ROWID;";

/// An inbox in a file of SQLite.
#[derive(Debug, Clone)]
pub struct SqliteInbox(Arc<Mutex<Connection>>);

impl SqliteInbox {
    /// Opens the inbox at `path`, and makes it where there is none. Blocks for a moment.
    pub fn open(path: &Path) -> Result<Self, InboxError> {
        let failed = |error: rusqlite::Error| InboxError::new("open the file", error);
        let connection = Connection::open(path).map_err(failed)?;
        connection.execute_batch(SCHEMA).map_err(failed)?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// Does something in a thread where waiting for the disk holds nobody up.
    async fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, InboxError> {
        let connection = Arc::clone(&self.0);
        let work = move || {
            // A panic in between has rolled its transaction back.
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut connection)
        };
        let done = tokio::task::spawn_blocking(work).await;
        let done = done.map_err(|error| InboxError::new(doing, error))?;
        done.map_err(|error| InboxError::new(doing, error))
    }
}

#[async_trait]
impl Inbox for SqliteInbox {
    async fn append(&self, set: ScaleSetId, message: &RawMessage) -> Result<(), InboxError> {
        let RawMessage { id, text } = message.clone();
        self.run("keep a message", move |connection| {
            let sql = "INSERT OR IGNORE INTO message (scale_set, id, text) VALUES (?1, ?2, ?3)";
            connection.execute(sql, params![set.0, id.0, text]).map(drop)
        })
        .await
    }

    async fn get(&self, set: ScaleSetId, message: MessageId) -> Result<Option<StoredMessage>, InboxError> {
        self.run("find a message", move |connection| {
            let sql = "SELECT id, text, stage FROM message WHERE scale_set = ?1 AND id = ?2";
            let found = connection
                .query_row(sql, params![set.0, message.0], message_of)
                .optional()?;
            found
                .map(|message| with_applied(connection, set, message))
                .transpose()
        })
        .await
    }

    async fn unacknowledged(&self, set: ScaleSetId) -> Result<Vec<StoredMessage>, InboxError> {
        self.run("list messages", move |connection| {
            let sql =
                "SELECT id, text, stage FROM message WHERE scale_set = ?1 AND acknowledged = 0 ORDER BY id";
            let mut query = connection.prepare_cached(sql)?;
            let found: Vec<_> = query.query_map([set.0], message_of)?.collect::<Result<_, _>>()?;
            let found = found
                .into_iter()
                .map(|message| with_applied(connection, set, message));
            found.collect()
        })
        .await
    }

    async fn record(
        &self,
        set: ScaleSetId,
        message: MessageId,
        stage: MessageStage,
        applied: &[EventKey],
    ) -> Result<(), InboxError> {
        let applied = applied.to_vec();
        self.run("keep how far a message has come", move |connection| {
            let transaction = connection.transaction()?;
            let sql = "UPDATE message SET stage = ?3 WHERE scale_set = ?1 AND id = ?2";
            transaction.execute(sql, params![set.0, message.0, number_of(stage)])?;
            for key in applied {
                let sql = "INSERT OR IGNORE INTO applied VALUES (?1, ?2, ?3, ?4)";
                transaction.execute(sql, params![set.0, message.0, key.request.0, key.kind.as_str()])?;
            }
            transaction.commit()
        })
        .await
    }

    async fn acknowledge(&self, set: ScaleSetId, message: MessageId) -> Result<(), InboxError> {
        self.run("keep that a message was acknowledged", move |connection| {
            let transaction = connection.transaction()?;
            let sql = "UPDATE message SET acknowledged = 1 WHERE scale_set = ?1 AND id = ?2";
            transaction.execute(sql, params![set.0, message.0])?;
            let sql =
                "DELETE FROM message WHERE scale_set = ?1 AND acknowledged = 1 AND stage <> ?2 AND id <= (
                           SELECT id FROM message WHERE scale_set = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?3)";
            let n_deleted =
                transaction.execute(sql, params![set.0, number_of(MessageStage::Quarantined), KEPT])?;
            if n_deleted > 0 {
                let sql = "DELETE FROM applied WHERE scale_set = ?1 AND message NOT IN (
                               SELECT id FROM message WHERE scale_set = ?1)";
                transaction.execute(sql, [set.0])?;
            }
            transaction.commit()
        })
        .await
    }

    async fn known(&self, set: ScaleSetId) -> Result<Vec<RawMessage>, InboxError> {
        self.run("list what is known", move |connection| {
            let sql = "SELECT id, text, stage FROM message WHERE scale_set = ?1 ORDER BY id";
            let mut query = connection.prepare_cached(sql)?;
            let found = query.query_map([set.0], message_of)?;
            found.map(|message| Ok(message?.raw)).collect()
        })
        .await
    }

    async fn last_message(&self, set: ScaleSetId) -> Result<Option<MessageId>, InboxError> {
        self.run("find the last message", move |connection| {
            let sql = "SELECT max(id) FROM message WHERE scale_set = ?1";
            let last: Option<i64> = connection.query_row(sql, [set.0], |row| row.get(0))?;
            Ok(last.map(MessageId))
        })
        .await
    }

    async fn quarantined(&self, set: ScaleSetId) -> Result<Vec<RawMessage>, InboxError> {
        self.run("list what is quarantined", move |connection| {
            let sql = "SELECT id, text, stage FROM message WHERE scale_set = ?1 AND stage = ?2 ORDER BY id";
            let mut query = connection.prepare_cached(sql)?;
            let stage = number_of(MessageStage::Quarantined);
            let found = query.query_map(params![set.0, stage], message_of)?;
            found.map(|message| Ok(message?.raw)).collect()
        })
        .await
    }
}

fn number_of(stage: MessageStage) -> i64 {
    match stage {
        MessageStage::Received => 0,
        MessageStage::Applied => 1,
        MessageStage::Quarantined => 2,
    }
}

fn message_of(row: &Row<'_>) -> rusqlite::Result<StoredMessage> {
    let stage = match row.get::<_, i64>(2)? {
        1 => MessageStage::Applied,
        2 => MessageStage::Quarantined,
        _ => MessageStage::Received,
    };
    Ok(StoredMessage {
        raw: RawMessage {
            id: MessageId(row.get(0)?),
            text: row.get(1)?,
        },
        stage,
        applied: BTreeSet::new(),
    })
}

fn with_applied(
    connection: &Connection,
    set: ScaleSetId,
    mut message: StoredMessage,
) -> rusqlite::Result<StoredMessage> {
    let sql = "SELECT request, kind FROM applied WHERE scale_set = ?1 AND message = ?2";
    let mut query = connection.prepare_cached(sql)?;
    let keys = query.query_map(params![set.0, message.raw.id.0], |row| {
        Ok(EventKey {
            request: RunnerRequestId(row.get(0)?),
            kind: EventKind::from(row.get::<_, String>(1)?),
        })
    })?;
    message.applied = keys.collect::<Result<_, _>>()?;
    Ok(message)
}

//! What stands in the columns of a row, and what can go wrong with it.

use rusqlite::Row;
use serde::de::DeserializeOwned;

use crate::{
    domain::{RequestKey, RunId},
    ports::Seq,
};

/// What can go wrong with a row.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("SQLite refused")]
    Sqlite(#[from] rusqlite::Error),
    #[error("the log ends at fact {}, not at {}", .last.0, .after.0)]
    Overtaken { after: Seq, last: Seq },
    #[error("fact {} of the log, of kind `{kind}`, cannot be understood", .seq.0)]
    Fact {
        seq: Seq,
        kind: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("{run} comes out otherwise than the store says when what the log has is decided on once more")]
    DecidedOtherwise { run: RunId },
    #[error("the key `{}` is that of another command", .0.0)]
    KeyReused(RequestKey),
    #[error("a row of table `{table}` cannot be understood")]
    Row {
        table: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

pub(super) fn text(row: &Row<'_>, column: usize) -> Result<String, rusqlite::Error> {
    row.get(column)
}

pub(super) fn json(table: &'static str, value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Row {
        table,
        source: error.into(),
    })
}

pub(super) fn value<T: DeserializeOwned>(table: &'static str, body: &str) -> Result<T, Error> {
    serde_json::from_str(body).map_err(|error| Error::Row {
        table,
        source: error.into(),
    })
}

//! What a scheduler had come to, kept beside the log. What is damaged is passed over: the log has it all.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use sha2::{Digest, Sha256};

use super::{columns::Error, rows};
use crate::{
    ports::{SNAPSHOTS_KEPT, Seq},
    scheduler::SNAPSHOT_VERSION,
};

/// Keeps a snapshot, and forgets all but the newest.
pub(super) fn put(connection: &mut Connection, at: Seq, version: u32, body: &[u8]) -> Result<(), Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(
        "INSERT OR REPLACE INTO snapshot (seq, version, checksum, body) VALUES (?1, ?2, ?3, ?4)",
        params![at.0, version, checksum(at, version, body), body],
    )?;
    transaction.execute(
        "DELETE FROM snapshot WHERE seq NOT IN (SELECT seq FROM snapshot ORDER BY seq DESC LIMIT ?1)",
        [SNAPSHOTS_KEPT],
    )?;
    Ok(transaction.commit()?)
}

/// Returns the newest snapshot of a version that is whole and not ahead of the log.
pub(super) fn newest(connection: &mut Connection, version: u32) -> Result<Option<(Seq, Vec<u8>)>, Error> {
    let last = rows::last_seq(connection)?;
    let mut select = connection.prepare_cached(
        "SELECT seq, checksum, body FROM snapshot WHERE version = ?1 AND seq <= ?2 ORDER BY seq DESC",
    )?;
    let mut rows = select.query(params![version, last.0])?;
    while let Some(row) = rows.next()? {
        let (at, sum, body): (_, Vec<u8>, Vec<u8>) = (Seq(row.get(0)?), row.get(1)?, row.get(2)?);
        if checksum(at, version, &body)[..] == sum {
            return Ok(Some((at, body)));
        }
    }
    Ok(None)
}

/// Returns the position of each snapshot of this version that is not ahead of the log, the oldest first, and whether it is whole.
pub(super) fn all(connection: &mut Connection) -> Result<Vec<(Seq, bool)>, Error> {
    let last = rows::last_seq(connection)?;
    let mut select = connection.prepare_cached(
        "SELECT seq, checksum, body FROM snapshot WHERE version = ?1 AND seq <= ?2 ORDER BY seq",
    )?;
    let found = select.query_map(params![SNAPSHOT_VERSION, last.0], |row| {
        let (at, sum, body): (_, Vec<u8>, Vec<u8>) = (Seq(row.get(0)?), row.get(1)?, row.get(2)?);
        Ok((at, checksum(at, SNAPSHOT_VERSION, &body)[..] == sum))
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Returns what a snapshot says.
pub(super) fn body(connection: &mut Connection, at: Seq) -> Result<Option<Vec<u8>>, Error> {
    let mut select = connection.prepare_cached("SELECT body FROM snapshot WHERE seq = ?1")?;
    Ok(select.query_row([at.0], |row| row.get(0)).optional()?)
}

pub(super) fn remove(connection: &mut Connection, at: Seq) -> Result<(), Error> {
    connection.execute("DELETE FROM snapshot WHERE seq = ?1", [at.0])?;
    Ok(())
}

/// Returns the checksum of a snapshot, which is of its place, too.
fn checksum(at: Seq, version: u32, body: &[u8]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(at.0.to_le_bytes());
    hasher.update(version.to_le_bytes());
    hasher.update(body);
    hasher.finalize().into()
}

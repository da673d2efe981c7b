//! Deliveries of webhooks: their bodies, and what came of each.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use super::columns::{Error, json, text, value};
use crate::ports::{
    DeliveryAbout, DeliveryState, PendingDelivery, Receipt, ReceivedDelivery, StoredDelivery, TRIED_OFTEN,
};

/// What stands in the column `state`, so that those that are pending are found without reading the others.
const PENDING: i64 = 0;
const DONE: i64 = 1;
const GIVEN_UP: i64 = 2;

/// The columns of a delivery without its body.
/// A body that is looked into for a list comes with it.
const COLUMNS: &str =
    "id, event, received_at, length(body), attempts, noted_at, told, iif(length(body) <= ?2, body, x'')";

pub(super) fn receive(connection: &mut Connection, delivery: &ReceivedDelivery) -> Result<Receipt, Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let pending = json("delivery", &DeliveryState::Pending { problem: None })?;
    let inserted = transaction.execute(
        "INSERT OR IGNORE INTO delivery (id, event, received_at, body, state, told) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            delivery.id,
            delivery.event,
            delivery.received_at.to_string(),
            delivery.body,
            PENDING,
            pending
        ],
    )?;
    let again = match inserted {
        0 => transaction.execute(
            "UPDATE delivery SET state = ?2, told = ?3, attempts = 0 WHERE id = ?1 AND state = ?4",
            params![delivery.id, PENDING, pending, GIVEN_UP],
        )?,
        _ => 0,
    };
    transaction.commit()?;
    Ok(match (inserted, again) {
        (0, 0) => Receipt::Duplicate,
        (0, _) => Receipt::Again,
        (_, _) => Receipt::Stored,
    })
}

pub(super) fn pending(connection: &mut Connection, limit: usize) -> Result<Vec<PendingDelivery>, Error> {
    let mut select = connection.prepare_cached(
        "SELECT id, event, received_at, attempts, body FROM delivery WHERE state = 0
         ORDER BY attempts >= ?2, seq LIMIT ?1",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = select.query(params![limit, TRIED_OFTEN])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(PendingDelivery {
            id: text(row, 0)?,
            event: text(row, 1)?,
            received_at: time(&text(row, 2)?)?,
            attempts: row.get(3)?,
            body: row.get(4)?,
        });
    }
    Ok(found)
}

pub(super) fn note(
    connection: &mut Connection,
    id: &str,
    at: Timestamp,
    state: &DeliveryState,
) -> Result<(), Error> {
    let column = match state {
        DeliveryState::Pending { .. } => PENDING,
        DeliveryState::Done { .. } => DONE,
        DeliveryState::GivenUp { .. } => GIVEN_UP,
    };
    connection.execute(
        "UPDATE delivery SET state = ?2, told = ?3, noted_at = ?4, attempts = attempts + 1 WHERE id = ?1",
        params![id, column, json("delivery", state)?, at.to_string()],
    )?;
    Ok(())
}

pub(super) fn all(connection: &mut Connection, limit: usize) -> Result<Vec<StoredDelivery>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM delivery ORDER BY seq DESC LIMIT ?1");
    let mut select = connection.prepare_cached(&sql)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = select.query(params![limit, looked_into()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(stored(row)?);
    }
    Ok(found)
}

pub(super) fn get(connection: &mut Connection, id: &str) -> Result<Option<(StoredDelivery, Vec<u8>)>, Error> {
    let sql = format!("SELECT {COLUMNS}, body FROM delivery WHERE id = ?1");
    let mut select = connection.prepare_cached(&sql)?;
    let found = select.query_row(params![id, looked_into()], |row| Ok((stored(row), row.get(8)?)));
    let Some((delivery, body)) = found.optional()? else {
        return Ok(None);
    };
    Ok(Some((delivery?, body)))
}

pub(super) fn replay(connection: &mut Connection, id: &str) -> Result<bool, Error> {
    let pending = json("delivery", &DeliveryState::Pending { problem: None })?;
    let changed = connection.execute(
        "UPDATE delivery SET state = ?2, told = ?3, attempts = 0 WHERE id = ?1",
        params![id, PENDING, pending],
    )?;
    Ok(changed > 0)
}

pub(super) fn prune(connection: &mut Connection, before: Timestamp) -> Result<usize, Error> {
    // Times are compared as times: their texts have fractions of a second or none.
    let mut select = connection.prepare_cached("SELECT id, received_at FROM delivery WHERE state != 0")?;
    let rows = select.query_map([], |row| Ok((text(row, 0)?, text(row, 1)?)))?;
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    drop(select);
    let mut removed = 0;
    for (id, received_at) in rows {
        if time(&received_at)? < before {
            removed += connection.execute("DELETE FROM delivery WHERE id = ?1 AND state != 0", [id])?;
        }
    }
    Ok(removed)
}

fn looked_into() -> i64 {
    i64::try_from(DeliveryAbout::BODY_AT_MOST).unwrap_or(i64::MAX)
}

fn stored(row: &Row<'_>) -> Result<StoredDelivery, Error> {
    let noted_at: Option<String> = row.get(5)?;
    let about = DeliveryAbout::of(&row.get::<_, Vec<u8>>(7)?);
    Ok(StoredDelivery {
        id: text(row, 0)?,
        event: text(row, 1)?,
        action: about.action,
        repository: about.repository,
        received_at: time(&text(row, 2)?)?,
        size: row.get(3)?,
        attempts: row.get(4)?,
        noted_at: noted_at.map(|at| time(&at)).transpose()?,
        state: value("delivery", &text(row, 6)?)?,
    })
}

fn time(text: &str) -> Result<Timestamp, Error> {
    text.parse().map_err(|error: jiff::Error| Error::Row {
        table: "delivery",
        source: error.into(),
    })
}

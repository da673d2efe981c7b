//! Rows in, rows out.

use blueproof_queue::objects::Objects;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::{
    columns::{Error, json, text, value},
    commands,
};
use crate::{
    attempt::StoreIdentity,
    domain::{RequestKey, RunId, RunRequest},
    event::Event,
    fact::Fact,
    ports::{Batch, LoggedFact, Removal, Seq, Version},
    view::{OutlookView, RunView},
};

pub(super) fn identity(connection: &Connection) -> Result<StoreIdentity, rusqlite::Error> {
    connection.query_row("SELECT id, folder, secret FROM identity", [], |row| {
        Ok(StoreIdentity {
            id: row.get(0)?,
            folder: row.get(1)?,
            secret: row.get(2)?,
        })
    })
}

/// Appends where the log still ends at `after`, and returns where it ends then.
pub(super) fn append(connection: &mut Connection, after: Seq, batch: Batch) -> Result<Seq, Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut last = last_seq(&transaction)?;
    if last != after {
        return Err(Error::Overtaken { after, last });
    }
    for (at, fact) in &batch.facts {
        last.0 += 1;
        insert_fact(&transaction, last, *at, fact)?;
    }
    for (id, answer) in &batch.taken {
        commands::answer(&transaction, *id, answer)?;
    }
    put_views(&transaction, batch.views)?;
    transaction.commit()?;
    Ok(last)
}

pub(super) fn insert_fact(
    transaction: &Transaction<'_>,
    seq: Seq,
    at: Timestamp,
    fact: &Fact,
) -> Result<(), Error> {
    let mut insert =
        transaction.prepare_cached("INSERT INTO fact (seq, at, kind, body) VALUES (?1, ?2, ?3, ?4)")?;
    let body = json("fact", fact)?;
    insert.execute(params![seq.0, at.to_string(), fact.kind(), body])?;
    Ok(())
}

pub(super) fn last_seq(connection: &Connection) -> Result<Seq, rusqlite::Error> {
    let mut select = connection.prepare_cached("SELECT coalesce(max(seq), 0) FROM fact")?;
    select.query_row([], |row| row.get(0)).map(Seq)
}

/// Puts rows as they are to be.
pub(super) fn put_rows(connection: &mut Connection, views: Vec<RunView>) -> Result<(), Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    put_views(&transaction, views)?;
    Ok(transaction.commit()?)
}

fn put_views(transaction: &Transaction<'_>, views: Vec<RunView>) -> Result<(), Error> {
    let mut put = transaction.prepare_cached(
        "INSERT INTO run (id, key, view, outlook) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE
         SET view = excluded.view, outlook = excluded.outlook",
    )?;
    for mut view in views {
        let outlook = view
            .outlook
            .take()
            .map(|outlook| json("run", &outlook))
            .transpose()?;
        put.execute(params![
            view.id.0,
            view.request_key.0,
            json("run", &view)?,
            outlook
        ])?;
    }
    Ok(())
}

/// Puts how runs stand among the others into their rows, where the log still ends at `after`.
pub(super) fn put_outlooks(
    connection: &mut Connection,
    after: Seq,
    outlooks: &[(RunId, OutlookView)],
) -> Result<(), Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let last = last_seq(&transaction)?;
    if last != after {
        return Err(Error::Overtaken { after, last });
    }
    let mut put = transaction.prepare_cached("UPDATE run SET outlook = ?2 WHERE id = ?1")?;
    for (run, outlook) in outlooks {
        put.execute(params![run.0, json("run", outlook)?])?;
    }
    drop(put);
    Ok(transaction.commit()?)
}

/// Removes the rows of runs that are settled, and returns which those were.
pub(super) fn prune(connection: &mut Connection, at: Timestamp, runs: &[RunId]) -> Result<Vec<RunId>, Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut remove =
        transaction.prepare_cached("DELETE FROM run WHERE id = ?1 AND json_extract(view, '$.settled')")?;
    let mut note = transaction.prepare_cached("INSERT OR REPLACE INTO pruned (id, at) VALUES (?1, ?2)")?;
    let mut pruned = Vec::new();
    for run in runs {
        if remove.execute([run.0])? > 0 {
            note.execute(params![run.0, at.to_string()])?;
            pruned.push(*run);
        }
    }
    drop((remove, note));
    transaction.commit()?;
    Ok(pruned)
}

/// Returns whether the row of a run was removed by [`prune`].
pub(super) fn removal(connection: &mut Connection, run: RunId) -> Result<Removal, Error> {
    let mut pruned = connection.prepare_cached("SELECT 1 FROM pruned WHERE id = ?1")?;
    Ok(match pruned.exists([run.0])? {
        true => Removal::Pruned,
        false => Removal::NotPruned,
    })
}

/// Returns the request that made a run: of several of one key the first did.
pub(super) fn request(connection: &mut Connection, run: RunId) -> Result<Option<RunRequest>, Error> {
    let mut select = connection.prepare_cached(
        "SELECT fact.body FROM run JOIN fact ON json_extract(fact.body, '$.input.request.key') = run.key
         WHERE run.id = ?1 AND fact.kind = 'requested' ORDER BY fact.seq LIMIT 1",
    )?;
    let found = select.query_row([row_of(run)], |row| text(row, 0)).optional()?;
    let fact = found.map(|body| value("fact", &body)).transpose()?;
    Ok(match fact {
        Some(Fact::Input(Event::Requested { request })) => Some(*request),
        Some(_) | None => None,
    })
}

pub(super) fn facts(connection: &mut Connection, after: Seq, limit: usize) -> Result<Vec<LoggedFact>, Error> {
    let mut select = connection
        .prepare_cached("SELECT seq, at, kind, body FROM fact WHERE seq > ?1 ORDER BY seq LIMIT ?2")?;
    let after = after.0.min(i64::MAX as u64);
    let rows = select.query_map(params![after, limit], |row| {
        Ok((row.get(0)?, text(row, 1)?, text(row, 2)?, text(row, 3)?))
    })?;
    rows.map(|row| {
        let (seq, at, kind, body) = row?;
        let unreadable = |source| Error::Fact {
            seq: Seq(seq),
            kind: kind.clone(),
            source,
        };
        let at = at
            .parse::<Timestamp>()
            .map_err(|error| unreadable(error.into()))?;
        let fact = serde_json::from_str(&body).map_err(|error| unreadable(error.into()))?;
        Ok(LoggedFact {
            seq: Seq(seq),
            at,
            fact,
        })
    })
    .collect()
}

pub(super) fn applied_quota(connection: &mut Connection) -> Result<Option<Objects>, Error> {
    let mut select = connection
        .prepare_cached("SELECT body FROM fact WHERE kind = 'quotaApplied' ORDER BY seq DESC LIMIT 1")?;
    let found = select.query_row([], |row| text(row, 0)).optional()?;
    let fact = found.map(|body| value("fact", &body)).transpose()?;
    Ok(match fact {
        Some(Fact::Input(Event::QuotaApplied { objects, by: _ })) => Some(*objects),
        Some(_) | None => None,
    })
}

pub(super) fn version(connection: &mut Connection) -> Result<Version, Error> {
    Ok(Version(connection.pragma_query_value(
        None,
        "data_version",
        |row| row.get(0),
    )?))
}

pub(super) fn view(connection: &mut Connection, run: RunId) -> Result<Option<RunView>, Error> {
    let mut select = connection.prepare_cached("SELECT view, outlook FROM run WHERE id = ?1")?;
    let found = select.query_row([row_of(run)], view_columns).optional()?;
    found.map(stored_view).transpose()
}

/// Returns the row of a run. SQLite counts to half as many as we do, so that a number beyond has none: no run comes so far.
fn row_of(RunId(number): RunId) -> Option<i64> {
    i64::try_from(number).ok()
}

pub(super) fn view_of(connection: &mut Connection, key: &RequestKey) -> Result<Option<RunView>, Error> {
    let mut select = connection.prepare_cached("SELECT view, outlook FROM run WHERE key = ?1")?;
    let found = select.query_row([&key.0], view_columns).optional()?;
    found.map(stored_view).transpose()
}

pub(super) fn views(
    connection: &mut Connection,
    before: Option<RunId>,
    limit: usize,
) -> Result<Vec<RunView>, Error> {
    let sql = "SELECT view, outlook FROM run WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
    let mut select = connection.prepare_cached(sql)?;
    let before = before.map_or(i64::MAX as u64, |RunId(before)| before.min(i64::MAX as u64));
    let rows = select.query_map(params![before, limit], view_columns)?;
    rows.map(|row| stored_view(row?)).collect()
}

fn view_columns(row: &Row<'_>) -> Result<(String, Option<String>), rusqlite::Error> {
    Ok((text(row, 0)?, row.get(1)?))
}

/// Reads a row. What was worked out by a version that says it otherwise is not known, and is worked out again.
fn stored_view((view, outlook): (String, Option<String>)) -> Result<RunView, Error> {
    let mut view: RunView = value("run", &view)?;
    view.outlook = outlook.and_then(|outlook| serde_json::from_str(&outlook).ok());
    Ok(view)
}

//! The commands that were left, and what came of each.

use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use sha2::{Digest, Sha256};

use super::columns::{Error, json, text, value};
use crate::{
    domain::RequestKey,
    hex::hex,
    ports::{Answer, Command, CommandId, LeftCommand, StoredCommand},
};

/// Leaves a command. One that is there already stays as it is.
pub(super) fn submit(connection: &mut Connection, at: Timestamp, command: &Command) -> Result<(), Error> {
    let (key, body) = (command.key(), json("command", command)?);
    let mut insert = connection
        .prepare_cached("INSERT OR IGNORE INTO command (key, at, kind, body) VALUES (?1, ?2, ?3, ?4)")?;
    if insert.execute(params![key.0, at.to_string(), command.kind(), body])? == 1 {
        return Ok(());
    }
    let mut select = connection.prepare_cached("SELECT taken, body FROM command WHERE key = ?1")?;
    let (taken, earlier): (i64, String) = select.query_row([&key.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let is_the_same = match taken {
        // Versions before this one kept nothing of it.
        1 => earlier.is_empty() || earlier == digest(&body),
        _ => earlier == body,
    };
    match is_the_same {
        true => Ok(()),
        false => Err(Error::KeyReused(key.clone())),
    }
}

fn digest(body: &str) -> String {
    hex(&Sha256::digest(body))
}

/// Notes what came of a command. Of one that was decided about no more than a digest is kept; one that is quarantined stays as it
/// was left, for whoever finds out why.
pub(super) fn answer(transaction: &Transaction<'_>, id: CommandId, answer: &Answer) -> Result<(), Error> {
    let (taken, problem) = match answer {
        Answer::Taken => (1, None),
        Answer::Refused(problem) => (1, Some(problem)),
        Answer::Quarantined(problem) => (2, Some(problem)),
    };
    let problem = problem.map(|problem| json("command", problem)).transpose()?;
    let mut select = transaction.prepare_cached("SELECT body FROM command WHERE id = ?1")?;
    let body = select.query_row([id.0], |row| text(row, 0))?;
    let kept = if taken == 1 { digest(&body) } else { body };
    let mut update =
        transaction.prepare_cached("UPDATE command SET taken = ?2, answer = ?3, body = ?4 WHERE id = ?1")?;
    update.execute(params![id.0, taken, problem, kept])?;
    Ok(())
}

/// Returns those that nobody has taken up.
pub(super) fn left(connection: &mut Connection) -> Result<Vec<LeftCommand>, Error> {
    let mut select =
        connection.prepare_cached("SELECT id, key, kind, body FROM command WHERE taken = 0 ORDER BY id")?;
    let rows = select.query_map([], |row| {
        Ok((row.get(0)?, text(row, 1)?, text(row, 2)?, text(row, 3)?))
    })?;
    rows.map(|row| {
        let (id, key, kind, body) = row?;
        let command = serde_json::from_str(&body).map_err(|error| unreadable(&key, &kind, &error));
        Ok((CommandId(id), command))
    })
    .collect()
}

fn unreadable(key: &str, kind: &str, error: &serde_json::Error) -> Box<Diagnostic> {
    let message = format!("the command `{key}` of kind `{kind}` cannot be read");
    let diagnostic = Diagnostic::error(Code::CommandQuarantined, message).caused_by(error);
    Box::new(diagnostic.hint("ask again with the version of blueproof that leads, or let a newer one lead"))
}

pub(super) fn get(connection: &mut Connection, key: &RequestKey) -> Result<Option<StoredCommand>, Error> {
    let mut select =
        connection.prepare_cached("SELECT key, at, kind, taken, answer FROM command WHERE key = ?1")?;
    let found = select.query_row([&key.0], command_columns).optional()?;
    found.map(stored_command).transpose()
}

pub(super) fn all(connection: &mut Connection, limit: usize) -> Result<Vec<StoredCommand>, Error> {
    let mut select = connection
        .prepare_cached("SELECT key, at, kind, taken, answer FROM command ORDER BY id DESC LIMIT ?1")?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = select.query_map([limit], command_columns)?;
    rows.map(|row| stored_command(row?)).collect()
}

type CommandColumns = (String, String, String, i64, Option<String>);

fn command_columns(row: &Row<'_>) -> Result<CommandColumns, rusqlite::Error> {
    Ok((
        text(row, 0)?,
        text(row, 1)?,
        text(row, 2)?,
        row.get(3)?,
        row.get(4)?,
    ))
}

fn stored_command((key, at, kind, taken, problem): CommandColumns) -> Result<StoredCommand, Error> {
    let at = at.parse().map_err(|error: jiff::Error| Error::Row {
        table: "command",
        source: error.into(),
    })?;
    let problem = problem.map(|body| value("command", &body)).transpose()?;
    let answer = match (taken, problem) {
        (0, _) => None,
        (1, None) => Some(Answer::Taken),
        (1, Some(problem)) => Some(Answer::Refused(problem)),
        (_, problem) => Some(Answer::Quarantined(problem.unwrap_or_else(|| {
            Box::new(Diagnostic::error(Code::CommandQuarantined, "it is not noted why"))
        }))),
    };
    Ok(StoredCommand {
        key: RequestKey(key),
        at,
        kind,
        answer,
    })
}

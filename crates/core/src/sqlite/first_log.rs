//! From a log of version 1, which has what came in and not what was decided about it, to one of facts.
//!
//! It is decided once more, by the rules of the binary that migrates. They are those by which it was decided then, or what
//! comes of it is not what the store's own projections say: then nothing is changed.

use jiff::Timestamp;
use rusqlite::{Connection, Transaction};

use super::{
    columns::{self, Error},
    rows,
};
use crate::{domain::AttemptId, event::Event, ports::Seq, scheduler::Scheduler, view::RunView};

/// How many inputs are read at once.
const CHUNK: u64 = 4096;

/// What a run is known by outside: what nothing may change that already happened.
type Happened = (
    String,
    Vec<(AttemptId, Option<Timestamp>, Option<Timestamp>, bool, bool)>,
);

/// Fills the table `fact` from the table `event`.
pub(super) fn decide_again(transaction: &Transaction<'_>) -> Result<(), Error> {
    let mut scheduler = Scheduler::of_first_log();
    let (mut read, mut written) = (0, 0);
    loop {
        let inputs = inputs(transaction, read)?;
        let Some((last, ..)) = inputs.last() else { break };
        read = *last;
        for (_, at, input) in inputs {
            let step = scheduler.handle(at, input);
            for fact in step.facts {
                written += 1;
                rows::insert_fact(transaction, Seq(written), step.at, &fact)?;
            }
        }
    }
    compare(transaction, &scheduler)
}

fn inputs(connection: &Connection, after: u64) -> Result<Vec<(u64, Timestamp, Event)>, Error> {
    let mut select = connection
        .prepare_cached("SELECT seq, at, kind, body FROM event WHERE seq > ?1 ORDER BY seq LIMIT ?2")?;
    let text = |row: &rusqlite::Row<'_>, column| row.get::<_, String>(column);
    let rows = select.query_map([after, CHUNK], |row| {
        Ok((row.get::<_, u64>(0)?, text(row, 1)?, text(row, 2)?, text(row, 3)?))
    })?;
    let mut expected = after;
    rows.map(|row| {
        let (seq, at, kind, body) = row?;
        expected += 1;
        let unreadable = |source| Error::Fact {
            seq: Seq(seq),
            kind: kind.clone(),
            source,
        };
        if seq != expected {
            return Err(unreadable(format!("fact {expected} is missing before it").into()));
        }
        let at = at
            .parse()
            .map_err(|error: jiff::Error| unreadable(error.into()))?;
        let input = serde_json::from_str(&body).map_err(|error| unreadable(error.into()))?;
        Ok((seq, at, input))
    })
    .collect()
}

/// Compares what the store says of each run with what was decided once more.
fn compare(transaction: &Transaction<'_>, scheduler: &Scheduler) -> Result<(), Error> {
    let mut select = transaction.prepare_cached("SELECT view FROM run ORDER BY id")?;
    let stored = select.query_map([], |row| row.get::<_, String>(0))?;
    for body in stored {
        let stored: RunView = columns::value("run", &body?)?;
        let decided = scheduler.view(stored.id);
        if decided.as_ref().map(happened) != Some(happened(&stored)) {
            return Err(Error::DecidedOtherwise { run: stored.id });
        }
    }
    Ok(())
}

fn happened(view: &RunView) -> Happened {
    let attempts = view.attempts.iter().map(|attempt| {
        let (evicted, over) = (attempt.eviction.is_some(), attempt.outcome.is_some());
        (attempt.id, attempt.started_at, attempt.ended_at, evicted, over)
    });
    (view.state.to_string(), attempts.collect())
}

//! Carries out one attempt, as a process of its own that outlives whoever started it.
//!
//! The agent reads what is to be done from its folder and writes what comes of it there, and only there. It neither
//! knows nor cares whether a scheduler is alive. It never runs a notebook a second time in the same attempt.

mod attempt;
mod dependencies;
mod halt;
mod journal;
mod recovery;
mod signals;
mod standard;

use std::{
    fs::{File, TryLockError},
    io, thread,
    time::Duration,
};

use blueproof_core::attempt::{AttemptLayout, LogReader, LogWriter, RecordKind};

pub use dependencies::{
    AgentError, Collect, Conclusion, Dependencies, NothingMeasured, Observer, PrepareEnvironment, Prepared,
    Preparing, SecretValues,
};
pub(crate) use journal::Journal;

/// Carries out the attempt in `layout`'s folder, to the end.
///
/// A second agent for the same folder returns within a second, and one for a finished attempt at once. An attempt whose
/// agent was killed is not run again: what is left of it is ended and it is finished as an infrastructure failure.
///
/// It must be called on a process' main thread, whose descendants from then on are taken to be the attempt's.
///
/// # Errors
///
/// When the folder cannot be read or written. How an attempt ended is in its log, not here.
pub fn run(layout: &AttemptLayout, dependencies: Dependencies) -> Result<(), AgentError> {
    let failed = |doing: &'static str| move |source: io::Error| AgentError::new(doing, source);
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(layout.lock())
        .map_err(failed("open the attempt's lock"))?;
    if !take(&lock).map_err(failed("lock the attempt"))? {
        return Ok(());
    }
    let (records, _) = LogReader::open(layout.log())
        .read_from(0)
        .map_err(failed("read the attempt's log"))?;
    if records
        .iter()
        .any(|record| matches!(record.kind, RecordKind::Finished { .. }))
    {
        return Ok(());
    }
    let mut log = LogWriter::open(&layout.log()).map_err(failed("open the attempt's log"))?;
    if records.is_empty() {
        attempt::carry_out(layout, log, dependencies)
    } else {
        recovery::finish(layout, &mut log).map_err(failed("finish an attempt whose agent was killed"))
    }
}

/// Takes the lock that only one agent of an attempt can have, and returns whether this one has it.
///
/// Whoever looks whether an agent lives shares the lock for a moment, so one refusal does not mean another agent.
fn take(lock: &File) -> io::Result<bool> {
    const TRIES: u32 = 25;
    for _ in 0..TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(10)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

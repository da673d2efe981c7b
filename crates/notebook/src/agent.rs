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

use std::{fs::File, io};

use blueproof_core::attempt::{AttemptLayout, LogReader, LogWriter, RecordKind};

pub use dependencies::{
    AgentError, Collect, Conclusion, Dependencies, NothingMeasured, Observer, PrepareEnvironment, Prepared,
    Preparing, SecretValues,
};
pub(crate) use journal::Journal;

/// Carries out the attempt in `layout`'s folder, to the end.
///
/// A second agent for the same folder, and one for an attempt that is finished, returns at once. An attempt whose
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
    match lock.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => return Ok(()),
        Err(std::fs::TryLockError::Error(error)) => return Err(AgentError::new("lock the attempt", error)),
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

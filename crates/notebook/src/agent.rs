//! Carries out one attempt, as a process of its own that outlives whoever started it.
//!
//! The agent reads what is to be done from its folder and writes what comes of it there, and only there; the notebook works in
//! another one, which is removed at the end. The agent neither knows nor cares whether a scheduler is alive. It never runs a notebook a second time in the same attempt.

mod attempt;
mod dependencies;
mod halt;
mod lock;
mod recovery;
mod signals;
mod standard;

use std::io;

use blueproof_core::attempt::{AttemptLayout, Errand, LogWriter, Orders, RecordKind};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

pub use dependencies::{
    AgentError, Dependencies, PrepareEnvironment, Prepared, Preparing, SandboxLimits, SecretValues,
};
use lock::Lock;
pub use standard::environments;

pub use crate::observer::{Collect, Conclusion, NothingMeasured, Observer};

/// Carries out the attempt in `layout`'s folder, to the end, or ends what is left of it: as it is ordered.
///
/// A second agent for the same folder returns within a second, and one for a finished attempt at once. An attempt whose
/// agent was killed is not run again: what is left of it is ended and it is finished as an infrastructure failure.
///
/// It must be called on a process' main thread, whose descendants from then on are taken to be the attempt's.
///
/// # Errors
///
/// When the folder cannot be read or written. How an attempt ended is in its log, not here.
pub fn run(layout: &AttemptLayout, orders: Orders, dependencies: Dependencies) -> Result<(), AgentError> {
    let failed = |doing: &'static str| move |source: io::Error| AgentError::new(doing, source);
    // Nobody but root can look at the key in this process' memory from here on.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| AgentError::new("keep the key to itself", error.into()))?;
    let Some(_lock) = Lock::take(layout, orders.errand).map_err(failed("lock the attempt"))? else {
        return Ok(());
    };
    let (mut log, records) =
        LogWriter::open(&layout.log(), orders.key).map_err(failed("open the attempt's log"))?;
    let is_finished = |kind: &RecordKind| matches!(kind, RecordKind::Finished { .. });
    if records.iter().any(|record| is_finished(&record.kind)) {
        return Ok(());
    }
    match orders.errand {
        Errand::CarryOut if records.is_empty() && log.disturbance().is_none() => {
            attempt::carry_out(layout, orders.work, log, dependencies)
        }
        Errand::CarryOut | Errand::Finish => recovery::finish(layout, &orders.work, &mut log, &records)
            .map_err(failed("finish an attempt whose agent was killed")),
    }
}

//! Who had which device, and what came of it.
//!
//! A [`Ledger`] is told who holds what, and what was read; it answers with a [`UsageRecord`] for each holder and a [`DeviceTotals`] for
//! each device. The two always agree: what holders are charged with, what nobody had and what cannot be laid at anyone's
//! door add up to what the device did, exactly, since all sums are of integers (picoseconds and microjoules).
//! [`JobSummary`] is what is kept of a job and shown; the figures in it are those of [`blueproof_core::figures`].
//!
//! What is not here: a clock, and anything that reads a device. Time and readings are told, so whatever happened can be
//! told again. Nothing is guessed: what was not seen is not in a sum, and [`Coverage`] says how much was seen. Sensors of
//! power are not exact themselves (arXiv 2312.02741), so nobody should be made to pay by these records.
//!
//! ```
//! use blueproof_gpu::account::{Holder, Ledger};
//! use jiff::{SignedDuration, Timestamp};
//!
//! let mut ledger = Ledger::new(SignedDuration::from_secs(1));
//! let (attempt, start) = (Holder("r-41.2".into()), Timestamp::UNIX_EPOCH);
//! ledger.hold(start, &attempt, &[blueproof_core::gpu::DeviceUuid("GPU-1".into())]);
//! ledger.release(start + SignedDuration::from_secs(60), &attempt);
//!
//! let record = ledger.usage_record(&attempt).expect("it held something");
//! assert_eq!(record.total().allocated_seconds(), 60.0);
//! assert_eq!(record.total().busy_seconds(), None, "nobody looked");
//! ```

mod amounts;
mod claims;
mod device_account;
mod ledger;
mod markdown;
mod meter;
mod otlp;
mod summary;
#[cfg(test)]
mod tests;
mod usage_record;
mod utilization;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use amounts::{Amounts, Coverage};
pub use ledger::Ledger;
pub use summary::{CoverageSummary, DeviceSummary, JobSummary, SCHEMA_VERSION, Silence, Witnessed};
pub use usage_record::{DeviceTotals, DeviceUsage, MemoryOf, PeakMemory, Source, UsageRecord};

/// Whoever devices are given to, such as the attempt `r-41.2`. To this module it is a name and nothing more.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Holder(pub String);

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

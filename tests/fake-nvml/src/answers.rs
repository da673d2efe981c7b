//! What each function answers, from the scenario and the second it is: all of the logic, and no pointer.
#![expect(
    non_upper_case_globals,
    reason = "the names of constants are those that bindgen makes of NVML's"
)]

pub(crate) mod accounting;
pub(crate) mod events;
pub(crate) mod fields;
pub(crate) mod figures;
pub(crate) mod gpm;
pub(crate) mod health;
pub(crate) mod identity;
pub(crate) mod mig;
pub(crate) mod processes;
pub(crate) mod samples;

use crate::library::Target;
use crate::returns::{Answer, NvmlReturn};
use crate::scenario::Figures;
use crate::steps::Steps;

impl Target<'_> {
    /// Returns a figure of the whole device as it is now, rounded; not supported where the card does not have it.
    pub(crate) fn figure(&self, of: fn(&Figures) -> &Steps) -> Answer<u64> {
        let value = of(&self.whole()?.figures)
            .at(self.now)
            .ok_or(NvmlReturn::NotSupported)?;
        Ok(value.round() as u64)
    }

    /// Returns a figure as NVML mostly has it.
    pub(crate) fn figure_u32(&self, of: fn(&Figures) -> &Steps) -> Answer<u32> {
        self.figure(of).map(narrow)
    }

    /// Returns the sum of a figure times seconds since the driver was loaded, rounded.
    pub(crate) fn since_load(&self, of: fn(&Figures) -> &Steps) -> Answer<u64> {
        let sum = of(&self.whole()?.figures).integral(self.driver_loaded_at(), self.now);
        Ok(sum.ok_or(NvmlReturn::NotSupported)?.round() as u64)
    }
}

/// Makes a number fit; one that does not is the greatest that does.
pub(crate) fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

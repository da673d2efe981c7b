//! What is known of the devices, as pages for Prometheus.
//!
//! There are two: [`dcgm`] has the names, labels and units of dcgm-exporter, so that dashboards and alerts made for that
//! work as they are; [`native`] has our own, in base units, with a device's identity in one series to join with. Both are
//! written from the same [`PageInput`], and neither reads anything.
//!
//! What a card cannot give, or what could not be read, is left out, never zero.

pub mod dcgm;
mod input;
pub mod native;
mod peaks;
#[cfg(test)]
mod tests;

pub use input::{
    AllocationReport, Attempt, Attempts, Attribution, Collection, DeviceAccounting, Errors, Owner, Owners,
    PageInput, XidCount,
};
pub use peaks::Peaks;

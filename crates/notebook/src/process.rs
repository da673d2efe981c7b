//! The processes that an attempt has: started so that they die with it, counted, and ended without leaving any.
//!
//! Everything here reads `/proc`, so it works on Linux only.

mod cgroup;
mod child;
mod disk_watch;
mod launch;
mod proc_fs;
mod sweep;
mod usage;

pub(crate) use cgroup::{Confinement, LimitsHit, PROCESSES_AT_MOST, Unlimited};
pub(crate) use child::{Child, End, Wrapping, signal_name};
pub(crate) use disk_watch::DiskWatch;
pub use launch::{Launcher, launch};
pub(crate) use proc_fs::total_memory;
pub(crate) use sweep::{adopt_orphans, end_left, sweep};
pub(crate) use usage::Meter;

/// The environment variable that marks every process of an attempt.
pub(crate) const MARKER: &str = "BLUEPROOF_ATTEMPT";

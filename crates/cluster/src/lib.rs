//! Where attempts run: backends of the cluster driver.
//!
//! Today there is one, [`local`]: processes on this machine.

pub mod local;

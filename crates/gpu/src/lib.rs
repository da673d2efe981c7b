//! What accelerators there are, what they do, how they fare, and whose work it was.

pub mod account;
pub mod collect;
pub mod health;
pub mod nvml;
pub mod pages;
pub mod placement;
pub mod recorded;
pub mod tpu;
pub mod visible;
pub mod watch;

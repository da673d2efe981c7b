//! What accelerators there are, what they do, how they fare, and whose work it was.

pub mod health;
pub mod nvml;

//! The agent as a process, with real kernels.

mod cgroups;
mod endings;
mod promises;
mod support;
mod tampering;
mod traps;
mod verdicts;

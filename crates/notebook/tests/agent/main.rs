//! The agent as a process, with real kernels.

mod endings;
mod support;
mod traps;
mod verdicts;

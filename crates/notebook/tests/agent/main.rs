//! The agent as a process, with real kernels.

mod cgroups;
mod children;
mod endings;
mod kernels;
mod last_words;
mod promises;
mod sandbox;
mod sources;
mod support;
mod tampering;
mod traps;
mod verdicts;

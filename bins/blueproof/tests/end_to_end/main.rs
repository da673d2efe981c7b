//! The program as people meet it: real processes, real kernels, real Python environments.
//!
//! Each test has a home and a store of its own; Python environments are shared, since they take long to make.

mod actions;
mod approvals;
mod asks;
mod attacks;
mod attempts;
mod common;
mod completion;
mod environments;
mod full_disk;
mod github_app;
mod gpus;
mod interrupts;
mod kept;
mod kills;
mod live;
mod mistakes;
mod page;
mod projects;
mod queues;
mod quota;
mod reading;
mod samples;
mod served;
mod since;
mod stopped;
mod store;
mod terminal;
mod together;
mod webhooks;

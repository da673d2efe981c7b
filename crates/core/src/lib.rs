//! What blueproof knows and decides.
//!
//! This crate sees no network, no Kubernetes, no GitHub client and no clock. Adapters depend on it and
//! never on each other; what two of them must agree on stands here.
//!
//! What is said of mistakes is below, in [`blueproof_diagnostic`], and so are Kueue's rules, in [`blueproof_queue`].

pub mod action;
pub mod approval;
pub mod attempt;
pub mod audit;
pub mod backtest;
pub mod domain;
pub mod engine;
pub mod estimate;
pub mod event;
pub mod fact;
pub mod figures;
pub mod gpu;
pub mod hex;
pub mod metrics;
mod pairs;
pub mod pending;
pub mod policy;
pub mod ports;
pub mod scheduler;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "testing")]
pub mod testing;
pub mod view;

//! GitHub's side of a run: what comes from there, and what goes back.
//!
//! Deciding is core's: nothing here approves, admits or starts. What GitHub says becomes commands of
//! [`ports`](blueproof_core::ports), and how a run stands becomes what is shown on its pull request. The design is in
//! `docs/design/github.md`.

pub mod answer;
pub mod api;
pub mod budget;
pub mod check;
pub mod comment;
pub mod confirm;
pub mod connection;
pub mod entitlement;
pub mod intake;
mod key;
mod markdown;
pub mod observed;
pub mod owners;
pub mod payload;
pub mod plan;
pub mod policy;
#[cfg(feature = "receiver")]
pub mod receiver;
pub mod redelivery;
pub mod registration;
pub mod reporter;
#[cfg(feature = "rest")]
pub mod rest;
#[cfg(feature = "rest")]
pub mod service;
pub mod sticky;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod webhook;
pub mod worker;

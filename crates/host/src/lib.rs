//! A process that carries the scheduler.
//!
//! Any number of processes may stand around one store. Whoever has its [`Leadership`](blueproof_core::ports::Leadership)
//! works, for everybody; the others follow what is stored, and take over when the leader ends, however it ends: a hand-over
//! and a crash are the same thing.
//!
//! [`Host`] is for a command that wants something done and stays until it is; [`Service`] works until it is told to stop.

#[cfg(feature = "api")]
pub mod api;
#[cfg(feature = "client")]
mod client;
mod host;
#[cfg(any(feature = "api", feature = "client"))]
mod output_name;
#[cfg(any(feature = "api", feature = "client"))]
mod output_problem;
mod pauses;
mod retention;
mod service;
mod target;
#[cfg(any(feature = "api", feature = "client"))]
mod wire;

#[cfg(feature = "client")]
pub use client::{ServerAddress, ServerAddressError, ServerClient};
pub use host::{Host, KeptGate, Led};
pub use pauses::Pauses;
pub use retention::{PruneItem, PrunePlan, Pruned, Retention, RetentionError, RetentionLimit};
pub use service::{Service, ServiceStatus};
pub use target::{Target, WaitError, is_taken_up, until_taken_up};

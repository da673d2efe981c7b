//! The service as a model with a memory, for tests.
//!
//! [`Model`] is a plain struct: it is told what is asked and what time it is, and says what is answered. [`FakeService`] puts it behind a
//! [`Transport`](crate::Transport), so that under a paused tokio clock a poll of fifty seconds takes no time, and
//! [`FakeServer`] on loopback. The server is axum and not wiremock: a poll that is held must be answered as soon as a message is
//! there, and wiremock decides when it answers before it does.

mod faults;
mod inbox;
mod model;
mod queue;
mod reply;
mod routes;
mod server;
mod service;
mod state;

pub use faults::Fault;
pub use inbox::MemoryInbox;
pub use model::{FakeJob, FakeJobState, Model, ModelOptions, RunnerConflict};
pub use reply::Reply;
pub use server::FakeServer;
pub use service::FakeService;

/// The key of the App that the model knows. It opens nothing else.
pub const APP_KEY: &str = include_str!("testing/app-key.pem");

/// That App's client id.
pub const APP: &str = "Iv23fake";

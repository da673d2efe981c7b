//! A client of GitHub's runner scale sets, for whoever starts runners of their own.
//!
//! A scale set is a name by which jobs ask for runners. The service offers jobs to it, one client at a time reads its messages, and for each
//! job that client asks for the configuration of a runner that takes one job. The protocol is not in GitHub's reference; its own client,
//! in Go, is the specification.
//!
//! - [`Client`] has the service's operations, and finds the way to it from an App's key or a token.
//! - [`Session`] reads messages, and recovers where tokens expire and sessions are lost.
//! - [`Listener`] is the loop around it: what came is kept in an [`Inbox`], handled by a [`Handler`], and acknowledged last.
//! - `testing` (a feature) has the service as a model with a memory.
//!
//! ```no_run
//! use blueproof_scale_set::{Client, ConfigUrl, Credentials, DEFAULT_GROUP, NewScaleSet, Secret};
//!
//! # async fn example(token: String) -> Result<(), Box<dyn std::error::Error>> {
//! let config = ConfigUrl::parse("https://github.com/kubeflow/trainer")?;
//! let client = Client::builder(config, Credentials::Token(Secret::new(token))).build()?;
//! let set = match client.find_scale_set(DEFAULT_GROUP, "gpu").await? {
//!     Some(set) => set,
//!     None => client.create_scale_set(&NewScaleSet::named("gpu")).await?,
//! };
//! let config = client.replace_runner(set.id, "gpu-1", "_work").await?;
//! println!("runner {} can be started", config.runner.name);
//! # Ok(())
//! # }
//! ```

mod call;
mod client;
mod clock;
mod connection;
mod credentials;
mod demand;
mod error;
mod inbox;
mod listener;
mod message;
mod retry;
mod scope;
mod secret;
mod session;
#[cfg(feature = "testing")]
pub mod testing;
mod transport;
mod types;

pub use client::{Client, ClientBuilder, Removal, SystemInfo};
pub use clock::Clock;
pub use credentials::{AppInstallation, AppKey, Credentials, KeyError};
pub use demand::{Demand, DemandLedger, DemandSource};
pub use error::{Cause, Correlation, Error, Refusal, RefusalKind, Retry};
#[cfg(feature = "sqlite")]
pub use inbox::sqlite::SqliteInbox;
pub use inbox::{EventKey, Inbox, InboxError, MessageStage, StoredMessage};
pub use listener::{
    Handler, HandlerError, Listener, ListenerCause, ListenerError, ListenerOptions, ListenerReport, Offer,
};
pub use message::{Event, EventKind, Job, JobResult, JobRunner, Message, MessageError, RawMessage};
pub use reqwest::{Method, StatusCode, Url, header};
pub use retry::{Idempotency, RetryPolicy};
pub use scope::{ConfigUrl, ConfigUrlError, Hosting, Scope};
pub use secret::Secret;
pub use session::{Connected, Poll, Session, SessionOptions, SessionReport, SessionState};
pub use transport::{Delivery, HttpTransport, Request, Response, Transport, TransportError};
pub use types::{
    AcquirableJob, DEFAULT_GROUP, JitConfig, Label, MessageId, NewScaleSet, Runner, RunnerGroup,
    RunnerGroupId, RunnerId, RunnerRequestId, RunnerSetting, RunnerStatus, ScaleSet, ScaleSetId,
    ScaleSetPatch, Statistics,
};

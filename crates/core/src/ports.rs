//! What the engine needs of the world.
//!
//! Each port has few methods, in our words; the promises are in the comments, and one contract test suite per port
//! (feature `testing`) holds every backend to them, fakes included.

mod callback;
mod clock;
mod cluster;
mod command;
mod deliveries;
mod gpu;
mod leadership;
mod output;
mod reporter;
mod runner;
mod store;

pub use crate::domain::{CallError, Retry};
pub use callback::CallbackReporter;
pub use clock::{Clock, SystemClock};
pub use cluster::{AttemptNews, ClusterDriver, Clusters, NEWS_AT_MOST, News};
pub use command::{Answer, Command, CommandId, LeftCommand, StoredCommand};
pub use deliveries::{
    Deliveries, DeliveryAbout, DeliveryClient, DeliveryState, PendingDelivery, Receipt, ReceivedDelivery,
    StoredDelivery, TRIED_OFTEN,
};
pub use gpu::{EventQueue, GpuEvents, GpuMeter, GpuProbe, GpuUsed, ProbeError, ProbeErrorKind};
pub use leadership::{Leadership, Term};
pub use output::{
    ArtifactName, AttemptOutput, OutputError, OutputFile, OutputName, RecordChanges, RecordFollower,
    RecordPosition, Records, RemovableOutput, ReportKind, ReportOutput, RunFiles, whole,
};
pub use reporter::{Interest, Reporter, RunStatus};
pub use runner::{
    JitConfig, ParseRunnerNameError, Runner, RunnerName, RunnerNews, RunnerProvider, RunnerState,
};
pub use store::{Batch, LoggedFact, Removal, SNAPSHOTS_KEPT, Seq, Store, StoreClient, StoreError, Version};

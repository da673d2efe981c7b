//! The words of the domain, as types that cannot be wrong.

mod amount;
mod base;
mod decode;
mod head;
mod id;
mod name;
mod outcome;
mod request;
mod revision;
mod state;
mod timeouts;

pub use amount::{Bytes, Cpus, Gpus, Resources};
pub use base::{BaseRef, ParseBaseRefError};
pub use head::{Head, ParseHeadError};
pub use id::{AttemptId, ParseIdError, RunId};
pub use name::{BlueprintName, ProfileName, QueueName};
pub use outcome::{CellPlace, Failure, FailureClass, GpuUse, Limit, MetricResult, Outcome, Usage, Verdict};
pub use request::{Actor, Job, Priority, PullRequest, Repository, RequestKey, Retries, RunRequest, Subject};
pub use revision::Revision;
pub use state::{Ending, RunState};
pub use timeouts::Timeouts;

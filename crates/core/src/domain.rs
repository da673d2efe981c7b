//! The words of the domain, as types that cannot be wrong.

mod amount;
mod decode;
mod head;
mod id;
mod name;
mod outcome;
mod request;
mod revision;
mod state;
mod timeouts;

pub use amount::{Bytes, Cpus, Gpus, ParseAmountError, Resources, Rounded};
pub(crate) use amount::{quantity, too_large};
pub use head::{Head, ParseHeadError};
pub use id::{AttemptId, ParseIdError, RunId};
pub use name::{BlueprintName, ParseNameError, ProfileName, QueueName};
pub use outcome::{CellPlace, Failure, FailureClass, GpuUse, Limit, MetricResult, Outcome, Usage, Verdict};
pub use request::{Actor, Job, Priority, Project, RequestKey, Retries, RunRequest, Subject};
pub use revision::Revision;
pub use state::{Ending, RunState};
pub use timeouts::Timeouts;

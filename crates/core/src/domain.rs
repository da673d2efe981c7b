//! The words of the domain, as types that cannot be wrong.

mod amount;
mod approved_head;
mod back_off;
mod base;
mod call_error;
mod cluster;
mod decode;
mod device;
mod eviction;
mod head;
mod id;
mod inventory;
mod isolation;
mod job_digest;
mod name;
mod outcome;
mod placement;
mod pod_sets;
mod quota;
mod request;
mod revision;
mod source;
mod state;
mod timeouts;

pub use amount::{Amounts, Bytes, Cpus, Gpus, Resources};
pub use approved_head::ApprovedHead;
pub use back_off::BackOff;
pub use base::{BaseRef, ParseBaseRefError};
pub use call_error::{CallError, Retry};
pub use cluster::{ClusterName, LOCAL_CLUSTER};
pub use device::DeviceUuid;
pub use eviction::{EvictionReason, ReasonWord};
pub use head::{Head, ParseHeadError};
pub use id::{AttemptId, ParseIdError, RunId};
pub use inventory::{DeviceInventory, Inventory, NodeInventory};
pub use isolation::Isolation;
pub use job_digest::{JobDigest, ParseJobDigestError};
pub use name::{BlueprintName, ProfileName, QueueName};
pub use outcome::{
    CellPlace, Failure, FailureClass, GpuUse, MetricResult, Outcome, TimeLimit, Usage, Verdict,
};
pub use placement::Placement;
pub use pod_sets::{DRIVER, InvalidPodSets, PodSets, WORKLOAD};
pub use quota::default_objects;
pub(crate) use quota::{CPU, DEFAULT, Zeros, requests, resources};
pub use request::{Actor, Job, Priority, PullRequest, Repository, RequestKey, Retries, RunRequest, Subject};
pub use revision::Revision;
pub use source::{GitRepository, GitSource, ParseRepositoryError, Source};
pub use state::{Ending, RunState};
pub use timeouts::Timeouts;

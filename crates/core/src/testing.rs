//! Stand-ins for the ports, and the contract that every backend keeps (feature `testing`).
//!
//! The fakes keep state and can be asked what happened; they pass the same contract suites as the real backends.

mod clock;
mod cluster;
pub mod contract;
mod deliveries;
mod external;
mod gpu;
mod leadership;
mod machine;
mod output;
mod reporter;
mod runner;
pub(crate) mod samples;
pub mod scenario;
mod store;

pub use clock::FakeClock;
pub use cluster::FakeCluster;
pub use deliveries::MemoryDeliveries;
pub use external::ExternalQueue;
pub use gpu::{FakeProbe, device, snapshot};
pub use leadership::FakeLease;
pub use machine::{RequestedRun, busy_log, log_of};
pub use output::FakeOutput;
pub use reporter::FakeReporter;
pub use runner::FakeRunners;
pub use samples::{
    TEAMS, ask_for_commit, ask_for_cpu, finished, isolating, outcome, quota_request, request, reservation,
    reserved, start_action, teams, two_cores,
};
pub use store::MemoryStore;

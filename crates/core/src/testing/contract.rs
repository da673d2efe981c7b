//! The promises of the ports, as tests that any backend can be put to.
//!
//! Each function panics with what was promised and not kept.

mod admission;
mod cluster;
mod deliveries;
mod gpu;
mod leadership;
mod output;
mod reporter;
mod runner;
mod store;

pub use admission::{Upset, admission_keeps_its_promises};
pub use cluster::{NewsOf, cluster_keeps_its_promises};
pub use deliveries::deliveries_keep_their_promises;
pub use gpu::probe_keeps_its_promises;
pub use leadership::leadership_keeps_its_promises;
pub use output::{
    OutputWriter, output_keeps_its_promises, removal_keeps_its_promises, reports_keep_their_promises,
};
pub use reporter::reporter_keeps_its_promises;
pub use runner::runners_keep_their_promises;
pub use store::store_keeps_its_promises;

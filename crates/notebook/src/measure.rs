//! What a notebook measured, and whether what its blueprint expects holds.
//!
//! Memory is bounded whatever is printed: values are counted, not kept.

mod artifacts;
mod expectations;
mod outputs;
mod recorder;
mod trace;

pub use artifacts::{Before, Collected, collect};
pub use expectations::{Evidence, check, failure};
pub use outputs::OutputSearch;
pub use recorder::{Recorder, Sample, Summary};

//! Blueprints, the Jupyter executor, the agent that runs one attempt, and the report.

pub mod agent;
mod executor;
mod kernel;
pub mod plan;
mod process;
mod verdict;

pub use executor::{Graces, OutputLimits};
pub use process::{Launcher, launch};

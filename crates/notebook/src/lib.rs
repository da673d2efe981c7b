//! Blueprints, the Jupyter executor, the agent that runs one attempt, and the report.

pub mod blueprint;
pub mod environment;
pub mod ipynb;
pub mod plan;
pub mod snapshot;
pub mod measure;
pub mod plan;
pub mod text;
pub mod agent;
mod executor;
mod kernel;
pub mod plan;
mod process;
mod verdict;

pub use executor::{Graces, OutputLimits};
pub use process::{Launcher, launch};

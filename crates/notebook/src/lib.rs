//! Blueprints, the Jupyter executor, the agent that runs one attempt, and the report.

pub mod agent;
pub mod blueprint;
pub mod environment;
mod executor;
pub mod ipynb;
mod kernel;
pub mod measure;
pub mod plan;
mod process;
pub mod snapshot;
pub mod report;
pub mod text;
mod verdict;

pub use executor::{Graces, OutputLimits};
pub use process::{Launcher, launch};
pub mod init;
pub mod ipynb;
pub mod lint;
pub mod plan;
mod python;
mod survey;

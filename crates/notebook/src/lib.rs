//! Blueprints, the Jupyter executor, the agent that runs one attempt, and the report.

pub mod agent;
mod analysis;
pub mod blueprint;
pub mod commit;
mod disk;
mod document;
pub mod environment;
mod exception;
mod executor;
mod files;
pub mod init;
pub mod ipynb;
mod isolation;
mod journal;
mod kernel;
pub mod lint;
pub mod measure;
mod modules;
mod observer;
pub mod plan;
mod process;
mod python;
pub mod report;
mod revision;
mod sandbox;
pub mod snapshot;
mod source;
pub mod text;
mod verdict;

pub use executor::{Graces, OutputLimits};
pub use isolation::try_isolation;
pub use process::{Launcher, launch};

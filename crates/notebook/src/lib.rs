//! Blueprints, the Jupyter executor, the agent that runs one attempt, and the report.

pub mod blueprint;
pub mod init;
pub mod ipynb;
pub mod lint;
pub mod plan;
mod python;
mod survey;

//! Blueprints, the Jupyter executor, the agent that runs one attempt, and the report.

mod kernel;
pub mod plan;
mod process;

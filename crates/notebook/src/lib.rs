//! Blueprints, the Jupyter executor, the agent that runs one attempt, and the report.

pub mod plan;
pub mod snapshot;

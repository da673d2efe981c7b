//! Blueprints, the Jupyter executor, the agent that runs one attempt, and the report.

pub mod blueprint;
pub mod environment;
pub mod ipynb;
pub mod plan;
pub mod snapshot;
pub mod measure;
pub mod plan;
pub mod text;

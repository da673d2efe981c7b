//! Blueprints, the Jupyter executor, the agent that runs one attempt, and the report.

pub mod environment;
mod files;
pub mod measure;
pub mod plan;
pub mod report;
pub mod text;

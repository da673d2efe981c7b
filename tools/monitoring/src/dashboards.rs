//! The dashboards, each a module.

mod blueprints;
mod gpu;
mod overview;
mod queue;

use crate::grafana::Dashboard;

/// Returns all of them.
pub(crate) fn all() -> Vec<Dashboard> {
    vec![
        overview::dashboard(),
        queue::dashboard(),
        gpu::dashboard(),
        blueprints::dashboard(),
    ]
}

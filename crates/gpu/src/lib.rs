//! What accelerators there are, what they do, how they fare, and whose work it was.

/// How much room a cluster has, as the scores that Open Cluster Management places work by.
pub mod placement;

//! Where attempts run: backends of the cluster driver and of the provider of runners.
//!
//! Today there is one of each: [`local`], attempts as processes on this machine, and [`runner`], GitHub's runners as such. With
//! the feature `pod-resources` there is also `pod_resources`: who has which device on a Kubernetes node.

mod files;
pub mod local;
#[cfg(feature = "pod-resources")]
pub mod pod_resources;
pub mod runner;
mod signal;

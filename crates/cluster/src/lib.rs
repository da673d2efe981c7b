//! Where attempts run: backends of the cluster driver.
//!
//! Today there is one, [`local`]: processes on this machine. With the feature `pod-resources` there is also
//! `pod_resources`: who has which device on a Kubernetes node.

pub mod local;
#[cfg(feature = "pod-resources")]
pub mod pod_resources;

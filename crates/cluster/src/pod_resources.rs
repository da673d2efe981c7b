//! Who has which device on a Kubernetes node, by its kubelet's PodResources API.
//!
//! [`Kubelet`] asks, and [`attribute()`] says which pod has which device of an inventory. Neither asks the API server, and
//! so two things cannot be known:
//!
//! - **Whether a pod still runs.** The API tells no phase. A pod that ended keeps its devices in the list until the kubelet
//!   gives them to another pod; kubelets before 1.34 may list it even longer. Until then it is told as the owner: what is
//!   charged to it is a device that nobody uses. Where several pods claim a device that only one can have, one of them
//!   lives, and which cannot be known: the device is *disputed*, and nobody is told to have it.
//! - **What dynamic resource allocation gave.** The list has names of devices that only the ResourceSlices of the API server
//!   translate. They are counted, so that somebody sees why they have no owner.
//!
//! A time-sliced device is given in shares, of which each has an owner of its own. That is no dispute.
//!
//! ```no_run
//! use std::time::Duration;
//! use blueproof_cluster::pod_resources::{Kubelet, Resources, USUAL_SOCKET, attribute};
//! use blueproof_core::gpu::GpuInventory;
//!
//! # async fn ask(inventory: &GpuInventory) -> Result<(), Box<dyn std::error::Error>> {
//! let mut kubelet = Kubelet::at(USUAL_SOCKET, Duration::from_secs(5));
//! let told = kubelet.ask().await?;
//! for (device, holders) in attribute(&told, inventory, &Resources::default()).devices {
//!     println!("{device}: {:?}", holders.pods);
//! }
//! # Ok(())
//! # }
//! ```

mod attribute;
mod checkpoint;
mod ids;
mod kubelet;
mod wire;

pub use attribute::{Attribution, Holder, Holders, IdState, Resources, Sharing, attribute};
pub use checkpoint::USUAL_CHECKPOINT;
pub use kubelet::{Kubelet, KubeletError, Silence, USUAL_SOCKET};

/// What a kubelet told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KubeletReport {
    /// How many pods it lists, those without devices too.
    pub pods: u64,
    /// Each device that a container was given.
    pub given: Vec<DeviceAllocation>,
    /// The devices that it may give away; `None` where it does not know that call, as before Kubernetes 1.23.
    pub allocatable: Option<Vec<Advertised>>,
    /// How many devices were given by dynamic resource allocation, by driver.
    pub dynamic: std::collections::BTreeMap<String, u64>,
    /// Why pods have no UIDs, where they were asked for.
    pub no_uids: Option<String>,
}

/// A device that a container was given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceAllocation {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The pod's UID, where the kubelet's checkpoint is read and says it.
    pub pod_uid: Option<String>,
    /// The container in the pod.
    pub container: String,
    /// What was given.
    pub device: Advertised,
}

/// A device in its plugin's words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Advertised {
    /// The resource, such as `nvidia.com/gpu`.
    pub resource: String,
    /// What the plugin calls it.
    pub id: String,
}

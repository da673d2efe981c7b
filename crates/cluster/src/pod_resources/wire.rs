//! The messages, as far as they are read: `k8s.io/kubelet/pkg/apis/podresources/v1`, as of Kubernetes 1.36.
//!
//! They are written by hand, since they are few, so that no build needs `protoc`. What is not here is passed over.

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Empty {}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ListPodResourcesResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) pod_resources: Vec<PodResources>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PodResources {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) namespace: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) containers: Vec<ContainerResources>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ContainerResources {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) devices: Vec<ContainerDevices>,
    #[prost(message, repeated, tag = "5")]
    pub(super) dynamic_resources: Vec<DynamicResource>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ContainerDevices {
    #[prost(string, tag = "1")]
    pub(super) resource_name: String,
    #[prost(string, repeated, tag = "2")]
    pub(super) device_ids: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DynamicResource {
    #[prost(message, repeated, tag = "4")]
    pub(super) claim_resources: Vec<ClaimResource>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ClaimResource {
    #[prost(string, tag = "2")]
    pub(super) driver_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AllocatableResourcesResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) devices: Vec<ContainerDevices>,
}

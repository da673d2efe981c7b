//! The UIDs of pods, by the checkpoint of the kubelet's device manager.
//!
//! PodResources tells pods by name alone. The kubelet also writes down which pod, by its UID, has which device: in
//! `kubelet_internal_checkpoint`, whose form is `pkg/kubelet/cm/devicemanager/checkpoint` of kubernetes. It is the
//! kubelet's own, and so it is only believed where it says the same as the kubelet's answer, and nothing twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
};

use blueproof_core::attempt::read_regular;
use serde::Deserialize;

use super::KubeletReport;

/// Where a kubelet has its checkpoint, if nobody told it otherwise.
pub const USUAL_CHECKPOINT: &str = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";

/// The largest checkpoint that is read; with what device plugins answered for a hundred containers it has some 100 KiB.
const LARGEST: u64 = 16 << 20;

/// A container, a resource and a device, as the kubelet calls them.
type Held = (String, String, String);

/// Which pods were given a device.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PodUids(BTreeMap<Held, BTreeSet<String>>);

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Checkpoint {
    data: Data,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Data {
    /// Go writes an empty list as null.
    pod_device_entries: Option<Vec<Entry>>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "PodUID")]
    pod: String,
    #[serde(rename = "ContainerName")]
    container: String,
    #[serde(rename = "ResourceName")]
    resource: String,
    #[serde(rename = "DeviceIDs")]
    devices: Devices,
}

/// Devices by NUMA node; before Kubernetes 1.20, without.
#[derive(Deserialize)]
#[serde(untagged)]
enum Devices {
    ByNuma(BTreeMap<String, Vec<String>>),
    All(Vec<String>),
}

impl PodUids {
    /// Reads a checkpoint. It may be asked again at any time.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        Self::parse(&read_regular(path, LARGEST)?)
    }

    fn parse(text: &[u8]) -> io::Result<Self> {
        let checkpoint: Checkpoint = serde_json::from_slice(text)?;
        let mut uids = Self::default();
        for entry in checkpoint.data.pod_device_entries.into_iter().flatten() {
            let devices = match entry.devices {
                Devices::ByNuma(devices) => devices.into_values().flatten().collect(),
                Devices::All(devices) => devices,
            };
            for device in devices {
                let held = (entry.container.clone(), entry.resource.clone(), device);
                uids.0.entry(held).or_default().insert(entry.pod.clone());
            }
        }
        Ok(uids)
    }

    /// Writes down the UID of each pod that was given something. Where several pods were given the same by the same name of
    /// a container, one of them has ended, and which is not known.
    pub(super) fn name(&self, told: &mut KubeletReport) {
        for given in &mut told.given {
            let device = given.device.clone();
            let held = (given.container.clone(), device.resource, device.id);
            let mut uids = self.0.get(&held).into_iter().flatten();
            given.pod_uid = uids.next().filter(|_| uids.next().is_none()).cloned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod_resources::{Advertised, DeviceAllocation};

    fn given(container: &str, id: &str) -> DeviceAllocation {
        DeviceAllocation {
            namespace: "ci".into(),
            pod: "a".into(),
            pod_uid: None,
            container: container.into(),
            device: Advertised {
                resource: "nvidia.com/gpu".into(),
                id: id.into(),
            },
        }
    }

    fn entry(pod: &str, devices: &str) -> String {
        format!(
            r#"{{"PodUID":"{pod}","ContainerName":"main","ResourceName":"nvidia.com/gpu","DeviceIDs":{devices},"AllocResp":"Cg=="}}"#
        )
    }

    fn uids(entries: &[String]) -> PodUids {
        let text = format!(
            r#"{{"Data":{{"PodDeviceEntries":[{}],"RegisteredDevices":{{"nvidia.com/gpu":["GPU-1"]}}}},"Checksum":1}}"#,
            entries.join(",")
        );
        PodUids::parse(text.as_bytes()).expect("a checkpoint")
    }

    fn named(uids: &PodUids, given: DeviceAllocation) -> Option<String> {
        let mut told = KubeletReport {
            given: vec![given],
            ..KubeletReport::default()
        };
        uids.name(&mut told);
        told.given.remove(0).pod_uid
    }

    #[test]
    fn a_pod_has_the_uid_that_the_checkpoint_gives_the_same_device_to() {
        let both = uids(&[
            entry("one", r#"{"0":["GPU-1"],"1":["GPU-2","GPU-3"]}"#),
            entry("other", r#"["GPU-4"]"#),
        ]);
        assert_eq!(named(&both, given("main", "GPU-3")).as_deref(), Some("one"));
        assert_eq!(named(&both, given("main", "GPU-4")).as_deref(), Some("other"));
        assert_eq!(named(&both, given("sidecar", "GPU-3")), None);
        assert_eq!(named(&both, given("main", "GPU-5")), None);
    }

    #[test]
    fn of_two_pods_with_the_same_device_neither_is_named() {
        let both = uids(&[
            entry("ended", r#"{"0":["GPU-1"]}"#),
            entry("lives", r#"{"0":["GPU-1"]}"#),
        ]);
        assert_eq!(named(&both, given("main", "GPU-1")), None);
        let twice = uids(&[
            entry("one", r#"{"0":["GPU-1"]}"#),
            entry("one", r#"{"0":["GPU-1"]}"#),
        ]);
        assert_eq!(named(&twice, given("main", "GPU-1")).as_deref(), Some("one"));
    }

    #[test]
    fn an_empty_checkpoint_is_one_and_anything_else_is_not() {
        let empty = r#"{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1}"#;
        assert_eq!(
            PodUids::parse(empty.as_bytes()).expect("a checkpoint"),
            PodUids::default()
        );
        for text in ["", "{}", "[]", r#"{"Data":null}"#] {
            assert!(PodUids::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}

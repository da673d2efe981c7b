//! The device nodes of the GPUs that an attempt was given.
//!
//! A node is a whole GPU. A MIG instance has nodes of its own under `/dev/nvidia-caps` beside that of its GPU, which all
//! instances share: they are not told apart here, and so not given.

use std::{
    fs,
    path::{Path, PathBuf},
};

use blueproof_core::gpu::DeviceUuid;

/// Where the NVIDIA driver says which GPU has which node.
const GPUS: &str = "/proc/driver/nvidia/gpus";

/// The nodes that every program needs that uses any GPU: they give no GPU by themselves.
const SHARED: [&str; 3] = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"];

/// A device whose node is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the device node of {0} is not known: of NVIDIA's devices, whole GPUs can be given to a sandbox")]
pub(crate) struct NoNode(String);

/// Returns the nodes of these devices; none where there are no devices.
///
/// # Errors
///
/// When the node of one is not known.
pub(crate) fn nodes_of(devices: &[DeviceUuid]) -> Result<Vec<PathBuf>, NoNode> {
    nodes_in(Path::new(GPUS), devices)
}

fn nodes_in(gpus: &Path, devices: &[DeviceUuid]) -> Result<Vec<PathBuf>, NoNode> {
    if devices.is_empty() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(gpus).into_iter().flatten().flatten();
    let known: Vec<(String, u32)> = entries
        .filter_map(|entry| fs::read_to_string(entry.path().join("information")).ok())
        .filter_map(|text| of_information(&text))
        .collect();
    let mut nodes = Vec::new();
    for DeviceUuid(uuid) in devices {
        let found = known.iter().find(|(known, _)| known == uuid);
        let (_, minor) = found.ok_or_else(|| NoNode(uuid.clone()))?;
        nodes.push(format!("/dev/nvidia{minor}").into());
    }
    let shared = SHARED.into_iter().map(PathBuf::from);
    nodes.extend(shared.filter(|node| node.exists()));
    Ok(nodes)
}

/// Reads the UUID and the node's number of a GPU.
fn of_information(text: &str) -> Option<(String, u32)> {
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(key, _)| key.trim() == name)?;
        Some(value.trim())
    };
    Some((
        value("GPU UUID")?.to_owned(),
        value("Device Minor")?.parse().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_granted_gpus_have_nodes_and_no_others() {
        let gpus = tempfile::tempdir().unwrap();
        for (bus, uuid, minor) in [("0000:07:00.0", "GPU-a", 1), ("0000:0a:00.0", "GPU-b", 0)] {
            let folder = gpus.path().join(bus);
            fs::create_dir(&folder).unwrap();
            let text = format!(
                "Model: \t\t NVIDIA H100\nIRQ:   \t\t 190\nGPU UUID: \t {uuid}\nVideo BIOS: \t 96\nDevice Minor: \t {minor}\n"
            );
            fs::write(folder.join("information"), text).unwrap();
        }
        let nodes = |uuids: &[&str]| {
            let devices: Vec<_> = uuids.iter().map(|uuid| DeviceUuid((*uuid).into())).collect();
            nodes_in(gpus.path(), &devices)
        };
        let given = nodes(&["GPU-a"]).unwrap();
        assert!(given.contains(&"/dev/nvidia1".into()) && !given.contains(&"/dev/nvidia0".into()));
        assert_eq!(nodes(&[]), Ok(vec![]));
        assert_eq!(nodes(&["MIG-c"]), Err(NoNode("MIG-c".into())));
    }
}

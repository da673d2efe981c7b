//! Which devices a program sees, by the variable that CUDA goes by.
//!
//! <https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars>: numbers and names, separated by commas; a
//! name may be cut short where what is left says which is meant; whatever follows an entry that means nothing is not seen.
//! Numbers are taken in the driver's order, as CUDA does with `CUDA_DEVICE_ORDER=PCI_BUS_ID`; where that variable is not set
//! and devices differ, CUDA numbers the fastest first, and names are the only safe way.

use blueproof_core::gpu::{DeviceUuid, GpuInventory};

/// Returns what a program sees whose `CUDA_VISIBLE_DEVICES` is `variable`; all there is where that is not set.
pub fn visible(inventory: &GpuInventory, variable: Option<&str>) -> Vec<DeviceUuid> {
    let units: Vec<_> = inventory.units().cloned().collect();
    let Some(list) = variable else { return units };
    let mut seen = Vec::new();
    for entry in list.split(',') {
        // An entry that is there twice hides everything in CUDA, too.
        match meant(&units, entry.trim()) {
            Some(unit) if !seen.contains(unit) => seen.push(unit.clone()),
            Some(_) => return Vec::new(),
            None => break,
        }
    }
    seen
}

fn meant<'a>(units: &'a [DeviceUuid], entry: &str) -> Option<&'a DeviceUuid> {
    if let Ok(number) = entry.parse::<usize>() {
        return units.get(number);
    }
    let mut begins_so = units
        .iter()
        .filter(|unit| !entry.is_empty() && unit.0.starts_with(entry));
    let first = begins_so.next()?;
    begins_so.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use blueproof_core::{
        gpu::{Partition, Reading},
        testing::device,
    };

    use super::*;

    /// Two whole devices, and one of two parts.
    fn inventory() -> GpuInventory {
        let part = |uuid: &str| Partition {
            uuid: DeviceUuid(uuid.into()),
            profile: Reading::Unsupported,
            gpu_instance: Reading::Unsupported,
            compute_instance: Reading::Unsupported,
            memory: Reading::Unsupported,
        };
        let mut divided = device(2);
        divided.is_partitioned = Reading::Value(true);
        divided.partitions = vec![part("MIG-a1"), part("MIG-a2")];
        GpuInventory {
            devices: vec![device(0), device(1), divided],
            ..GpuInventory::default()
        }
    }

    #[test]
    fn a_program_sees_what_the_variable_names() {
        let (first, second) = ("GPU-00000000", "GPU-00000001");
        for (variable, expected) in [
            (None, vec![first, second, "MIG-a1", "MIG-a2"]),
            (Some(""), vec![]),
            (Some("-1"), vec![]),
            (Some("1, 0"), vec![second, first]),
            (Some("1,7,0"), vec![second]),
            (Some("GPU-00000001,MIG-a2"), vec![second, "MIG-a2"]),
            (Some("MIG-a"), vec![]),
            (Some("0,0"), vec![]),
            (Some("NoDevFiles"), vec![]),
        ] {
            let seen = visible(&inventory(), variable);
            let names: Vec<_> = seen.iter().map(|uuid| uuid.0.as_str()).collect();
            assert_eq!(names, expected, "{variable:?}");
        }
    }
}

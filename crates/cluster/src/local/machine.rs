//! What this machine has.

use std::{collections::BTreeMap, fs, path::Path, thread};

use blueproof_core::{
    domain::{
        Bytes, Cpus, DeviceInventory, Gpus, Inventory, Isolation, LOCAL_CLUSTER, NodeInventory, Resources,
    },
    gpu::DeviceUuid,
    ports::CallError,
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};

use super::Devices;

const MEMINFO: &str = "/proc/meminfo";

/// Where the kernel says how much memory our control group may use, by its version.
const MEMORY_LIMITS: [&str; 2] = [
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];

/// Returns the processors and the memory that we may use: those of our control group where it has fewer; and the devices, of
/// which no attempt can be given the unhealthy ones; and whether it isolates.
pub(super) fn inventory(
    devices: &Devices,
    unhealthy: BTreeMap<DeviceUuid, Diagnostic>,
    isolation: Isolation,
) -> Result<Inventory, CallError> {
    let unknown = |error: &dyn std::error::Error| {
        let diagnostic = Diagnostic::error(
            Code::MachineUnknown,
            "could not find out how much this machine has",
        );
        let hint = "say it yourself: set local.cpu and local.memory in the configuration";
        CallError::never(
            diagnostic
                .at(SourceLocation::file(MEMINFO))
                .caused_by(error)
                .hint(hint),
        )
    };
    let cores = thread::available_parallelism().map_err(|error| unknown(&error))?;
    let meminfo = fs::read_to_string(MEMINFO).map_err(|error| unknown(&error))?;
    let total = total_memory(&meminfo).ok_or_else(|| {
        unknown(&std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            "no line MemTotal",
        ))
    })?;
    let limits = MEMORY_LIMITS
        .iter()
        .filter_map(|path| memory_limit(Path::new(path)));
    let memory = limits.fold(total, u64::min);
    let cpu = Cpus::cores(number(cores.get()));
    let units = devices.units.as_deref().unwrap_or_default();
    let mut description = format!("local · {cpu} cpu · {}", devices.description);
    if !unhealthy.is_empty() {
        description.push_str(&format!(", {} unhealthy", unhealthy.len()));
    }
    let with = |gpus: usize| Resources {
        cpu,
        memory: Bytes(memory),
        gpu: Gpus(number(gpus)),
    };
    let (all, healthy) = (
        with(units.len()),
        with(units.len().saturating_sub(unhealthy.len())),
    );
    let devices = units.iter().map(|unit| DeviceInventory {
        uuid: unit.clone(),
        unhealthy: unhealthy.get(unit).map(|why| why.message.clone()),
    });
    let node = NodeInventory {
        devices: devices.collect(),
        ..NodeInventory::new(LOCAL_CLUSTER, all, healthy)
    };
    Ok(Inventory {
        description,
        nodes: vec![node],
        warnings: unhealthy.into_values().collect(),
        isolation,
    })
}

fn number(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Returns the limit; `max` and an absent file are none.
fn memory_limit(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use blueproof_queue::Quantity;

    use super::*;

    #[test]
    fn meminfo_is_in_kibibytes() {
        assert_eq!(
            total_memory("MemFree: 1 kB\nMemTotal:       16316412 kB\n"),
            Some(16_316_412 * 1024)
        );
        assert_eq!(total_memory("MemFree: 1 kB"), None);
    }

    #[test]
    fn this_machine_has_something() {
        let devices = Devices {
            units: Some(["GPU-0", "GPU-1"].map(|unit| DeviceUuid(unit.into())).into()),
            unhealthy: BTreeMap::new(),
            description: "2 gpu (NVIDIA A10)".into(),
        };
        let whole = inventory(&devices, BTreeMap::new(), Isolation::Sandboxed).expect("it is known");
        let has = whole.allocatable();
        assert!(has.cpu >= Cpus::cores(1) && has.memory > Bytes(1 << 20));
        assert_eq!(has.gpu, Gpus(2));
        assert!(
            whole.description.ends_with(" cpu · 2 gpu (NVIDIA A10)"),
            "{whole:?}"
        );
        let diagnostic = Diagnostic::warning(Code::DevicesUnhealthy, "GPU-1 is given to no attempt");
        let of = DeviceUuid("GPU-1".into());
        let rest = inventory(&devices, [(of, diagnostic.clone())].into(), Isolation::Sandboxed)
            .expect("it is known");
        assert_eq!(
            (rest.allocatable().gpu, &rest.warnings),
            (Gpus(1), &vec![diagnostic.clone()])
        );
        assert_eq!(rest.nodes[0].capacity["nvidia.com/gpu"], Quantity(2));
        let unhealthy = rest.nodes[0]
            .devices
            .iter()
            .map(|device| device.unhealthy.as_ref());
        assert!(unhealthy.eq([None, Some(&diagnostic.message)]));
        assert!(
            rest.description.ends_with(" (NVIDIA A10), 1 unhealthy"),
            "{}",
            rest.description
        );
    }
}

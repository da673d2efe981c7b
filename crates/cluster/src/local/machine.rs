//! What this machine has.

use std::{fs, path::Path, thread};

use blueproof_core::{
    diagnostic::{Code, Diagnostic, Place},
    domain::{Bytes, Cpus, Gpus, Resources},
    ports::{CallError, Inventory},
};

use super::Devices;

const MEMINFO: &str = "/proc/meminfo";

/// Where the kernel says how much memory our control group may use, by its version.
const MEMORY_LIMITS: [&str; 2] = [
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];

/// Returns the processors and the memory that we may use: those of our control group where it has fewer; and the devices.
pub(super) fn inventory(devices: &Devices) -> Result<Inventory, CallError> {
    let unknown = |error: &dyn std::error::Error| {
        let diagnostic = Diagnostic::error(
            Code::MachineUnknown,
            "could not find out how much this machine has",
        );
        let hint = "say it yourself: set local.cpu and local.memory in the configuration";
        CallError::never(diagnostic.at(Place::file(MEMINFO)).caused_by(error).hint(hint))
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
    Ok(Inventory {
        total: Resources {
            cpu,
            memory: Bytes(memory),
            gpu: Gpus(devices.units.as_ref().map_or(0, |units| number(units.len()))),
        },
        description: format!("local · {cpu} cpu · {}", devices.description),
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
    use blueproof_core::gpu::DeviceUuid;

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
            units: Some(vec![DeviceUuid("GPU-0".into())]),
            description: "1 gpu (NVIDIA A10)".into(),
        };
        let Inventory { total, description } = inventory(&devices).expect("it is known");
        assert!(total.cpu >= Cpus::cores(1) && total.memory > Bytes(1 << 20));
        assert_eq!(total.gpu, Gpus(1));
        assert!(
            description.ends_with(" cpu · 1 gpu (NVIDIA A10)"),
            "{description}"
        );
    }
}

//! The GPUs of this machine: which attempts may be given, and what they make of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    sync::Arc,
    time::Duration,
};

use blueproof_cluster::local::{Devices, LookForDevices};
use blueproof_core::{
    attempt::AttemptLayout,
    gpu::{DeviceUuid, GpuInventory, GpuSnapshot},
    ports::{GpuMeter, ProbeError, ProbeErrorKind},
};
use blueproof_gpu::{
    account::Holder,
    collect::{Collector, Open},
    health::{CheckPolicy, Facts, Reports, check, unhealthy_devices},
    nvml::NvmlProbe,
    visible::visible,
    watch::AttemptMeter,
};

/// How long a driver may take to answer: one that nobody uses has to be loaded first.
const LOOK_WITHIN: Duration = Duration::from_secs(10);

/// After that it is said what is waited for.
const SLOW_AFTER: Duration = Duration::from_secs(1);

/// Looks for what this process may use. `note` is told of what takes long.
pub(crate) fn look(note: fn(&str)) -> LookForDevices {
    LookForDevices(Arc::new(move || {
        let collector = Collector::start(open());
        let mut collected = collector.collect(SLOW_AFTER);
        if collected.reading.is_none() {
            note("waiting for the GPU driver, which has to be loaded first");
            collected = collector.collect(LOOK_WITHIN);
        }
        match collected.reading.as_deref() {
            Some(Ok((inventory, snapshot))) => found(inventory, snapshot),
            Some(Err(error)) => unreadable(error),
            None => unknown("GPUs cannot be read: the driver does not answer".into()),
        }
    }))
}

/// Returns what measures the devices of an attempt, which belongs to the agent's own process.
pub fn meter(layout: &AttemptLayout) -> Box<dyn GpuMeter> {
    let attempt = Holder(layout.root().display().to_string());
    Box::new(AttemptMeter::new(open(), attempt))
}

fn open() -> Open {
    Box::new(|| Ok(Box::new(NvmlProbe::open()?)))
}

fn found(inventory: &GpuInventory, snapshot: &GpuSnapshot) -> Devices {
    let variable = env::var("CUDA_VISIBLE_DEVICES").ok();
    let units = visible(inventory, variable.as_deref());
    let description = match units.len() {
        0 => "no gpu".into(),
        number => format!("{number} gpu ({})", models(inventory, &units)),
    };
    let facts = Facts {
        inventory: Ok(inventory),
        snapshots: std::slice::from_ref(snapshot),
        reports: Reports::NONE,
    };
    let mut unhealthy = unhealthy_devices(&check(&CheckPolicy::default(), &facts), inventory);
    unhealthy.retain(|unit, _| units.contains(unit));
    Devices {
        units: Some(units),
        unhealthy,
        description,
    }
}

/// Returns what devices are called that these are, or are parts of.
fn models(inventory: &GpuInventory, units: &[DeviceUuid]) -> String {
    let devices = inventory.devices.iter().filter(|device| {
        let mut parts = device.partitions.iter();
        units.contains(&device.uuid) || parts.any(|part| units.contains(&part.uuid))
    });
    let models: BTreeSet<_> = devices.map(|device| device.model.as_str()).collect();
    models.into_iter().collect::<Vec<_>>().join(", ")
}

fn unknown(description: String) -> Devices {
    Devices {
        units: None,
        unhealthy: BTreeMap::new(),
        description,
    }
}

/// Returns what there is where no GPU can be read: none where there is none, else nobody knows.
fn unreadable(error: &ProbeError) -> Devices {
    match error.reason {
        // With none to give, an attempt that was promised one fails instead of running without it.
        ProbeErrorKind::LibraryMissing | ProbeErrorKind::NoDevices => Devices {
            units: Some(Vec::new()),
            unhealthy: BTreeMap::new(),
            description: "no gpu".into(),
        },
        ProbeErrorKind::DriverNotLoaded
        | ProbeErrorKind::NoPermission
        | ProbeErrorKind::VersionMismatch
        | ProbeErrorKind::DriverError
        | ProbeErrorKind::NotAnswering
        | ProbeErrorKind::Released => unknown(format!("GPUs cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use blueproof_diagnostic::{Code, Diagnostic};

    use super::*;

    #[test]
    fn a_gpu_that_is_not_there_is_no_gpu_and_one_that_cannot_be_read_is_unknown() {
        let units = |reason| {
            let diagnostic = Box::new(Diagnostic::error(Code::GpuNone, "nothing can be read"));
            unreadable(&ProbeError { reason, diagnostic }).units
        };
        for reason in [ProbeErrorKind::LibraryMissing, ProbeErrorKind::NoDevices] {
            assert_eq!(units(reason), Some(Vec::new()), "{reason:?}");
        }
        for reason in [
            ProbeErrorKind::DriverNotLoaded,
            ProbeErrorKind::NoPermission,
            ProbeErrorKind::VersionMismatch,
            ProbeErrorKind::DriverError,
            ProbeErrorKind::NotAnswering,
            ProbeErrorKind::Released,
        ] {
            assert_eq!(units(reason), None, "{reason:?}");
        }
    }
}

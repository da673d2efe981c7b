//! The GPUs of this machine: which attempts may be given, and what they make of them.

use std::{collections::BTreeSet, env, sync::Arc, time::Duration};

use blueproof_cluster::local::{Devices, LookForDevices};
use blueproof_core::{
    attempt::AttemptLayout,
    gpu::{DeviceUuid, GpuInventory},
    ports::{Blindness, GpuMeter, ProbeError},
};
use blueproof_gpu::{
    account::Holder,
    collect::{Collector, Open},
    nvml::NvmlProbe,
    visible::visible,
    watch::AttemptMeter,
};

/// How long a driver may take to answer: one that nobody uses has to be loaded first.
const LOOK_WITHIN: Duration = Duration::from_secs(10);

/// Looks for what this process may use.
pub(crate) fn look() -> LookForDevices {
    LookForDevices(Arc::new(|| {
        let collected = Collector::start(open()).collect(LOOK_WITHIN);
        match collected.reading.as_deref() {
            Some(Ok((inventory, _))) => found(inventory),
            Some(Err(error)) => unknown(why(error)),
            None => unknown("GPUs cannot be read: the driver does not answer".into()),
        }
    }))
}

/// Returns what measures the devices of an attempt.
pub(crate) fn meter(layout: &AttemptLayout) -> Box<dyn GpuMeter> {
    let attempt = Holder(layout.root().display().to_string());
    Box::new(AttemptMeter::new(open(), attempt))
}

fn open() -> Open {
    Box::new(|| Ok(Box::new(NvmlProbe::open()?)))
}

fn found(inventory: &GpuInventory) -> Devices {
    let variable = env::var("CUDA_VISIBLE_DEVICES").ok();
    let units = visible(inventory, variable.as_deref());
    let description = match units.len() {
        0 => "no gpu".into(),
        number => format!("{number} gpu ({})", models(inventory, &units)),
    };
    Devices {
        units: Some(units),
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
        description,
    }
}

fn why(error: &ProbeError) -> String {
    match error.reason {
        Blindness::LibraryMissing | Blindness::NoDevices => "no gpu".into(),
        Blindness::DriverNotLoaded
        | Blindness::NoPermission
        | Blindness::VersionMismatch
        | Blindness::DriverError => format!("GPUs cannot be read: {error}"),
    }
}

//! What every GPU probe promises.

use std::collections::BTreeSet;

use crate::{
    gpu::{Figure, FigureKind, GpuInventory, GpuSnapshot, Reading, Sample},
    ports::GpuProbe,
};

/// Puts a probe, whose devices nobody changes meanwhile, to everything that the port promises.
///
/// # Panics
/// When a promise is not kept.
pub fn probe_keeps_its_promises(probe: &mut dyn GpuProbe) {
    let inventory = probe.inventory().expect("it can say which devices there are");
    assert_eq!(
        probe.inventory().as_ref(),
        Ok(&inventory),
        "asking changes nothing"
    );
    each_is_there_once(&inventory);
    let first = probe.snapshot().expect("it can read them");
    let second = probe.snapshot().expect("it can read them again");
    for snapshot in [&first, &second] {
        everything_is_of_a_device(&inventory, snapshot);
        snapshot.samples.iter().for_each(figures_can_be);
    }
    assert!(first.at <= second.at, "time goes on");
    nothing_is_told_twice(&first, &second);
    probe.events().take();
    assert_eq!(probe.events().take(), [], "each event is told once");
}

fn each_is_there_once(inventory: &GpuInventory) {
    let whole = inventory.devices.iter().map(|device| &device.uuid);
    let parts = inventory.devices.iter().flat_map(|device| &device.partitions);
    let uuids: Vec<_> = whole.chain(parts.map(|part| &part.uuid)).collect();
    let once: BTreeSet<_> = uuids.iter().collect();
    assert_eq!(
        once.len(),
        uuids.len(),
        "each device and part is there once: {uuids:?}"
    );
}

fn everything_is_of_a_device(inventory: &GpuInventory, snapshot: &GpuSnapshot) {
    for sample in &snapshot.samples {
        let device = inventory.device(&sample.device);
        let device = device.unwrap_or_else(|| panic!("{} is in the inventory", sample.device));
        if let Some(part) = &sample.partition {
            let is_there = device.partitions.iter().any(|known| known.uuid == *part);
            assert!(is_there, "{part} is a part of {}", device.uuid);
        }
    }
    for device in &inventory.devices {
        assert!(snapshot.of(&device.uuid).is_some(), "{} is read", device.uuid);
    }
}

fn figures_can_be(sample: &Sample) {
    for (figure, reading) in sample.readings.iter() {
        let Reading::Value(value) = reading else { continue };
        assert!(value.is_finite() && *value >= 0.0, "{figure:?} is {value}");
        let is_flag = figure.kind() == FigureKind::Flag;
        assert!(!is_flag || [0.0, 1.0].contains(value), "{figure:?} is {value}");
    }
    let shares = [Figure::Utilization, Figure::MemoryUtilization, Figure::SmActive];
    for share in shares {
        assert!(
            sample.readings.value(share).is_none_or(|value| value <= 1.0),
            "{share:?}"
        );
    }
    for busy in sample.busy.clone().value().unwrap_or_default() {
        assert!((0.0..=1.0).contains(&busy.utilization), "{busy:?}");
    }
}

fn nothing_is_told_twice(first: &GpuSnapshot, second: &GpuSnapshot) {
    for sample in &first.samples {
        let again = second
            .samples
            .iter()
            .find(|other| other.device == sample.device && other.partition == sample.partition);
        let times = |sample: &Sample| {
            let busy = sample.busy.clone().value().unwrap_or_default();
            busy.iter().map(|busy| busy.at).collect::<BTreeSet<_>>()
        };
        let again = again.map(times).unwrap_or_default();
        assert!(
            times(sample).is_disjoint(&again),
            "how busy {} was is told once",
            sample.device
        );
    }
}

//! A probe whose devices stand in memory.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
};

use jiff::{SignedDuration, Timestamp};

use crate::{
    domain::Bytes,
    gpu::{
        Device, DeviceEvent, DeviceUuid, Figure, GpuInventory, GpuSnapshot, Reading, Readings, Sample, Vendor,
    },
    ports::{EventQueue, GpuEvents, GpuProbe, ProbeError},
};

/// Devices that do as they are told. Its clones are about the same devices.
#[derive(Debug, Clone, Default)]
pub struct FakeProbe {
    state: Arc<Mutex<State>>,
    events: Arc<EventQueue>,
}

#[derive(Debug, Default)]
struct State {
    inventory: GpuInventory,
    snapshots: VecDeque<GpuSnapshot>,
    last: Option<GpuSnapshot>,
    error: Option<ProbeError>,
    snapshots_taken: u64,
}

impl FakeProbe {
    /// Returns a probe of these devices, which did nothing yet.
    pub fn of(devices: Vec<Device>) -> Self {
        let probe = Self::default();
        devices
            .iter()
            .for_each(|device| probe.events.listen(device.uuid.clone()));
        probe.lock().inventory.devices = devices;
        probe
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while they hold it")
    }

    /// Lets this be read next, after what is to be read before; the last one is read again and again.
    pub fn will_read(&self, snapshot: GpuSnapshot) {
        self.lock().snapshots.push_back(snapshot);
    }

    /// Lets the driver report something.
    pub fn report(&self, event: DeviceEvent) {
        self.events.push(event);
    }

    /// Has nobody listened to a device for a moment.
    pub fn miss(&self, device: &DeviceUuid) {
        self.events.leave(device);
        self.events.listen(device.clone());
    }

    /// Lets every call fail from now on, or none any more.
    pub fn fail(&self, error: Option<ProbeError>) {
        self.lock().error = error;
    }

    /// Returns how many snapshots were taken.
    pub fn snapshots_taken(&self) -> u64 {
        self.lock().snapshots_taken
    }
}

impl GpuProbe for FakeProbe {
    fn inventory(&mut self) -> Result<GpuInventory, ProbeError> {
        let state = self.lock();
        state
            .error
            .clone()
            .map_or_else(|| Ok(state.inventory.clone()), Err)
    }

    fn snapshot(&mut self) -> Result<GpuSnapshot, ProbeError> {
        let mut state = self.lock();
        if let Some(error) = &state.error {
            return Err(error.clone());
        }
        state.snapshots_taken += 1;
        let next = state.snapshots.pop_front();
        let again = next.or_else(|| {
            let mut last = state.last.clone()?;
            // How busy they were then is told already.
            for sample in &mut last.samples {
                sample.busy = Reading::Value(Vec::new());
            }
            Some(last)
        });
        let read = again.unwrap_or_else(|| snapshot(0, &state.inventory.devices));
        state.last = Some(read.clone());
        Ok(read)
    }

    fn events(&mut self) -> Arc<dyn GpuEvents> {
        Arc::clone(&self.events) as Arc<dyn GpuEvents>
    }
}

/// Returns a device with 24 GiB, by its place.
pub fn device(index: u32) -> Device {
    Device {
        uuid: DeviceUuid(format!("GPU-{index:08}")),
        index,
        vendor: Vendor::Nvidia,
        model: "NVIDIA A10".into(),
        pci_bus_id: Reading::Value(format!("00000000:{:02X}:00.0", 0x18 + index)),
        minor: Reading::Value(index),
        serial: Reading::Unsupported,
        memory: Reading::Value(Bytes(24 << 30)),
        is_partitioned: Reading::Value(false),
        is_virtual: Reading::Unsupported,
        partitions: Vec::new(),
        unread_partitions: None,
    }
}

/// Returns what idle devices say at a second.
pub fn snapshot(second: i64, devices: &[Device]) -> GpuSnapshot {
    let samples = devices.iter().map(|device| Sample {
        device: device.uuid.clone(),
        partition: None,
        readings: idle(),
        processes: Reading::Value(Vec::new()),
        busy: Reading::Value(Vec::new()),
    });
    GpuSnapshot {
        at: Timestamp::from_second(second).expect("small"),
        took: SignedDuration::from_millis(1),
        samples: samples.collect(),
    }
}

fn idle() -> Readings {
    let values = [
        (Figure::Utilization, 0.0),
        (Figure::Power, 21.5),
        (Figure::Temperature, 30.0),
        (Figure::MemoryTotal, 25_769_803_776.0),
        (Figure::MemoryUsed, 0.0),
    ];
    let values = values.map(|(figure, value)| (figure, Reading::Value(value)));
    values.into_iter().collect()
}

//! Errors that the driver reports by itself, each waited for by a thread of its own for each device.
//!
//! NVML tells of several errors that wait to be fetched as if all were the newest. Who waits is told of each as it comes,
//! and so of the cause before what follows from it; also while a reading hangs, which is when errors come.

use std::{
    collections::BTreeMap,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use blueproof_core::{
    gpu::{DeviceEvent, DeviceUuid, GpuInventory},
    ports::EventQueue,
};
use nvml_wrapper::{EventSet, Nvml, bitmasks::event::EventTypes, enums::event::XidError, error::NvmlError};

/// How long one wait for an event lasts: the library stays in use for so long after a probe is closed.
const WAITS_FOR: Duration = Duration::from_millis(500);

/// How long it takes until a device that could not be waited for is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What NVML tells where it does not know the number.
const UNKNOWN_XID: u64 = 999;

/// Listens to each device with a thread and a set of its own: one may hang, and where a device cannot be listened to, NVML
/// frees the set that it was given.
pub(super) struct Listeners {
    pub(super) queue: Arc<EventQueue>,
    /// A thread ends when its end of the channel is dropped.
    threads: BTreeMap<DeviceUuid, mpsc::Sender<()>>,
}

impl Listeners {
    pub(super) fn new() -> Self {
        Self {
            queue: Arc::default(),
            threads: BTreeMap::new(),
        }
    }

    /// Listens to those that came, and not to those that went. It waits for the new ones to be listened to, until a time at
    /// most: what is reported before is lost.
    pub(super) fn follow(&mut self, nvml: &Arc<Nvml>, inventory: &GpuInventory, until: Instant) {
        let queue = &self.queue;
        self.threads.retain(|uuid, _| {
            let is_there = inventory.device(uuid).is_some();
            if !is_there {
                queue.leave(uuid);
            }
            is_there
        });
        let (begun, begins) = mpsc::channel();
        for device in &inventory.devices {
            if !self.threads.contains_key(&device.uuid) {
                let (stop, stopped) = mpsc::channel();
                let listener = Listener {
                    nvml: Arc::clone(nvml),
                    uuid: device.uuid.clone(),
                    queue: Arc::clone(&self.queue),
                    stopped,
                };
                listener.start(begun.clone());
                self.threads.insert(device.uuid.clone(), stop);
            }
        }
        drop(begun);
        // Each says so once, and lets go of its end: when the last has, there is nothing to wait for.
        while let Ok(()) = begins.recv_timeout(until.saturating_duration_since(Instant::now())) {}
    }
}

/// The thread that waits for one device's errors.
struct Listener {
    nvml: Arc<Nvml>,
    uuid: DeviceUuid,
    queue: Arc<EventQueue>,
    stopped: mpsc::Receiver<()>,
}

impl Listener {
    /// Starts it. Where there can be no more threads, nobody listens, which is told by the queue.
    fn start(self, begun: mpsc::Sender<()>) {
        let thread = thread::Builder::new().name("gpu-events".into());
        let _ = thread.spawn(move || self.listen(begun));
    }

    fn listen(self, begun: mpsc::Sender<()>) {
        let mut begun = Some(begun);
        loop {
            let set = register(&self.nvml, &self.uuid);
            if matches!(set, Ok(Some(_))) {
                self.queue.listen(self.uuid.clone());
                self.queue.come_back(&self.uuid);
            }
            drop(begun.take());
            match set {
                Ok(Some(set)) => self.wait(&set),
                // It never tells any.
                Ok(None) => return,
                Err(_) => {}
            }
            self.queue.leave(&self.uuid);
            if self.stopped.recv_timeout(AGAIN_AFTER) == Err(mpsc::RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }

    /// Waits for errors until nobody wants to know any more, or it fails.
    fn wait(&self, set: &EventSet<'_>) {
        let milliseconds = u32::try_from(WAITS_FOR.as_millis()).unwrap_or(u32::MAX);
        while self.stopped.try_recv() != Err(mpsc::TryRecvError::Disconnected) {
            let waited = set.wait(milliseconds);
            self.queue.come_back(&self.uuid);
            match waited {
                Ok(event) => {
                    if let Some(xid) = event.event_data {
                        self.report(&xid);
                    }
                }
                Err(NvmlError::Timeout) => {}
                Err(_) => return,
            }
        }
    }

    fn report(&self, xid: &XidError) {
        self.queue.push(DeviceEvent {
            at: super::now(),
            device: self.uuid.clone(),
            xid: match xid {
                XidError::Value(xid) => *xid,
                XidError::Unknown => UNKNOWN_XID,
            },
        });
    }
}

/// Begins to listen to a device; `None` where its driver reports no errors of it.
fn register<'nvml>(nvml: &'nvml Nvml, uuid: &DeviceUuid) -> Result<Option<EventSet<'nvml>>, NvmlError> {
    let device = nvml.device_by_uuid(uuid.0.as_str())?;
    let supported = match device.supported_event_types() {
        Err(NvmlError::NotSupported) => return Ok(None),
        other => other?,
    };
    if !supported.contains(EventTypes::CRITICAL_XID_ERROR) {
        return Ok(None);
    }
    let set = nvml.create_event_set()?;
    match device.register_events(EventTypes::CRITICAL_XID_ERROR, set) {
        Ok(set) => Ok(Some(set)),
        Err(error) if matches!(error.error, NvmlError::NotSupported) => Ok(None),
        Err(error) => Err(error.error),
    }
}

//! What the accelerators of a machine are and do.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use blueproof_diagnostic::Diagnostic;

use crate::{
    domain::GpuUse,
    gpu::{DeviceEvent, DeviceUuid, GpuInventory, GpuSnapshot},
};

/// Reads the accelerators of this machine, of any vendor.
///
/// A call blocks for as long as the driver takes, which may be for ever: give a probe a thread of its own. Nothing is
/// ever changed on a device. What fails for one device fails for that device only; a call fails as a whole where nothing can
/// be said of any, and may be tried again later.
pub trait GpuProbe: Send {
    /// Returns which devices there are. A machine without any has none, and that is no error.
    fn inventory(&mut self) -> Result<GpuInventory, ProbeError>;

    /// Reads every device. Of how busy they were it tells what is new since the last time. A figure is of now, or it is
    /// none: of a device that does not answer, a probe that reads devices side by side says [`FaultKind::Hangs`].
    ///
    /// [`FaultKind::Hangs`]: crate::gpu::FaultKind::Hangs
    fn snapshot(&mut self) -> Result<GpuSnapshot, ProbeError>;

    /// Says until when somebody waits for what is asked next. By default it is not heeded.
    fn wait_until(&mut self, until: Instant) {
        let _ = until;
    }

    /// Returns where drivers' reports arrive while a reading goes on, for other threads. It is the same each time. By default
    /// nothing arrives, and no device is listened to.
    fn events(&mut self) -> Arc<dyn GpuEvents> {
        Arc::new(EventQueue::default())
    }
}

/// What drivers reported, in their order. No call waits for a driver.
pub trait GpuEvents: Send + Sync {
    /// Waits until something can be taken, but at most so long; it may return early.
    fn wait(&self, within: Duration);

    /// Returns what was reported since the last time, each once, in the order in which it arrived.
    fn take(&self) -> Vec<DeviceEvent>;

    /// Returns the devices that are listened to, and since when without a break. That nothing was reported of another one, or
    /// before, means nothing.
    fn listened_since(&self) -> BTreeMap<DeviceUuid, Instant>;

    /// Returns the devices that are listened to.
    fn listened_to(&self) -> BTreeSet<DeviceUuid> {
        self.listened_since().into_keys().collect()
    }
}

/// So many reports wait to be taken; a device in trouble reports without end, and the first ones say why.
const REPORTS_AT_MOST: usize = 1024;

/// Who waits for reports comes back several times a second. One who was away for so long hears nothing.
const DEAF_AFTER: Duration = Duration::from_secs(5);

/// Reports that wait to be taken: what a probe's own threads put in, others take out.
#[derive(Debug, Default)]
pub struct EventQueue {
    state: Mutex<QueueState>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    events: VecDeque<DeviceEvent>,
    listened_to: BTreeMap<DeviceUuid, Listened>,
}

/// How a device is listened to.
#[derive(Debug, Clone, Copy)]
struct Listened {
    since: Instant,
    /// When whoever waits for its reports came back last; `None` where nobody has to.
    came_back: Option<Instant>,
}

impl EventQueue {
    /// Adds a report. Where too many wait to be taken, it is dropped.
    pub fn push(&self, event: DeviceEvent) {
        let mut state = self.lock();
        if state.events.len() < REPORTS_AT_MOST {
            state.events.push_back(event);
        }
        drop(state);
        self.arrived.notify_all();
    }

    /// Notes that a device is listened to from now on.
    pub fn listen(&self, device: DeviceUuid) {
        let listened = Listened {
            since: Instant::now(),
            came_back: None,
        };
        self.lock().listened_to.entry(device).or_insert(listened);
    }

    /// Notes that whoever waits for the reports of a device that is listened to came back from it, and will do so again.
    pub fn come_back(&self, device: &DeviceUuid) {
        if let Some(listened) = self.lock().listened_to.get_mut(device) {
            listened.came_back = Some(Instant::now());
        }
    }

    /// Notes that a device is listened to no more.
    pub fn leave(&self, device: &DeviceUuid) {
        self.lock().listened_to.remove(device);
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().expect("nobody panics while they hold it")
    }
}

impl GpuEvents for EventQueue {
    fn wait(&self, within: Duration) {
        let waited = self
            .arrived
            .wait_timeout_while(self.lock(), within, |state| state.events.is_empty());
        drop(waited.expect("nobody panics while they hold it"));
    }

    fn take(&self) -> Vec<DeviceEvent> {
        self.lock().events.drain(..).collect()
    }

    fn listened_since(&self) -> BTreeMap<DeviceUuid, Instant> {
        let state = self.lock();
        let is_heard = |of: &Listened| of.came_back.is_none_or(|at| at.elapsed() < DEAF_AFTER);
        let heard = state.listened_to.iter().filter(|(_, of)| is_heard(of));
        heard.map(|(device, of)| (device.clone(), of.since)).collect()
    }
}

/// Measures what an attempt makes of its devices.
///
/// A call waits for a driver for a moment at most. What was not seen is told as not seen, and never guessed.
pub trait GpuMeter {
    /// Says that the attempt has these devices, or parts of devices, from now on.
    fn begin(&mut self, devices: &[DeviceUuid]);

    /// Says that from now on they work for this cell.
    fn turn_to(&mut self, cell: u32);

    /// Says that the attempt has them no more, and returns what it made of them.
    fn end(&mut self) -> GpuUsed;
}

/// What an attempt made of its devices.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GpuUsed {
    /// From beginning to end; `None` where it had none.
    pub whole: Option<GpuUse>,
    /// Cell by cell.
    pub cells: BTreeMap<u32, GpuUse>,
    /// What says that the machine was at fault, if anything does.
    pub fault: Option<Box<Diagnostic>>,
    /// What else there is to know.
    pub notices: Vec<Diagnostic>,
    /// The models of the devices, in their maker's words.
    pub models: Vec<String>,
    /// The version of their driver.
    pub driver: Option<String>,
    /// The unhealthy devices and MIG instances, which no other attempt should be given, each with its reason.
    pub unhealthy: BTreeMap<DeviceUuid, String>,
}

/// Why nothing can be said of any device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .diagnostic.message)]
pub struct ProbeError {
    /// The reason, one of a few.
    pub reason: ProbeErrorKind,
    /// What is wrong, and what to do.
    pub diagnostic: Box<Diagnostic>,
}

/// Why nothing can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeErrorKind {
    /// The driver's library is not here.
    LibraryMissing,
    /// The library is here, and the driver is not loaded.
    DriverNotLoaded,
    /// Whoever asks may not.
    NoPermission,
    /// Library and driver are of different versions.
    VersionMismatch,
    /// There are no devices.
    NoDevices,
    /// The driver says something else.
    DriverError,
    /// The driver does not answer.
    NotAnswering,
    /// The driver is closed because somebody asked for that.
    Released,
}

impl ProbeErrorKind {
    /// Returns it as a label of metrics has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LibraryMissing => "library_missing",
            Self::DriverNotLoaded => "driver_not_loaded",
            Self::NoPermission => "no_permission",
            Self::VersionMismatch => "version_mismatch",
            Self::NoDevices => "no_devices",
            Self::DriverError => "driver_error",
            Self::NotAnswering => "not_answering",
            Self::Released => "released",
        }
    }
}

impl fmt::Display for ProbeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_come_back_from_waiting_hears_nothing() {
        let (queue, device) = (EventQueue::default(), DeviceUuid("GPU-1".into()));
        queue.listen(device.clone());
        queue.come_back(&device);
        let since = queue.listened_since();
        assert!(since.contains_key(&device));
        let long_ago = Instant::now()
            .checked_sub(DEAF_AFTER)
            .expect("the machine runs for longer");
        queue
            .lock()
            .listened_to
            .get_mut(&device)
            .expect("it is there")
            .came_back = Some(long_ago);
        assert!(queue.listened_to().is_empty());
        queue.come_back(&device);
        assert_eq!(queue.listened_since(), since, "what was reported meanwhile waits");
    }
}

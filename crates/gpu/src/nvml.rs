//! NVIDIA's devices, by the library that comes with their driver.
//!
//! The library is looked up when a probe is opened, so one program runs with and without it. Handles of devices are asked
//! for anew each time, by their place: an index means something else after a reset. What fails for one device is noted
//! there; the others are read all the same. Devices are read side by side, each by a thread of its own: of one that does not
//! answer is said so, and it is asked again when it has answered.

mod devices;
mod errors;
mod events;
mod figures;
mod gpm;
mod place;
mod possible;
mod processes;
mod progress;
mod raw;
mod sample;

use std::{
    ffi::OsStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use blueproof_core::{
    gpu::{Device, Figure, GpuInventory, GpuSnapshot, Sample},
    ports::{GpuEvents, GpuProbe, ProbeError, ProbeErrorKind},
};
use jiff::{SignedDuration, Timestamp};
use nvml_wrapper::Nvml;

use self::{
    errors::blind,
    events::Listeners,
    place::{Ask, Patience, Place},
    sample::{Window, unread},
};

/// The name under which loaders find the library.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// How long one call is waited for, and a device at least. A driver that is loaded and quick answers in milliseconds, and one
/// that has to wake a device up in about a second.
const PATIENCE: Duration = Duration::from_secs(3);

/// Which share of the time for which somebody waits devices have to answer.
const TO_READ: f64 = 0.9;

/// Reads NVIDIA's devices.
pub struct NvmlProbe {
    // Those who use the library end before it is closed.
    listeners: Listeners,
    places: Vec<Place>,
    nvml: Arc<Nvml>,
    /// Who was there when that was last asked.
    known: GpuInventory,
    patience: Duration,
    /// Until when whoever asked waits.
    waits_until: Instant,
    pcie: Pcie,
    asks_policies: Arc<AtomicBool>,
}

/// What is read besides that not everybody wants.
#[derive(Debug, Clone, Copy)]
struct Also {
    pcie: Pcie,
    reads_policies: bool,
}

/// How it is read what goes over PCIe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pcie {
    /// From performance monitors, where there are some.
    Monitored,
    /// Elsewhere by a call, too, in which the driver counts for a while.
    Counted,
}

impl NvmlProbe {
    /// For how long policies that few ask for held clocks back: each costs a call to the driver for each device.
    pub const ASKED_FOR: [Figure; 4] = figures::OF_POLICIES;

    /// Loads the library that the system has, and begins to listen for errors.
    ///
    /// # Errors
    ///
    /// Where there is no library, no driver, or no right to use it; it may be tried again.
    pub fn open() -> Result<Self, ProbeError> {
        Self::open_library(LIBRARY.as_ref())
    }

    /// Loads the library from a path: another root's, or one that only tests have.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn open_library(path: &OsStr) -> Result<Self, ProbeError> {
        let nvml = Nvml::builder().lib_path(path).init();
        let nvml = nvml.map_err(|error| blind("could not use the NVIDIA driver", &error))?;
        let mut probe = Self {
            listeners: Listeners::new(),
            places: Vec::new(),
            nvml: Arc::new(nvml),
            known: GpuInventory::default(),
            patience: PATIENCE,
            waits_until: Instant::now(),
            pcie: Pcie::Monitored,
            asks_policies: Arc::default(),
        };
        match probe.inventory() {
            // Devices that hang may go on one day, and those who wait for them cannot be ended.
            Err(error) if error.reason != ProbeErrorKind::NotAnswering => Err(error),
            Ok(_) | Err(_) => Ok(probe),
        }
    }

    /// Has it ask what goes over PCIe also where performance monitors do not tell. For that the driver counts 20 ms in each
    /// direction of each device.
    pub fn counting_pcie(mut self) -> Self {
        self.pcie = Pcie::Counted;
        self
    }

    /// Has it read [`Self::ASKED_FOR`], too, whenever `asked` says so.
    pub fn counting_policies(mut self, asked: Arc<AtomicBool>) -> Self {
        self.asks_policies = asked;
        self
    }

    /// Has it wait for a call no longer than this, and for a device as long where nobody waits for longer.
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Returns how many devices there are, by place.
    fn count(&self) -> Result<u32, ProbeError> {
        let count = self.nvml.device_count();
        count.map_err(|error| blind("could not count the NVIDIA devices", &error))
    }

    /// Asks all places at once, and returns how long they are waited for.
    fn ask(&mut self, ask: Ask) -> Result<Patience, ProbeError> {
        let count = self.count()?;
        self.places.truncate(count as usize);
        let started = self.places.len() as u32;
        for index in started..count {
            self.places.push(Place::start(&self.nvml, index));
        }
        self.places.iter_mut().for_each(|place| place.ask(ask));
        Ok(Patience {
            of_a_call: self.patience,
            until: self.waits_until.max(Instant::now() + self.patience),
        })
    }
}

impl GpuProbe for NvmlProbe {
    fn inventory(&mut self) -> Result<GpuInventory, ProbeError> {
        let patience = self.ask(Ask::Who)?;
        let (mut devices, mut unidentified, mut because) = (Vec::new(), 0, Vec::new());
        for (index, place) in (0..).zip(&mut self.places) {
            let was = self.known.devices.iter().find(|device| device.index == index);
            let who = match place.who(patience) {
                Some(Ok(who)) => Some(who),
                Some(Err(fault)) => {
                    because.push(fault);
                    None
                }
                None => was.cloned(),
            };
            // One that says that it is another cannot be told from it.
            let is_other = |device: &Device| devices.iter().any(|other: &Device| other.uuid == device.uuid);
            let who = who.filter(|device| !is_other(device));
            unidentified += u32::from(who.is_none());
            devices.extend(who);
        }
        if devices.is_empty() && unidentified > 0 {
            return Err(errors::silent(unidentified, &because));
        }
        let known = GpuInventory {
            driver_version: self.nvml.sys_driver_version().ok(),
            api_version: self
                .nvml
                .sys_cuda_driver_version()
                .ok()
                .map(devices::cuda_version),
            devices,
            unidentified,
            unidentified_because: because,
        };
        self.listeners
            .follow(&self.nvml, &known, Instant::now() + self.patience);
        self.known.clone_from(&known);
        Ok(known)
    }

    fn snapshot(&mut self) -> Result<GpuSnapshot, ProbeError> {
        let (at, begun) = (now(), Instant::now());
        let also = Also {
            pcie: self.pcie,
            reads_policies: self.asks_policies.load(Ordering::Relaxed),
        };
        let patience = self.ask(Ask::Read { at, also })?;
        let mut samples: Vec<Sample> = Vec::new();
        for (index, place) in (0..).zip(&mut self.places) {
            let read = place.samples(patience);
            let mut read = read.unwrap_or_else(|| hanging(&self.known, index));
            read.retain(|new| samples.iter().all(|sample| sample.device != new.device));
            samples.append(&mut read);
        }
        Ok(GpuSnapshot {
            at,
            took: SignedDuration::try_from(begun.elapsed()).unwrap_or(SignedDuration::MAX),
            samples,
        })
    }

    fn wait_until(&mut self, until: Instant) {
        // Whoever waits is still to be told.
        let left = until.saturating_duration_since(Instant::now());
        self.waits_until = Instant::now() + left.mul_f64(TO_READ);
    }

    fn events(&mut self) -> Arc<dyn GpuEvents> {
        Arc::clone(&self.listeners.queue) as Arc<dyn GpuEvents>
    }
}

/// Returns what is said of a device that does not answer; nothing of one that never said who it is.
fn hanging(known: &GpuInventory, index: u32) -> Vec<Sample> {
    let device = known.devices.iter().find(|device| device.index == index);
    device
        .map(|device| unread(device.uuid.clone(), &errors::hangs()))
        .into_iter()
        .collect()
}

fn now() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).expect("the clock shows a date of this age")
}

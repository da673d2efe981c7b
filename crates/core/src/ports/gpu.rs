//! What the accelerators of a machine are and do.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::{
    diagnostic::Diagnostic,
    domain::GpuUse,
    gpu::{DeviceEvent, DeviceUuid, GpuInventory, GpuSnapshot},
};

/// Reads the accelerators of this machine, of any vendor.
///
/// Every call blocks for as long as the driver takes, which may be for ever: give a probe a thread of its own. Nothing is
/// ever changed on a device. What fails for one device fails for that device only; a call fails as a whole where nothing can
/// be said of any, and may be tried again later.
pub trait GpuProbe: Send {
    /// Returns which devices there are. A machine without any has none, and that is no error.
    fn inventory(&mut self) -> Result<GpuInventory, ProbeError>;

    /// Reads every device. Of how busy they were it tells what is new since the last time.
    fn snapshot(&mut self) -> Result<GpuSnapshot, ProbeError>;

    /// Returns what drivers reported since the last time, each once, and does not wait for more. Some drivers remember only
    /// the last of several, so ask every second or so.
    fn events(&mut self) -> Result<Vec<DeviceEvent>, ProbeError>;

    /// Returns the devices that it listens to since the last inventory. Of another that nothing is reported means nothing.
    fn heard(&self) -> BTreeSet<DeviceUuid> {
        BTreeSet::new()
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
    /// The devices and parts that nobody should be given after it, each with what says so.
    pub unfit: BTreeMap<DeviceUuid, String>,
}

/// Why nothing can be said of any device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .diagnostic.message)]
pub struct ProbeError {
    /// The reason, one of a few.
    pub reason: Blindness,
    /// What is wrong, and what to do.
    pub diagnostic: Box<Diagnostic>,
}

/// Why nothing can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blindness {
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
}

impl Blindness {
    /// Returns it as a label of metrics has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LibraryMissing => "library_missing",
            Self::DriverNotLoaded => "driver_not_loaded",
            Self::NoPermission => "no_permission",
            Self::VersionMismatch => "version_mismatch",
            Self::NoDevices => "no_devices",
            Self::DriverError => "driver_error",
        }
    }
}

impl fmt::Display for Blindness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

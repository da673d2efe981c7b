//! The figures that devices may have, in one table, and what was read of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Fault, Reading};

/// What kind of figure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureKind {
    /// It is as it is now.
    Gauge,
    /// It only grows, until the driver is loaded anew.
    Counter,
    /// 1 where something is so, else 0.
    Flag,
}

macro_rules! figures {
    ($($(#[doc = $doc:literal])+ $name:ident = $kind:ident,)+) => {
        /// A figure of a device, or of a part of one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub enum Figure {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Figure {
            /// All figures, in the order in which they are listed.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Returns what kind of figure it is.
            pub const fn kind(self) -> FigureKind {
                match self {
                    $(Self::$name => FigureKind::$kind,)+
                }
            }
        }
    };
}

figures! {
    /// How fast its processors run, in hertz.
    SmClock = Gauge,
    /// How fast its memory runs, in hertz.
    MemoryClock = Gauge,
    /// How hot it is, in degrees Celsius.
    Temperature = Gauge,
    /// How hot its memory is, in degrees Celsius.
    MemoryTemperature = Gauge,
    /// What it draws, in watts: the mean of about a second, where the driver says nothing else.
    Power = Gauge,
    /// What it drew since its driver was loaded, in joules.
    Energy = Counter,
    /// Transfers over PCI Express that had to be made again.
    PcieReplays = Counter,
    /// In which share of the last moment (between a sixth of a second and a second) anything ran on it.
    Utilization = Gauge,
    /// In which share of the last moment its memory was read or written.
    MemoryUtilization = Gauge,
    /// The share of the encoder's time that is used.
    EncoderUtilization = Gauge,
    /// The share of the decoder's time that is used.
    DecoderUtilization = Gauge,
    /// All of its memory, in bytes.
    MemoryTotal = Gauge,
    /// Memory that is used, in bytes.
    MemoryUsed = Gauge,
    /// Memory that is free, in bytes.
    MemoryFree = Gauge,
    /// Memory that driver and firmware keep for themselves, in bytes.
    MemoryReserved = Gauge,
    /// Rows of memory that were replaced after errors that could not be corrected.
    UncorrectableRemappedRows = Counter,
    /// Rows of memory that were replaced after errors that could be corrected.
    CorrectableRemappedRows = Counter,
    /// Whether rows wait to be replaced at the next reset.
    RowRemapPending = Flag,
    /// Whether a row could not be replaced.
    RowRemapFailure = Flag,
    /// Errors of memory that were corrected, since its driver was loaded.
    CorrectedErrors = Counter,
    /// Errors of memory that could not be corrected, since its driver was loaded.
    UncorrectedErrors = Counter,
    /// Errors of memory that were corrected, in all its life.
    CorrectedErrorsOfAllTime = Counter,
    /// Errors of memory that could not be corrected, in all its life.
    UncorrectedErrorsOfAllTime = Counter,
    /// Pages of memory that are not used any more, after several errors that could be corrected.
    RetiredPagesCorrectable = Counter,
    /// Pages of memory that are not used any more, after one error that could not be corrected.
    RetiredPagesUncorrectable = Counter,
    /// Whether pages wait to be given up at the next reset.
    RetiredPagesPending = Flag,
    /// For how long its power limit held it back, in seconds.
    PowerViolation = Counter,
    /// For how long its heat held it back, in seconds.
    ThermalViolation = Counter,
    /// For how long it was held back to keep step with others, in seconds.
    SyncBoostViolation = Counter,
    /// For how long a limit of its board held it back, in seconds.
    BoardLimitViolation = Counter,
    /// For how long it was held back because little ran on it, in seconds.
    LowUtilizationViolation = Counter,
    /// For how long it was held back to stay reliable, in seconds.
    ReliabilityViolation = Counter,
    /// Whether its hardware slows it down, for heat or for power.
    HardwareSlowdown = Flag,
    /// Whether its hardware slows it down for heat.
    HardwareThermalSlowdown = Flag,
    /// Whether its hardware slows it down because the power supply says so.
    HardwarePowerBrake = Flag,
    /// Whether the driver slows it down for heat.
    SoftwareThermalSlowdown = Flag,
    /// Whether its power limit holds it back.
    PowerCap = Flag,
    /// The generation of PCI Express that it speaks now; idle ones speak an earlier one.
    PcieGeneration = Gauge,
    /// The generation of PCI Express that it and its slot could speak.
    PcieGenerationMost = Gauge,
    /// Over how many lanes it is connected now.
    PcieWidth = Gauge,
    /// Over how many lanes it could be connected.
    PcieWidthMost = Gauge,
    /// In which share of the time anything ran in its graphics or compute engine.
    EngineActive = Gauge,
    /// The share of its multiprocessors that had work, over the time.
    SmActive = Gauge,
    /// The share of the warps that could be there, over the time.
    SmOccupancy = Gauge,
    /// In which share of the time its tensor cores worked.
    TensorActive = Gauge,
    /// In which share of the time data went to or from its memory.
    DramActive = Gauge,
    /// In which share of the time its units for 64 bits worked.
    Fp64Active = Gauge,
    /// In which share of the time its units for 32 bits worked.
    Fp32Active = Gauge,
    /// In which share of the time its units for 16 bits worked.
    Fp16Active = Gauge,
    /// What it sends over PCI Express, in bytes a second.
    PcieSent = Gauge,
    /// What it gets over PCI Express, in bytes a second.
    PcieReceived = Gauge,
    /// What it sends over NVLink, in bytes a second.
    NvlinkSent = Gauge,
    /// What it gets over NVLink, in bytes a second.
    NvlinkReceived = Gauge,
}

/// What was read of a device's figures; what is not here was not asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Readings(BTreeMap<Figure, Reading<f64>>);

impl Readings {
    /// Notes what came of reading a figure.
    pub fn set(&mut self, figure: Figure, reading: Reading<f64>) {
        self.0.insert(figure, reading);
    }

    /// Returns what came of reading a figure.
    pub fn get(&self, figure: Figure) -> Reading<f64> {
        self.0.get(&figure).cloned().unwrap_or(Reading::Unsupported)
    }

    /// Returns a figure's value, if it was read.
    pub fn value(&self, figure: Figure) -> Option<f64> {
        self.get(figure).value()
    }

    /// Returns whether something is so, if that was read.
    pub fn flag(&self, figure: Figure) -> Option<bool> {
        self.value(figure).map(|value| value != 0.0)
    }

    /// Returns all that were asked for.
    pub fn iter(&self) -> impl Iterator<Item = (Figure, &Reading<f64>)> {
        self.0.iter().map(|(figure, reading)| (*figure, reading))
    }

    /// Returns those that could not be read, and why.
    pub fn faults(&self) -> impl Iterator<Item = (Figure, &Fault)> {
        self.iter()
            .filter_map(|(figure, reading)| Some((figure, reading.fault()?)))
    }
}

impl FromIterator<(Figure, Reading<f64>)> for Readings {
    fn from_iter<I: IntoIterator<Item = (Figure, Reading<f64>)>>(readings: I) -> Self {
        Self(readings.into_iter().collect())
    }
}

impl IntoIterator for Readings {
    type Item = (Figure, Reading<f64>);
    type IntoIter = std::collections::btree_map::IntoIter<Figure, Reading<f64>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Extend<(Figure, Reading<f64>)> for Readings {
    fn extend<I: IntoIterator<Item = (Figure, Reading<f64>)>>(&mut self, readings: I) {
        self.0.extend(readings);
    }
}

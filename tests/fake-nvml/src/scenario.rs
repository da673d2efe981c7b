//! What a fake NVML has and does: the file that the library reads, as types.
//!
//! Nothing here answers a call. Fields have NVML's words, with units in their names; a figure without steps is one
//! that the card does not have.

use crate::returns::NvmlReturn;
use crate::steps::Steps;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that a copy of the library answers from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Scenario {
    /// What moves the time of the scenario.
    pub clock: Clock,
    /// The Unix time of second 0, for NVML's timestamps.
    pub starts_at_unix_seconds: u64,
    /// The version of the NVIDIA driver. From 580.82 on, fields 251 to 273 have other numbers.
    pub driver_version: String,
    /// The version of NVML; NVML itself puts the CUDA version before the driver's.
    pub nvml_version: String,
    /// The version of CUDA that the driver supports, such as 12080 for 12.8.
    pub cuda_driver_version: i32,
    /// The seconds at which the driver was loaded anew: energy and accounting begin again. It is loaded at second 0.
    pub driver_reloads: Vec<f64>,
    /// The devices, in the order of their indices.
    pub devices: Vec<Device>,
    /// Calls that fail. The first that applies to a call decides.
    pub faults: Vec<Fault>,
    /// Calls that take long. All that apply to a call add up.
    pub delays: Vec<Delay>,
}

impl Scenario {
    /// What a copy of the library has before it has read its scenario.
    pub(crate) const EMPTY: Self = Self {
        clock: Clock::Virtual,
        starts_at_unix_seconds: 0,
        driver_version: String::new(),
        nvml_version: String::new(),
        cuda_driver_version: 0,
        driver_reloads: Vec::new(),
        devices: Vec::new(),
        faults: Vec::new(),
        delays: Vec::new(),
    };

    /// Makes a scenario of some devices, and gives each a UUID, serial, minor number and PCI address of its own.
    pub fn of(devices: impl IntoIterator<Item = Device>) -> Self {
        let numbered = devices
            .into_iter()
            .zip(0..)
            .map(|(device, number)| device.numbered(number));
        Self {
            devices: numbered.collect(),
            ..Self::default()
        }
    }
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            starts_at_unix_seconds: 1_767_225_600, // The beginning of 2026: any time that a reader recognises.
            driver_version: "580.159.03".to_owned(),
            nvml_version: "13.580.159.03".to_owned(),
            cuda_driver_version: 13_000,
            ..Self::EMPTY
        }
    }
}

/// What moves the time of a scenario.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Clock {
    /// Time stands until it is told.
    #[default]
    Virtual,
    /// Time passes, from the first `nvmlInit` on.
    Real,
    /// Time is the second that stands in the file `time` beside the library, 0 where there is none: so a test moves the
    /// time of another process.
    File,
}

/// One device. By default it has no figures at all; `a10()` and its like make devices that do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Device {
    /// The name, such as `NVIDIA A10`.
    pub name: String,
    /// The UUID, such as `GPU-…`.
    pub uuid: String,
    /// The board's serial number; `None` is a board without one.
    pub serial: Option<String>,
    /// The number of `/dev/nvidia<n>`.
    pub minor_number: u32,
    /// Where the device is on PCI.
    pub pci: Pci,
    /// The version of the VBIOS.
    pub vbios_version: String,
    /// NVML's number for the brand.
    pub brand: u32,
    /// NVML's number for the architecture: 7 is Ampere, 9 is Hopper.
    pub architecture: u32,
    /// The compute capability, such as `[9, 0]`.
    pub cuda_compute_capability: (i32, i32),
    /// All of its memory.
    pub memory_total_bytes: u64,
    /// The part of it that the driver and ECC keep.
    pub memory_reserved_bytes: u64,
    /// The power limits; `None` is a card that tells none.
    pub power_limits: Option<PowerLimits>,
    /// The highest clocks.
    pub max_clocks_mhz: Clocks,
    /// The highest PCIe generation and width of card and host.
    pub max_pcie_link: Option<(u32, u32)>,
    /// Whether ECC is on; `None` is a card without ECC.
    pub ecc_enabled: Option<bool>,
    /// Whether the driver keeps the device initialised without clients.
    pub persistence_mode: bool,
    /// NVML's number for how the device is virtualised: 0 is not at all, 1 is passed through; `None` is a card that cannot say.
    pub virtualization: Option<u32>,
    /// Whether the driver records ended processes; `None` is a card that cannot.
    pub accounting: Option<bool>,
    /// Whether processes' utilisation and the rings of samples can be read.
    pub samples: bool,
    /// The event types that can be waited for, as NVML's bits.
    pub supported_event_types: u64,
    /// How many microseconds the driver says that it took over each field.
    pub field_latency_us: u32,
    /// What the device reads over time.
    pub figures: Figures,
    /// The links to other GPUs, in the order of their numbers.
    pub nvlinks: Vec<NvLink>,
    /// How the device can be divided; `None` is a card without MIG.
    pub mig: Option<Mig>,
    /// What runs on it, and when.
    pub processes: Vec<Process>,
    /// The errors that the driver reports.
    pub xids: Vec<Xid>,
}

impl Device {
    /// Gives the device and its MIG instances names of their own, made from a number.
    #[must_use]
    pub fn numbered(mut self, number: u32) -> Self {
        self.uuid = format!("GPU-b1e0be55-0000-4000-8000-{number:012x}");
        self.serial = self.serial.map(|_| format!("16500{number:08}"));
        self.minor_number = number;
        self.pci.bus = 0x10 + number;
        for (instance, place) in self.mig.iter_mut().flat_map(|mig| &mut mig.instances).zip(0..) {
            instance.uuid = format!("MIG-b1e0be55-0000-4000-8000-{number:06x}{place:06x}");
        }
        self
    }
}

/// A place on PCI, and what is found there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Pci {
    /// The domain.
    pub domain: u32,
    /// The bus.
    pub bus: u32,
    /// The device on the bus.
    pub device: u32,
    /// The device and vendor ids, as one number.
    pub pci_device_id: u32,
    /// The subsystem's ids, as one number.
    pub pci_sub_system_id: u32,
}

impl Pci {
    /// Returns the address as NVML writes it, such as `00000000:18:00.0`.
    pub fn bus_id(&self) -> String {
        format!("{:08X}:{:02X}:{:02X}.0", self.domain, self.bus, self.device)
    }
}

/// What may be drawn from the wall.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PowerLimits {
    /// The least that can be set.
    pub min_milliwatts: u32,
    /// The most that can be set.
    pub max_milliwatts: u32,
    /// What is set without anybody's doing.
    pub default_milliwatts: u32,
    /// What is set.
    pub current_milliwatts: u32,
}

/// Clocks by what they drive; 0 is a clock that cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Clocks {
    /// The graphics and SM clock.
    pub sm: u32,
    /// The memory's clock.
    pub memory: u32,
    /// The video engines' clock.
    pub video: u32,
}

/// What a device reads over time.
///
/// Counters say what they stand at. Those that follow from other figures are not here: energy is the integral of
/// power since the driver was loaded, and a violation's time that of its throttle reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the names are NVML's, with the unit at their end")]
pub struct Figures {
    pub gpu_utilization_percent: Steps,
    pub memory_utilization_percent: Steps,
    pub encoder_utilization_percent: Steps,
    pub decoder_utilization_percent: Steps,
    pub power_milliwatts: Steps,
    pub temperature_celsius: Steps,
    pub memory_temperature_celsius: Steps,
    /// NVML's number, 0 for the most performance.
    pub performance_state: Steps,
    pub sm_clock_mhz: Steps,
    pub memory_clock_mhz: Steps,
    pub video_clock_mhz: Steps,
    /// Without what is reserved, which NVML's older call counts as used.
    pub memory_used_bytes: Steps,
    /// NVML's bits, as one number.
    pub throttle_reasons: Steps,
    pub pcie_link_generation: Steps,
    pub pcie_link_width: Steps,
    pub pcie_replay_counter: Steps,
    pub pcie_tx_bytes_per_second: Steps,
    pub pcie_rx_bytes_per_second: Steps,
    pub nvlink_tx_bytes_per_second: Steps,
    pub nvlink_rx_bytes_per_second: Steps,
    pub ecc_corrected_volatile: Steps,
    pub ecc_corrected_aggregate: Steps,
    pub ecc_uncorrected_volatile: Steps,
    pub ecc_uncorrected_aggregate: Steps,
    pub remapped_rows_correctable: Steps,
    pub remapped_rows_uncorrectable: Steps,
    pub remapped_rows_pending: Steps,
    pub remapped_rows_failure: Steps,
    /// Pages, on cards older than Ampere.
    pub retired_pages_single_bit: Steps,
    /// Pages, on cards older than Ampere.
    pub retired_pages_double_bit: Steps,
    pub retired_pages_pending: Steps,
    /// GPM metrics by NVML's number, in NVML's unit; a card with none has no GPM.
    pub gpm: BTreeMap<u32, Steps>,
}

/// A link to another GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the names are NVML's counters")]
pub struct NvLink {
    pub active: bool,
    pub replay_errors: u64,
    pub recovery_errors: u64,
    pub crc_flit_errors: u64,
    pub crc_data_errors: u64,
    pub ecc_data_errors: u64,
}

/// How a device is divided.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Mig {
    /// Whether MIG is on. The utilisation of a whole device cannot be read then.
    pub enabled: bool,
    /// How many instances there can be.
    pub max_devices: u32,
    /// The instances that there are, in the order of their indices.
    pub instances: Vec<MigInstance>,
}

/// A part of a device, with one compute instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MigInstance {
    /// The UUID, such as `MIG-…`.
    pub uuid: String,
    /// The profile, such as `1g.10gb`.
    pub profile: String,
    /// The number of the GPU instance.
    pub gpu_instance_id: u32,
    /// The number of the compute instance in it.
    pub compute_instance_id: u32,
    /// Its memory.
    pub memory_total_bytes: u64,
    /// The part of it that is used, over time.
    pub memory_used_bytes: Steps,
    /// Its multiprocessors.
    pub multiprocessor_count: u32,
    /// How many slices of the device it is made of.
    pub slice_count: u32,
    /// Its GPM metrics by NVML's number.
    pub gpm: BTreeMap<u32, Steps>,
}

/// A process that has a context on a device for some time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name, for `nvmlSystemGetProcessName`.
    pub name: String,
    /// What it uses the device for.
    pub kind: ProcessKind,
    /// On which MIG instance it runs, by index; `None` is the whole device.
    pub mig: Option<usize>,
    /// The second from which it runs.
    pub begin: f64,
    /// The second at which it is gone; `None` stays.
    pub end: Option<f64>,
    /// How much memory it has, over the scenario's time; without steps NVML cannot tell.
    pub memory_used_bytes: Steps,
    /// Its share of the SMs, over the scenario's time.
    pub sm_utilization_percent: Steps,
    /// Its share of the memory's bandwidth, over the scenario's time.
    pub memory_utilization_percent: Steps,
}

/// What a process uses a device for: the list in which NVML has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are NVML's")]
pub enum ProcessKind {
    #[default]
    Compute,
    Graphics,
    MpsCompute,
}

/// An error that the driver reports at a second, to every set of events that was registered before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Xid {
    /// The second.
    pub at: f64,
    /// The number of the error.
    pub code: u64,
    /// On which MIG instance, by index; `None` is the whole device.
    #[serde(default)]
    pub mig: Option<usize>,
}

/// Calls that fail for some time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// The function, such as `nvmlDeviceGetPowerUsage`; `*` is every one that is asked of a device.
    pub function: String,
    /// The index of the device; `None` is every device, and functions that are asked of none.
    #[serde(default)]
    pub device: Option<usize>,
    /// The second from which they fail.
    #[serde(default)]
    pub from: f64,
    /// The second at which they succeed again; `None` is never.
    #[serde(default)]
    pub to: Option<f64>,
    /// What they return.
    pub returns: NvmlReturn,
}

impl Fault {
    /// Returns one that is there from the beginning, and does not go.
    pub fn always(function: &str, device: Option<usize>, returns: NvmlReturn) -> Self {
        Self {
            function: function.to_owned(),
            device,
            from: 0.0,
            to: None,
            returns,
        }
    }
}

/// Calls that take long for some time. Others go on meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Delay {
    /// The function, such as `nvmlDeviceGetPowerUsage`; `*` is every one that is asked of a device.
    pub function: String,
    /// The index of the device; `None` is every device, and functions that are asked of none.
    #[serde(default)]
    pub device: Option<usize>,
    /// The second from which they are slow.
    #[serde(default)]
    pub from: f64,
    /// The second at which they are quick again; `None` is never.
    #[serde(default)]
    pub to: Option<f64>,
    /// How long they take, in real time whatever the clock is.
    pub milliseconds: u64,
}

impl Delay {
    /// Returns one that is there from the beginning, and does not go.
    pub fn always(function: &str, device: Option<usize>, milliseconds: u64) -> Self {
        Self {
            function: function.to_owned(),
            device,
            from: 0.0,
            to: None,
            milliseconds,
        }
    }
}

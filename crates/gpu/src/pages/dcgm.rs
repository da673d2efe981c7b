//! The page of dcgm-exporter, as far as NVML can answer.
//!
//! Names, types, labels and units are those of dcgm-exporter's default counters (NVIDIA/dcgm-exporter d5e5f51,
//! `etc/default-counters.csv` and `internal/pkg/rendermetrics`); each figure's source in NVML is another than DCGM's and may be
//! sampled over another moment. Fields that this file does not enable, such as `DCGM_FI_DEV_FB_TOTAL` and what else OKE's and
//! OpenShift's rules name, are shown where a file of counters asks for them: a swap of the image adds no series.
//!
//! The words of `err_msg` are ours, but for 0, `No Error`. Left out: what needs DCGM's own modules (`DCGM_EXP_GPU_HEALTH_STATUS`, vGPU licences), `DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL`,
//! whose unit differs from version to version, and on cards before Hopper everything that begins with `DCGM_FI_PROF_`. From Hopper on that is told from the second reading on:
//! it is what was done between two.
//!
//! A device that is divided is told of by its GPU instances only, and each has its device's clocks, temperature, power and errors
//! beside its own memory and activity: so does dcgm-exporter by default (`-d f`). Sums of memory count nothing twice; what an
//! instance has of its device must not be summed up, which our own page spares its readers.
//!
//! Its counters do not end in `_total`, which OpenMetrics wants of them: the page is always in Prometheus' own format.

use std::{borrow::Cow, collections::BTreeMap};

use blueproof_core::{
    gpu::{Device, Figure, GpuSnapshot, Partition, Reading, Sample},
    metrics::{Exposition, Family, Format, Kind},
};

use super::{Owner, Owners, PageInput, native, native::instances::of_gpu_instance};
use crate::health::xid_words;

mod counters;

pub use counters::Counters;

/// How the page is written, where consumers differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The label that has the host's name; `None` leaves it out.
    pub host_label: Option<HostLabel>,
    /// The host's name.
    pub host: String,
    /// Which fields are shown; `None` are those that dcgm-exporter's own file enables, as far as they are known here.
    pub counters: Option<Counters>,
    /// Whether blanks in a model's name are written as dashes.
    pub model_names: ModelNames,
}

/// How the names of models are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelNames {
    /// As the driver tells them.
    #[default]
    Told,
    /// With a dash for each blank: `NVIDIA-A10`.
    Dashed,
}

/// What the label with the host's name is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HostLabel {
    /// `Hostname`, as in all releases until May 2026, and in most dashboards.
    #[default]
    Capital,
    /// `hostname`, as since.
    Small,
}

impl HostLabel {
    fn as_str(self) -> &'static str {
        match self {
            Self::Capital => "Hostname",
            Self::Small => "hostname",
        }
    }
}

/// A metric of DCGM's, and where it comes from.
struct Metric {
    family: Family,
    figure: Figure,
    unit: Unit,
}

/// How DCGM gives a figure.
#[derive(Debug, Clone, Copy)]
enum Unit {
    /// As a whole number of units, of which one of ours has so many.
    Whole(f64),
    /// As a number with a fraction, in our unit.
    Exact,
    /// In whole MiB; what is less than one does not count.
    Mebibytes,
}

macro_rules! metrics {
    ($($name:literal $kind:ident $figure:ident ($unit:expr) $help:literal,)+) => {
        &[$(Metric {
            family: Family { name: $name, kind: Kind::$kind, labels: &[], constant: &[], help: $help },
            figure: Figure::$figure,
            unit: $unit,
        },)+]
    };
}

static METRICS: &[Metric] = metrics! {
    "DCGM_FI_DEV_SM_CLOCK" Gauge SmClock (Unit::Whole(1e-6)) "Clock of the multiprocessors (in MHz)",
    "DCGM_FI_DEV_MEM_CLOCK" Gauge MemoryClock (Unit::Whole(1e-6)) "Clock of the memory (in MHz)",
    "DCGM_FI_DEV_MEMORY_TEMP" Gauge MemoryTemperature (Unit::Whole(1.0)) "Temperature of the memory (in C)",
    "DCGM_FI_DEV_GPU_TEMP" Gauge Temperature (Unit::Whole(1.0)) "Temperature of the GPU (in C)",
    "DCGM_FI_DEV_POWER_USAGE" Gauge Power (Unit::Exact) "Power that is drawn (in W)",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" Counter Energy (Unit::Whole(1e3)) "Energy since the driver was loaded (in mJ)",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER" Counter PcieReplays (Unit::Whole(1.0)) "Transfers over PCIe that were made again",
    "DCGM_FI_DEV_GPU_UTIL" Gauge Utilization (Unit::Whole(100.0)) "Time in which a kernel ran (in %)",
    "DCGM_FI_DEV_MEM_COPY_UTIL" Gauge MemoryUtilization (Unit::Whole(100.0)) "Time in which memory was read or written (in %)",
    "DCGM_FI_DEV_ENC_UTIL" Gauge EncoderUtilization (Unit::Whole(100.0)) "Use of the encoder (in %)",
    "DCGM_FI_DEV_DEC_UTIL" Gauge DecoderUtilization (Unit::Whole(100.0)) "Use of the decoder (in %)",
    "DCGM_FI_DEV_FB_TOTAL" Gauge MemoryTotal (Unit::Mebibytes) "Memory (in MiB)",
    "DCGM_FI_DEV_FB_FREE" Gauge MemoryFree (Unit::Mebibytes) "Memory that is free (in MiB)",
    "DCGM_FI_DEV_FB_USED" Gauge MemoryUsed (Unit::Mebibytes) "Memory that is used (in MiB)",
    "DCGM_FI_DEV_FB_RESERVED" Gauge MemoryReserved (Unit::Mebibytes) "Memory that the driver keeps (in MiB)",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS" Counter UncorrectableRemappedRows (Unit::Whole(1.0)) "Rows of memory that were replaced after uncorrectable errors",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS" Counter CorrectableRemappedRows (Unit::Whole(1.0)) "Rows of memory that were replaced after correctable errors",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE" Gauge RowRemapFailure (Unit::Whole(1.0)) "Whether a row could not be replaced",
    "DCGM_FI_DEV_ROW_REMAP_PENDING" Gauge RowRemapPending (Unit::Whole(1.0)) "Whether rows wait to be replaced at a reset",
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL" Counter CorrectedErrors (Unit::Whole(1.0)) "Single-bit errors since the driver was loaded",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL" Counter UncorrectedErrors (Unit::Whole(1.0)) "Double-bit errors since the driver was loaded",
    "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL" Counter CorrectedErrorsOfAllTime (Unit::Whole(1.0)) "Single-bit errors of all time",
    "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL" Counter UncorrectedErrorsOfAllTime (Unit::Whole(1.0)) "Double-bit errors of all time",
    "DCGM_FI_DEV_RETIRED_SBE" Counter RetiredPagesCorrectable (Unit::Whole(1.0)) "Pages retired after single-bit errors",
    "DCGM_FI_DEV_RETIRED_DBE" Counter RetiredPagesUncorrectable (Unit::Whole(1.0)) "Pages retired after double-bit errors",
    "DCGM_FI_DEV_RETIRED_PENDING" Counter RetiredPagesPending (Unit::Whole(1.0)) "Whether pages wait to be retired at a reset",
    "DCGM_FI_DEV_POWER_VIOLATION" Counter PowerViolation (Unit::Whole(1e9)) "Time in which power held the clocks back (in ns)",
    "DCGM_FI_DEV_THERMAL_VIOLATION" Counter ThermalViolation (Unit::Whole(1e9)) "Time in which heat held the clocks back (in ns)",
    "DCGM_FI_DEV_SYNC_BOOST_VIOLATION" Counter SyncBoostViolation (Unit::Whole(1e9)) "Time in which keeping step with others held the clocks back (in ns)",
    "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION" Counter BoardLimitViolation (Unit::Whole(1e9)) "Time in which a limit of the board held the clocks back (in ns)",
    "DCGM_FI_DEV_LOW_UTIL_VIOLATION" Counter LowUtilizationViolation (Unit::Whole(1e9)) "Time in which low utilization held the clocks back (in ns)",
    "DCGM_FI_DEV_RELIABILITY_VIOLATION" Counter ReliabilityViolation (Unit::Whole(1e9)) "Time in which reliability held the clocks back (in ns)",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE" Gauge EngineActive (Unit::Exact) "Share of the time in which the graphics or compute engine was active",
    "DCGM_FI_PROF_SM_ACTIVE" Gauge SmActive (Unit::Exact) "Share of the cycles in which a multiprocessor had a warp",
    "DCGM_FI_PROF_SM_OCCUPANCY" Gauge SmOccupancy (Unit::Exact) "Share of the warps that a multiprocessor could have",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" Gauge TensorActive (Unit::Exact) "Share of the cycles in which the tensor cores were active",
    "DCGM_FI_PROF_DRAM_ACTIVE" Gauge DramActive (Unit::Exact) "Share of the cycles in which memory sent or received data",
    "DCGM_FI_PROF_PIPE_FP64_ACTIVE" Gauge Fp64Active (Unit::Exact) "Share of the cycles in which the 64-bit pipe was active",
    "DCGM_FI_PROF_PIPE_FP32_ACTIVE" Gauge Fp32Active (Unit::Exact) "Share of the cycles in which the 32-bit pipe was active",
    "DCGM_FI_PROF_PIPE_FP16_ACTIVE" Gauge Fp16Active (Unit::Exact) "Share of the cycles in which the 16-bit pipe was active",
    "DCGM_FI_PROF_PCIE_TX_BYTES" Gauge PcieSent (Unit::Whole(1.0)) "Rate of what is sent over PCIe (in bytes per second)",
    "DCGM_FI_PROF_PCIE_RX_BYTES" Gauge PcieReceived (Unit::Whole(1.0)) "Rate of what is received over PCIe (in bytes per second)",
    "DCGM_FI_PROF_NVLINK_TX_BYTES" Gauge NvlinkSent (Unit::Whole(1.0)) "Rate of what is sent over NVLink (in bytes per second)",
    "DCGM_FI_PROF_NVLINK_RX_BYTES" Gauge NvlinkReceived (Unit::Whole(1.0)) "Rate of what is received over NVLink (in bytes per second)",
};

static XID_ERRORS: Family = Family {
    name: "DCGM_FI_DEV_XID_ERRORS",
    kind: Kind::Gauge,
    labels: &[],
    constant: &[],
    help: "Number of the last error that the driver reported",
};

/// Returns the metrics that the page may have. Their labels depend on whom a series is of, and are not in the table.
pub fn families() -> impl Iterator<Item = &'static Family> {
    Field::all().map(Field::family)
}

/// Returns the page, which is in Prometheus' text format. It begins with how reading and asking the kubelet went, in our own words: dcgm-exporter has
/// none for it, and where nothing could be read there would be no telling that from a machine without devices.
pub fn render(seen: &PageInput, options: &Options) -> String {
    let mut page = Exposition::new(Format::Prometheus);
    native::collection(seen, &mut page);
    // Without this a series without a pod could mean a free device, or a kubelet that does not answer.
    native::owners::told(seen, &mut page);
    let Some((inventory, snapshot)) = &seen.devices else {
        reported(seen, options, &mut page);
        return page.finish();
    };
    let devices = inventory.devices.iter();
    let series: Vec<_> = devices
        .flat_map(|device| Series::of(device, snapshot, seen, options.model_names))
        .collect();
    let driver = inventory.driver_version.as_deref();
    let driver = driver.filter(|_| options.counters.as_ref().is_none_or(Counters::have_driver));
    match &options.counters {
        Some(counters) => {
            for (field, family) in counters.shown() {
                write_field(field, family, &series, seen, driver, options, &mut page);
            }
        }
        None => {
            for field in Field::all().filter(|field| field.is_default()) {
                write_field(field, field.family(), &series, seen, driver, options, &mut page);
            }
        }
    }
    page.finish()
}

/// A field of DCGM's that the page may have.
#[derive(Clone, Copy)]
enum Field {
    Metric(&'static Metric),
    XidErrors,
}

impl Field {
    fn all() -> impl Iterator<Item = Self> {
        METRICS.iter().map(Self::Metric).chain([Self::XidErrors])
    }

    /// Returns whether dcgm-exporter's own file enables it.
    fn is_default(self) -> bool {
        match self {
            Self::Metric(metric) => !is_extra(metric.figure),
            Self::XidErrors => true,
        }
    }

    fn family(self) -> &'static Family {
        match self {
            Self::Metric(metric) => &metric.family,
            Self::XidErrors => &XID_ERRORS,
        }
    }
}

/// Returns whether a figure is of a field that dcgm-exporter's own file has commented out, or does not have.
fn is_extra(figure: Figure) -> bool {
    matches!(
        figure,
        Figure::MemoryTotal
            | Figure::RowRemapPending
            | Figure::CorrectedErrors
            | Figure::UncorrectedErrors
            | Figure::CorrectedErrorsOfAllTime
            | Figure::UncorrectedErrorsOfAllTime
            | Figure::RetiredPagesCorrectable
            | Figure::RetiredPagesUncorrectable
            | Figure::RetiredPagesPending
            | Figure::PowerViolation
            | Figure::ThermalViolation
            | Figure::SyncBoostViolation
            | Figure::BoardLimitViolation
            | Figure::LowUtilizationViolation
            | Figure::ReliabilityViolation
            | Figure::SmActive
            | Figure::SmOccupancy
            | Figure::Fp64Active
            | Figure::Fp32Active
            | Figure::Fp16Active
            | Figure::NvlinkSent
            | Figure::NvlinkReceived
    )
}

fn write_field(
    field: Field,
    family: &Family,
    series: &[Series<'_>],
    seen: &PageInput,
    driver: Option<&str>,
    options: &Options,
    page: &mut Exposition,
) {
    let metric = match field {
        Field::Metric(metric) => metric,
        Field::XidErrors => return xid_errors(family, series, seen, driver, options, page),
    };
    let values = series
        .iter()
        .filter_map(|series| Some((series, series.value(metric.figure)?)));
    let mut values = values.peekable();
    if values.peek().is_some() {
        page.family(family);
    }
    for (series, value) in values {
        let labels = series.labels(driver, options, None);
        page.sample(family, &labels, metric.unit.of(value));
    }
}

fn xid_errors(
    family: &Family,
    series: &[Series<'_>],
    seen: &PageInput,
    driver: Option<&str>,
    options: &Options,
    page: &mut Exposition,
) {
    let told = series
        .iter()
        .filter_map(|series| Some((series, last_error(series.whole, seen)?)));
    let mut told = told.peekable();
    if told.peek().is_some() {
        page.family(family);
    }
    for (series, last) in told {
        let error = LastError::of(last);
        let labels = series.labels(driver, options, Some(error.labels()));
        page.sample(family, &labels, error.number());
    }
}

/// Writes the last errors of devices of which nothing else is known any more: the driver hangs, and they may say why. Of a
/// device its UUID is all that is known then.
fn reported(seen: &PageInput, options: &Options, page: &mut Exposition) {
    let shown = match &options.counters {
        Some(counters) => counters
            .shown()
            .find(|(field, _)| matches!(field, Field::XidErrors)),
        None => Some((Field::XidErrors, &XID_ERRORS)),
    };
    let mut lasts = seen.errors.lasts().peekable();
    let Some((_, family)) = shown.filter(|_| lasts.peek().is_some()) else {
        return;
    };
    page.family(family);
    for (device, last) in lasts {
        let error = LastError::of(last);
        let [code, words] = error.labels();
        let uuid = Some(("UUID", device.0.as_str()));
        let labels = [
            uuid,
            host(options),
            Some(("err_code", code)),
            Some(("err_msg", words)),
        ];
        let labels: Vec<_> = labels.into_iter().flatten().collect();
        page.sample(family, &labels, error.number());
    }
}

/// Returns the label of the host, where there is to be one.
fn host(options: &Options) -> Option<(&'static str, &str)> {
    options
        .host_label
        .map(|label| (label.as_str(), options.host.as_str()))
}

/// The last error of a device, as labels and as a value.
struct LastError {
    code: String,
    words: &'static str,
}

impl LastError {
    fn of(error: u64) -> Self {
        Self {
            code: error.to_string(),
            words: words_of(error),
        }
    }

    fn labels(&self) -> [&str; 2] {
        [&self.code, self.words]
    }

    fn number(&self) -> f64 {
        self.code.parse().expect("it is a number")
    }
}

fn words_of(error: u64) -> &'static str {
    match error {
        // As dcgm-exporter has it.
        0 => "No Error",
        xid => xid_words(xid),
    }
}

/// Returns the number of the last error of a device, 0 where there was none, and `None` where that is not known: nobody
/// listens, or it does not answer.
fn last_error(sample: &Sample, seen: &PageInput) -> Option<u64> {
    let is_silent = sample.silence().is_some() || !seen.listened_to.contains(&sample.device);
    let none = (!is_silent && !seen.collection.is_cached).then_some(0);
    seen.errors.last(&sample.device).or(none)
}

impl Unit {
    /// Returns a value as DCGM gives it.
    fn of(self, value: f64) -> f64 {
        match self {
            Self::Whole(scale) => (value * scale).round(),
            Self::Exact => value,
            Self::Mebibytes => (value / 1_048_576.0).floor(),
        }
    }
}

/// Whom a series is of: a device, or a GPU instance of one that is divided. Compute instances in one GPU instance share what is
/// told of it.
struct Series<'a> {
    device: &'a Device,
    whole: &'a Sample,
    /// The samples of the instance.
    parts: Vec<&'a Sample>,
    owner: Option<&'a Owner>,
    index: String,
    name: String,
    model: Cow<'a, str>,
    /// The number of the instance, and what it has of the device.
    instance: Option<(String, Option<&'a str>)>,
}

impl<'a> Series<'a> {
    /// Returns the instances of a device, or itself where it is not divided: dcgm-exporter's default, `-d f`.
    fn of(
        device: &'a Device,
        snapshot: &'a GpuSnapshot,
        seen: &'a PageInput,
        names: ModelNames,
    ) -> Vec<Self> {
        let Some(whole) = snapshot.of(&device.uuid) else {
            return Vec::new();
        };
        let series = |parts: Vec<&'a Partition>, instance| Self {
            device,
            whole,
            parts: samples_of(&parts, snapshot),
            owner: owner_of(device, &parts, seen),
            index: device.index.to_string(),
            name: format!("nvidia{}", device.index),
            model: match names {
                ModelNames::Told => device.model.as_str().into(),
                ModelNames::Dashed => device.model.replace(' ', "-").into(),
            },
            instance,
        };
        if device.partitions.is_empty() || device.has_only_unknown_parts() {
            return vec![series(Vec::new(), None)];
        }
        let mut instances: BTreeMap<u32, Vec<&Partition>> = BTreeMap::new();
        for part in &device.partitions {
            // Of one that does not say which it is, nothing can be told apart.
            if let Reading::Value(instance) = part.gpu_instance {
                instances.entry(instance).or_default().push(part);
            }
        }
        let instances = instances.into_iter();
        instances
            .map(|(number, parts)| {
                let profile = parts.iter().find_map(|part| part.profile.as_ref().value());
                let profile = profile.map(|profile| of_gpu_instance(profile));
                series(parts, Some((number.to_string(), profile)))
            })
            .collect()
    }

    /// Returns a figure. An instance has some of its own, and others of its device, as DCGM tells them; memory and activity of
    /// the whole are no instance's, and so are not told where it is not known which instances there are.
    fn value(&self, figure: Figure) -> Option<f64> {
        let is_whole = self.instance.is_none() && !self.device.has_only_unknown_parts();
        let own = self.parts.iter().find_map(|part| part.readings.value(figure));
        let of_whole = || self.whole.readings.value(figure);
        own.or_else(|| of_whole().filter(|_| is_whole || is_shared(figure)))
    }

    /// Returns the labels, in dcgm-exporter's order.
    fn labels<'b>(
        &'b self,
        driver: Option<&'b str>,
        options: &'b Options,
        error: Option<[&'b str; 2]>,
    ) -> Vec<(&'static str, &'b str)> {
        let device = self.device;
        let bus = device.pci_bus_id.as_ref().value();
        let (instance, profile) = match &self.instance {
            Some((number, profile)) => (Some(number.as_str()), *profile),
            None => (None, None),
        };
        let labels = [
            Some(("gpu", self.index.as_str())),
            Some(("UUID", device.uuid.0.as_str())),
            Some(("pci_bus_id", bus.map_or("", String::as_str))),
            Some(("device", self.name.as_str())),
            Some(("modelName", &*self.model)),
            profile.map(|profile| ("GPU_I_PROFILE", profile)),
            instance.map(|instance| ("GPU_I_ID", instance)),
            host(options),
            driver.map(|version| ("DCGM_FI_DRIVER_VERSION", version)),
            self.owner.map(|owner| ("container", owner.container.as_str())),
            error.map(|[code, _]| ("err_code", code)),
            error.map(|[_, words]| ("err_msg", words)),
            self.owner.map(|owner| ("namespace", owner.namespace.as_str())),
            self.owner.map(|owner| ("pod", owner.pod.as_str())),
            self.owner
                .and_then(|owner| Some(("pod_uid", owner.pod_uid.as_deref()?))),
        ];
        labels.into_iter().flatten().collect()
    }
}

fn samples_of<'a>(parts: &[&Partition], snapshot: &'a GpuSnapshot) -> Vec<&'a Sample> {
    let is_of = |sample: &&Sample| {
        let mut parts = parts.iter();
        parts.any(|part| sample.partition.as_ref() == Some(&part.uuid))
    };
    snapshot.samples.iter().filter(is_of).collect()
}

/// Returns the pod that has a device, or an instance, alone. What several share, or dispute, cannot be charged to one of them.
fn owner_of<'a>(device: &Device, parts: &[&Partition], seen: &'a PageInput) -> Option<&'a Owner> {
    if parts.is_empty() {
        return seen.owners.get(&device.uuid).and_then(Owners::only);
    }
    let owned = parts.iter().filter_map(|part| seen.owners.get(&part.uuid));
    let mut owners = owned.map(Owners::only);
    let first = owners.next()??;
    let is_same = |other: Option<&Owner>| other.is_some_and(|other| other.is_pod_of(first));
    owners.all(is_same).then_some(first)
}

/// Returns whether what is told of a device holds for each of its instances.
fn is_shared(figure: Figure) -> bool {
    matches!(
        figure,
        Figure::SmClock
            | Figure::MemoryClock
            | Figure::Temperature
            | Figure::MemoryTemperature
            | Figure::Power
            | Figure::Energy
            | Figure::PcieReplays
            | Figure::UncorrectableRemappedRows
            | Figure::CorrectableRemappedRows
            | Figure::RowRemapPending
            | Figure::RowRemapFailure
            | Figure::CorrectedErrors
            | Figure::UncorrectedErrors
            | Figure::CorrectedErrorsOfAllTime
            | Figure::UncorrectedErrorsOfAllTime
            | Figure::RetiredPagesCorrectable
            | Figure::RetiredPagesUncorrectable
            | Figure::RetiredPagesPending
            | Figure::PowerViolation
            | Figure::ThermalViolation
            | Figure::SyncBoostViolation
            | Figure::BoardLimitViolation
            | Figure::LowUtilizationViolation
            | Figure::ReliabilityViolation
    )
}

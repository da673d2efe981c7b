//! Our own page: base units, names that end in them, and a device's identity in one series that others join with.
//!
//! `blueproof_gpu_power_watts * on(uuid) group_left(model) blueproof_gpu_info` is the power by model. A part of a device has the
//! device's `uuid` and its own as `partition`, which is empty for the whole. What several compute instances share is told of their
//! GPU instance, whose `partition` is `MIG-GPU-…/2`.

mod attempts;
mod health;
pub(super) mod instances;
pub(super) mod owners;

use std::collections::BTreeMap;

use blueproof_core::{
    gpu::{Device, Figure, FigureKind, GpuInventory, GpuProcess, Sample, Vendor},
    metrics::{Exposition, Family, Format, Kind},
};
use jiff::SignedDuration;

use self::instances::Subject;
use super::PageInput;

const DEVICE: &[&str] = &["uuid", "partition"];

macro_rules! figures {
    ($($figure:ident $name:literal $help:literal,)+) => {
        /// Each figure, and what it is called.
        static FIGURES: &[(Figure, Family)] = &[$((
            Figure::$figure,
            Family {
                name: concat!("blueproof_gpu_", $name),
                kind: kind(Figure::$figure),
                labels: DEVICE,
                constant: &[],
                help: $help,
            },
        ),)+];
    };
}

const fn kind(figure: Figure) -> Kind {
    match figure.kind() {
        FigureKind::Counter => Kind::Counter,
        FigureKind::Gauge | FigureKind::Flag => Kind::Gauge,
    }
}

figures! {
    SmClock "sm_clock_hertz" "Clock of the multiprocessors",
    MemoryClock "memory_clock_hertz" "Clock of the memory",
    Temperature "temperature_celsius" "Temperature of the device",
    MemoryTemperature "memory_temperature_celsius" "Temperature of its memory",
    Power "power_watts" "Power that is drawn",
    Energy "energy_joules_total" "Energy since the driver was loaded",
    PcieReplays "pcie_replays_total" "Transfers over PCIe that were made again",
    Utilization "utilization_ratio" "Share of the last moment in which anything ran",
    MemoryUtilization "memory_utilization_ratio" "Share of the last moment in which memory was read or written",
    EncoderUtilization "encoder_utilization_ratio" "Use of the encoder",
    DecoderUtilization "decoder_utilization_ratio" "Use of the decoder",
    MemoryTotal "memory_total_bytes" "Memory of the device",
    MemoryUsed "memory_used_bytes" "Memory that is used",
    MemoryFree "memory_free_bytes" "Memory that is free",
    MemoryReserved "memory_reserved_bytes" "Memory that driver and firmware keep",
    UncorrectableRemappedRows "remapped_rows_uncorrectable_total" "Rows of memory that were replaced after uncorrectable errors",
    CorrectableRemappedRows "remapped_rows_correctable_total" "Rows of memory that were replaced after correctable errors",
    RowRemapPending "row_remap_pending" "Whether rows wait to be replaced at the next reset",
    RowRemapFailure "row_remap_failure" "Whether a row could not be replaced",
    CorrectedErrors "ecc_corrected_errors_total" "Errors of memory that were corrected, since the driver was loaded",
    UncorrectedErrors "ecc_uncorrected_errors_total" "Errors of memory that could not be corrected, since the driver was loaded",
    CorrectedErrorsOfAllTime "ecc_corrected_errors_of_all_time_total" "Errors of memory that were corrected, of all time",
    UncorrectedErrorsOfAllTime "ecc_uncorrected_errors_of_all_time_total" "Errors of memory that could not be corrected, of all time",
    RetiredPagesCorrectable "retired_pages_correctable_total" "Pages of memory retired after several correctable errors",
    RetiredPagesUncorrectable "retired_pages_uncorrectable_total" "Pages of memory retired after an uncorrectable error",
    RetiredPagesPending "retired_pages_pending" "Whether pages wait to be retired at the next reset",
    PowerViolation "power_violation_seconds_total" "Time in which its power limit held it back",
    ThermalViolation "thermal_violation_seconds_total" "Time in which its heat held it back",
    SyncBoostViolation "sync_boost_violation_seconds_total" "Time in which it was held back to keep step with others",
    BoardLimitViolation "board_limit_violation_seconds_total" "Time in which a limit of its board held it back",
    LowUtilizationViolation "low_utilization_violation_seconds_total" "Time in which it was held back because little ran on it",
    ReliabilityViolation "reliability_violation_seconds_total" "Time in which it was held back to stay reliable",
    HardwareSlowdown "hardware_slowdown" "Whether its hardware slows it down",
    HardwareThermalSlowdown "hardware_thermal_slowdown" "Whether its hardware slows it down for heat",
    HardwarePowerBrake "hardware_power_brake" "Whether the power supply slows it down",
    SoftwareThermalSlowdown "software_thermal_slowdown" "Whether the driver slows it down for heat",
    PowerCap "power_cap" "Whether its power limit holds it back",
    PcieGeneration "pcie_generation" "Generation of PCIe that it speaks now",
    PcieGenerationMost "pcie_generation_max" "Generation of PCIe that it could speak",
    PcieWidth "pcie_width_lanes" "Lanes of PCIe that it is connected by now",
    PcieWidthMost "pcie_width_max_lanes" "Lanes of PCIe that it could be connected by",
    EngineActive "engine_active_ratio" "Share of the time in which its graphics or compute engine was active",
    SmActive "sm_active_ratio" "Share of its multiprocessors that had work, over the time",
    SmOccupancy "sm_occupancy_ratio" "Share of the warps that could be there, over the time",
    TensorActive "tensor_active_ratio" "Share of the time in which its tensor cores were active",
    DramActive "dram_active_ratio" "Share of the time in which data went to or from its memory",
    Fp64Active "fp64_active_ratio" "Share of the time in which its 64-bit units were active",
    Fp32Active "fp32_active_ratio" "Share of the time in which its 32-bit units were active",
    Fp16Active "fp16_active_ratio" "Share of the time in which its 16-bit units were active",
    PcieSent "pcie_sent_bytes_per_second" "What it sends over PCIe",
    PcieReceived "pcie_received_bytes_per_second" "What it gets over PCIe",
    NvlinkSent "nvlink_sent_bytes_per_second" "What it sends over NVLink",
    NvlinkReceived "nvlink_received_bytes_per_second" "What it gets over NVLink",
}

macro_rules! families {
    ($($family:ident $kind:ident $name:literal [$($label:literal)*] $help:literal,)+) => {
        $(
            #[doc = concat!("`", $name, "`: ", $help)]
            pub static $family: Family = Family {
                name: $name,
                kind: Kind::$kind,
                labels: &[$($label),*],
                constant: &[],
                help: $help,
            };
        )+
        static OTHERS: &[&Family] = &[$(&$family),+];
    };
}

families! {
    UP Gauge "blueproof_gpu_probe_up" [] "Whether devices could be read",
    BLIND Gauge "blueproof_gpu_probe_blind" ["reason"] "Why no device can be read",
    FAILURES Counter "blueproof_gpu_collection_failures_total" [] "How often no device could be read",
    CACHED Gauge "blueproof_gpu_collection_cached" [] "Whether this is what was read before, because reading takes too long now",
    AGE Gauge "blueproof_gpu_collection_age_seconds" [] "How long ago reading began",
    TOOK Gauge "blueproof_gpu_collection_took_seconds" [] "How long reading took",
    DEVICES Gauge "blueproof_gpus" ["kind"] "How many devices there are",
    INFO Gauge "blueproof_gpu_info" ["uuid" "partition" "index" "vendor" "model" "profile" "pci_bus_id" "serial" "driver_version" "api_version"] "Who a device is",
    FAULTS Gauge "blueproof_gpu_unreadable_figures" ["uuid" "partition" "fault"] "How many figures that the device has could not be read",
    PEAK Gauge "blueproof_gpu_utilization_peak_ratio" ["uuid" "partition"] "The most of the driver's own samples that were read in the last 65 seconds",
    PROCESS_MEMORY Gauge "blueproof_gpu_process_memory_bytes" ["uuid" "partition" "pid"] "Memory of the device that a process has",
    PROCESS_UTILIZATION Gauge "blueproof_gpu_process_utilization_ratio" ["uuid" "partition" "pid"] "Share of the time since the last reading in which a process ran there",
    XIDS Counter "blueproof_gpu_xid_errors_total" ["uuid" "xid"] "How often the driver reported an error",
    XID_LAST Gauge "blueproof_gpu_xid_last_timestamp_seconds" ["uuid" "xid"] "When the driver reported an error last",
    HEALTH Gauge "blueproof_gpu_health" ["uuid" "check" "state"] "What a check of a device found: ok, problem or unknown",
    OWNER Gauge "blueproof_gpu_owner" ["uuid" "partition" "namespace" "pod" "container" "sharing"] "Who has a device, or a share of it",
    OWNER_SHARES Gauge "blueproof_gpu_owner_shares" ["uuid" "partition" "namespace" "pod"] "How many shares of one device a pod has, where it is more than one: it asked for several devices, and got one several times",
    DISPUTED Gauge "blueproof_gpu_owner_disputed" ["uuid" "partition"] "How many pods claim what only one of them can have",
    KUBELET Gauge "blueproof_pod_resources_up" [] "Whether the kubelet told who has which device",
    SILENT Gauge "blueproof_pod_resources_silent" ["reason"] "Why the kubelet told nothing",
    KUBELET_FAILURES Counter "blueproof_pod_resources_failures_total" [] "How often the kubelet told nothing",
    KUBELET_AGE Gauge "blueproof_pod_resources_age_seconds" [] "How long ago the kubelet was asked for what it is told to have said",
    KUBELET_PODS Gauge "blueproof_pod_resources_pods" [] "How many pods the kubelet lists",
    KUBELET_DEVICES Gauge "blueproof_pod_resources_devices" ["resource" "state"] "Devices that pods were given, and whether they were found",
    ATTEMPTS_UP Gauge "blueproof_attempts_up" [] "Whether it could be read which attempts have devices of this machine",
    ATTEMPT_INFO Gauge "blueproof_attempt_info" ["attempt" "run" "repository" "pull_request" "blueprint" "profile"] "Who an attempt is that has devices of this machine, or had them in the last two minutes",
    ATTEMPT_GPUS Gauge "blueproof_attempt_gpus" ["attempt" "kind"] "How many devices an attempt was promised, and how many different ones it was given",
    ATTEMPT_ALLOCATED Counter "blueproof_attempt_gpu_allocated_seconds_total" ["attempt" "uuid" "partition"] "For how long the attempt has had the device, or its share of that time",
    ATTEMPT_SEEN Counter "blueproof_attempt_gpu_seen_seconds_total" ["attempt" "uuid" "partition"] "Of how much of that time it is known how busy the device was",
    ATTEMPT_BUSY Counter "blueproof_attempt_gpu_busy_seconds_total" ["attempt" "uuid" "partition"] "How much of that the device was busy",
    ATTEMPT_ENERGY Counter "blueproof_attempt_gpu_energy_joules_total" ["attempt" "uuid" "partition"] "What the device drew in that time",
    ATTEMPT_PEAK Gauge "blueproof_attempt_gpu_utilization_peak_ratio" ["attempt" "uuid" "partition"] "The most of the driver's own samples in that time",
    ATTEMPT_MEMORY Gauge "blueproof_attempt_gpu_memory_peak_bytes" ["attempt" "uuid" "partition"] "The most memory that its processes used at once, or all processes where the driver does not tell them apart",
    ATTEMPT_XIDS Counter "blueproof_attempt_gpu_xid_errors_total" ["attempt" "uuid" "partition" "xid"] "How often the driver reported an error in that time",
    CHARGED Counter "blueproof_gpu_charged_seconds_total" ["uuid" "partition" "to"] "Device time by who is charged with it: attempts, nobody, parts that are divided by themselves, or none of those who shared it",
    CHARGED_BUSY Counter "blueproof_gpu_charged_busy_seconds_total" ["uuid" "partition" "to"] "How busy the device was, by who is charged with it",
    CHARGED_ENERGY Counter "blueproof_gpu_charged_energy_joules_total" ["uuid" "partition" "to"] "What the device drew, by who is charged with it",
    DYNAMIC Gauge "blueproof_pod_resources_dynamic_devices" ["driver"] "Devices given by dynamic resource allocation, whose owners are not known here",
}

/// Returns the metrics that the page may have.
pub fn families() -> impl Iterator<Item = &'static Family> {
    OTHERS
        .iter()
        .copied()
        .chain(FIGURES.iter().map(|(_, family)| family))
}

/// Returns the metric of a figure.
pub fn family(figure: Figure) -> &'static Family {
    let found = FIGURES.iter().find(|(other, _)| *other == figure);
    let (_, family) = found.expect("each figure is in the table");
    family
}

/// Returns the page.
pub fn render(seen: &PageInput, format: Format) -> String {
    let mut page = Exposition::new(format);
    collection(seen, &mut page);
    if seen.devices.is_some() {
        devices(seen, &mut page);
        figures(seen, &mut page);
        processes(seen, &mut page);
        health::checks(seen, &mut page);
        owners::owners(seen, &mut page);
    }
    owners::attribution(seen, &mut page);
    attempts::attempts(seen, &mut page);
    errors(seen, &mut page);
    page.finish()
}

fn one(page: &mut Exposition, family: &Family, value: f64) {
    page.family(family);
    page.sample(family, &[], value);
}

/// Writes a sample for each, and nothing where there is none.
fn each<'a>(
    page: &mut Exposition,
    family: &Family,
    samples: impl Iterator<Item = (impl AsRef<[(&'static str, &'a str)]>, f64)>,
) {
    let mut samples = samples.peekable();
    if samples.peek().is_some() {
        page.family(family);
    }
    for (labels, value) in samples {
        page.sample(family, labels.as_ref(), value);
    }
}

/// Writes how reading went.
pub(super) fn collection(seen: &PageInput, page: &mut Exposition) {
    let of = &seen.collection;
    one(page, &UP, f64::from(u8::from(of.blind.is_none())));
    if let Some(blind) = of.blind {
        page.family(&BLIND);
        page.sample(&BLIND, &[("reason", blind.as_str())], 1.0);
    }
    one(page, &FAILURES, count(of.failures));
    one(page, &CACHED, f64::from(u8::from(of.is_cached)));
    if let Some(age) = of.age {
        one(page, &AGE, age.as_secs_f64());
    }
    if let Some((_, snapshot)) = &seen.devices {
        one(page, &TOOK, snapshot.took.as_secs_f64());
    }
}

fn devices(seen: &PageInput, page: &mut Exposition) {
    let Some((inventory, _)) = &seen.devices else {
        return;
    };
    health::counts(inventory, seen, page);
    if inventory.devices.is_empty() {
        return;
    }
    page.family(&INFO);
    let (driver, api) = (&inventory.driver_version, &inventory.api_version);
    let versions = [driver, api].map(|version| version.as_deref().unwrap_or_default());
    for device in &inventory.devices {
        info(device, versions, page);
    }
}

fn info(device: &Device, [driver, api]: [&str; 2], page: &mut Exposition) {
    let index = device.index.to_string();
    let text = |reading: &blueproof_core::gpu::Reading<String>| reading.clone().value().unwrap_or_default();
    let (bus, serial) = (text(&device.pci_bus_id), text(&device.serial));
    let whole = std::iter::once((String::new(), String::new()));
    let parts = device
        .partitions
        .iter()
        .map(|part| (part.uuid.to_string(), text(&part.profile)));
    let shared = instances::shared(device).map(|shared| (shared.name, shared.profile.to_owned()));
    for (partition, profile) in whole.chain(parts).chain(shared) {
        let values = [
            device.uuid.0.as_str(),
            &partition,
            &index,
            vendor(device.vendor),
            &device.model,
            &profile,
            &bus,
            &serial,
            driver,
            api,
        ];
        let labels: Vec<_> = INFO.labels.iter().copied().zip(values).collect();
        page.sample(&INFO, &labels, 1.0);
    }
}

fn figures(seen: &PageInput, page: &mut Exposition) {
    let Some((inventory, snapshot)) = &seen.devices else {
        return;
    };
    let subjects = instances::subjects(inventory, snapshot);
    for (figure, family) in FIGURES {
        series(page, family, &subjects, |subject| subject.value(*figure));
    }
    series(page, &PEAK, &subjects, |subject| {
        subject.find(|sample| seen.peaks.of(sample))
    });
    faults(inventory, &snapshot.samples, page);
}

/// Writes one sample for each that has one.
fn series<'a>(
    page: &mut Exposition,
    family: &Family,
    subjects: &'a [Subject<'a>],
    value: impl Fn(&Subject<'a>) -> Option<f64>,
) {
    let values = subjects
        .iter()
        .filter_map(|subject| Some((subject.labels(), value(subject)?)));
    each(page, family, values);
}

/// What is told of a process.
type OfProcess = (&'static Family, fn(&GpuProcess) -> Option<f64>);

const OF_PROCESS: [OfProcess; 2] = [
    (&PROCESS_MEMORY, |process| {
        process.memory.clone().value().map(|bytes| count(bytes.0))
    }),
    (&PROCESS_UTILIZATION, |process| {
        process.utilization.clone().value()
    }),
];

fn processes(seen: &PageInput, page: &mut Exposition) {
    let Some((_, snapshot)) = seen.devices.as_ref().filter(|_| seen.shows_processes) else {
        return;
    };
    let processes = snapshot.samples.iter().flat_map(|sample| {
        let of_sample = sample.processes.as_ref().value().into_iter().flatten();
        of_sample.map(move |process| (sample, process, process.pid.to_string()))
    });
    let processes: Vec<_> = processes.collect();
    for (family, value) in OF_PROCESS {
        let values = processes.iter().filter_map(|(sample, process, pid)| {
            let labels = [of(sample).as_slice(), &[("pid", pid)]].concat();
            Some((labels, value(process)?))
        });
        each(page, family, values);
    }
}

fn of(sample: &Sample) -> [(&'static str, &str); 2] {
    let partition = sample.partition.as_ref().map_or("", |part| part.0.as_str());
    [("uuid", sample.device.0.as_str()), ("partition", partition)]
}

fn faults(inventory: &GpuInventory, samples: &[Sample], page: &mut Exposition) {
    let faulty: Vec<_> = samples
        .iter()
        .map(|sample| (sample, words(inventory, sample)))
        .filter(|(_, words)| !words.is_empty())
        .collect();
    if !faulty.is_empty() {
        page.family(&FAULTS);
    }
    for (sample, words) in faulty {
        for (word, times) in words {
            let labels = [of(sample).as_slice(), &[("fault", word)]].concat();
            page.sample(&FAULTS, &labels, count(times));
        }
    }
}

/// Returns how many figures could not be read, by the fault; into which parts a device is divided is one of its own.
fn words<'a>(inventory: &'a GpuInventory, sample: &'a Sample) -> BTreeMap<&'a str, u64> {
    let whole = inventory.device(&sample.device);
    let whole = whole.filter(|_| sample.partition.is_none());
    let unread = whole.and_then(|device| device.unread_partitions.as_ref());
    let parts = whole.into_iter().flat_map(|device| &device.partitions);
    let nameless = parts.filter_map(|part| part.gpu_instance.fault());
    let faults = sample.readings.faults().map(|(_, fault)| fault);
    let mut words = BTreeMap::new();
    for fault in faults.chain(unread).chain(nameless) {
        *words.entry(fault.word.as_str()).or_default() += 1;
    }
    words
}

fn errors(seen: &PageInput, page: &mut Exposition) {
    let counts: Vec<_> = seen
        .errors
        .counts()
        .map(|(device, xid, of)| (device, xid.to_string(), of))
        .collect();
    if counts.is_empty() {
        return;
    }
    page.family(&XIDS);
    for (device, xid, of) in &counts {
        page.sample(&XIDS, &[("uuid", &device.0), ("xid", xid)], count(of.times));
    }
    page.family(&XID_LAST);
    for (device, xid, of) in &counts {
        let since = of.last.duration_since(jiff::Timestamp::UNIX_EPOCH);
        page.sample(
            &XID_LAST,
            &[("uuid", &device.0), ("xid", xid)],
            SignedDuration::as_secs_f64(&since),
        );
    }
}

fn vendor(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Nvidia => "nvidia",
        Vendor::Google => "google",
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "beyond 2^53 nobody tells amounts apart"
)]
fn count(number: u64) -> f64 {
    number as f64
}

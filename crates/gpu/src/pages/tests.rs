//! Both pages, line by line, of devices that do all kinds of things.

mod divided;

use std::collections::{BTreeMap, BTreeSet};

use blueproof_core::{
    domain::Bytes,
    gpu::{
        BusySample, Device, DeviceEvent, DeviceUuid, Fault, FaultKind, Figure, GpuInventory, GpuProcess,
        GpuSnapshot, Partition, Reading, Readings, Sample,
    },
    metrics::Format,
    ports::ProbeErrorKind,
    testing::{device, snapshot},
};
use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::{
    account::{Holder, Ledger},
    health::{Answer, CheckId, CheckPolicy, Facts, Findings, Reports, check},
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("small")
}

fn readings(values: impl IntoIterator<Item = (Figure, f64)>) -> Readings {
    values
        .into_iter()
        .map(|(figure, value)| (figure, Reading::Value(value)))
        .collect()
}

/// An idle device that two share, one that is lost, and one in two parts, of which somebody has one and two claim the other.
fn seen() -> PageInput {
    let mut devices: Vec<_> = (0..3).map(device).collect();
    devices[2].is_partitioned = Reading::Value(true);
    devices[2].partitions = (1..=2).map(partition).collect();
    let mut read = snapshot(100, &devices);
    read.samples[0].busy = Reading::Value(vec![busy(98, 0.25), busy(99, 0.75)]);
    read.samples[0].processes = Reading::Value(processes());
    let lost = Reading::Failed(Fault::new(FaultKind::Lost, "GPU_IS_LOST"));
    let faults = read.samples[1]
        .readings
        .iter()
        .map(|(figure, _)| (figure, lost.clone()));
    read.samples[1].readings = faults.collect();
    read.samples[2]
        .readings
        .set(Figure::Utilization, Reading::Unsupported);
    read.samples
        .extend(devices[2].partitions.iter().map(|part| Sample {
            device: devices[2].uuid.clone(),
            partition: Some(part.uuid.clone()),
            readings: readings([
                (Figure::MemoryTotal, 10_468_982_784.0),
                (Figure::MemoryUsed, 1_048_575.0),
                (Figure::TensorActive, 0.5),
            ]),
            processes: Reading::Value(Vec::new()),
            busy: Reading::Unsupported,
        }));
    let mut peaks = Peaks::default();
    peaks.read(&read);
    let errors = errors(&devices);
    let owners = owners(&devices);
    let attempts = attempts(&devices, &read);
    let inventory_uuids = devices.iter().map(|device| device.uuid.clone()).collect();
    let inventory = GpuInventory {
        driver_version: Some("580.82".into()),
        api_version: Some("13.0".into()),
        devices,
        unidentified: 0,
        unidentified_because: Vec::new(),
    };
    PageInput {
        owners,
        shows_processes: false,
        attribution: Some(attribution()),
        attempts: Some(attempts),
        health: Some(health(&inventory, &read)),
        devices: Some((inventory, read)),
        peaks,
        listened_to: inventory_uuids,
        errors,
        collection: Collection {
            age: Some(SignedDuration::from_millis(2)),
            ..Collection::default()
        },
    }
}

fn errors(devices: &[Device]) -> Errors {
    let mut errors = Errors::default();
    for xid in [31, 79] {
        errors.count(&DeviceEvent {
            at: at(90),
            device: devices[0].uuid.clone(),
            xid,
        });
    }
    errors
}

fn owners(devices: &[Device]) -> BTreeMap<DeviceUuid, Owners> {
    let owner = |pod: &str| Owner {
        namespace: "ci".into(),
        pod: pod.into(),
        pod_uid: None,
        container: "notebook".into(),
        shares: if pod == "two" { 2 } else { 1 },
    };
    let shared = Owners {
        pods: vec![owner("one"), owner("two")],
        is_shared: true,
        disputing: 0,
    };
    let owned = Owners {
        pods: vec![owner("r-41-2 \"quoted\"\n")],
        ..Owners::default()
    };
    let disputed = Owners {
        disputing: 2,
        ..Owners::default()
    };
    let parts = &devices[2].partitions;
    BTreeMap::from([
        (devices[0].uuid.clone(), shared),
        (parts[0].uuid.clone(), owned),
        (parts[1].uuid.clone(), disputed),
    ])
}

/// Two attempts: one with a device and a part of another, of which all is known, and one of which nothing is known yet.
fn attempts(devices: &[Device], read: &GpuSnapshot) -> Attempts {
    let mut ledger = Ledger::new(SignedDuration::from_secs(1));
    let before = GpuSnapshot {
        at: at(90),
        ..read.clone()
    };
    ledger.observe(&before);
    let holder = Holder("r-41.2".into());
    let (whole, part) = (&devices[0].uuid, &devices[2].partitions[0].uuid);
    ledger.hold(at(95), &holder, &[whole.clone(), part.clone()]);
    ledger.report_event(&DeviceEvent {
        at: at(97),
        device: whole.clone(),
        xid: 31,
    });
    ledger.observe(read);
    let device_totals = |device: &DeviceUuid, partition: Option<&DeviceUuid>| DeviceAccounting {
        device: device.clone(),
        partition: partition.cloned(),
        device_totals: ledger
            .device_totals(partition.unwrap_or(device))
            .expect("it was read"),
    };
    Attempts {
        is_known: true,
        attempts: vec![
            Attempt {
                attempt: "r-41.2".into(),
                run: "r-41".into(),
                repository: "a \"quoted\"\n folder".into(),
                pull_request: "123".into(),
                blueprint: "mnist".into(),
                profile: "gpu".into(),
                promised: Some(2),
                usage_record: ledger.usage_record(&holder),
            },
            Attempt {
                attempt: "r-42.1".into(),
                run: "r-42".into(),
                ..Attempt::default()
            },
        ],
        device_totals: vec![
            device_totals(whole, None),
            device_totals(&devices[2].uuid, Some(part)),
        ],
    }
}

fn health(inventory: &GpuInventory, read: &GpuSnapshot) -> Findings {
    let facts = Facts {
        inventory: Ok(inventory),
        snapshots: std::slice::from_ref(read),
        reports: Reports::NONE,
    };
    check(&CheckPolicy::default(), &facts)
}

fn attribution() -> Attribution {
    Attribution {
        told: Some(AllocationReport {
            pods: 6,
            devices: vec![
                ("nvidia.com/gpu".into(), "matched", 2),
                ("nvidia.com/mig-1g.10gb".into(), "disputed", 2),
                ("odd\"\n\\".into(), "ignored", 1),
            ],
            dynamic: BTreeMap::from([("gpu.nvidia.com".into(), 1)]),
            advertised: Some(5),
        }),
        ..Attribution::default()
    }
}

/// One of which all is told, and one of which nothing is.
fn processes() -> Vec<GpuProcess> {
    let told = GpuProcess {
        pid: 41,
        memory: Reading::Value(Bytes(1 << 20)),
        utilization: Reading::Value(0.25),
    };
    let untold = GpuProcess {
        pid: 42,
        memory: Reading::Unsupported,
        utilization: Reading::Unsupported,
    };
    vec![told, untold]
}

fn partition(number: u32) -> Partition {
    Partition {
        uuid: DeviceUuid(format!("MIG-{number}")),
        profile: Reading::Value("1g.10gb".into()),
        gpu_instance: Reading::Value(6 + number),
        compute_instance: Reading::Value(0),
        memory: Reading::Value(Bytes(10_468_982_784)),
    }
}

fn busy(second: i64, utilization: f64) -> BusySample {
    BusySample {
        at: at(second),
        utilization,
    }
}

fn options() -> dcgm::Options {
    dcgm::Options {
        host_label: Some(dcgm::HostLabel::Capital),
        host: "node-1".into(),
        ..dcgm::Options::default()
    }
}

#[test]
fn the_page_of_dcgm_has_its_names_labels_and_units() {
    insta::assert_snapshot!(dcgm::render(&seen(), &options()));
}

#[test]
fn our_own_page_has_base_units_and_says_how_reading_went() {
    insta::assert_snapshot!(native::render(&seen(), Format::Prometheus));
}

#[test]
fn where_nothing_can_be_read_both_pages_say_so_and_why_and_nothing_of_devices() {
    let seen = PageInput {
        collection: Collection {
            blind: Some(ProbeErrorKind::LibraryMissing),
            failures: 3,
            age: Some(SignedDuration::ZERO),
            ..Collection::default()
        },
        ..PageInput::default()
    };
    let expected = [
        "blueproof_gpu_probe_up 0",
        "blueproof_gpu_probe_blind{reason=\"library_missing\"} 1",
        "blueproof_gpu_collection_failures_total 3",
        "blueproof_gpu_collection_cached 0",
        "blueproof_gpu_collection_age_seconds 0",
    ];
    for page in [
        native::render(&seen, Format::Prometheus),
        dcgm::render(&seen, &options()),
    ] {
        let samples: Vec<_> = page.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(samples, expected);
    }
}

#[test]
fn where_the_kubelet_is_silent_nobody_has_anything_and_the_page_says_why() {
    let seen = PageInput {
        owners: BTreeMap::new(),
        attribution: Some(Attribution {
            silence: Some("slow"),
            failures: 4,
            age: None,
            told: None,
        }),
        ..seen()
    };
    let page = native::render(&seen, Format::Prometheus);
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let of_owners: Vec<_> = lines
        .filter(|line| line.contains("_owner") || line.contains("pod_resources"))
        .collect();
    let expected = [
        "blueproof_pod_resources_up 0",
        "blueproof_pod_resources_silent{reason=\"slow\"} 1",
        "blueproof_pod_resources_failures_total 4",
    ];
    assert_eq!(of_owners, expected);
    assert!(!dcgm::render(&seen, &options()).contains("pod="));
}

#[test]
fn where_it_cannot_be_read_who_has_what_the_page_says_so_and_of_devices_that_cannot_be_read_nothing() {
    let mut of = seen();
    of.attempts.as_mut().expect("they were looked for").is_known = false;
    let lines = |seen: &PageInput| {
        let page = native::render(seen, Format::Prometheus);
        let lines = page.lines().filter(|line| line.starts_with("blueproof_attempt"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let known = lines(&seen());
    assert_eq!(known[0], "blueproof_attempts_up 1");
    assert_eq!(lines(&of)[0], "blueproof_attempts_up 0");
    assert_eq!(lines(&of)[1..], known[1..], "what was read before stands");
    of.devices = None;
    assert_eq!(lines(&of), ["blueproof_attempts_up 0"]);
    of.attempts = None;
    assert_eq!(lines(&of), [""; 0]);
}

#[test]
fn processes_have_series_where_somebody_wants_them() {
    let lines = |shows_processes| {
        let seen = PageInput {
            shows_processes,
            ..seen()
        };
        let page = native::render(&seen, Format::Prometheus);
        let lines = page
            .lines()
            .filter(|line| line.starts_with("blueproof_gpu_process"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(false), [""; 0]);
    let labels = "{uuid=\"GPU-00000000\",partition=\"\",pid=\"41\"}";
    let expected = [
        format!("blueproof_gpu_process_memory_bytes{labels} 1048576"),
        format!("blueproof_gpu_process_utilization_ratio{labels} 0.25"),
    ];
    assert_eq!(lines(true), expected, "what is not told has no series");
}

#[test]
fn how_many_are_well_is_told_only_where_that_is_known_of_each() {
    let healthy = |answer: &Answer| {
        let mut seen = seen();
        let findings = seen.health.as_mut().expect("somebody looked");
        for finding in &mut findings.0 {
            finding.answer = Answer::Ok {
                evidence: String::new(),
            };
        }
        let of_first = findings.0.iter_mut();
        let mut ecc = of_first.filter(|finding| finding.check == CheckId::Ecc);
        ecc.next().expect("it was done").answer = answer.clone();
        let page = native::render(&seen, Format::Prometheus);
        let lines = page.lines().filter(|line| line.starts_with("blueproof_gpus{"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let seen = seen();
    let found = |device: usize, check| {
        let (inventory, _) = seen.devices.as_ref().expect("they were read");
        let uuid = &inventory.devices[device].uuid;
        let findings = seen.health.as_ref().expect("somebody looked");
        findings.of(check, Some(uuid)).expect("it was done")
    };
    let (problem, unknown) = (found(1, CheckId::Presence), found(1, CheckId::Ecc));
    let known = ["physical\"} 3", "unidentified\"} 0", "advertised\"} 5"];
    let expected = |healthy: &[&str]| {
        let all = known.into_iter().chain(healthy.iter().copied());
        all.map(|line| format!("blueproof_gpus{{kind=\"{line}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        healthy(&Answer::Ok {
            evidence: String::new()
        }),
        expected(&["healthy\"} 3"])
    );
    assert_eq!(healthy(problem), expected(&["healthy\"} 2"]));
    assert_eq!(healthy(unknown), expected(&[]));
}

#[test]
fn the_host_is_a_label_as_its_readers_want_it() {
    let line = |label| {
        let options = dcgm::Options {
            host_label: label,
            ..options()
        };
        let page = dcgm::render(&seen(), &options);
        let mut samples = page.lines().filter(|line| line.starts_with("DCGM_"));
        samples.next().expect("a sample").to_owned()
    };
    assert!(line(Some(dcgm::HostLabel::Capital)).contains("Hostname=\"node-1\""));
    assert!(line(Some(dcgm::HostLabel::Small)).contains("hostname=\"node-1\""));
    assert!(!line(None).to_lowercase().contains("hostname"));
}

#[test]
fn every_figure_has_one_name_of_our_own() {
    let names: Vec<_> = native::families().map(|family| family.name).collect();
    let once: BTreeSet<_> = names.iter().collect();
    assert_eq!(once.len(), names.len());
    let all = readings(Figure::ALL.iter().map(|figure| (*figure, 1.0)));
    let mut seen = seen();
    let (_, read) = seen.devices.as_mut().expect("they were read");
    read.samples[0].readings = all;
    let page = native::render(&seen, Format::OpenMetrics);
    let of_first = page
        .lines()
        .filter(|line| line.ends_with("{uuid=\"GPU-00000000\",partition=\"\"} 1"));
    assert_eq!(of_first.count(), Figure::ALL.len(), "{page}");
    let names: BTreeSet<_> = Figure::ALL
        .iter()
        .map(|figure| native::family(*figure).name)
        .collect();
    assert_eq!(names.len(), Figure::ALL.len());
}

#[test]
fn that_there_was_no_error_is_told_only_of_devices_that_answer_and_are_listened_to() {
    let told = |seen: &PageInput| {
        let page = dcgm::render(seen, &dcgm::Options::default());
        let lines = page
            .lines()
            .filter(|line| line.starts_with("DCGM_FI_DEV_XID_ERRORS{"));
        lines.count()
    };
    let mut seen = seen();
    assert_eq!(
        told(&seen),
        3,
        "one has errors, two instances none, and one device is lost"
    );
    for kind in [FaultKind::Lost, FaultKind::Hangs] {
        let mut gone = seen.clone();
        for sample in gone.devices.iter_mut().flat_map(|(_, read)| &mut read.samples) {
            sample.processes = Reading::Failed(Fault::new(kind, "GONE"));
        }
        assert_eq!(told(&gone), 1, "{kind:?}: what was reported stands");
    }
    seen.listened_to.clear();
    assert_eq!(told(&seen), 1);
    seen.errors = Errors::default();
    assert_eq!(told(&seen), 0);
}

#[test]
fn a_file_of_counters_says_which_fields_are_shown_in_which_order() {
    let file = "DCGM_FI_DEV_XID_ERRORS, gauge, last error\nDCGM_FI_DEV_GPU_TEMP, gauge, heat\n";
    let options = dcgm::Options {
        counters: Some(dcgm::Counters::read("counters.csv", file.as_bytes()).expect("it is well formed")),
        ..options()
    };
    let page = dcgm::render(&seen(), &options);
    let helps: Vec<_> = page
        .lines()
        .filter(|line| line.starts_with("# HELP DCGM_"))
        .collect();
    assert_eq!(
        helps,
        [
            "# HELP DCGM_FI_DEV_XID_ERRORS last error",
            "# HELP DCGM_FI_DEV_GPU_TEMP heat"
        ]
    );
    assert!(!page.contains("DCGM_FI_DRIVER_VERSION"), "{page}");
}

#[test]
fn names_and_pods_are_labelled_as_somebody_asks() {
    let mut seen = seen();
    let part = seen
        .owners
        .values_mut()
        .find_map(|owners| owners.pods.first_mut().filter(|pod| pod.pod.starts_with("r-41")));
    part.expect("there is one").pod_uid = Some("1234-abcd".into());
    let options = dcgm::Options {
        model_names: dcgm::ModelNames::Dashed,
        ..options()
    };
    let page = dcgm::render(&seen, &options);
    assert!(
        page.contains("modelName=\"NVIDIA-A10\"") && !page.contains("NVIDIA A10"),
        "{page}"
    );
    assert!(page.contains(",pod_uid=\"1234-abcd\"}"), "{page}");
}

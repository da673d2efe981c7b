//! Drivers that lie, hang, say nothing or say it twice, and both pages as they must be then.
//!
//! Time is in a file beside the library, so that a test moves that of the program.

use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

use fake_nvml::{
    Clock, Delay, Device, Fault, Installed, NvmlReturn, Process, Scenario, Steps, Xid, a10, h100_with_mig,
};

use super::program::{LONG, Server, install, lines};

const MIB: u64 = 1 << 20;

/// Leaves the processor to others while a page is waited for.
const BETWEEN_PAGES: Duration = Duration::from_millis(20);

/// The exporter beside a driver.
struct Story {
    library: Installed,
    server: Server,
    devices: Vec<String>,
}

impl Story {
    /// Starts it at second 0, and reads once.
    fn of(mut scenario: Scenario, arguments: &[&str]) -> Self {
        if scenario.clock == Clock::Virtual {
            scenario.clock = Clock::File;
        }
        let library = install(&scenario);
        let server = Server::start(arguments, &library);
        let devices = scenario.devices.into_iter().map(|device| device.uuid).collect();
        let story = Self {
            library,
            server,
            devices,
        };
        story.until("/metrics", |page| page.contains("blueproof_gpu_probe_up 1\n"));
        story
    }

    fn at(&self, second: f64) -> &Self {
        self.library.write_time(second).expect("the folder is there");
        self
    }

    fn native(&self) -> String {
        self.server.get("/metrics", &[]).text()
    }

    fn dcgm(&self) -> String {
        self.server.get("/metrics/dcgm", &[]).text()
    }

    /// Returns the first page that is as it must be.
    fn until(&self, path: &str, is_so: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let page = self.server.get(path, &[]).text();
            if is_so(&page) {
                return page;
            }
            assert!(began.elapsed() < LONG, "{page}");
            // Where a driver hangs it is answered at once.
            thread::sleep(BETWEEN_PAGES);
        }
    }

    /// Returns a sample of our page, without its value.
    fn xid(&self, device: usize, xid: u64) -> String {
        let uuid = &self.devices[device];
        format!("blueproof_gpu_xid_errors_total{{uuid=\"{uuid}\",xid=\"{xid}\"}}")
    }

    /// Returns whether our page says this of a check of a device.
    fn is_found(&self, page: &str, device: usize, check: &str, state: &str) -> bool {
        let uuid = &self.devices[device];
        page.contains(&format!(
            "blueproof_gpu_health{{uuid=\"{uuid}\",check=\"{check}\",state=\"{state}\"}} 1\n"
        ))
    }
}

fn xids(xids: impl IntoIterator<Item = (f64, u64)>) -> Vec<Xid> {
    let xids = xids.into_iter();
    xids.map(|(at, code)| Xid { at, code, mig: None }).collect()
}

/// Returns a call that takes longer than any test from the fourth second on.
fn hang(function: &str, device: Option<usize>) -> Delay {
    Delay {
        function: function.into(),
        device,
        from: 4.0,
        to: None,
        milliseconds: 3_600_000,
    }
}

/// Returns the samples of a page, without their values.
fn series(page: &str) -> Vec<&str> {
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    samples
        .filter_map(|line| Some(line.rsplit_once(' ')?.0))
        .collect()
}

/// Returns the values of a metric's samples that have this in their labels.
fn values(page: &str, metric: &str, has: &str) -> Vec<f64> {
    let samples = lines(page, &format!("{metric}{{"));
    let samples = samples.iter().filter(|line| line.contains(has));
    samples
        .filter_map(|line| line.rsplit_once(' ')?.1.parse().ok())
        .collect()
}

#[test]
fn of_a_driver_that_hangs_as_a_whole_nothing_is_known_once_its_last_reading_is_too_old() {
    let mut scenario = Scenario::of([a10(), a10()]);
    scenario.devices[1].xids = xids([(30.0, 79)]);
    scenario.delays = vec![hang("nvmlDeviceGetCount_v2", None)];
    let story = Story::of(scenario, &["--wait", "1000"]);
    assert_eq!(values(&story.dcgm(), "DCGM_FI_DEV_GPU_UTIL", "").len(), 2);
    story.at(5.0);

    let old = story.until("/metrics", |page| page.contains("_collection_cached 1\n"));
    for device in [0, 1] {
        for check in ["presence", "xids", "slowdown"] {
            assert!(!story.is_found(&old, device, check, "ok"), "{old}");
        }
    }
    let gone = story.until("/metrics", |page| page.contains("blueproof_gpu_probe_up 0\n"));
    assert!(
        gone.contains("_probe_blind{reason=\"not_answering\"} 1\n"),
        "{gone}"
    );
    assert!(!gone.contains("uuid="), "{gone}");
    let dcgm = story.dcgm();
    assert!(
        dcgm.contains("blueproof_gpu_probe_up 0\n") && !dcgm.contains("DCGM_"),
        "{dcgm}"
    );
    assert_eq!(story.server.get("/ready", &[]).status, 503);

    // What its driver reports is heard all the same.
    story.at(31.0);
    story.until("/metrics", |page| {
        page.contains(&format!("{} 1\n", story.xid(1, 79)))
    });
    let dcgm = story.until("/metrics/dcgm", |page| page.contains("DCGM_"));
    assert_eq!(
        values(&dcgm, "DCGM_FI_DEV_XID_ERRORS", &story.devices[1]),
        [79.0],
        "{dcgm}"
    );
    assert_eq!(
        series(&dcgm)
            .iter()
            .filter(|line| line.starts_with("DCGM_"))
            .count(),
        1
    );
}

#[test]
fn of_a_divided_device_whose_parts_cannot_be_read_nothing_is_told_that_is_theirs() {
    for function in [
        "nvmlDeviceGetMigDeviceHandleByIndex",
        "nvmlDeviceGetGpuInstanceId",
    ] {
        let mut scenario = Scenario::of([h100_with_mig(2)]);
        scenario.faults = vec![Fault::always(function, None, NvmlReturn::NoPermission)];
        let story = Story::of(scenario, &[]);
        let dcgm = story.dcgm();
        assert_eq!(values(&dcgm, "DCGM_FI_DEV_GPU_TEMP", "").len(), 1, "{dcgm}");
        for name in [
            "DCGM_FI_DEV_FB_USED",
            "DCGM_FI_DEV_FB_FREE",
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        ] {
            assert_eq!(values(&dcgm, name, "").len(), 0, "{function}: {dcgm}");
        }
    }
}

#[test]
fn that_the_parts_of_a_divided_device_cannot_be_read_is_a_fault_of_it() {
    for (function, returns, faults) in [
        ("nvmlDeviceGetMaxMigDeviceCount", NvmlReturn::Unknown, 1.0),
        (
            "nvmlDeviceGetMigDeviceHandleByIndex",
            NvmlReturn::NoPermission,
            1.0,
        ),
        // One for each of its parts.
        ("nvmlDeviceGetGpuInstanceId", NvmlReturn::NoPermission, 2.0),
    ] {
        let mut scenario = Scenario::of([h100_with_mig(2)]);
        scenario.faults = vec![Fault::always(function, None, returns)];
        let story = Story::of(scenario, &[]);
        let page = story.native();
        assert_eq!(
            values(&page, "blueproof_gpu_unreadable_figures", "partition=\"\""),
            [faults],
            "{page}"
        );
        assert_eq!(values(&story.dcgm(), "DCGM_FI_DEV_FB_USED", "").len(), 0);
    }
}

#[test]
fn a_card_that_has_no_mig_has_no_parts_that_could_not_be_read() {
    let mut scenario = Scenario::of([a10()]);
    scenario.faults = vec![Fault::always(
        "nvmlDeviceGetMaxMigDeviceCount",
        None,
        NvmlReturn::Unknown,
    )];
    let story = Story::of(scenario, &[]);
    let dcgm = story.dcgm();
    for name in ["DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_UTIL"] {
        assert_eq!(values(&dcgm, name, "").len(), 1, "{dcgm}");
    }
    let page = story.native();
    let unreadable = values(&page, "blueproof_gpu_unreadable_figures", "partition=\"\"");
    assert!(unreadable.is_empty(), "{page}");
}

#[test]
fn errors_are_on_the_pages_while_a_device_hangs_its_own_and_its_neighbours() {
    let mut scenario = Scenario::of([a10(), a10()]);
    scenario.devices[0].xids = xids([(8.0, 119)]);
    scenario.devices[1].xids = xids([(8.0, 79)]);
    scenario.delays = vec![hang("nvmlDeviceGetTemperature", Some(0))];
    let story = Story::of(scenario, &[]);
    story.at(5.0);
    story.until("/metrics", |page| page.contains("fault=\"NOT_ANSWERING\""));
    story.at(9.0);
    let page = story.until("/metrics", |page| {
        let told = [story.xid(0, 119), story.xid(1, 79)];
        told.iter().all(|told| page.contains(&format!("{told} 1\n")))
    });
    for device in [0, 1] {
        assert!(story.is_found(&page, device, "xids", "problem"), "{page}");
    }
    let dcgm = story.dcgm();
    for (device, xid) in story.devices.iter().zip([119.0, 79.0]) {
        assert_eq!(values(&dcgm, "DCGM_FI_DEV_XID_ERRORS", device), [xid], "{dcgm}");
    }
}

#[test]
fn that_there_was_no_error_is_not_said_of_a_device_that_is_lost_or_that_nobody_listens_to() {
    let mut scenario = Scenario::of([a10(), a10(), a10()]);
    scenario.devices[1].supported_event_types = 0;
    scenario.faults = vec![Fault {
        function: "*".into(),
        device: Some(2),
        from: 4.0,
        to: None,
        returns: NvmlReturn::GpuIsLost,
    }];
    let story = Story::of(scenario, &[]);
    let page = story.at(5.0).native();
    assert!(story.is_found(&page, 0, "xids", "ok"), "{page}");
    assert!(story.is_found(&page, 1, "xids", "unknown"), "{page}");
    assert!(story.is_found(&page, 2, "xids", "unknown"), "{page}");
    assert!(story.is_found(&page, 2, "presence", "problem"), "{page}");
    let dcgm = story.dcgm();
    let told = lines(&dcgm, "DCGM_FI_DEV_XID_ERRORS{");
    assert_eq!(told.len(), 1, "{dcgm}");
    assert!(
        told[0].contains(&story.devices[0]) && told[0].contains("err_code=\"0\",err_msg=\"No Error\""),
        "{told:?}"
    );
}

#[test]
fn errors_that_come_soon_after_each_other_are_each_told_by_their_own_number() {
    // Whoever looks from time to time cannot look between them, and a machine that has much to do can.
    let errors = [(4.0, 94), (4.4, 45), (4.8, 31), (5.2, 79)];
    let mut scenario = Scenario::of([a10()]);
    scenario.clock = Clock::Real;
    scenario.devices[0].xids = xids(errors);
    let story = Story::of(scenario, &[]);
    let last = format!("{} ", story.xid(0, 79));
    let page = story.until("/metrics", |page| page.contains(&last));
    for (_, xid) in errors {
        assert!(
            page.contains(&format!("{} 1\n", story.xid(0, xid))),
            "{xid} in {page}"
        );
    }
    assert_eq!(values(&story.dcgm(), "DCGM_FI_DEV_XID_ERRORS", ""), [79.0]);
}

/// An H200's memory in parts: the slices of each, its memory in MiB, and its GPU and compute instance.
fn divided<const N: usize>(parts: [(u32, u64, u32, u32); N]) -> Device {
    let mut card = h100_with_mig(0);
    card.memory_total_bytes = 143_771 * MIB;
    let mut like = h100_with_mig(1).mig.expect("it is divided").instances;
    let like = like.remove(0);
    let mig = card.mig.as_mut().expect("it can be divided");
    for (slices, memory, gpu, compute) in parts {
        let mut part = like.clone();
        part.profile = String::new();
        part.slice_count = slices;
        part.memory_total_bytes = memory * MIB;
        part.memory_used_bytes = Steps::constant((100 * u64::from(gpu) * MIB) as f64);
        (part.gpu_instance_id, part.compute_instance_id) = (gpu, compute);
        mig.instances.push(part);
    }
    card
}

#[test]
fn instances_of_an_h200_are_called_on_both_pages_as_its_driver_calls_them() {
    let parts = [(1, 16_384, 7, 0), (2, 33_280, 3, 0), (3, 71_424, 1, 0)];
    let story = Story::of(Scenario::of([divided(parts)]), &[]);
    let (native, dcgm) = (story.native(), story.dcgm());
    for (profile, instance) in [("1g.18gb", 7), ("2g.35gb", 3), ("3g.71gb", 1)] {
        let told = lines(&native, "blueproof_gpu_info{");
        let told = told
            .iter()
            .filter(|line| line.contains(&format!("profile=\"{profile}\"")));
        assert_eq!(told.count(), 1, "{profile} in {native}");
        let labels = format!("GPU_I_PROFILE=\"{profile}\",GPU_I_ID=\"{instance}\"");
        assert_eq!(values(&dcgm, "DCGM_FI_DEV_FB_USED", &labels).len(), 1, "{dcgm}");
    }
}

#[test]
fn a_divided_device_is_told_by_its_gpu_instances_and_what_compute_instances_share_once() {
    let shared = (2, 33_280, 3, 0);
    let mut card = divided([shared, (2, 33_280, 3, 1), (1, 16_384, 7, 0)]);
    card.figures.memory_used_bytes = Steps::constant((1000 * MIB) as f64);
    let story = Story::of(Scenario::of([card]), &[]);
    let (native, dcgm) = (story.native(), story.dcgm());
    for page in [&native, &dcgm] {
        let all = series(page);
        let once: BTreeSet<_> = all.iter().collect();
        assert_eq!(once.len(), all.len(), "{page}");
    }
    for name in ["FB_USED", "FB_FREE", "FB_RESERVED"] {
        let told = lines(&dcgm, &format!("DCGM_FI_DEV_{name}{{"));
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told.iter().all(|line| line.contains("GPU_I_ID=\"")), "{told:?}");
    }
    assert_eq!(
        values(&dcgm, "DCGM_FI_DEV_FB_USED", ""),
        [300.0, 700.0],
        "and not the device's 1000"
    );
    for name in ["GPU_TEMP", "POWER_USAGE", "SM_CLOCK"] {
        let told = values(&dcgm, &format!("DCGM_FI_DEV_{name}"), "GPU_I_ID=\"");
        assert_eq!(told.len(), 2, "{name} in {dcgm}");
    }

    let instance = format!("partition=\"MIG-{}/3\"", story.devices[0]);
    for name in ["memory_used_bytes", "memory_total_bytes"] {
        let name = format!("blueproof_gpu_{name}");
        assert_eq!(values(&native, &name, "partition=\"MIG-").len(), 2, "{native}");
        assert_eq!(values(&native, &name, &instance).len(), 1, "{native}");
    }
}

#[test]
fn how_much_a_process_ran_is_left_out_where_the_driver_has_no_sample_of_it() {
    let process = |pid, share| Process {
        pid,
        memory_used_bytes: Steps::constant(1e9),
        sm_utilization_percent: share,
        ..Process::default()
    };
    let mut card = a10();
    card.processes = vec![
        process(1, Steps::constant(90.0)),
        process(2, Steps::unsupported()),
    ];
    let story = Story::of(Scenario::of([card]), &["--collect", "processes"]);
    let page = story.at(3.0).native();
    let of = |name: &str, pid: u32| {
        let name = format!("blueproof_gpu_process_{name}");
        values(&page, &name, &format!("pid=\"{pid}\""))
    };
    assert_eq!(of("utilization_ratio", 1).len(), 1, "{page}");
    assert_eq!(of("utilization_ratio", 2), [0.0; 0], "{page}");
    assert_eq!(of("memory_bytes", 2), [1e9], "{page}");
}

#[test]
fn each_policy_that_held_clocks_back_is_on_the_page_when_the_file_of_fields_asks_for_it() {
    let mut card = a10();
    // For two seconds the power limit holds it back, and for three it keeps step with others.
    card.figures.throttle_reasons = Steps::of([(0.0, 4.0), (2.0, 16.0), (5.0, 0.0)]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("counters.csv");
    let expected = [
        ("POWER", 2e9),
        ("THERMAL", 0.0),
        ("SYNC_BOOST", 3e9),
        ("BOARD_LIMIT", 0.0),
        ("LOW_UTIL", 0.0),
        ("RELIABILITY", 0.0),
    ];
    let fields = expected.map(|(name, _)| format!("DCGM_FI_DEV_{name}_VIOLATION, counter, {name}\n"));
    std::fs::write(&file, fields.concat()).expect("it is ours");
    let file = file.to_str().expect("it is text");
    let story = Story::of(Scenario::of([card]), &["-f", file]);
    let page = story.at(6.0).dcgm();
    assert_eq!(lines(&page, "DCGM_").len(), expected.len(), "{page}");
    for (name, nanoseconds) in expected {
        let name = format!("DCGM_FI_DEV_{name}_VIOLATION");
        assert_eq!(values(&page, &name, ""), [nanoseconds], "{name}");
    }
}

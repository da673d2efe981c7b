//! What a real Prometheus, from Debian's package `prometheus`, answers to those who read the exporter's pages.
//!
//! It reads the exporter, over a driver's library that answers from a scenario, and a page of runs that is made up; it goes by
//! the rules in `monitoring/`. Then it is asked what the panels there ask, and what others' dashboards and rules do.

#[path = "common/machine.rs"]
mod machine;

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
    time::Instant,
};

use blueproof_core::metrics::{Format, Kind, Page as Figures, families};
use blueproof_gpu::pages::dcgm;
use fake_kubelet::{Allocatable, FakeKubelet, Held, Pod};
use fake_nvml::{Clock, Fault, Installed, NvmlReturn, Scenario, Xid, a10, h200};
use jiff::{SignedDuration, Timestamp};
use machine::Machine;
use real_prometheus::{Job, PATIENCE, Page, Server, Setup, program};
use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};

/// What is not tested where there is no Prometheus.
const WHAT: &str = "dashboards with Prometheus";

/// The exporter, which ends with this.
struct Exporter {
    child: Child,
    address: String,
    /// Its log: were it closed, nothing could be told any more.
    _log: BufReader<ChildStderr>,
    _library: Installed,
    /// Gave a device to a run.
    _machine: Machine,
    _runs: TempDir,
    _counters: NamedTempFile,
}

impl Exporter {
    fn start(scenario: &Scenario, kubelet: &FakeKubelet) -> Self {
        let library = Installed::new(scenario).expect("the library was built beside this test");
        let runs = tempfile::tempdir().expect("a folder");
        let counters = counters();
        let mut machine = Machine::new(runs.path(), &[&scenario.devices[0].uuid]);
        machine.give(41, 1);
        let mut program = Command::new(env!("CARGO_BIN_EXE_blueproof-exporter"));
        program
            .args(["--listen", "127.0.0.1:0", "--wait", "5000", "--host", "node-1"])
            .arg("--pod-resources")
            .arg(kubelet.socket())
            .arg("--collectors")
            .arg(counters.path())
            .arg("--runs")
            .arg(runs.path())
            .arg("--library")
            .arg(library.path());
        let mut child = program
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let mut log = BufReader::new(child.stderr.take().expect("it was asked for"));
        let mut line = String::new();
        log.read_line(&mut line).expect("it says where it listens");
        let address = line.trim().strip_prefix("listening on http://");
        let address = address.and_then(|address| address.strip_suffix("/metrics"));
        Self {
            child,
            address: address.unwrap_or_else(|| panic!("it listens: {line}")).to_owned(),
            _log: log,
            _library: library,
            _machine: machine,
            _runs: runs,
            _counters: counters,
        }
    }
}

/// Returns a file of fields with all that the dashboards ask for: some are not in dcgm-exporter's own.
fn counters() -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a file");
    for family in dcgm::families() {
        let kind = family.kind.as_str();
        writeln!(file, "{}, {kind}, {}", family.name, family.name).expect("it is ours");
    }
    writeln!(file, "DCGM_FI_DRIVER_VERSION, label, Driver Version").expect("it is ours");
    file
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An A10, which has no GPM, and an H200, which does. One has errors again and again, of the other a figure cannot be read.
fn devices() -> Scenario {
    let mut scenario = Scenario::of([a10(), h200()]);
    scenario.clock = Clock::Real;
    // What attempts make of a device is known by the driver's own times.
    scenario.starts_at_unix_seconds = Timestamp::now().as_second().unsigned_abs();
    scenario.devices[0].xids = (1..120)
        .map(|second| Xid {
            at: f64::from(second),
            code: 79,
            mig: None,
        })
        .collect();
    scenario.faults = vec![fault("nvmlDeviceGetEncoderUtilization", NvmlReturn::Unknown)];
    scenario
}

/// Returns one that gave the H200 to a run.
fn kubelet() -> FakeKubelet {
    let kubelet = FakeKubelet::start().expect("a socket");
    kubelet.lists(vec![Pod::with(
        "ci",
        "r-41",
        [Held::of("nvidia.com/gpu", ["nvidia1"])],
    )]);
    let all = Held::of("nvidia.com/gpu", ["nvidia0", "nvidia1"]);
    kubelet.has(Allocatable::Devices(vec![all]));
    kubelet
}

fn no_driver() -> Scenario {
    let mut scenario = Scenario::of([a10()]);
    scenario.faults = vec![fault("nvmlInit_v2", NvmlReturn::DriverNotLoaded)];
    scenario
}

fn fault(function: &str, returns: NvmlReturn) -> Fault {
    Fault::always(function, None, returns)
}

/// Returns a page with a few series of every metric of the scheduler; what is counted grows with each reading.
fn runs(readings: u32) -> String {
    let mut page = Figures::default();
    for family in families() {
        for stage in ["queue", "quota", "place", "start"] {
            let labels: Vec<&str> = family.labels.iter().map(|label| value_of(label, stage)).collect();
            match family.kind {
                Kind::Counter => page.set(family, &labels, f64::from(readings) * 2.0),
                Kind::Gauge if family.name.contains("timestamp") => {
                    let days_ago = Timestamp::now() - SignedDuration::from_hours(48);
                    page.set(
                        family,
                        &labels,
                        days_ago.duration_since(Timestamp::UNIX_EPOCH).as_secs_f64(),
                    );
                }
                Kind::Gauge => page.set(family, &labels, 0.5),
                Kind::Histogram(_) => {
                    for run in 0..readings {
                        page.observe(family, &labels, SignedDuration::from_secs(i64::from(run % 90)));
                    }
                }
            }
        }
    }
    page.render(Format::Prometheus)
}

fn value_of(label: &str, stage: &'static str) -> &'static str {
    match label {
        "stage" => stage,
        "blueprint" => "nano-lm",
        "profile" => "smoke",
        "verdict" => "passed",
        "resource" => "nvidia.com/gpu",
        "flavor" => "h200",
        "status" => "active",
        _ => "red",
    }
}

/// The folder with what is shipped.
fn monitoring() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../monitoring")
}

/// Returns what the panels ask: the title of each, and its query for everything that can be chosen.
fn panels() -> Vec<(String, String)> {
    let mut queries = Vec::new();
    for file in fs::read_dir(monitoring().join("dashboards")).expect("a folder") {
        let text = fs::read_to_string(file.expect("a file").path()).expect("text");
        let dashboard: Value = serde_json::from_str(&text).expect("JSON");
        for panel in dashboard["panels"].as_array().expect("a list") {
            for target in panel["targets"].as_array().into_iter().flatten() {
                let name = format!("{}: {}", dashboard["title"], panel["title"]);
                queries.push((name, chosen(target["expr"].as_str().expect("text"))));
            }
        }
    }
    assert!(queries.len() > 50, "{queries:?}");
    queries
}

/// Puts what Grafana would into a query where everything is chosen.
fn chosen(query: &str) -> String {
    let query = query.replace("$__rate_interval", "30s");
    let variables = [
        "cluster_queue",
        "resource",
        "instance",
        "uuid",
        "blueprint",
        "profile",
        "gpu",
    ];
    variables.iter().fold(query, |query, variable| {
        query.replace(&format!("${variable}"), ".*")
    })
}

/// Asks, each time that the page was read, until each query has an answer; returns what has none after a long time.
fn unanswered(server: &Server, page: &Page, mut queries: Vec<(String, String)>) -> Vec<(String, String)> {
    let began = Instant::now();
    while !queries.is_empty() && began.elapsed() < PATIENCE {
        page.wait();
        queries.retain(|(_, query)| !server.ask(query).iter().any(is_number));
    }
    queries
}

fn is_number(series: &Value) -> bool {
    series["value"][1].as_str().is_some_and(|value| value != "NaN")
}

/// Returns the devices in the answer to a query, by their names.
fn models(server: &Server, query: &str) -> BTreeSet<String> {
    let series = server.ask(&chosen(query));
    let name = |series: &Value| series["metric"]["modelName"].as_str().unwrap_or("all").to_owned();
    series.iter().map(name).collect()
}

#[test]
fn every_panel_and_the_dashboards_and_rules_of_others_have_answers() {
    let Some(prometheus) = program("prometheus", WHAT) else {
        return;
    };
    let kubelet = kubelet();
    let exporter = Exporter::start(&devices(), &kubelet);
    let blind = Exporter::start(&no_driver(), &kubelet);
    let mut readings = 0;
    let page = Page::serve(Format::Prometheus.content_type(), move || {
        readings += 1;
        runs(readings)
    });
    let folder = tempfile::tempdir().expect("a folder");
    let files = ["recording-rules.yaml", "alerts-runs.yaml", "alerts-devices.yaml"];
    let setup = Setup {
        jobs: vec![
            Job::new("blueproof-exporter", &exporter.address, "/metrics/native"),
            Job::new("blind", &blind.address, "/metrics/native"),
            Job::new("dcgm", &exporter.address, "/metrics/dcgm"),
            Job::new("runs", page.address(), "/metrics"),
        ],
        rules: files.iter().map(|file| monitoring().join(file)).collect(),
    };
    let server = Server::start(prometheus, folder.path(), &setup);
    page.wait();
    page.wait();

    let others = OTHERS
        .iter()
        .map(|(whose, query, _)| ((*whose).to_owned(), chosen(query)));
    let without = unanswered(&server, &page, panels().into_iter().chain(others).collect());
    assert!(without.is_empty(), "no answer within {PATIENCE:?}: {without:#?}");
    for (whose, query, expected) in OTHERS {
        let expected = expected.iter().map(ToString::to_string).collect();
        assert_eq!(models(&server, query), expected, "{whose}: {query}");
    }
}

/// Both cards, and the one that has GPM and HBM.
const BOTH: &[&str] = &["NVIDIA A10", "NVIDIA H200"];
const H200: &[&str] = &["NVIDIA H200"];
const ALL: &[&str] = &["all"];

/// What others ask of dcgm-exporter, as far as NVML can answer, and of which cards.
const OTHERS: &[(&str, &str, &[&str])] = &[
    (
        GRAFANA,
        "DCGM_FI_DEV_GPU_TEMP{instance=~\"$instance\", gpu=~\"$gpu\"}",
        BOTH,
    ),
    (
        GRAFANA,
        "avg(DCGM_FI_DEV_GPU_TEMP{instance=~\"$instance\", gpu=~\"$gpu\"})",
        ALL,
    ),
    (
        GRAFANA,
        "DCGM_FI_DEV_POWER_USAGE{instance=~\"$instance\", gpu=~\"$gpu\"}",
        BOTH,
    ),
    (
        GRAFANA,
        "sum(DCGM_FI_DEV_POWER_USAGE{instance=~\"$instance\", gpu=~\"$gpu\"})",
        ALL,
    ),
    (
        GRAFANA,
        "DCGM_FI_DEV_SM_CLOCK{instance=~\"$instance\", gpu=~\"$gpu\"} * 1000000",
        BOTH,
    ),
    (
        GRAFANA,
        "DCGM_FI_DEV_GPU_UTIL{instance=~\"$instance\", gpu=~\"$gpu\"}",
        BOTH,
    ),
    (
        GRAFANA,
        "DCGM_FI_DEV_FB_USED{instance=~\"$instance\", gpu=~\"$gpu\"}",
        BOTH,
    ),
    (
        GRAFANA,
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{instance=~\"$instance\", gpu=~\"$gpu\"}",
        H200,
    ),
    (OPENSHIFT, "DCGM_FI_DEV_GPU_UTIL", BOTH),
    (OPENSHIFT, "DCGM_FI_DEV_MEM_COPY_UTIL", BOTH),
    (OPENSHIFT, "DCGM_FI_DEV_FB_TOTAL", BOTH),
    (OPENSHIFT, "DCGM_FI_DEV_POWER_USAGE", BOTH),
    (OPENSHIFT, "DCGM_FI_DEV_GPU_TEMP", BOTH),
    (OPENSHIFT, "DCGM_FI_DEV_SM_CLOCK", BOTH),
    (OPENSHIFT, "DCGM_FI_DEV_MEM_CLOCK", BOTH),
    (
        AUTOPILOT,
        "label_replace(DCGM_FI_DEV_GPU_UTIL{exported_namespace=~\"\"} == 0, \"node\", \"$1\", \"Hostname\", \"(node-.*)\")",
        BOTH,
    ),
    (
        AUTOPILOT,
        "count by (Hostname) (DCGM_FI_DEV_GPU_UTIL{exported_namespace=~\"\"} == 0) == 2",
        ALL,
    ),
    (OKE, "DCGM_FI_DEV_GPU_UTIL{Hostname=~\"node-1\"}", BOTH),
    (OKE, "DCGM_FI_DEV_GPU_TEMP{Hostname=~\"node-1\"}", BOTH),
    (OKE, "DCGM_FI_DEV_MEMORY_TEMP{Hostname=~\"node-1\"}", H200),
    (OKE, "DCGM_FI_DEV_POWER_USAGE{Hostname=~\"node-1\"}", BOTH),
    (
        OKE,
        "rate(DCGM_FI_DEV_POWER_VIOLATION{Hostname=~\"node-1\"}[1m])",
        BOTH,
    ),
    (
        OKE,
        "rate(DCGM_FI_DEV_THERMAL_VIOLATION{Hostname=~\"node-1\"}[1m])",
        BOTH,
    ),
];

const GRAFANA: &str = "Grafana's dashboard 12239";
const OPENSHIFT: &str = "gpu-operator's rules for OpenShift";
const AUTOPILOT: &str = "Autopilot's dashboard";
const OKE: &str = "OKE's dashboards";
